//go:build unix

package gymnasium

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapShared maps the first n bytes of a file, for reading and writing in several processes.
func mapShared(f *os.File, n int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func unmapShared(b []byte) error { return unix.Munmap(b) }

// tryRead reads what is there; again means that it is nothing yet.
func tryRead(fd uintptr, b []byte) (n int, again bool, err error) {
	n, err = unix.Read(int(fd), b)
	again = err == unix.EAGAIN || err == unix.EINTR
	return max(n, 0), again, err
}

// askWhere makes the process write to its standard error what it is doing.
func askWhere(p *os.Process) error { return p.Signal(unix.SIGUSR1) }
