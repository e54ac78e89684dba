package atomicfile

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/windows"
)

// lock does nothing: Windows itself refuses to remove a file that a process has open.
func lock(*os.File) error { return nil }

// removeStale removes the file; that fails while a process has it open, which is no error.
func removeStale(path string) error {
	_ = os.Remove(path)
	return nil
}

// Lock takes an exclusive lock on path, a file that is created where it is missing, and returns the
// function that releases it. The kernel releases it as well when the process ends in any way. It
// does not wait: ErrLocked says that another process holds the lock.
func Lock(path string) (release func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	flags := uint32(windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY)
	err = windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, new(windows.Overlapped))
	if err == nil {
		return f.Close, nil
	}
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		err = ErrLocked
	}
	f.Close()
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// syncDir does nothing: NTFS journals its names, and a directory cannot be flushed by an ordinary
// process.
func syncDir(string) error { return nil }

// closeBeforeRename is true where an open file cannot be renamed.
const closeBeforeRename = true
