package portable

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Operators that make values from attributes and shapes.
var constantOperators = []operator{
	{name: "Constant", versions: []int{1, 9, 11, 12, 13, 19, 21, 23, 24, 25}, maxIn: 0, exact: true, build: buildConstant},
	{name: "ConstantOfShape", versions: []int{9, 20, 21, 23, 24, 25}, minIn: 1, maxIn: 1, exact: true, build: buildConstantOfShape},
	{name: "Range", versions: []int{11, 27}, minIn: 3, maxIn: 3, build: buildRange},
	{name: "EyeLike", versions: []int{9, 22}, minIn: 1, maxIn: 1, exact: true, build: buildEyeLike},
	{name: "OneHot", versions: []int{9, 11, 28}, minIn: 3, maxIn: 3, exact: true, build: buildOneHot},
	{name: "Trilu", versions: []int{14}, minIn: 1, maxIn: 2, exact: true, build: buildTrilu},
}

// constantValue decodes a Constant node.
func constantValue(n *node) (*tensor.Tensor, error) {
	for _, a := range n.Attribute {
		switch a.Name {
		case "value":
			if a.T == nil {
				return nil, fmt.Errorf("attribute value holds no tensor")
			}
			return onnx.TensorOf(a.T)
		case "value_float":
			return tensor.Scalar(a.F), nil
		case "value_int":
			return tensor.Scalar(a.I), nil
		case "value_string":
			return tensor.OfStrings([]string{string(a.S)}), nil
		case "value_floats":
			return tensor.Of(a.Floats, len(a.Floats)), nil
		case "value_ints":
			return tensor.Of(a.Ints, len(a.Ints)), nil
		case "value_strings":
			s := n.Strs("value_strings")
			return tensor.OfStrings(s, len(s)), nil
		case "sparse_value":
			return onnx.TensorOfSparse(a.SparseTensor, maxSparseBytes)
		}
	}
	return nil, fmt.Errorf("it has no value")
}

func buildConstant(n *node) (kernel, error) {
	t, err := constantValue(n)
	if err != nil {
		return nil, err
	}
	return func(c *call) error {
		c.give(0, t)
		return nil
	}, nil
}

func buildConstantOfShape(n *node) (kernel, error) {
	value := tensor.Of([]float32{0}, 1)
	if a := n.Attr("value"); a != nil {
		if a.T == nil {
			return nil, fmt.Errorf("attribute value holds no tensor")
		}
		t, err := onnx.TensorOf(a.T)
		if err != nil {
			return nil, err
		}
		if t.Len() != 1 {
			return nil, fmt.Errorf("attribute value holds %d elements, expected 1", t.Len())
		}
		value = t
	}
	src, err := elementsOf(value)
	if err != nil {
		return nil, err
	}
	return func(c *call) error {
		shape, err := intsOf(c.shapeBuf(0), c.arg(0))
		if err != nil {
			return err
		}
		return fill(c.make(0, value.DType(), c.keepBuf(0, shape)...), src)
	}, nil
}

// fill sets every element of t to the one that src holds.
func fill(t *tensor.Tensor, src elements) error {
	dst, err := elementsOf(t)
	if err != nil {
		return err
	}
	n := t.Len()
	if n == 0 {
		return nil
	}
	dst.copy(0, src, 0, 1)
	// Doubling turns the fill into a few large copies.
	for k := 1; k < n; k *= 2 {
		dst.copy(k, dst, 0, min(k, n-k))
	}
	return nil
}

func rangeOf[T number](c *call) error {
	for i := range 3 {
		if t := c.arg(i); t.Len() != 1 || t.DType() != c.arg(0).DType() {
			return fmt.Errorf("input %d is %v, expected a scalar of the first input's type", i, t)
		}
	}
	start, limit, delta := data[T](c.arg(0))[0], data[T](c.arg(1))[0], data[T](c.arg(2))[0]
	if delta == 0 {
		return fmt.Errorf("delta is zero")
	}
	n := math.Ceil((float64(limit) - float64(start)) / float64(delta))
	if !(n > 0) {
		n = 0
	}
	if n > maxValueBytes {
		return fmt.Errorf("a range of %g elements is too large", n)
	}
	out := data[T](c.make(0, c.arg(0).DType(), int(n)))
	for i := range out {
		out[i] = start + T(i)*delta
	}
	return nil
}

