package columnar

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow/memory"
)

// boundedAllocator refuses buffers that a file of the given size cannot fill: a damaged Arrow file
// states any size, and asking for it would end the program. Compressed buffers may be a thousand
// times larger than their bytes in the file. The refusal is a panic, as the interface has no error;
// the guards of this package turn it into one.
type boundedAllocator struct {
	memory.Allocator
	file int64
}

func (a *boundedAllocator) check(size int) {
	if int64(size)/1024 > a.file+1024 {
		panic(fmt.Errorf("a buffer of %d bytes in a file of %d", size, a.file))
	}
}

func (a *boundedAllocator) Allocate(size int) []byte {
	a.check(size)
	return a.Allocator.Allocate(size)
}

func (a *boundedAllocator) Reallocate(size int, b []byte) []byte {
	a.check(size)
	return a.Allocator.Reallocate(size, b)
}
