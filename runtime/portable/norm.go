package portable

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Normalisation layers. Means and variances are accumulated in float64.
var normOperators = []operator{
	{name: "BatchNormalization", versions: []int{7, 9, 14, 15}, minIn: 5, maxIn: 5, build: buildBatchNorm},
	{name: "InstanceNormalization", versions: []int{6, 22}, minIn: 3, maxIn: 3, build: buildInstanceNorm},
	{name: "LayerNormalization", versions: []int{17}, minIn: 2, maxIn: 3, exact: true, build: buildLayerNorm},
	{name: "GroupNormalization", versions: []int{18, 21}, minIn: 3, maxIn: 3, build: buildGroupNorm},
	{name: "RMSNormalization", versions: []int{23}, minIn: 2, maxIn: 2, build: buildRMSNorm},
	{name: "LRN", versions: []int{1, 13}, minIn: 1, maxIn: 1, build: buildLRN},
}

// meanVar returns the mean and the population variance.
func meanVar[T float](v []T) (mean, variance float64) {
	for _, x := range v {
		mean += float64(x)
	}
	mean /= float64(len(v))
	for _, x := range v {
		d := float64(x) - mean
		variance += d * d
	}
	return mean, variance / float64(len(v))
}

func buildBatchNorm(n *node) (kernel, error) {
	eps, momentum := float64(n.Float("epsilon", 1e-5)), float64(n.Float("momentum", 0.9))
	training := n.Int("training_mode", 0) != 0
	if n.opset < 14 {
		training = n.want(1)
	}
	if n.opset < 9 && n.Int("spatial", 1) == 0 {
		return nil, unsupported("spatial = 0")
	}
	return byFloat(func(c *call) error { return batchNorm[float32](c, eps, momentum, training) },
		func(c *call) error { return batchNorm[float64](c, eps, momentum, training) }), nil
}

// asFloats returns the elements of a float tensor as float64.
func asFloats(t *tensor.Tensor) ([]float64, error) {
	w, err := convert(t, tensor.Float64)
	if err != nil {
		return nil, err
	}
	return w.Float64s(), nil
}

func batchNorm[T float](c *call, eps, momentum float64, training bool) error {
	x := c.arg(0)
	if x.Rank() < 1 {
		return fmt.Errorf("input is a scalar")
	}
	channels := 1
	if x.Rank() > 1 {
		channels = x.Shape()[1]
	}
	inner := 1
	if x.Rank() > 2 {
		inner = product(x.Shape()[2:])
	}
	var p [4][]float64
	for i := range p {
		if c.arg(i+1).Len() != channels {
			return fmt.Errorf("input %d is %v, expected one element for each of %d channels", i+1, c.arg(i+1), channels)
		}
		p[i] = scratch[float64](c, i, channels)
		switch t := c.arg(i + 1); t.DType() {
		case tensor.Float32:
			convertSlice(p[i], t.Float32s())
		case tensor.Float64:
			copy(p[i], t.Float64s())
		default:
			return unsupported("element type %v of input %d", t.DType(), i+1)
		}
	}
	scale, shift, mean, variance := p[0], p[1], p[2], p[3]
	src := data[T](x)
	if training {
		newMean, newVar := make([]float64, channels), make([]float64, channels)
		count := float64(len(src) / max(1, channels))
		overChannels(src, channels, inner, func(ch int, v []T) {
			for _, a := range v {
				newMean[ch] += float64(a)
			}
		})
		for ch := range newMean {
			newMean[ch] /= count
		}
		overChannels(src, channels, inner, func(ch int, v []T) {
			for _, a := range v {
				d := float64(a) - newMean[ch]
				newVar[ch] += d * d
			}
		})
		for ch := range newVar {
			newVar[ch] /= count
		}
		for i, batch := range [2][]float64{newMean, newVar} {
			if !c.wants(i + 1) {
				continue
			}
			out := c.make(i+1, c.arg(i+3).DType(), channels)
			r := tensor.New(tensor.Float64, channels)
			for ch, v := range batch {
				r.Float64s()[ch] = p[2+i][ch]*momentum + v*(1-momentum)
			}
			if err := convertInto(out, r); err != nil {
				return err
			}
		}
		mean, variance = newMean, newVar
	}
	dst := data[T](c.make(0, x.DType(), x.Shape()...))
	at := 0
	overChannels(src, channels, inner, func(ch int, v []T) {
		f := scale[ch] / math.Sqrt(variance[ch]+eps)
		m, b := mean[ch], shift[ch]
		for _, a := range v {
			dst[at] = T((float64(a)-m)*f + b)
			at++
		}
	})
	return nil
}

