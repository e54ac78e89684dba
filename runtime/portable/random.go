package portable

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Dropout and the random generators. A generator's stream depends on its seed attribute and,
// without one, on the node alone: equal models give equal numbers. Every run of a frame continues
// its stream.
var randomOperators = []operator{
	{name: "Dropout", versions: []int{7, 10}, minIn: 1, maxIn: 1, alias: true, exact: true, build: buildDropout},
	{name: "Dropout", versions: []int{12, 13, 22}, minIn: 1, maxIn: 3, alias: true, exact: true, build: buildDropout},
	{name: "RandomNormal", versions: []int{1, 22}, maxIn: 0, exact: true, build: buildRandom(true)},
	{name: "RandomNormalLike", versions: []int{1, 22}, minIn: 1, maxIn: 1, exact: true, build: buildRandom(true)},
	{name: "RandomUniform", versions: []int{1, 22}, maxIn: 0, exact: true, build: buildRandom(false)},
	{name: "RandomUniformLike", versions: []int{1, 22}, minIn: 1, maxIn: 1, exact: true, build: buildRandom(false)},
	{name: "Bernoulli", versions: []int{15, 22}, minIn: 1, maxIn: 1, exact: true, build: buildBernoulli},
	{name: "Multinomial", versions: []int{7, 22}, minIn: 1, maxIn: 1, build: buildMultinomial},
}

// source is a small counter-based generator (SplitMix64): good enough for these operators, and its
// whole state is one number.
type source struct {
	state  uint64
	seeded bool
}

func (s *source) uniform() float64 {
	s.state += 0x9e3779b97f4a7c15
	z := s.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) * 0x1p-53
}

func (s *source) normal() float64 {
	// Box–Muller; 1-u is never zero.
	r := math.Sqrt(-2 * math.Log(1-s.uniform()))
	return r * math.Cos(2*math.Pi*s.uniform())
}

func seedOf(n *onnx.Node) uint64 {
	if a := n.Attr("seed"); a != nil && a.Type == onnx.AttributeProto_INT {
		return uint64(a.I)
	} else if a != nil {
		return uint64(math.Float32bits(a.F))
	}
	h := uint64(14695981039346656037)
	for _, b := range []byte(n.OpType + "/" + string(n.Out(0))) {
		h = (h ^ uint64(b)) * 1099511628211
	}
	return h
}

func (c *call) source(seed uint64) *source {
	s := keep[source](c)
	if !s.seeded {
		s.state, s.seeded = seed, true
	}
	return s
}

func buildDropout(n *node) (kernel, error) {
	seed := seedOf(n.Node)
	return func(c *call) error {
		x := c.arg(0)
		ratio, training := 0.5, false
		if t := c.arg(1); t != nil {
			v, err := asFloats(t)
			if err != nil || len(v) != 1 {
				return fmt.Errorf("ratio is %v, expected one float", t)
			}
			ratio = v[0]
		}
		if t := c.arg(2); t != nil {
			var err error
			if training, err = condition(t); err != nil {
				return err
			}
		}
		if !training || ratio == 0 {
			if c.wants(1) {
				mask := c.make(1, tensor.Bool, x.Shape()...).Bools()
				for i := range mask {
					mask[i] = true
				}
			}
			c.view(0, x, x.Shape()...)
			return nil
		}
		if !(ratio >= 0 && ratio < 1) {
			return fmt.Errorf("ratio %v is outside [0, 1)", ratio)
		}
		s := c.source(seed)
		v, err := asFloats(x)
		if err != nil {
			return err
		}
		mask := c.make(1, tensor.Bool, x.Shape()...).Bools()
		r := tensor.New(tensor.Float64, x.Shape()...)
		for i, a := range v {
			if mask[i] = s.uniform() >= ratio; mask[i] {
				r.Float64s()[i] = a / (1 - ratio)
			}
		}
		return convertInto(c.make(0, x.DType(), x.Shape()...), r)
	}, nil
}

func buildRandom(normal bool) builder {
	return func(n *node) (kernel, error) {
		seed, d, shape := seedOf(n.Node), tensor.DType(n.Int("dtype", 0)), n.Ints("shape")
		a, b := float64(n.Float("low", 0)), float64(n.Float("high", 1))
		if normal {
			a, b = float64(n.Float("mean", 0)), float64(n.Float("scale", 1))
		}
		return func(c *call) error {
			s := c.source(seed)
			shape, d := shape, d
			if x := c.arg(0); x != nil {
				shape = x.Shape()
				if d == tensor.Undefined {
					d = x.DType()
				}
			}
			if d == tensor.Undefined {
				d = tensor.Float32
			}
			out := c.make(0, d, shape...)
			r := tensor.New(tensor.Float64, out.Shape()...)
			for i := range r.Float64s() {
				if normal {
					r.Float64s()[i] = a + b*s.normal()
				} else {
					r.Float64s()[i] = a + (b-a)*s.uniform()
				}
			}
			return convertInto(out, r)
		}, nil
	}
}

func buildBernoulli(n *node) (kernel, error) {
	seed, d := seedOf(n.Node), tensor.DType(n.Int("dtype", 0))
	return func(c *call) error {
		x, s, d := c.arg(0), c.source(seed), d
		if d == tensor.Undefined {
			d = x.DType()
		}
		p, err := asFloats(x)
		if err != nil {
			return err
		}
		r := tensor.New(tensor.Uint8, x.Shape()...)
		for i, v := range p {
			if s.uniform() < v {
				r.Bytes()[i] = 1
			}
		}
		return convertInto(c.make(0, d, x.Shape()...), r)
	}, nil
}

func buildMultinomial(n *node) (kernel, error) {
	seed, d, count := seedOf(n.Node), tensor.DType(n.Int("dtype", int(tensor.Int32))), n.Int("sample_size", 1)
	return func(c *call) error {
		x, s := c.arg(0), c.source(seed)
		if x.Rank() != 2 || count < 0 {
			return fmt.Errorf("input %v with sample_size %d", x, count)
		}
		logits, err := asFloats(x)
		if err != nil {
			return err
		}
		classes := x.Shape()[1]
		r := tensor.New(tensor.Int64, x.Shape()[0], count)
		p := make([]float64, classes)
		for i := range r.Int64s() {
			row := i / count
			softmaxRow(p, logits[row*classes:(row+1)*classes])
			u, k := s.uniform(), 0
			for ; k < classes-1 && u >= p[k]; k++ {
				u -= p[k]
			}
			r.Int64s()[i] = int64(k)
		}
		return convertInto(c.make(0, d, r.Shape()...), r)
	}, nil
}
