package autodiff

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Context is what a rule builds with. Its methods append nodes to the gradient model and know the
// type of every value. Errors are sticky: the first one ends the differentiation, so rules need not
// check after each operator.
type Context struct {
	b        *onnx.Builder
	env      *shape.Env
	opset    int
	node     *onnx.Node
	mark     int // the number of nodes before the rule that runs
	wants    []bool
	captures []onnx.Value
	fused    map[*onnx.Node]fused
	lifted   map[*onnx.TensorProto]onnx.Value
	origin   map[string]string
	pass     *pass
	// grown is set once an expansion has replaced a node.
	grown bool
}

// Wants reports whether the gradient of input i of the node being differentiated is needed. Rules
// use it to leave out work.
func (c *Context) Wants(i int) bool { return i < len(c.wants) && c.wants[i] }

// Captures lists the outer values that the sub-graphs of the node being differentiated use.
func (c *Context) Captures() []onnx.Value { return c.captures }

// Fail records an error; the first one is kept.
func (c *Context) Fail(format string, args ...any) { c.b.Fail(fmt.Errorf(format, args...)) }

// maxListed is the most elements of a table that a rule works out when a gradient is built.
const maxListed = 1 << 24

// small fails, and is false, where a rule would work out a table of the given extents that is
// larger than any model of use needs.
func (c *Context) small(extents ...int) bool {
	n := 1
	for _, d := range extents {
		if d > 0 && n > maxListed/d {
			c.Fail("extents %v make a table of more than %d numbers, which is not built", extents, maxListed)
			return false
		}
		n *= max(d, 1)
	}
	return true
}

// Type returns what is known of a value's type.
func (c *Context) Type(v onnx.Value) onnx.TensorType { return c.env.Type(v) }

// empty reports whether a value is known to have no elements.
func (c *Context) empty(v onnx.Value) bool {
	dims := c.Type(v).Dims
	return slices.ContainsFunc(dims, func(d onnx.Dim) bool { return d.IsKnown() && d.Value == 0 })
}

// DType returns a value's element type.
func (c *Context) DType(v onnx.Value) tensor.DType { return c.env.Type(v).DType }

// Shape returns the static shape of a value, for rules that need numbers; others use
// [Context.Extents]. It records an error naming the value when its shape is not static, and then
// returns nil.
func (c *Context) Shape(v onnx.Value) []int {
	s, ok := c.env.Type(v).Static()
	if !ok {
		c.failOpen(v, "its shape")
		return nil
	}
	return s
}

// Rank returns the number of axes of a value; it records an error when the rank is not known.
func (c *Context) Rank(v onnx.Value) int {
	t := c.env.Type(v)
	if !t.Ranked {
		c.Fail("value %q has no known rank", v)
	}
	return len(t.Dims)
}

// Known returns the content of a value that is constant, or nil.
func (c *Context) Known(v onnx.Value) *tensor.Tensor {
	f, _ := c.env.Fact(v)
	return f.Const
}

// KnownInts returns the content of a constant integer value as ints. ok is false when it is absent
// or not constant.
func (c *Context) KnownInts(v onnx.Value) (vals []int, ok bool) {
	if v == "" {
		return nil, false
	}
	t := c.Known(v)
	if t == nil {
		return nil, false
	}
	switch t.DType() {
	case tensor.Int64:
		for _, x := range t.Int64s() {
			vals = append(vals, int(x))
		}
	case tensor.Int32:
		for _, x := range t.Int32s() {
			vals = append(vals, int(x))
		}
	default:
		return nil, false
	}
	return vals, true
}

// ExtraOutput returns output i of a forward node, asking the node for it when it was left out.
// Rules use it for values that the forward kernel can provide, such as the indices of a maximum.
func (c *Context) ExtraOutput(n *onnx.Node, i int) onnx.Value {
	for len(n.Output) <= i {
		n.Output = append(n.Output, "")
	}
	if n.Output[i] == "" {
		n.Output[i] = string(c.b.Fresh(n.OpType))
		if err := c.env.Apply(n); err != nil {
			c.b.Fail(err)
		}
	}
	return onnx.Value(n.Output[i])
}

// Op emits a node of the standard domain with one output.
func (c *Context) Op(op string, in []onnx.Value, attrs ...*onnx.Attribute) onnx.Value {
	c.bounded()
	return c.b.Op(op, in, attrs...)
}

