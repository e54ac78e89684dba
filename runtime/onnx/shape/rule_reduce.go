package shape

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// reduceAxes says for each of n axes whether a reduction removes it. ok is false when the axes are
// not constant.
func (c *call) reduceAxes(n int) (in []bool, ok bool, err error) {
	axes, _, known := c.axesInput(1)
	if !known {
		return nil, false, nil
	}
	in, err = axesOf(axes, n)
	if err != nil {
		return nil, false, err
	}
	if len(axes) == 0 && c.int("noop_with_empty_axes", 0) == 0 {
		for i := range in {
			in[i] = true
		}
	}
	return in, true, nil
}

func reduce(c *call) error {
	t := c.typ(0)
	keep := c.int("keepdims", 1) != 0
	if err := c.rankIs(1, 1); err != nil {
		return err
	}
	if !t.Ranked {
		c.setUnranked(0, t.DType)
		return nil
	}
	in, ok, err := c.reduceAxes(len(t.Dims))
	if err != nil {
		return fmt.Errorf("reduce %v: %w", t, err)
	}
	if !ok {
		n, known := c.lengthOf(1)
		switch {
		case keep:
			c.setDims(0, t.DType, unknownDims(len(t.Dims))...)
		case known && n > 0 && n <= len(t.Dims):
			c.setDims(0, t.DType, unknownDims(len(t.Dims)-n)...)
		default:
			c.setUnranked(0, t.DType)
		}
		return nil
	}
	c.setDims(0, t.DType, reduced(t.Dims, in, keep)...)
	return nil
}

func reduced(dims []onnx.Dim, in []bool, keep bool) []onnx.Dim {
	out := make([]onnx.Dim, 0, len(dims))
	for i, d := range dims {
		if !in[i] {
			out = append(out, d)
		} else if keep {
			out = append(out, onnx.Known(1))
		}
	}
	return out
}

func argExtreme(c *call) error {
	t := c.typ(0)
	if !t.Ranked {
		c.setUnranked(0, tensor.Int64)
		return nil
	}
	a, err := axisOf(c.int("axis", 0), len(t.Dims))
	if err != nil {
		return fmt.Errorf("reduce %v: %w", t, err)
	}
	in := make([]bool, len(t.Dims))
	in[a] = true
	c.setDims(0, tensor.Int64, reduced(t.Dims, in, c.int("keepdims", 1) != 0)...)
	return nil
}

// cumulative keeps the shape; the axis is a scalar input.
func cumulative(c *call) error {
	if t := c.typ(1); t.Ranked && len(t.Dims) > 1 {
		return fmt.Errorf("the axis is %v, want a scalar", t)
	}
	if a, ok := c.number(1); ok && c.typ(0).Ranked {
		if _, err := axisOf(a, len(c.typ(0).Dims)); err != nil {
			return fmt.Errorf("accumulate over %v: %w", c.typ(0), err)
		}
	}
	return same(c)
}

// topK has K as an attribute in opset 1 and as an input since opset 10.
func topK(c *call) error {
	t := c.typ(0)
	k := onnx.Symbol("")
	if c.opset() < 10 {
		k = onnx.Known(max(c.int("k", 0), 0))
	} else if !c.has(1) {
		return fmt.Errorf("input 1 (K) is absent")
	} else if v, ok := c.values(1); ok {
		if len(v) != 1 || v[0].known && v[0].n < 0 {
			return fmt.Errorf("the count K is %v, want one number of at least 0", texts(v))
		}
		k = v[0].dim()
	}
	if !t.Ranked {
		c.setUnranked(0, t.DType)
		c.setUnranked(1, tensor.Int64)
		return nil
	}
	a, err := axisOf(c.int("axis", -1), len(t.Dims))
	if err != nil {
		return fmt.Errorf("top of %v: %w", t, err)
	}
	if k.IsKnown() && t.Dims[a].IsKnown() && k.Value > t.Dims[a].Value {
		return fmt.Errorf("the count K is %d, but axis %d of %v has %d elements", k.Value, a, t, t.Dims[a].Value)
	}
	out := append([]onnx.Dim(nil), t.Dims...)
	out[a] = k
	c.setDims(0, t.DType, out...)
	c.setDims(1, tensor.Int64, out...)
	return nil
}

// unique sorts or finds distinct elements: how many depends on the content.
func unique(c *call) error {
	t := c.typ(0)
	for i := 1; i < 4; i++ {
		c.setDims(i, tensor.Int64, onnx.Symbol(""))
	}
	if !c.hasAttr("axis") {
		c.setDims(0, t.DType, onnx.Symbol(""))
		if t.Ranked {
			c.setDims(2, tensor.Int64, c.env.product(t.Dims).dim())
		}
		return nil
	}
	a, err := c.setAxis(t, onnx.Symbol(""))
	if a >= 0 {
		c.setDims(2, tensor.Int64, t.Dims[a])
	}
	return err
}

// nonZero lists indices: one row per axis, one column per non-zero element.
func nonZero(c *call) error {
	t := c.typ(0)
	rows, cols := onnx.Symbol(""), onnx.Symbol("")
	if t.Ranked && len(t.Dims) > 0 {
		// For a scalar the specification says no rows and ONNX Runtime gives one.
		rows = onnx.Known(len(t.Dims))
	}
	if src := c.content(0); src != nil && c.hasContent(0) {
		n := 0
		for _, v := range src.ints {
			low, high := c.env.sign(v)
			if low <= 0 && high >= 0 && !(low == 0 && high == 0) {
				n = -1
				break
			}
			if low != 0 {
				n++
			}
		}
		for _, v := range src.flts {
			if v != 0 {
				n++
			}
		}
		if n >= 0 {
			cols = onnx.Known(n)
		}
	}
	c.setDims(0, tensor.Int64, rows, cols)
	return nil
}

// nonMaxSuppression lists triples of batch, class and box.
func nonMaxSuppression(c *call) error {
	for i := range 2 {
		if err := c.rankIs(i, 3); err != nil {
			return err
		}
	}
	if b, ok := c.dims(0); ok && b[2].IsKnown() && b[2].Value != 4 {
		return fmt.Errorf("boxes are %v, want four numbers per box", c.typ(0))
	}
	c.setDims(0, tensor.Int64, onnx.Symbol(""), onnx.Known(3))
	return nil
}
