package shape

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// microsoftOps are the operators of ONNX Runtime's own domain that its optimiser or our rewrites
// emit.
var microsoftOps = []entry{
	{"BiasGelu", "f 0", 1, biased, nil},
	{"BiasSoftmax", "f 0", 1, elementwise, nil},
	{"FastGelu", "f 0?", 1, biased, nil},
	{"FusedConv", "f 0 0? 0?", 1, conv, nil},
	{"FusedGemm", "f 0 0?", 1, gemm, nil},
	{"FusedMatMul", "f 0", 1, fusedMatMul, nil},
	{"Gelu", "f", 1, same, nil},
	{"GridSample", "a f", 1, gridSample, nil},
	{"Inverse", "f", 1, inverse, nil},
	{"MultiHeadAttention", "f 0? 0? 0? a? a? 0? 0?", 1, multiHeadAttention, nil},
	{"QuickGelu", "f", 1, same, nil},
	{"SimplifiedLayerNormalization", "f f", 1, layerNormalization, nil},
	{"SkipLayerNormalization", "f 0 0 0? 0?", 1, skipLayerNormalization, nil},
	{"SkipSimplifiedLayerNormalization", "f 0 0 0?", 1, skipLayerNormalization, nil},
	{"TransposeMatMul", "f 0", 1, fusedMatMul, nil},
	{"Trilu", "a l?", 1, trilu, nil},
	{"UnfoldTensor", "a", 1, unfold, nil},
}

// biased adds an optional bias of one number per element of the last axis.
func biased(c *call) error {
	t := c.typ(0)
	if c.has(1) && t.Ranked {
		if err := c.oneWay(t, 1); err != nil {
			return err
		}
	}
	c.set(0, t)
	return nil
}

// inverse keeps the shape of square matrices.
func inverse(c *call) error {
	if d, ok, err := c.ranked(0, 2); err != nil {
		return err
	} else if ok {
		if _, same := mergeDim(d[len(d)-1], d[len(d)-2]); !same {
			return fmt.Errorf("%v is not a square matrix", c.typ(0))
		}
	}
	return same(c)
}

// skipLayerNormalization normalises the sum of two inputs; its outputs are the result, mean,
// inverse deviation and the sum.
func skipLayerNormalization(c *call) error {
	t, err := merge(c.typ(0), c.typ(1))
	if err != nil {
		return fmt.Errorf("input and skip: %w", err)
	}
	c.set(0, t)
	if t.Ranked && len(t.Dims) > 0 {
		m := slices.Clone(t.Dims)
		m[len(m)-1] = onnx.Known(1)
		c.setDims(1, tensor.Float32, m...)
		c.setDims(2, tensor.Float32, m...)
	} else {
		c.setUnranked(1, tensor.Float32)
		c.setUnranked(2, tensor.Float32)
	}
	c.set(3, t)
	return nil
}

// unfold cuts windows out of one axis and appends an axis that holds them.
func unfold(c *call) error {
	t := c.typ(0)
	if !t.Ranked {
		c.setUnranked(0, t.DType)
		return nil
	}
	a, err := axisOf(c.int("dim", -1), len(t.Dims))
	if err != nil {
		return err
	}
	n, step := c.int("size", 0), c.int("step", 1)
	if n < 1 || step < 1 {
		return fmt.Errorf("windows of %d in steps of %d", n, step)
	}
	count := c.env.add(c.env.divFloor(c.env.add(ofDim(t.Dims[a]), num(int64(-n))), int64(step)), num(1))
	if count.known && count.n < 1 {
		return fmt.Errorf("windows of %d do not fit axis %d of %v", n, a, t)
	}
	out := append(slices.Clone(t.Dims), onnx.Known(n))
	out[a] = count.dim()
	c.setDims(0, t.DType, out...)
	return nil
}

// multiHeadAttention has the shape of the query, [batch, length, heads·size], with the value's
// width where that is given apart.
func multiHeadAttention(c *call) error {
	if c.int("num_heads", 0) < 1 {
		return fmt.Errorf("num_heads is %d", c.int("num_heads", 0))
	}
	t := c.typ(0)
	if t.Ranked && len(t.Dims) == 3 {
		width := t.Dims[2]
		if v := c.typ(2); v.Ranked && len(v.Dims) == 3 {
			width = v.Dims[2]
		} else if c.has(2) {
			width = onnx.Symbol("")
		}
		c.setDims(0, t.DType, t.Dims[0], t.Dims[1], width)
	} else {
		c.setDims(0, t.DType, unknownDims(3)...)
	}
	for i := 1; i < 3; i++ {
		c.setDims(i, t.DType, unknownDims(4)...)
	}
	return nil
}