// bounded fails where one rule has written more nodes than any use needs, as it may for a hostile
// number of windows or steps.
func (c *Context) bounded() {
	if len(c.b.Graph().Node)-c.mark > maxExpansion {
		c.Fail("it takes more than %d nodes", maxExpansion)
	}
}

// OpN emits a node of the standard domain with n outputs.
func (c *Context) OpN(op string, n int, in []onnx.Value, attrs ...*onnx.Attribute) []onnx.Value {
	c.bounded()
	return c.b.OpN(op, "", n, in, attrs...)
}

// Scalar returns a rank-0 constant of the element type of like.
func (c *Context) Scalar(like onnx.Value, x float64) onnx.Value {
	if c.b.Err() != nil {
		return "" // After an error values have no types.
	}
	return c.b.Const(scalarOf(c.DType(like), x))
}

// Fill returns a constant of the given type and shape with every element x. Zero extents are
// allowed.
func (c *Context) Fill(d tensor.DType, x float64, shape ...int) onnx.Value {
	if c.b.Err() != nil {
		return ""
	}
	n := 1
	for _, s := range shape {
		n *= s
	}
	if n > 64 {
		// A large constant would be stored in the model; ConstantOfShape is folded by engines or
		// filled at run time.
		return c.Op("ConstantOfShape", []onnx.Value{c.b.Ints(shape...)}, onnx.AttrTensor("value", scalarOf(d, x).Reshape(1)))
	}
	t := tensor.New(d, shape...)
	one := scalarOf(d, x).Bytes()
	for i := 0; i < len(t.Bytes()); i += len(one) {
		copy(t.Bytes()[i:], one)
	}
	return c.b.Const(t)
}

// ZerosLike returns zeros of the type of v.
func (c *Context) ZerosLike(v onnx.Value) onnx.Value { return c.FillLike(v, 0) }

func scalarOf(d tensor.DType, x float64) *tensor.Tensor {
	t := tensor.New(d)
	switch d {
	case tensor.Float32:
		t.Float32s()[0] = float32(x)
	case tensor.Float64:
		t.Float64s()[0] = x
	case tensor.Float16:
		tensor.Data[uint16](t)[0] = tensor.Float32ToFloat16(float32(x))
	case tensor.BFloat16:
		tensor.Data[uint16](t)[0] = tensor.Float32ToBFloat16(float32(x))
	case tensor.Int64:
		t.Int64s()[0] = int64(x)
	case tensor.Int32:
		t.Int32s()[0] = int32(x)
	case tensor.Bool:
		t.Bools()[0] = x != 0
	case tensor.Uint8:
		tensor.Data[uint8](t)[0] = uint8(x)
	default:
		panic(fmt.Sprintf("autodiff: scalar of %v", d))
	}
	return t
}

func two(a, b onnx.Value) []onnx.Value { return []onnx.Value{a, b} }

// Add emits a + b.
func (c *Context) Add(a, b onnx.Value) onnx.Value { return c.Op("Add", two(a, b)) }

// Sub emits a − b.
func (c *Context) Sub(a, b onnx.Value) onnx.Value { return c.Op("Sub", two(a, b)) }

// Mul emits a · b, element by element.
func (c *Context) Mul(a, b onnx.Value) onnx.Value { return c.Op("Mul", two(a, b)) }

// Div emits a / b.
func (c *Context) Div(a, b onnx.Value) onnx.Value { return c.Op("Div", two(a, b)) }

// Unary emits a one-input operator of the standard domain.
func (c *Context) Unary(op string, x onnx.Value, attrs ...*onnx.Attribute) onnx.Value {
	return c.Op(op, []onnx.Value{x}, attrs...)
}

// Neg emits −x.
func (c *Context) Neg(x onnx.Value) onnx.Value { return c.Unary("Neg", x) }

// Scale emits x · s for a constant s; a factor of 1 emits nothing.
func (c *Context) Scale(x onnx.Value, s float64) onnx.Value {
	if s == 1 {
		return x
	}
	return c.Mul(x, c.Scalar(x, s))
}

// Shift emits x + s for a constant s.
func (c *Context) Shift(x onnx.Value, s float64) onnx.Value { return c.Add(x, c.Scalar(x, s)) }

