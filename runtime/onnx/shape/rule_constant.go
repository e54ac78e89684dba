package shape

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// constant has exactly one of its attributes.
func constant(c *call) error {
	if len(c.node.Attribute) != 1 {
		return fmt.Errorf("it has %d attributes, want exactly one value", len(c.node.Attribute))
	}
	a := c.node.Attribute[0]
	switch a.GetName() {
	case "value":
		if a.T == nil {
			return fmt.Errorf("attribute %q holds no tensor", "value")
		}
		dims, err := tensorDims(a.T.GetDims())
		if err != nil {
			return err
		}
		c.setDims(0, tensor.DType(a.T.GetDataType()), dims...)
		if n, ok := elements(c.out[0].Type); ok && n <= MaxConst && a.T.GetDataLocation() != onnx.TensorProto_EXTERNAL {
			t, err := onnx.TensorOf(a.T)
			if err != nil {
				return err
			}
			c.out[0].Const = t
		}
	case "sparse_value":
		s := c.attr("sparse_value", onnx.AttributeProto_SPARSE_TENSOR).GetSparseTensor()
		dims, err := tensorDims(s.GetDims())
		if err != nil {
			return err
		}
		c.setDims(0, tensor.DType(s.GetValues().GetDataType()), dims...)
	case "value_int":
		c.constOf(tensor.Scalar(a.I))
	case "value_float":
		c.constOf(tensor.Scalar(a.F))
	case "value_string":
		c.constOf(tensor.OfStrings([]string{string(a.S)}))
	case "value_ints":
		c.setDims(0, tensor.Int64, onnx.Known(len(a.Ints)))
		if len(a.Ints) <= MaxConst {
			c.constOf(tensor.Of(a.Ints, len(a.Ints)))
		}
	case "value_floats":
		c.setDims(0, tensor.Float32, onnx.Known(len(a.Floats)))
		if len(a.Floats) <= MaxConst {
			c.constOf(tensor.Of(a.Floats, len(a.Floats)))
		}
	case "value_strings":
		c.setDims(0, tensor.String, onnx.Known(len(a.Strings)))
	default:
		return fmt.Errorf("attribute %q is no value of a constant", a.GetName())
	}
	return nil
}

// constOf makes output 0 a constant.
func (c *call) constOf(t *tensor.Tensor) {
	c.out[0] = Fact{Type: onnx.TypeOf(t.DType(), t.Shape()...), Const: t}
}

func constantOfShape(c *call) error {
	d := tensor.Float32
	var fill *tensor.Tensor
	if a := c.attr("value", onnx.AttributeProto_TENSOR); a != nil && a.T != nil {
		t, err := onnx.TensorOf(a.T)
		if err != nil {
			return fmt.Errorf("attribute %q: %w", "value", err)
		}
		if t.Len() != 1 {
			return fmt.Errorf("attribute %q is %v, want one element", "value", t)
		}
		d, fill = t.DType(), t
	}
	if err := c.rankIs(0, 1); err != nil {
		return err
	}
	dims, ok, err := c.shapeInput(0)
	if err != nil {
		return err
	}
	if !ok {
		c.setUnranked(0, d)
		return nil
	}
	c.setDims(0, d, dims...)
	shape, known := static(dims)
	if n, _ := elements(onnx.TensorType{Ranked: true, Dims: dims}); !known || n > MaxConst {
		return nil
	}
	one := &content{dtype: d, flts: []float64{0}}
	if fill != nil {
		one = contentOf(fill)
	}
	if one == nil {
		return nil
	}
	out := one.like(shape)
	for i := range out.len() {
		out.copyFrom(i, one, 0)
	}
	c.give(0, out)
	return nil
}

// shapeInput reads an integer input that lists extents. Where its content is not known its length
// still gives the rank; ok is false when that is not known.
func (c *call) shapeInput(i int) (dims []onnx.Dim, ok bool, err error) {
	vs, known := c.values(i)
	if !known {
		n, ok := c.lengthOf(i)
		if !ok || n > maxRank {
			return nil, false, nil
		}
		return unknownDims(n), true, nil
	}
	dims = make([]onnx.Dim, len(vs))
	for j, v := range vs {
		if v.known && v.n < 0 {
			return nil, false, fmt.Errorf("shape %v has the extent %d", texts(vs), v.n)
		}
		dims[j] = v.dim()
	}
	return dims, true, nil
}

// shapeOf is the operator Shape with its optional bounds, since opset 15.
func shapeOf(c *call) error {
	t := c.typ(0)
	if !t.Ranked {
		c.setDims(0, tensor.Int64, onnx.Symbol(""))
		return nil
	}
	n := len(t.Dims)
	start := clampStart(int64(c.int("start", 0)), 1, n)
	end := clampStart(int64(c.int("end", n)), 1, n)
	dims := t.Dims[start:max(start, end)]
	c.setDims(0, tensor.Int64, onnx.Known(len(dims)))
	out := &content{dtype: tensor.Int64, shape: []int{len(dims)}, ints: make([]val, len(dims))}
	for i, d := range dims {
		out.ints[i] = ofDim(d)
	}
	c.give(0, out)
	return nil
}

