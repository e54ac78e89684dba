package shape

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// setKind records output i of another kind than tensor.
func (c *call) setKind(i int, k Kind, t onnx.TensorType) {
	if i < len(c.out) {
		c.out[i] = Fact{Kind: k, Type: t}
	}
}

// mixed joins the types of several elements of one sequence: what they agree on.
func mixed(a, b onnx.TensorType) (onnx.TensorType, error) {
	f, err := join(Fact{Type: a}, Fact{Type: b})
	if err != nil {
		return a, fmt.Errorf("elements of one sequence: %w", err)
	}
	return f.Type, nil
}

func sequenceConstruct(c *call) error {
	t := c.typ(0)
	for i := 1; i < len(c.ins); i++ {
		var err error
		if t, err = mixed(t, c.typ(i)); err != nil {
			return err
		}
	}
	c.setKind(0, Sequence, t)
	return nil
}

func sequenceEmpty(c *call) error {
	c.setKind(0, Sequence, onnx.TensorType{DType: c.dtypeAttr("dtype", tensor.Float32)})
	return nil
}

func sequenceInsert(c *call) error {
	t, err := mixed(c.typ(0), c.typ(1))
	c.setKind(0, Sequence, t)
	return err
}

// sequenceErase also serves operators that return the sequence as it is.
func sequenceErase(c *call) error {
	c.setKind(0, Sequence, c.typ(0))
	return nil
}

func sequenceAt(c *call) error {
	c.set(0, c.typ(0))
	return nil
}

func sequenceLength(c *call) error {
	c.setDims(0, tensor.Int64)
	return nil
}

func concatFromSequence(c *call) error {
	t := c.typ(0)
	if !c.hasAttr("axis") {
		return fmt.Errorf("attribute %q is missing", "axis")
	}
	if !t.Ranked {
		c.setUnranked(0, t.DType)
		return nil
	}
	n := len(t.Dims)
	stack := c.int("new_axis", 0) != 0
	if stack {
		n++
	}
	a, err := axisOf(c.int("axis", 0), n)
	if err != nil {
		return fmt.Errorf("concatenate elements %v: %w", t, err)
	}
	dims := append([]onnx.Dim(nil), t.Dims[:a]...)
	dims = append(dims, onnx.Symbol(""))
	if !stack {
		a++
	}
	c.setDims(0, t.DType, append(dims, t.Dims[a:]...)...)
	return nil
}

// splitToSequence cuts an axis into parts of 1, of one size, or of listed sizes.
func splitToSequence(c *call) error {
	t := c.typ(0)
	if !t.Ranked {
		c.setKind(0, Sequence, onnx.TensorType{DType: t.DType})
		return nil
	}
	a, err := axisOf(c.int("axis", 0), len(t.Dims))
	if err != nil {
		return fmt.Errorf("split %v: %w", t, err)
	}
	dims := append([]onnx.Dim(nil), t.Dims...)
	switch {
	case !c.has(1) && c.int("keepdims", 1) == 0:
		dims = append(dims[:a], dims[a+1:]...)
	case !c.has(1):
		dims[a] = onnx.Known(1)
	default:
		dims[a] = onnx.Symbol("")
		if sizes, ok := c.numbers(1); ok && len(sizes) > 0 && c.typ(1).Ranked {
			even := true
			for _, s := range sizes {
				even = even && s == sizes[0]
			}
			scalar := len(c.typ(1).Dims) == 0
			if scalar && sizes[0] > 0 && t.Dims[a].IsKnown() {
				even = t.Dims[a].Value%sizes[0] == 0
			} else if scalar {
				even = false
			}
			// The same size for each part must divide; of a list, parts may be empty.
			if sizes[0] < 0 || scalar && sizes[0] == 0 {
				return fmt.Errorf("split size %d", sizes[0])
			}
			if even {
				dims[a] = onnx.Known(sizes[0])
			}
		}
	}
	c.setKind(0, Sequence, onnx.TensorType{DType: t.DType, Ranked: true, Dims: dims})
	return nil
}

// sequenceMap runs its body for each element of the first input; further inputs are sequences of
// the same length or given to each run.
func sequenceMap(c *call) error {
	g, err := c.body("body")
	if err != nil {
		return err
	}
	var in []Fact
	for i, f := range c.ins {
		if f == nil {
			return fmt.Errorf("input %d is absent", i)
		}
		in = append(in, Fact{Type: f.Type})
	}
	outs := c.out
	body, err := c.runBody("body", g, in)
	if err != nil {
		return err
	}
	if len(body) < len(outs) {
		return fmt.Errorf("the body has %d outputs, the node %d", len(body), len(outs))
	}
	for i := range outs {
		outs[i] = Fact{Kind: Sequence, Type: body[i].Type}
	}
	return nil
}

// optional wraps its input, or, without one, a type given as an attribute.
func optional(c *call) error {
	if f := c.in(0); f != nil {
		switch f.Kind {
		case Tensor:
			c.setKind(0, Optional, f.Type)
		case Sequence:
			c.setKind(0, OptionalSequence, f.Type)
		default:
			return fmt.Errorf("an optional of a %v", f.Kind)
		}
		return nil
	}
	a := c.attr("type", onnx.AttributeProto_TYPE_PROTO)
	if a == nil || a.Tp == nil {
		return fmt.Errorf("it has neither an input nor a type")
	}
	f, err := factOfType(a.Tp)
	if err != nil {
		return err
	}
	if f.Kind == Sequence {
		c.setKind(0, OptionalSequence, f.Type)
	} else {
		c.setKind(0, Optional, f.Type)
	}
	return nil
}

func optionalHasElement(c *call) error {
	c.setDims(0, tensor.Bool)
	switch f := c.in(0); {
	case f == nil:
		c.out[0].Const = tensor.Scalar(false)
	case f.Kind == Tensor, f.Kind == Sequence:
		c.out[0].Const = tensor.Scalar(true)
	}
	return nil
}

// optionalGetElement unwraps; since opset 18 a plain value is passed on.
func optionalGetElement(c *call) error {
	f := c.in(0)
	switch f.Kind {
	case Optional:
		c.set(0, f.Type)
	case OptionalSequence:
		c.setKind(0, Sequence, f.Type)
	default:
		return identity(c)
	}
	return nil
}
