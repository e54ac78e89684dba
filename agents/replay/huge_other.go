//go:build !linux

package replay

// AdviseHuge does nothing where huge pages cannot be asked for.
func AdviseHuge([]byte) {}
