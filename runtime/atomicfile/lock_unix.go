//go:build unix

package atomicfile

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes the advisory lock that says that a process is writing the file. Closing the file
// releases it. It waits for a Clean that has found the new file before it was locked, and is
// removing it.
func lock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
		switch {
		case err == nil || unsupported(err):
			// Some network file systems have no locks; the file is then indistinguishable from a
			// stale one.
			return nil
		case !errors.Is(err, unix.EINTR):
			return err
		}
	}
}

// removeStale removes the file unless a process is writing it. It holds the lock until the file is
// gone: a process that has just created it finds out that it is, see osDisk.Create.
func removeStale(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return nil // Gone, or another user's.
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return nil
	}
	// Another Clean may have removed this file since it was opened, and the process that had just
	// created it has created another of the same name, which it is writing.
	own, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(path)
	if err != nil || !os.SameFile(own, there) {
		return nil
	}
	return os.Remove(path)
}

// Lock takes an exclusive advisory lock on path, a file that is created where it is missing, and
// returns the function that releases it. The kernel releases it as well when the process ends in
// any way. It does not wait: ErrLocked says that another process holds the lock.
func Lock(path string) (release func() error, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case err == nil || unsupported(err):
		return func() error {
			// Closing it would not do: a program that is being started has the file, too, until its
			// own code runs.
			err := unix.Flock(int(f.Fd()), unix.LOCK_UN)
			if unsupported(err) {
				err = nil
			}
			return errors.Join(err, f.Close())
		}, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		err = ErrLocked
	}
	f.Close()
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

func unsupported(err error) bool {
	return errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL)
}

func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !unsupported(err) {
		return err
	}
	return nil
}

// closeBeforeRename is true where an open file cannot be renamed.
const closeBeforeRename = false
