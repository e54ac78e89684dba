//go:build unix

package atomicfile

import (
	"os"

	"golang.org/x/sys/unix"
)

// Map maps the first n bytes of a file, which may be closed afterwards.
func Map(f *os.File, n int) ([]byte, error) {
	return unix.Mmap(int(f.Fd()), 0, n, unix.PROT_READ, unix.MAP_SHARED)
}

// Unmap ends a mapping.
func Unmap(b []byte) error { return unix.Munmap(b) }

// ReleasePages takes the pages of a mapping from the process until they are read again; the system may
// keep them. It is only advice, so an error has no consequence.
func ReleasePages(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) }
