package autodiff

import (
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Extent is one extent of a shape: the number N, or, where Of is set, that of an axis of the value
// Of, which only a run can tell.
type Extent struct {
	N    int
	Of   onnx.Value
	Axis int
}

// Number makes extents of numbers.
func Number(n ...int) []Extent {
	out := make([]Extent, len(n))
	for i, v := range n {
		out[i].N = v
	}
	return out
}

// numbers returns the extents when all are numbers.
func numbers(e []Extent) ([]int, bool) {
	out := make([]int, len(e))
	for i, x := range e {
		if x.Of != "" {
			return nil, false
		}
		out[i] = x.N
	}
	return out, true
}

// Extents returns the extents of a value: numbers where they are known, references to the value
// where they are not. It records an error when the rank is not known.
func (c *Context) Extents(v onnx.Value) []Extent {
	c.Rank(v)
	dims := c.Type(v).Dims
	out := make([]Extent, len(dims))
	for i, d := range dims {
		if d.IsKnown() {
			out[i].N = d.Value
		} else {
			out[i] = Extent{Of: v, Axis: i}
		}
	}
	return out
}

// Vector emits extents as an int64 vector: a constant where all are numbers.
func (c *Context) Vector(e ...Extent) onnx.Value {
	if n, ok := numbers(e); ok {
		return c.b.Ints(n...)
	}
	var parts []onnx.Value
	for at := 0; at < len(e); {
		end := at + 1
		if e[at].Of == "" {
			for end < len(e) && e[end].Of == "" {
				end++
			}
			n, _ := numbers(e[at:end])
			parts = append(parts, c.b.Ints(n...))
		} else {
			for end < len(e) && e[end].Of == e[at].Of && e[end].Axis == e[end-1].Axis+1 {
				end++
			}
			parts = append(parts, c.shapeSlice(e[at].Of, e[at].Axis, e[end-1].Axis+1))
		}
		at = end
	}
	return c.Concat(0, parts...)
}

// shapeSlice emits the extents of the axes from start to end of a value.
func (c *Context) shapeSlice(v onnx.Value, start, end int) onnx.Value {
	var at []*onnx.Attribute
	if start > 0 {
		at = append(at, onnx.AttrInt("start", start))
	}
	if end < c.Rank(v) {
		at = append(at, onnx.AttrInt("end", end))
	}
	return c.Unary("Shape", v, at...)
}

// ShapeOf emits the extents of a value as an int64 vector: a constant where all are known.
func (c *Context) ShapeOf(v onnx.Value) onnx.Value {
	if s, ok := c.Type(v).Static(); ok {
		return c.b.Ints(s...)
	}
	return c.Unary("Shape", v)
}

// count emits the product of extents as a scalar of the element type of like.
func (c *Context) count(e []Extent, like onnx.Value) onnx.Value {
	if n, ok := numbers(e); ok {
		return c.Scalar(like, float64(prod(n)))
	}
	n := c.Op("ReduceProd", []onnx.Value{c.Vector(e...)}, onnx.AttrInt("keepdims", 0))
	return c.Cast(n, c.DType(like))
}

// ReshapeTo emits a reshape; nothing is emitted when v has the shape already.
func (c *Context) ReshapeTo(v onnx.Value, e ...Extent) onnx.Value {
	if n, ok := numbers(e); ok {
		return c.Reshape(v, n...)
	}
	if slices.Equal(c.Extents(v), e) {
		return v
	}
	return c.Op("Reshape", two(v, c.Vector(e...)), onnx.AttrInt("allowzero", 1))
}

// ReshapeLike emits a reshape of v to the shape of like; nothing is emitted when v has it already.
func (c *Context) ReshapeLike(v, like onnx.Value) onnx.Value {
	if s, ok := c.Type(like).Static(); ok {
		return c.Reshape(v, s...)
	}
	if sameShape(c.Type(v), c.Type(like)) {
		return v
	}
	return c.Op("Reshape", two(v, c.ShapeOf(like)), onnx.AttrInt("allowzero", 1))
}

// ExpandLike emits a broadcast to the shape of like; nothing is emitted when v has it already.
func (c *Context) ExpandLike(v, like onnx.Value) onnx.Value {
	if s, ok := c.Type(like).Static(); ok {
		return c.Expand(v, s...)
	}
	if sameShape(c.Type(v), c.Type(like)) {
		return v
	}
	return c.assume(c.Op("Expand", two(v, c.ShapeOf(like))), like)
}

// FillTo emits a value of the given extents with every element x.
func (c *Context) FillTo(d tensor.DType, x float64, e ...Extent) onnx.Value {
	if n, ok := numbers(e); ok {
		return c.Fill(d, x, n...)
	}
	return c.fillShape(d, x, c.Vector(e...))
}

// FillLike emits a value of the shape and element type of like with every element x.
func (c *Context) FillLike(like onnx.Value, x float64) onnx.Value {
	if s, ok := c.Type(like).Static(); ok {
		return c.Fill(c.DType(like), x, s...)
	}
	return c.assume(c.fillShape(c.DType(like), x, c.ShapeOf(like)), like)
}

func (c *Context) fillShape(d tensor.DType, x float64, shape onnx.Value) onnx.Value {
	if c.b.Err() != nil {
		return ""
	}
	return c.Unary("ConstantOfShape", shape, onnx.AttrTensor("value", scalarOf(d, x).Reshape(1)))
}

// sameShape reports whether two types are known to have the same extents in every run.
func sameShape(a, b onnx.TensorType) bool {
	a.DType = b.DType
	return a.Equal(b)
}

// assume records that v has the shape of like, which a rule knows and inference does not see.
func (c *Context) assume(v, like onnx.Value) onnx.Value {
	f, ok := c.env.Fact(v)
	t := c.Type(like)
	if c.b.Err() != nil || !ok || !t.Ranked || sameShape(f.Type, t) {
		return v
	}
	if f.Type.Ranked && len(f.Type.Dims) != len(t.Dims) {
		c.Fail("gradient of type %v cannot have the shape of %v", f.Type, t)
		return v
	}
	f.Type.Ranked, f.Type.Dims = true, slices.Clone(t.Dims)
	c.env.Set(v, f)
	return v
}

// declarable returns a type as inputs and outputs declare it: extents that depend on the data have
// no name there.
func (c *Context) declarable(t onnx.TensorType) onnx.TensorType {
	t.Dims = slices.Clone(t.Dims)
	for i, d := range t.Dims {
		if c.env.DependsOnData(d) {
			t.Dims[i] = onnx.Symbol("")
		}
	}
	return t
}

// failOpen records that the rule needs something of a value before a run that is not known then.
func (c *Context) failOpen(v onnx.Value, what string) {
	c.Fail("of value %q, which is %v, %s must be known before a run: %s", v, c.Type(v), what, c.openShape(v))
}

// openShape says why a value's shape is not known before a run, and what can be done about it.
func (c *Context) openShape(v onnx.Value) string {
	t := c.Type(v)
	if !t.Ranked {
		return "it depends on the data"
	}
	var names []string
	for _, d := range t.Dims {
		switch {
		case d.IsKnown():
		case c.env.DependsOnData(d):
			return "it depends on the data"
		case !slices.Contains(names, d.Param):
			names = append(names, d.Param)
		}
	}
	return "give a number to " + strings.Join(names, ", ")
}