func size(c *call) error {
	c.setDims(0, tensor.Int64)
	if t := c.typ(0); t.Ranked {
		c.give(0, &content{dtype: tensor.Int64, ints: []val{c.env.product(t.Dims)}})
	}
	return nil
}

func rangeOf(c *call) error {
	d := c.dtype(0)
	for i := range 3 {
		if t := c.typ(i); t.Ranked && len(t.Dims) > 0 && !(len(t.Dims) == 1 && (!t.Dims[0].IsKnown() || t.Dims[0].Value == 1)) {
			return fmt.Errorf("input %d %q is %v, want a scalar", i, c.node.In(i), t)
		}
	}
	c.setDims(0, d, onnx.Symbol(""))
	if isFlt(d) {
		return c.rangeOfFloats(d)
	}
	var v [3]val
	for i := range v {
		x, ok := c.values(i)
		if !ok || len(x) != 1 {
			return nil
		}
		v[i] = x[0]
	}
	if v[2].known && v[2].n == 0 {
		return fmt.Errorf("the step is 0")
	}
	if v[2] == num(1) && !(v[0].known && v[1].known) {
		if n := c.env.sub(v[1], v[0]); !n.known || n.n >= 0 {
			c.setDims(0, d, n.dim())
		}
		return nil
	}
	if !v[0].known || !v[1].known || !v[2].known {
		return nil
	}
	n, ok := rangeLen(v[0].n, v[1].n, v[2].n)
	if !ok {
		return fmt.Errorf("the range from %d to %d by %d is too long", v[0].n, v[1].n, v[2].n)
	}
	c.setDims(0, d, onnx.Known(n))
	if n > MaxConst {
		return nil
	}
	out := (&content{dtype: d}).like([]int{n})
	for i := range n {
		out.ints[i] = num(v[0].n + int64(i)*v[2].n)
	}
	c.give(0, out)
	return nil
}

// rangeLen counts start, start+step, … before limit; ok is false when the count cannot be an
// extent.
func rangeLen(start, limit, step int64) (int, bool) {
	if step > 0 && start >= limit || step < 0 && start <= limit {
		return 0, true
	}
	var span, by uint64
	if step > 0 {
		span, by = uint64(limit)-uint64(start), uint64(step)
	} else {
		span, by = uint64(start)-uint64(limit), -uint64(step)
	}
	n := (span-1)/by + 1
	return int(min(n, math.MaxInt)), n <= maxExtent
}

func (c *call) rangeOfFloats(d tensor.DType) error {
	var v [3]float64
	for i := range v {
		x, ok := c.scalars(i)
		if !ok || len(x) != 1 {
			return nil
		}
		v[i] = x[0]
	}
	n := math.Ceil((v[1] - v[0]) / v[2])
	if v[2] == 0 || math.IsNaN(n) || n > maxExtent {
		return fmt.Errorf("the range from %g to %g by %g has no end", v[0], v[1], v[2])
	}
	c.setDims(0, d, onnx.Known(int(max(n, 0))))
	return nil
}

// eyeLike makes a matrix of the input's shape.
func eyeLike(c *call) error {
	if err := c.rankIs(0, 2); err != nil {
		return err
	}
	c.set(0, withDType(c.typ(0), c.dtypeAttr("dtype", c.dtype(0))))
	return nil
}

// randomLike has the shape of the input and, without an attribute, its element type.
func randomLike(c *call) error {
	c.set(0, withDType(c.typ(0), c.dtypeAttr("dtype", c.dtype(0))))
	return nil
}

func random(c *call) error {
	d := c.dtypeAttr("dtype", tensor.Float32)
	if !c.hasAttr("shape") {
		return fmt.Errorf("attribute %q is missing", "shape")
	}
	var dims []onnx.Dim
	for _, v := range c.ints("shape") {
		if v < 0 {
			return fmt.Errorf("shape has the extent %d", v)
		}
		dims = append(dims, onnx.Known(v))
	}
	c.setDims(0, d, dims...)
	return nil
}

// multinomial draws sample_size classes per row.
func multinomial(c *call) error {
	if err := c.rankIs(0, 2); err != nil {
		return err
	}
	n := c.int("sample_size", 1)
	if n < 0 {
		return fmt.Errorf("sample_size is %d", n)
	}
	rows := onnx.Symbol("")
	if d, ok := c.dims(0); ok {
		rows = d[0]
	}
	c.setDims(0, c.dtypeAttr("dtype", tensor.Int32), rows, onnx.Known(n))
	return nil
}
