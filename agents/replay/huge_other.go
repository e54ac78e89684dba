//go:build !linux

package replay

// adviseHuge does nothing where huge pages cannot be asked for.
func adviseHuge([]byte) {}
