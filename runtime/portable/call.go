package portable

import (
	"fmt"
	"slices"
	"unsafe"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// call is one step of one frame: what a kernel sees when it runs. Everything it hands out is kept
// for the next run.
type call struct {
	*step
	f    *frame
	args []*tensor.Tensor
	head []header
	// state is the kernel's own, kept from run to run; see keep.
	state any
	dims  [4][]int
	half  *halves
}

// header is the tensor last made for an output, good for the next run while element type, shape and
// memory stay.
type header struct {
	t   *tensor.Tensor
	gen int
	mem unsafe.Pointer
}

func (c *call) exec() error {
	vals := c.f.vals
	wide := false
	for i := range c.args {
		c.args[i] = nil
		if id := c.in[i]; id >= 0 {
			t := vals[id]
			c.args[i] = t
			if t == nil && i < c.op.minIn && c.f.seqs[id] == nil {
				return fmt.Errorf("input %d has no value", i)
			}
			wide = wide || t != nil && (t.DType() == tensor.Float16 || t.DType() == tensor.BFloat16)
		}
	}
	if wide && !c.op.exact {
		return c.viaFloat32(c.kernel)
	}
	return c.kernel(c)
}

// n returns the number of inputs, absent ones included.
func (c *call) n() int { return len(c.args) }

// arg returns input i, or nil when it is absent.
func (c *call) arg(i int) *tensor.Tensor {
	if i >= len(c.args) {
		return nil
	}
	return c.args[i]
}

// seq returns input i as a sequence, or nil.
func (c *call) seq(i int) *sequence {
	if i >= len(c.in) || c.in[i] < 0 {
		return nil
	}
	return c.f.seqs[c.in[i]]
}

// wants reports whether anything reads output i.
func (c *call) wants(i int) bool { return i < len(c.out) && c.out[i] >= 0 }

// make returns the tensor that output i is to be written to: the caller's, a register, or a new
// one. Its content is undefined. The shape is copied. It leaves the kernel with an error when the
// shape is impossible or differs from that of the caller's tensor.
func (c *call) make(i int, d tensor.DType, shape ...int) *tensor.Tensor {
	if c.half != nil && d == tensor.Float32 {
		return c.half.output(c, i, slices.Clone(shape))
	}
	return c.place(i, d, shape)
}

// place is make without the detour for half-precision floats. Shapes are cloned wherever they could
// escape, so that the caller's stay on the stack.
func (c *call) place(i int, d tensor.DType, shape []int) *tensor.Tensor {
	if !c.wants(i) {
		// Optional outputs that nobody reads are still computed by kernels that make several at
		// once.
		return newTensor(d, slices.Clone(shape))
	}
	id := c.out[i]
	h := &c.head[i]
	if o := c.f.prog.outIndex[id]; o >= 0 {
		t := c.f.bound[o]
		if t == nil {
			t = newTensor(d, slices.Clone(shape))
		} else if t.DType() != d || !slices.Equal(t.Shape(), shape) {
			panic(failure{fmt.Errorf("output %d is %v%v, the tensor given for it is %v", i, d, slices.Clone(shape), t)})
		}
		c.f.vals[id] = t
		return t
	}
	reg := c.f.prog.register[id]
	if reg < 0 {
		// An aliasing operator that had to make memory after all, for instance Dropout in training.
		t := newTensor(d, slices.Clone(shape))
		c.f.vals[id] = t
		return t
	}
	if h.t == nil || h.gen != c.f.regs[reg].gen || h.t.DType() != d || !slices.Equal(h.t.Shape(), shape) {
		c.remake(h, reg, d, slices.Clone(shape))
	}
	c.f.vals[id] = h.t
	return h.t
}

// newTensor is tensor.New for shapes that may be impossible.
func newTensor(d tensor.DType, shape []int) *tensor.Tensor {
	return tensor.New(d, checkedShape(d, shape)...)
}

func (c *call) remake(h *header, reg int, d tensor.DType, shape []int) {
	checkedShape(d, shape)
	if d == tensor.String {
		h.t, h.gen = tensor.New(d, shape...), c.f.regs[reg].gen
		return
	}
	n := d.ByteLen(mustLen(shape))
	r := c.f.grow(reg, n)
	t, err := tensor.OfBytes(d, r.mem[:n:n], shape...)
	if err != nil {
		panic(failure{err})
	}
	h.t, h.gen = t, r.gen
}

func mustLen(shape []int) int {
	n, err := tensor.Len(shape)
	if err != nil {
		panic(failure{err})
	}
	return n
}

// checkedShape returns shape, or leaves the kernel when no tensor can have it.
func checkedShape(d tensor.DType, shape []int) []int {
	n, err := tensor.Len(shape)
	if err == nil && n > maxValueBytes/max(1, d.Size()) {
		err = fmt.Errorf("a value of shape %v is larger than %d bytes", shape, maxValueBytes)
	}
	if err == nil && d != tensor.String && d.Bits() == 0 {
		err = fmt.Errorf("element type %v is not supported", d)
	}
	if err != nil {
		panic(failure{err})
	}
	return shape
}

// view makes output i share src's memory under another shape of as many elements. Where the output
// is the caller's, or leaves the graph, it is copied.
func (c *call) view(i int, src *tensor.Tensor, shape ...int) {
	if !c.wants(i) {
		return
	}
	id := c.out[i]
	if c.f.prog.outIndex[id] >= 0 {
		copyTensor(c.place(i, src.DType(), shape), src)
		return
	}
	if src.DType() == tensor.String || src.Len() == 0 {
		c.f.vals[id] = src.Reshape(slices.Clone(shape)...)
		return
	}
	h := &c.head[i]
	b := src.Bytes()
	if h.t == nil || h.mem != unsafe.Pointer(unsafe.SliceData(b)) || h.t.Arena() != src.Arena() || h.t.DType() != src.DType() || !slices.Equal(h.t.Shape(), shape) {
		h.t = src.Reshape(slices.Clone(shape)...)
		h.mem = unsafe.Pointer(unsafe.SliceData(b))
	}
	c.f.vals[id] = h.t
}

// give makes t, which is the frame's own and will not change, the value of output i. Where the
// output leaves the graph it is copied.
func (c *call) give(i int, t *tensor.Tensor) {
	if !c.wants(i) {
		return
	}
	if c.f.prog.outIndex[c.out[i]] >= 0 {
		copyTensor(c.place(i, t.DType(), t.Shape()), t)
		return
	}
	c.f.vals[c.out[i]] = t
}

// giveSeq makes s the value of output i; nil is an empty optional.
func (c *call) giveSeq(i int, s *sequence) {
	if c.wants(i) {
		c.f.seqs[c.out[i]] = s
		c.f.vals[c.out[i]] = nil
	}
}

func copyTensor(dst, src *tensor.Tensor) {
	if dst.DType() == tensor.String {
		copy(dst.Strings(), src.Strings())
		return
	}
	copy(dst.Bytes(), src.Bytes())
}

// shapeBuf returns an empty int slice whose memory is kept for the next run. k tells several apart.
func (c *call) shapeBuf(k int) []int { return c.dims[k][:0] }

// keepBuf stores a slice made from shapeBuf, so that it is not allocated again.
func (c *call) keepBuf(k int, s []int) []int {
	c.dims[k] = s
	return s
}

// keep returns the kernel's state of type T, made on first use.
func keep[T any](c *call) *T {
	s, ok := c.state.(*T)
	if !ok {
		s = new(T)
		c.state = s
	}
	return s
}

// scratchBuffers is the number of scratch slices that one kernel can hold at a time.
const scratchBuffers = 8

// scratch returns n elements of undefined content, good until the kernel returns. k tells several
// apart.
func scratch[T any](c *call, k, n int) []T {
	var z T
	size := n * int(unsafe.Sizeof(z))
	if len(c.f.buffer[k]) < size {
		if size > maxValueBytes {
			panic(failure{fmt.Errorf("a temporary of %d bytes is too large", size)})
		}
		c.f.buffer[k] = alignedBytes(size)
	}
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(c.f.buffer[k]))), n)
}

// zeroed is scratch set to zero.
func zeroed[T any](c *call, k, n int) []T {
	s := scratch[T](c, k, n)
	clear(s)
	return s
}