// overChannels calls f with every channel's run of an N×C×… array, in order of memory.
func overChannels[T any](v []T, channels, inner int, f func(ch int, v []T)) {
	if inner == 0 || channels == 0 {
		return
	}
	for i := 0; i < len(v); i += inner {
		f(i/inner%channels, v[i:i+inner])
	}
}

func buildInstanceNorm(n *node) (kernel, error) {
	eps := float64(n.Float("epsilon", 1e-5))
	k32 := func(c *call) error { return groupNorm[float32](c, eps, 0, false) }
	k64 := func(c *call) error { return groupNorm[float64](c, eps, 0, false) }
	return byFloat(k32, k64), nil
}

func buildGroupNorm(n *node) (kernel, error) {
	eps, groups := float64(n.Float("epsilon", 1e-5)), n.Int("num_groups", 0)
	if groups < 1 {
		return nil, fmt.Errorf("num_groups is %d", groups)
	}
	// Before opset 21 scale and bias had one element per group.
	perGroup := n.opset < 21
	k32 := func(c *call) error { return groupNorm[float32](c, eps, groups, perGroup) }
	k64 := func(c *call) error { return groupNorm[float64](c, eps, groups, perGroup) }
	return byFloat(k32, k64), nil
}

// groupNorm normalises each group of channels of each batch element; groups 0 means one group per
// channel.
func groupNorm[T float](c *call, eps float64, groups int, perGroup bool) error {
	x := c.arg(0)
	if x.Rank() < 2 || x.Shape()[1] == 0 {
		return fmt.Errorf("input %v has no channels", x)
	}
	channels, inner := x.Shape()[1], product(x.Shape()[2:])
	if groups == 0 {
		groups = channels
	}
	params := channels
	if perGroup {
		params = groups
	}
	if channels%groups != 0 || c.arg(1).Len() != params || c.arg(2).Len() != params || c.arg(1).DType() != x.DType() || c.arg(2).DType() != x.DType() {
		return fmt.Errorf("input %v in %d groups with scale %v and bias %v", x, groups, c.arg(1), c.arg(2))
	}
	scale, bias := data[T](c.arg(1)), data[T](c.arg(2))
	dst, src := data[T](c.make(0, x.DType(), x.Shape()...)), data[T](x)
	per := channels / groups
	size := per * inner
	for i := 0; i < len(src); i += size {
		v := src[i : i+size]
		mean, variance := meanVar(v)
		inv := 1 / math.Sqrt(variance+eps)
		g := i / size % groups
		for k, a := range v {
			p := g*per + k/inner
			if perGroup {
				p = g
			}
			dst[i+k] = T((float64(a)-mean)*inv*float64(scale[p]) + float64(bias[p]))
		}
	}
	return nil
}

func buildLayerNorm(n *node) (kernel, error) {
	eps, axis := float64(n.Float("epsilon", 1e-5)), n.Int("axis", -1)
	run := byFloat(func(c *call) error { return layerNorm[float32](c, eps, axis) }, func(c *call) error { return layerNorm[float64](c, eps, axis) })
	return func(c *call) error {
		if d := c.arg(0).DType(); d != tensor.Float16 && d != tensor.BFloat16 {
			return run(c)
		}
		// The statistics are float32 whatever the input is; only the result is narrowed.
		return c.viaFloat32Outputs(run, 1)
	}, nil
}

// statShape is the shape of per-row statistics: the normalised axes become 1.
func statShape(c *call, x *tensor.Tensor, a int) []int {
	shape := append(c.shapeBuf(0), x.Shape()...)
	for i := a; i < len(shape); i++ {
		shape[i] = 1
	}
	return c.keepBuf(0, shape)
}