// buildRange computes ranges of half-precision types in float32, the stash_type that opset 27 has
// where nothing else is said.
func buildRange(n *node) (kernel, error) {
	if stash := tensor.DType(n.Int("stash_type", int(tensor.Float32))); stash != tensor.Float32 {
		return nil, unsupported("stash_type %v", stash)
	}
	return rangeKernel, nil
}

func rangeKernel(c *call) error {
	switch d := c.arg(0).DType(); d {
	case tensor.Float32:
		return rangeOf[float32](c)
	case tensor.Float64:
		return rangeOf[float64](c)
	case tensor.Int16:
		return rangeOf[int16](c)
	case tensor.Int32:
		return rangeOf[int32](c)
	case tensor.Int64:
		return rangeOf[int64](c)
	default:
		return unsupported("element type %v", d)
	}
}

func buildEyeLike(n *node) (kernel, error) {
	d, k := tensor.DType(n.Int("dtype", 0)), n.Int("k", 0)
	return func(c *call) error {
		x := c.arg(0)
		if x.Rank() != 2 {
			return fmt.Errorf("input has rank %d, expected 2", x.Rank())
		}
		to := d
		if to == tensor.Undefined {
			to = x.DType()
		}
		out := c.make(0, to, x.Shape()...)
		one, err := convert(tensor.Of([]float32{1}, 1), to)
		if err != nil {
			return err
		}
		dst, err := elementsOf(out)
		if err != nil {
			return err
		}
		src, _ := elementsOf(one)
		clear(out.Bytes())
		rows, cols := x.Shape()[0], x.Shape()[1]
		for i := range rows {
			if j := i + k; j >= 0 && j < cols {
				dst.copy(i*cols+j, src, 0, 1)
			}
		}
		return nil
	}, nil
}

func buildOneHot(n *node) (kernel, error) {
	axis := n.Int("axis", -1)
	return func(c *call) error {
		idx, err := convert(c.arg(0), tensor.Int64)
		if err != nil {
			return err
		}
		dt, err := convert(c.arg(1), tensor.Int64)
		if err != nil {
			return err
		}
		if dt.Len() != 1 || c.arg(2).Len() != 2 {
			return fmt.Errorf("depth is %v and values %v, expected a scalar and two values", c.arg(1), c.arg(2))
		}
		depth := int(dt.Int64s()[0])
		a, err := normAxis(axis, idx.Rank()+1)
		if err != nil {
			return err
		}
		in := idx.Shape()
		shape := append(append(append(c.shapeBuf(0), in[:a]...), depth), in[a:]...)
		out := c.make(0, c.arg(2).DType(), c.keepBuf(0, shape)...)
		values, err := elementsOf(c.arg(2))
		if err != nil {
			return err
		}
		if err := fill(out, values); err != nil {
			return err
		}
		dst, _ := elementsOf(out)
		inner := product(in[a:])
		for i, v := range idx.Int64s() {
			p := int(v)
			if p < 0 {
				p += depth
			}
			if p < 0 || p >= depth {
				continue // out of range means a row of off values
			}
			dst.copy((i/inner*depth+p)*inner+i%inner, values, 1, 1)
		}
		return nil
	}, nil
}

func buildTrilu(n *node) (kernel, error) {
	upper := n.Int("upper", 1) != 0
	return func(c *call) error {
		x, k := c.arg(0), 0
		if t := c.arg(1); t != nil {
			if t.DType() != tensor.Int64 || t.Len() != 1 {
				return fmt.Errorf("k is %v, expected an int64 scalar", t)
			}
			k = int(t.Int64s()[0])
		}
		if x.Rank() < 2 {
			return fmt.Errorf("input has rank %d, expected at least 2", x.Rank())
		}
		out := c.make(0, x.DType(), x.Shape()...)
		s := x.DType().Size()
		if s == 0 {
			return unsupported("element type %v", x.DType())
		}
		rows, cols := x.Shape()[x.Rank()-2], x.Shape()[x.Rank()-1]
		k = min(max(k, -rows-cols), rows+cols)
		src, dst := x.Bytes(), out.Bytes()
		copy(dst, src)
		for r := range len(dst) / max(1, cols*s) {
			line := dst[r*cols*s : (r+1)*cols*s]
			cut := min(max(r%rows+k, 0), cols) // the diagonal's column, clamped
			if upper {
				clear(line[:cut*s])
			} else {
				clear(line[min(max(r%rows+k+1, 0), cols)*s:])
			}
		}
		return nil
	}, nil
}
