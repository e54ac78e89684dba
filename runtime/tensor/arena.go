package tensor

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"
)

// Align is the alignment in bytes of every view carved from an [Arena]: one cache line and the
// widest vector register.
const Align = 64

// ErrArenaBusy is returned by [Arena.Close] while bindings still hold the memory.
var ErrArenaBusy = errors.New("arena is still bound")

// Arena is one contiguous block of zeroed memory outside the Go heap. Its addresses never change,
// so C code may keep them while the arena is open (design decision D1). Views are handed out by
// [Arena.Tensor] and [Arena.Float32s]; the arena itself has no allocator, because the layout of a
// network's parameters is decided once, by the caller.
//
// Close returns the memory to the system. Touching a view afterwards panics with a clear message
// when it goes through a Tensor's accessors; a Go slice taken earlier would fault. Code that lets C
// keep addresses calls Retain and Release, and Close refuses while any are held.
type Arena struct {
	mem    []byte
	refs   atomic.Int64
	closed atomic.Bool
}

// NewArena maps an arena of at least n bytes, zeroed.
func NewArena(n int) (*Arena, error) {
	if n < 0 {
		return nil, fmt.Errorf("new arena: %d bytes", n)
	}
	mem, err := mapMemory(max(n, Align))
	if err != nil {
		return nil, fmt.Errorf("new arena of %d bytes: %w", n, err)
	}
	return &Arena{mem: mem}, nil
}

// Size returns the usable bytes.
func (a *Arena) Size() int { return len(a.mem) }

// Retain keeps the memory mapped until the matching Release. It returns an error when the arena is
// closed.
func (a *Arena) Retain() error {
	a.refs.Add(1)
	if a.closed.Load() {
		a.refs.Add(-1)
		return errors.New("retain arena: it is closed")
	}
	return nil
}

// Release undoes one Retain.
func (a *Arena) Release() {
	if a.refs.Add(-1) < 0 {
		panic("tensor: Arena.Release without Retain")
	}
}

// Close unmaps the memory. It returns [ErrArenaBusy], and changes nothing, while the arena is
// retained. Closing twice is no error.
func (a *Arena) Close() error {
	// Closed is set before the holders are counted, and Retain counts before it looks at closed, so
	// that one of two racing calls sees the other.
	if a.closed.Swap(true) {
		return nil
	}
	if n := a.refs.Load(); n > 0 {
		a.closed.Store(false)
		return fmt.Errorf("close arena: %w by %d holders", ErrArenaBusy, n)
	}
	mem := a.mem
	a.mem = nil
	return unmapMemory(mem)
}

func (a *Arena) check() {
	if a.closed.Load() {
		panic("tensor: use of a closed arena")
	}
}

// Tensor returns a view of the arena at byte offset off, which must be a multiple of [Align] unless
// the view is empty.
func (a *Arena) Tensor(d DType, off int, shape ...int) (*Tensor, error) {
	a.check()
	n, err := Len(shape)
	if err != nil {
		return nil, fmt.Errorf("arena view: %w", err)
	}
	size := d.ByteLen(n)
	if d.Size() == 0 {
		return nil, fmt.Errorf("arena view: element type %v has no fixed size", d)
	}
	if off < 0 || off%Align != 0 || off > len(a.mem) || size > len(a.mem)-off {
		return nil, fmt.Errorf("arena view: bytes [%d, %d) of %d (offsets are multiples of %d)", off, off+size, len(a.mem), Align)
	}
	t, err := OfBytes(d, a.mem[off:off+size:off+size], shape...)
	if err != nil {
		return nil, err
	}
	t.arena = a
	return t, nil
}

// Float32s returns n floats at byte offset off as a slice over the arena. It panics when they do
// not lie inside.
func (a *Arena) Float32s(off, n int) []float32 {
	a.check()
	if off < 0 || n < 0 || off%4 != 0 || off+4*n > len(a.mem) {
		panic(fmt.Sprintf("tensor: arena floats [%d, +%d) of %d bytes", off, n, len(a.mem)))
	}
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&a.mem[off])), n)
}

// AlignUp rounds n up to the next multiple of [Align].
func AlignUp(n int) int { return (n + Align - 1) &^ (Align - 1) }
