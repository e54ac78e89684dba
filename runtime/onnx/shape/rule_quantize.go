package shape

import (
	"fmt"

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

// zeroPoint checks that scale and zero point have one shape.
func (c *call) zeroPoint() error {
	if !c.has(2) {
		return nil
	}
	return fits(withDType(c.typ(2), tensor.Undefined), withDType(c.typ(1), tensor.Undefined), "zero points", "scales")
}

func dynamicQuantize(c *call) error {
	c.set(0, withDType(c.typ(0), tensor.Uint8))
	c.setDims(1, tensor.Float32)
	c.setDims(2, tensor.Uint8)
	return nil
}
