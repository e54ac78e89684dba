package gymnasium

import (
	"os"

	"golang.org/x/sys/unix"
)

// memoryFile returns a file that no folder has, so that nothing is left of it however the processes
// end.
func memoryFile() (*os.File, error) {
	fd, err := unix.MemfdCreate("onnxrl-gymnasium", unix.MFD_CLOEXEC)
	if err != nil {
		return removedFile()
	}
	return os.NewFile(uintptr(fd), "memory shared with Python"), nil
}
