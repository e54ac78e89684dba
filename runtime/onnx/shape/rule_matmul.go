package shape

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func matMul(c *call) error {
	t, err := product(c.typ(0), c.typ(1))
	c.set(0, t)
	return err
}

// product is numpy.matmul: rank-1 operands are promoted and their axis removed, leading axes
// broadcast.
func product(a, b onnx.TensorType) (onnx.TensorType, error) {
	out := onnx.TensorType{DType: a.DType}
	if !a.Ranked || !b.Ranked {
		return out, nil
	}
	if len(a.Dims) == 0 || len(b.Dims) == 0 {
		return out, fmt.Errorf("%v and %v cannot be multiplied: a factor has no axes", a, b)
	}
	ad, bd := a.Dims, b.Dims
	if len(ad) == 1 {
		ad = []onnx.Dim{onnx.Known(1), ad[0]}
	}
	if len(bd) == 1 {
		bd = []onnx.Dim{bd[0], onnx.Known(1)}
	}
	if _, ok := mergeDim(ad[len(ad)-1], bd[len(bd)-2]); !ok {
		return out, fmt.Errorf("%v and %v cannot be multiplied: the inner extents %v and %v differ", a, b, ad[len(ad)-1], bd[len(bd)-2])
	}
	batch, err := broadcast(onnx.TensorType{Ranked: true, Dims: ad[:len(ad)-2]}, onnx.TensorType{Ranked: true, Dims: bd[:len(bd)-2]})
	if err != nil {
		return out, fmt.Errorf("%v and %v cannot be multiplied: %w", a, b, err)
	}
	out.Ranked = true
	out.Dims = append(make([]onnx.Dim, 0, len(batch.Dims)+2), batch.Dims...)
	if len(a.Dims) > 1 {
		out.Dims = append(out.Dims, ad[len(ad)-2])
	}
	if len(b.Dims) > 1 {
		out.Dims = append(out.Dims, bd[len(bd)-1])
	}
	return out, nil
}

func matMulInteger(c *call) error {
	t, err := product(c.typ(0), c.typ(1))
	c.set(0, withDType(t, tensor.Int32))
	return err
}

// qLinearMatMul has the inputs a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale,
// y_zero_point.
func qLinearMatMul(c *call) error {
	t, err := product(c.typ(0), c.typ(3))
	c.set(0, withDType(t, c.dtype(7)))
	return err
}

// fusedMatMul is ONNX Runtime's MatMul with operands transposed on the fly.
func fusedMatMul(c *call) error {
	a, b := c.typ(0), c.typ(1)
	a = swapped(a, c.int("transA", 0) != 0, c.int("transBatchA", 0) != 0)
	b = swapped(b, c.int("transB", 0) != 0, c.int("transBatchB", 0) != 0)
	t, err := product(a, b)
	c.set(0, t)
	return err
}

// swapped exchanges the last two axes, or moves the first axis before the last for a batch
// transpose.
func swapped(t onnx.TensorType, last, batch bool) onnx.TensorType {
	n := len(t.Dims)
	if n < 2 {
		return t
	}
	d := append([]onnx.Dim(nil), t.Dims...)
	if batch {
		first := d[0]
		copy(d, d[1:n-1])
		d[n-2] = first
	}
	if last {
		d[n-1], d[n-2] = d[n-2], d[n-1]
	}
	t.Dims = d
	return t
}

func gemm(c *call) error {
	if err := c.rankIs(0, 2); err != nil {
		return err
	}
	if err := c.rankIs(1, 2); err != nil {
		return err
	}
	transA, transB := c.int("transA", 0) != 0, c.int("transB", 0) != 0
	a, b := swapped(c.typ(0), transA, false), swapped(c.typ(1), transB, false)
	m, n := onnx.Symbol(""), onnx.Symbol("")
	if a.Ranked {
		m = a.Dims[0]
	}
	if b.Ranked {
		n = b.Dims[1]
	}
	if a.Ranked && b.Ranked {
		if _, ok := mergeDim(a.Dims[1], b.Dims[0]); !ok {
			return fmt.Errorf("%v (transA=%t) and %v (transB=%t) cannot be multiplied: the inner extents %v and %v differ", c.typ(0), transA, c.typ(1), transB, a.Dims[1], b.Dims[0])
		}
	}
	out := onnx.TensorType{DType: a.DType, Ranked: true, Dims: []onnx.Dim{m, n}}
	if t := c.typ(2); t.Ranked && c.opset() >= 7 {
		// C is stretched to the product and must not stretch it.
		if len(t.Dims) > 2 {
			return fmt.Errorf("input 2 %q is %v, want a shape that broadcasts to %v", c.node.In(2), t, out)
		}
		for i, d := range t.Dims {
			o := out.Dims[i+2-len(t.Dims)]
			if d.IsKnown() && d.Value != 1 && o.IsKnown() && d != o {
				return fmt.Errorf("input 2 %q is %v, want a shape that broadcasts to %v", c.node.In(2), t, out)
			}
		}
	}
	c.set(0, out)
	return nil
}

// det drops the two axes of a square matrix.
func det(c *call) error {
	d, ok, err := c.ranked(0, 2)
	if err != nil || !ok {
		c.setUnranked(0, c.dtype(0))
		return err
	}
	n := len(d)
	if _, ok := mergeDim(d[n-1], d[n-2]); !ok {
		return fmt.Errorf("%v is not a square matrix", c.typ(0))
	}
	c.setDims(0, c.dtype(0), d[:n-2]...)
	return nil
}
