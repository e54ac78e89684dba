package portable

import (
	"fmt"
	"slices"
)

var lossOperators = []operator{
	{name: "NegativeLogLikelihoodLoss", versions: []int{12, 13, 22}, minIn: 2, maxIn: 3, build: buildLoss(false)},
	{name: "SoftmaxCrossEntropyLoss", versions: []int{12, 13}, minIn: 2, maxIn: 3, build: buildLoss(true)},
}

// loss holds the attributes of both losses over classes.
type loss struct {
	reduction string
	ignore    int64
	ignores   bool
	softmax   bool
}

func buildLoss(softmax bool) builder {
	return func(n *node) (kernel, error) {
		l := loss{reduction: n.Str("reduction", "mean"), ignore: int64(n.Int("ignore_index", 0)), ignores: n.Has("ignore_index"), softmax: softmax}
		switch l.reduction {
		case "mean", "sum", "none":
		default:
			return nil, fmt.Errorf("reduction %q is not known", l.reduction)
		}
		return byFloat(func(c *call) error { return runLoss[float32](c, l) }, func(c *call) error { return runLoss[float64](c, l) }), nil
	}
}

func runLoss[T float](c *call, l loss) error {
	x, weight := c.arg(0), c.arg(2)
	target, err := c.indices(1, 0)
	if err != nil {
		return err
	}
	if x.Rank() < 2 || c.arg(1).Rank() != x.Rank()-1 || !slices.Equal(c.arg(1).Shape()[:1], x.Shape()[:1]) || !slices.Equal(c.arg(1).Shape()[1:], x.Shape()[2:]) {
		return fmt.Errorf("scores %v with targets %v", x, c.arg(1))
	}
	classes, inner := x.Shape()[1], product(x.Shape()[2:])
	if classes == 0 && len(target) > 0 {
		return fmt.Errorf("scores %v have no classes", x)
	}
	if weight != nil && (weight.Len() != classes || weight.DType() != x.DType()) {
		return fmt.Errorf("weights are %v, expected one %v for each of %d classes", weight, x.DType(), classes)
	}
	logp := data[T](x)
	if l.softmax {
		logp = scratch[T](c, 1, x.Len())
		line, res := scratch[T](c, 2, classes), scratch[T](c, 3, classes)
		src := data[T](x)
		for i := range len(src) / max(1, classes) {
			base := i/inner*classes*inner + i%inner
			for k := range line {
				line[k] = src[base+k*inner]
			}
			logSoftmaxRow(res, line)
			for k, v := range res {
				logp[base+k*inner] = v
			}
		}
		if c.wants(1) {
			copy(data[T](c.make(1, x.DType(), x.Shape()...)), logp)
		}
	}
	var each []T
	if l.reduction == "none" {
		each = data[T](c.make(0, x.DType(), c.arg(1).Shape()...))
	}
	sum, total := 0.0, 0.0
	for i, k := range target {
		w := 1.0
		if l.ignores && k == l.ignore {
			if each != nil {
				each[i] = 0
			}
			continue
		}
		if k < 0 || int(k) >= classes {
			return badData("target %d is %d, there are %d classes", i, k, classes)
		}
		if weight != nil {
			w = float64(data[T](weight)[k])
		}
		v := -w * float64(logp[(i/inner*classes+int(k))*inner+i%inner])
		if each != nil {
			each[i] = T(v)
		}
		sum, total = sum+v, total+w
	}
	if each != nil {
		return nil
	}
	if l.reduction == "mean" {
		sum /= total
	}
	data[T](c.make(0, x.DType()))[0] = T(sum)
	return nil
}
