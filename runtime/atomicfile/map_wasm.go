package atomicfile

import (
	"io"
	"os"
)

// Map reads the first n bytes of a file, as WebAssembly has no mappings.
func Map(f *os.File, n int) ([]byte, error) {
	b := make([]byte, n)
	_, err := io.ReadFull(io.NewSectionReader(f, 0, int64(n)), b)
	return b, err
}

// Unmap does nothing: the memory is the garbage collector's.
func Unmap([]byte) error { return nil }

// ReleasePages does nothing.
func ReleasePages([]byte) {}
