package portable

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Element-wise operators of any number of inputs: the second input is combined with the first, the
// third with that result, and so on.
var variadicOperators = []operator{
	{name: "Sum", versions: []int{6, 8, 13}, minIn: 1, maxIn: -1, build: plain(variadic(foldLoops(pair(addLoops[float32]()), pair(addLoops[float64]())), false))},
	{name: "Mean", versions: []int{6, 8, 13}, minIn: 1, maxIn: -1, build: plain(variadic(foldLoops(pair(addLoops[float32]()), pair(addLoops[float64]())), true))},
	{name: "Max", versions: []int{6, 8, 12, 13}, minIn: 1, maxIn: -1, build: plain(variadic(foldLoops(pair(loopsOf(maxF[float32])), pair(loopsOf(maxF[float64])),
		pair(loopsOf(maxN[int8])), pair(loopsOf(maxN[int16])), pair(loopsOf(maxN[int32])), pair(loopsOf(maxN[int64])),
		pair(loopsOf(maxN[uint8])), pair(loopsOf(maxN[uint16])), pair(loopsOf(maxN[uint32])), pair(loopsOf(maxN[uint64]))), false))},
	{name: "Min", versions: []int{6, 8, 12, 13}, minIn: 1, maxIn: -1, build: plain(variadic(foldLoops(pair(loopsOf(minF[float32])), pair(loopsOf(minF[float64])),
		pair(loopsOf(minN[int8])), pair(loopsOf(minN[int16])), pair(loopsOf(minN[int32])), pair(loopsOf(minN[int64])),
		pair(loopsOf(minN[uint8])), pair(loopsOf(minN[uint16])), pair(loopsOf(minN[uint32])), pair(loopsOf(minN[uint64]))), false))},
}

func maxN[T integer](a, b T) T { return max(a, b) }
func minN[T integer](a, b T) T { return min(a, b) }

// maxF and minF propagate NaN, as Go's built-in functions do.
func maxF[T float](a, b T) T { return max(a, b) }
func minF[T float](a, b T) T { return min(a, b) }

func foldLoops(l ...binaryLoop) []binaryLoop { return l }

// variadicState holds a plan per pair, because the shapes differ, and the partial results.
type variadicState struct {
	plans []broadcastPlan
	shape []int
	first strided
	st    []int
}

func variadic(list []binaryLoop, mean bool) kernel {
	return func(c *call) error {
		x := c.arg(0)
		s := keep[variadicState](c)
		shape := append(s.shape[:0], x.Shape()...)
		for i := 1; i < c.n(); i++ {
			t := c.arg(i)
			if t == nil || t.DType() != x.DType() {
				return fmt.Errorf("input %d is %v, input 0 is %v", i, t, x)
			}
			next, err := broadcastShape(c.shapeBuf(i%2), shape, t.Shape())
			if err != nil {
				return err
			}
			shape = c.keepBuf(i%2, next)
		}
		s.shape = append(s.shape[:0], shape...)
		loop := -1
		for i := range list {
			if list[i].from == x.DType() {
				loop = i
			}
		}
		if loop < 0 {
			return unsupported("element type %v", x.DType())
		}
		out := c.make(0, x.DType(), s.shape...)
		for len(s.plans) < c.n() {
			s.plans = append(s.plans, broadcastPlan{})
		}
		if err := s.spread(out, x); err != nil {
			return err
		}
		for i := 1; i < c.n(); i++ {
			p := &s.plans[i]
			if _, err := p.shapes(s.shape, c.arg(i).Shape()); err != nil {
				return err
			}
			// The result has the common shape already, so it may be operand and destination at
			// once.
			list[loop].run(p, out, out, c.arg(i))
		}
		if mean {
			return scale(out, 1/float64(c.n()))
		}
		return nil
	}
}

// spread writes x, broadcast, into out.
func (s *variadicState) spread(out, x *tensor.Tensor) error {
	dst, err := elementsOf(out)
	if err != nil {
		return err
	}
	src, _ := elementsOf(x)
	s.st = broadcastStrides(s.st, x.Shape(), out.Shape())
	s.first.reset()
	n := out.Len()
	for i, d := range out.Shape() {
		if d == 0 {
			return nil
		}
		n /= d
		s.first.axis(d, n, s.st[i])
	}
	s.first.run(dst, src)
	return nil
}

func scale(t *tensor.Tensor, f float64) error {
	switch t.DType() {
	case tensor.Float32:
		for i, v := range t.Float32s() {
			t.Float32s()[i] = float32(float64(v) * f)
		}
	case tensor.Float64:
		for i, v := range t.Float64s() {
			t.Float64s()[i] = v * f
		}
	default:
		return unsupported("element type %v", t.DType())
	}
	return nil
}
