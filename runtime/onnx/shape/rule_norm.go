package shape

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// normalised is for operators that keep the shape and work along an axis: Softmax and its
// relatives.
func normalised(c *call) error {
	def := -1
	if c.opset() < 13 && c.node.OpType != "LpNormalization" {
		def = 1
	}
	if t := c.typ(0); t.Ranked {
		a, n := c.int("axis", def), len(t.Dims)
		// Before opset 13 the axis only splits the shape in two, so it may equal the rank; a scalar
		// has no axis to name.
		if _, err := axisOf(a, n); err != nil && n > 0 && !(c.opset() < 13 && a == n) {
			return fmt.Errorf("normalise %v: %w", t, err)
		}
	}
	return same(c)
}

// perChannel checks that input i is a list of as many numbers as axis 1 of the input has.
func (c *call) perChannel(i int, ch onnx.Dim) (onnx.Dim, error) {
	t := c.typ(i)
	if !t.Ranked {
		return ch, nil
	}
	if len(t.Dims) != 1 {
		return ch, fmt.Errorf("input %d %q is %v, want one number per channel", i, c.node.In(i), t)
	}
	m, ok := mergeDim(ch, t.Dims[0])
	if !ok {
		return ch, fmt.Errorf("input %d %q is %v, but the input has %v channels", i, c.node.In(i), t, ch)
	}
	return m, nil
}

// batchNormalization has one output when it normalises with given statistics. In training it also
// gives the running statistics, and in opsets 7 to 13 up to four outputs of the training form.
func batchNormalization(c *call) error {
	x := c.typ(0)
	ch := onnx.Symbol("")
	if x.Ranked && len(x.Dims) > 1 {
		ch = x.Dims[1]
	} else if x.Ranked && len(x.Dims) == 1 {
		// A list is a batch of one channel.
		ch = onnx.Known(1)
	} else if x.Ranked {
		return fmt.Errorf("input %v has no axes", x)
	}
	var err error
	for i := 1; i < 5; i++ {
		if c.opset() < 9 && c.int("spatial", 1) == 0 {
			break
		}
		if ch, err = c.perChannel(i, ch); err != nil {
			return err
		}
	}
	c.set(0, x)
	for i := 1; i < len(c.out); i++ {
		d := c.dtype(3)
		if c.opset() < 14 {
			d = x.DType
		}
		c.setDims(i, d, ch)
	}
	return nil
}

func instanceNormalization(c *call) error {
	d, ok, err := c.ranked(0, 3)
	if err != nil {
		return err
	}
	ch := onnx.Symbol("")
	if ok {
		ch = d[1]
	}
	for i := 1; i < 3; i++ {
		if ch, err = c.perChannel(i, ch); err != nil {
			return err
		}
	}
	return same(c)
}

func groupNormalization(c *call) error {
	d, ok, err := c.ranked(0, 2)
	if err != nil {
		return err
	}
	groups := c.int("num_groups", 0)
	if groups < 1 {
		return fmt.Errorf("num_groups is %d", groups)
	}
	if ok && d[1].IsKnown() && d[1].Value%groups != 0 {
		return fmt.Errorf("%d channels of %v do not divide into %d groups", d[1].Value, c.typ(0), groups)
	}
	// Scale and bias hold one number per group before opset 21, per channel since.
	n := onnx.Symbol("")
	if c.opset() < 21 {
		n = onnx.Known(groups)
	} else if ok {
		n = d[1]
	}
	for i := 1; i < 3; i++ {
		if n, err = c.perChannel(i, n); err != nil {
			return err
		}
	}
	return same(c)
}

