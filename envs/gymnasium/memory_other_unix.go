//go:build unix && !linux

package gymnasium

import "os"

// memoryFile returns a file that no folder has, so that nothing is left of it however the processes
// end.
func memoryFile() (*os.File, error) { return removedFile() }
