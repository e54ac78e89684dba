package shape

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// quantize gives the type of the zero point, or that of the attribute, or uint8.
func quantize(c *call) error {
	d := c.dtypeAttr("output_dtype", tensor.Undefined)
	if c.has(2) {
		if z := c.dtype(2); d != tensor.Undefined && z != tensor.Undefined && z != d {
			return fmt.Errorf("output_dtype is %v, but the zero point is %v", d, c.typ(2))
		}
		d = c.dtype(2)
	} else if d == tensor.Undefined {
		d = tensor.Uint8
	}
	if err := c.zeroPoint(); err != nil {
		return err
	}
	c.set(0, withDType(c.typ(0), d))
	return nil
}

// dequantize gives the type of the scale, or that of the attribute.
func dequantize(c *call) error {
	if err := c.zeroPoint(); err != nil {
		return err
	}
	c.set(0, withDType(c.typ(0), c.dtypeAttr("output_dtype", c.dtype(1))))
	return nil
}

// zeroPoint checks that scale and zero point have one shape. Of one element each, a scalar and a list
// are the same, as in onnx's own cases.
func (c *call) zeroPoint() error {
	if !c.has(2) || single(c.typ(1)) && single(c.typ(2)) {
		return nil
	}
	return fits(withDType(c.typ(2), tensor.Undefined), withDType(c.typ(1), tensor.Undefined), "zero points", "scales")
}

// single reports whether a type is that of a scalar or of a list of one element.
func single(t onnx.TensorType) bool {
	dims, ok := t.Static()
	return ok && (len(dims) == 0 || len(dims) == 1 && dims[0] == 1)
}

func dynamicQuantize(c *call) error {
	c.set(0, withDType(c.typ(0), tensor.Uint8))
	c.setDims(1, tensor.Float32)
	c.setDims(2, tensor.Uint8)
	return nil
}