// layerNormalization gives mean and inverse deviation with the normalised axes kept as 1, in
// float32 or wider.
func layerNormalization(c *call) error {
	t := c.typ(0)
	stats := tensor.Float32
	if v := c.int("stash_type", 1); v == int(tensor.Float64) || t.DType == tensor.Float64 && c.node.OpType != "LayerNormalization" {
		stats = tensor.Float64
	} else if v == int(tensor.Float16) || v == int(tensor.BFloat16) {
		stats = tensor.DType(v)
	}
	if !t.Ranked {
		c.set(0, t)
		c.setUnranked(1, stats)
		c.setUnranked(2, stats)
		return nil
	}
	a, err := axisOf(c.int("axis", -1), len(t.Dims))
	if err != nil {
		return fmt.Errorf("normalise %v: %w", t, err)
	}
	if err := c.oneWay(t, 1, 2); err != nil {
		return err
	}
	c.set(0, t)
	if len(c.out) > 1 {
		m := slices.Clone(t.Dims)
		for i := a; i < len(m); i++ {
			m[i] = onnx.Known(1)
		}
		c.setDims(1, stats, m...)
		c.setDims(2, stats, m...)
	}
	return nil
}

// oneWay checks that inputs broadcast to a type without changing it.
func (c *call) oneWay(t onnx.TensorType, inputs ...int) error {
	for _, i := range inputs {
		s := c.typ(i)
		if !s.Ranked {
			continue
		}
		b, err := broadcast(t, s)
		if err != nil || len(b.Dims) != len(t.Dims) {
			return fmt.Errorf("input %d %q is %v, want a shape that broadcasts to %v", i, c.node.In(i), s, t)
		}
		for j, d := range b.Dims {
			if _, ok := mergeDim(d, t.Dims[j]); !ok {
				return fmt.Errorf("input %d %q is %v, want a shape that broadcasts to %v", i, c.node.In(i), s, t)
			}
		}
	}
	return nil
}

// rmsNormalization has the element type of the scale, which may differ from the input's.
func rmsNormalization(c *call) error {
	t := c.typ(0)
	if t.Ranked {
		if _, err := axisOf(c.int("axis", -1), len(t.Dims)); err != nil {
			return fmt.Errorf("normalise %v: %w", t, err)
		}
		if err := c.oneWay(t, 1); err != nil {
			return err
		}
	}
	c.set(0, withDType(t, c.dtype(1)))
	return nil
}

func lrn(c *call) error {
	if c.int("size", 0) < 1 {
		return fmt.Errorf("size is %d", c.int("size", 0))
	}
	if _, _, err := c.ranked(0, 2); err != nil {
		return err
	}
	return same(c)
}

func meanVarianceNormalization(c *call) error {
	if t := c.typ(0); t.Ranked {
		axes := c.ints("axes")
		if !c.hasAttr("axes") {
			axes = []int{0, 2, 3}
		}
		if _, err := axesOf(axes, len(t.Dims)); err != nil {
			return fmt.Errorf("normalise %v: %w", t, err)
		}
	}
	return same(c)
}

// classLoss checks scores [N, C, d…] against classes [N, d…] and returns the shape of the loss.
func (c *call) classLoss() error {
	x, y := c.typ(0), c.typ(1)
	ch := onnx.Symbol("")
	if x.Ranked {
		if len(x.Dims) < 2 {
			return fmt.Errorf("scores %v: want batch and classes", x)
		}
		ch = x.Dims[1]
		want := onnx.TensorType{Ranked: true, Dims: slices.Delete(slices.Clone(x.Dims), 1, 2)}
		m, err := merge(withDType(y, tensor.Undefined), want)
		if err != nil {
			return fmt.Errorf("scores %v want classes of shape %v, got %v", x, want, y)
		}
		y = m
	}
	if _, err := c.perChannel(2, ch); err != nil {
		return err
	}
	switch r := c.str("reduction", "mean"); r {
	case "none":
		c.set(0, withDType(y, x.DType))
	case "mean", "sum":
		c.setDims(0, x.DType)
	default:
		return fmt.Errorf("reduction %q is none of none, mean, sum", r)
	}
	return nil
}

func negativeLogLikelihoodLoss(c *call) error { return c.classLoss() }

// softmaxCrossEntropyLoss can also give the log probabilities, in the shape of the scores.
func softmaxCrossEntropyLoss(c *call) error {
	c.set(1, c.typ(0))
	return c.classLoss()
}