func layerNorm[T float](c *call, eps float64, axis int) error {
	x, scale, bias := c.arg(0), c.arg(1), c.arg(2)
	a, err := normAxis(axis, x.Rank())
	if err != nil {
		return err
	}
	sc, err := normParam[T](c, 0, scale, x, a)
	if err != nil {
		return err
	}
	var bi []T
	if bias != nil {
		if bi, err = normParam[T](c, 1, bias, x, a); err != nil {
			return err
		}
	}
	src, dst := data[T](x), data[T](c.make(0, x.DType(), x.Shape()...))
	var means, invs []T
	if c.wants(1) {
		means = data[T](c.make(1, x.DType(), statShape(c, x, a)...))
	}
	if c.wants(2) {
		invs = data[T](c.make(2, x.DType(), statShape(c, x, a)...))
	}
	n := product(x.Shape()[a:])
	if n == 0 {
		return nil
	}
	for i := 0; i < len(src); i += n {
		v, y := src[i:i+n], dst[i:i+n]
		mean, variance := meanVar(v)
		inv := 1 / math.Sqrt(variance+eps)
		if means != nil {
			means[i/n] = T(mean)
		}
		if invs != nil {
			invs[i/n] = T(inv)
		}
		for k, b := range v {
			r := (float64(b) - mean) * inv * float64(sc[k])
			if bi != nil {
				r += float64(bi[k])
			}
			y[k] = T(r)
		}
	}
	return nil
}

// normParam returns a scale or bias broadcast to the normalised axes of x.
func normParam[T float](c *call, k int, p, x *tensor.Tensor, a int) ([]T, error) {
	want := x.Shape()[a:]
	n := product(want)
	if p.DType() != x.DType() {
		return nil, fmt.Errorf("input is %v, its scale or bias %v", x, p)
	}
	if p.Len() == n && p.Rank() <= len(want) {
		return data[T](p), nil
	}
	shape, err := broadcastShape(nil, want, p.Shape())
	if err != nil || product(shape) != n || len(shape) != len(want) {
		return nil, fmt.Errorf("scale or bias %v does not broadcast to %v", p, append([]int{}, want...))
	}
	out := scratch[T](c, k, n)
	st, src := broadcastStrides(nil, p.Shape(), shape), data[T](p)
	for i := range out {
		at, rest := 0, i
		for j := len(shape) - 1; j >= 0; j-- {
			at += rest % shape[j] * st[j]
			rest /= shape[j]
		}
		out[i] = src[at]
	}
	return out, nil
}

func buildRMSNorm(n *node) (kernel, error) {
	eps, axis := float64(n.Float("epsilon", 1e-5)), n.Int("axis", -1)
	return byFloat(func(c *call) error { return rmsNorm[float32](c, eps, axis) }, func(c *call) error { return rmsNorm[float64](c, eps, axis) }), nil
}

func rmsNorm[T float](c *call, eps float64, axis int) error {
	x := c.arg(0)
	a, err := normAxis(axis, x.Rank())
	if err != nil {
		return err
	}
	sc, err := normParam[T](c, 0, c.arg(1), x, a)
	if err != nil {
		return err
	}
	src, dst := data[T](x), data[T](c.make(0, x.DType(), x.Shape()...))
	n := product(x.Shape()[a:])
	if n == 0 {
		return nil
	}
	for i := 0; i < len(src); i += n {
		v := src[i : i+n]
		s := 0.0
		for _, b := range v {
			s += float64(b) * float64(b)
		}
		inv := 1 / math.Sqrt(s/float64(n)+eps)
		for k, b := range v {
			dst[i+k] = T(float64(b) * inv * float64(sc[k]))
		}
	}
	return nil
}

func buildLRN(n *node) (kernel, error) {
	l := lrn{n.Int("size", 0), float64(n.Float("alpha", 1e-4)), float64(n.Float("beta", 0.75)), float64(n.Float("bias", 1))}
	if l.size < 1 {
		return nil, fmt.Errorf("size is %d", l.size)
	}
	return byFloat(func(c *call) error { return runLRN[float32](c, l) }, func(c *call) error { return runLRN[float64](c, l) }), nil
}

type lrn struct {
	size              int
	alpha, beta, bias float64
}

func runLRN[T float](c *call, l lrn) error {
	x := c.arg(0)
	if x.Rank() < 2 {
		return fmt.Errorf("input %v has no channels", x)
	}
	src, dst := data[T](x), data[T](c.make(0, x.DType(), x.Shape()...))
	channels, inner := x.Shape()[1], product(x.Shape()[2:])
	for i := range src {
		ch := i / inner % channels
		lo, hi := max(0, ch-(l.size-1)/2), min(channels-1, ch+l.size/2)
		s := 0.0
		for k := lo; k <= hi; k++ {
			v := float64(src[i+(k-ch)*inner])
			s += v * v
		}
		dst[i] = T(float64(src[i]) / math.Pow(l.bias+l.alpha/float64(l.size)*s, l.beta))
	}
	return nil
}