// Square emits x · x.
func (c *Context) Square(x onnx.Value) onnx.Value { return c.Mul(x, x) }

// Cast emits a conversion; a value that has the type already is returned as it is.
func (c *Context) Cast(x onnx.Value, d tensor.DType) onnx.Value {
	if c.DType(x) == d {
		return x
	}
	return c.Unary("Cast", x, onnx.AttrInt("to", int(d)))
}

// Where emits an element-wise choice.
func (c *Context) Where(cond, a, b onnx.Value) onnx.Value {
	return c.Op("Where", []onnx.Value{cond, a, b})
}

// Mask emits g · cast(cond): the gradient where cond holds, zero elsewhere. It is faster than Where
// and, unlike it, needs no zero operand; g must be finite where cond is false.
func (c *Context) Mask(g, cond onnx.Value) onnx.Value { return c.Mul(g, c.Cast(cond, c.DType(g))) }

// Reshape emits a reshape to a static shape; nothing is emitted when v has it already.
func (c *Context) Reshape(v onnx.Value, shape ...int) onnx.Value {
	if s, ok := c.Type(v).Static(); ok && slices.Equal(s, shape) {
		return v
	}
	return c.Op("Reshape", two(v, c.b.Ints(shape...)), allowZero(shape)...)
}

// allowZero sets the attribute that keeps an extent of 0 from meaning "copy the input's".
func allowZero(shape []int) []*onnx.Attribute {
	if slices.Contains(shape, 0) {
		return []*onnx.Attribute{onnx.AttrInt("allowzero", 1)}
	}
	return nil
}

// Transpose emits a permutation of axes; the identity emits nothing.
func (c *Context) Transpose(v onnx.Value, perm ...int) onnx.Value {
	if slices.IsSorted(perm) {
		return v
	}
	return c.Unary("Transpose", v, onnx.AttrInts("perm", perm...))
}

// Expand emits a broadcast to a static shape; nothing is emitted when v has it already.
func (c *Context) Expand(v onnx.Value, shape ...int) onnx.Value {
	if s, ok := c.Type(v).Static(); ok && slices.Equal(s, shape) {
		return v
	}
	return c.Op("Expand", two(v, c.b.Ints(shape...)))
}

// MatMul emits a matrix product.
func (c *Context) MatMul(a, b onnx.Value) onnx.Value { return c.Op("MatMul", two(a, b)) }

// Gemm emits A'·B' of two matrices, transposed where asked.
func (c *Context) Gemm(a, b onnx.Value, transA, transB bool) onnx.Value {
	var at []*onnx.Attribute
	if transA {
		at = append(at, onnx.AttrInt("transA", 1))
	}
	if transB {
		at = append(at, onnx.AttrInt("transB", 1))
	}
	return c.Op("Gemm", two(a, b), at...)
}

// Slice emits a slice with unit or given steps. ends may be large to mean "to the end".
func (c *Context) Slice(v onnx.Value, starts, ends, axes, steps []int) onnx.Value {
	in := []onnx.Value{v, c.b.Ints(starts...), c.b.Ints(ends...), c.b.Ints(axes...)}
	if steps != nil {
		in = append(in, c.b.Ints(steps...))
	}
	return c.Op("Slice", in)
}

// Concat emits a concatenation; one value alone is returned as it is.
func (c *Context) Concat(axis int, vs ...onnx.Value) onnx.Value {
	if len(vs) == 1 {
		return vs[0]
	}
	return c.Op("Concat", vs, onnx.AttrInt("axis", axis))
}

// Split emits a split into the given sizes.
func (c *Context) Split(v onnx.Value, axis int, sizes ...int) []onnx.Value {
	if len(sizes) == 1 {
		return []onnx.Value{v}
	}
	return c.OpN("Split", len(sizes), two(v, c.b.Ints(sizes...)), onnx.AttrInt("axis", axis))
}

// Axis returns a non-negative axis for a value of the given rank.
func Axis(axis, rank int) int {
	if axis < 0 {
		return axis + rank
	}
	return axis
}

// Seq returns 0, 1, …, n−1: the axes of a value of rank n.
func Seq(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// prod multiplies extents.
func prod(s []int) int {
	n := 1
	for _, d := range s {
		n *= d
	}
	return n
}
