package shape

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// same gives the output the type of the first input.
func same(c *call) error {
	c.set(0, c.typ(0))
	return nil
}

// identity passes any kind of value on, content included.
func identity(c *call) error {
	c.out[0] = *c.loaded(0)
	return nil
}

// isPredicate gives the output the first input's shape and the element type bool.
func isPredicate(c *call) error {
	c.set(0, withDType(c.typ(0), tensor.Bool))
	return nil
}

// elementwise broadcasts all inputs together; the output has the element type of the first.
func elementwise(c *call) error {
	t, err := c.broadcastAll(0)
	c.set(0, t)
	return err
}

// broadcastAll broadcasts the inputs from number first on.
func (c *call) broadcastAll(first int) (onnx.TensorType, error) {
	if c.opset() < 7 && c.node.OpType != "Sum" && c.node.OpType != "Where" {
		// Before opset 7 the second input was stretched to the first by the attributes broadcast
		// and axis; the output is the first input's shape.
		return c.typ(first), nil
	}
	t := c.typ(first)
	for i := first + 1; i < len(c.ins); i++ {
		if c.ins[i] == nil {
			continue
		}
		var err error
		if t, err = broadcast(t, c.typ(i)); err != nil {
			return t, err
		}
		if t.DType == tensor.Undefined {
			t.DType = c.dtype(i)
		}
	}
	return t, nil
}

func comparison(c *call) error {
	t, err := c.broadcastAll(0)
	c.set(0, withDType(t, tensor.Bool))
	return err
}

func where(c *call) error {
	t, err := c.broadcastAll(1)
	if err != nil {
		return err
	}
	out, err := broadcast(t, c.typ(0))
	c.set(0, out)
	return err
}

// clip needs bounds that are scalars; they are attributes before opset 11.
func clip(c *call) error {
	for i := 1; i < 3; i++ {
		if t := c.typ(i); t.Ranked && len(t.Dims) > 0 && !(len(t.Dims) == 1 && t.Dims[0] == onnx.Known(1)) {
			return fmt.Errorf("input %d %q is %v, want a scalar bound", i, c.node.In(i), t)
		}
	}
	return same(c)
}

// prelu broadcasts the slope one way, to the input's shape.
func prelu(c *call) error {
	x, s := c.typ(0), c.typ(1)
	if x.Ranked && s.Ranked && c.opset() >= 7 {
		t, err := broadcast(x, s)
		if err != nil {
			return err
		}
		if len(s.Dims) > len(x.Dims) {
			return fmt.Errorf("slope %v does not broadcast to %v", s, x)
		}
		for i := range x.Dims {
			if _, ok := mergeDim(x.Dims[i], t.Dims[i]); !ok {
				return fmt.Errorf("slope %v does not broadcast to %v", s, x)
			}
		}
	}
	return same(c)
}

func cast(c *call) error {
	if !c.hasAttr("to") {
		return fmt.Errorf("attribute %q is missing", "to")
	}
	if a := c.node.Attr("to"); a.GetType() == onnx.AttributeProto_STRING {
		// Opset 1 named the element type in upper case.
		d, ok := onnx.TensorProto_DataType_value[string(a.S)]
		if !ok {
			return fmt.Errorf("attribute %q is %q, which is no element type", "to", a.S)
		}
		c.set(0, withDType(c.typ(0), tensor.DType(d)))
		return nil
	}
	c.set(0, withDType(c.typ(0), c.dtypeAttr("to", tensor.Undefined)))
	return nil
}

func castLike(c *call) error {
	c.set(0, withDType(c.typ(0), c.dtype(1)))
	return nil
}

// bitCast reads the same bits as another type of the same width.
func bitCast(c *call) error {
	to := c.dtypeAttr("to", tensor.Undefined)
	from := c.dtype(0)
	if from != tensor.Undefined && from.Bits() != to.Bits() {
		return fmt.Errorf("%v of %d bits cannot be read as %v of %d bits", from, from.Bits(), to, to.Bits())
	}
	c.set(0, withDType(c.typ(0), to))
	return nil
}

// dropout has a mask: of the input's type before opset 10, bool since.
func dropout(c *call) error {
	for i := 1; i < 3; i++ {
		if t := c.typ(i); t.Ranked && len(t.Dims) > 0 && !(len(t.Dims) == 1 && t.Dims[0] == onnx.Known(1)) {
			return fmt.Errorf("input %d %q is %v, want a scalar", i, c.node.In(i), t)
		}
	}
	c.set(0, c.typ(0))
	if c.opset() < 10 {
		c.set(1, c.typ(0))
	} else {
		c.set(1, withDType(c.typ(0), tensor.Bool))
	}
	return nil
}
