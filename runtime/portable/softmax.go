package portable

import (
	"math"
)

// Operators that normalise along one axis. Before opset 13 the input counted as a matrix whose
// columns start at the axis.
var softmaxOperators = []operator{
	{name: "Softmax", versions: []int{1, 11, 13}, minIn: 1, maxIn: 1, build: alongAxis(softmaxRow[float32], softmaxRow[float64])},
	{name: "LogSoftmax", versions: []int{1, 11, 13}, minIn: 1, maxIn: 1, build: alongAxis(logSoftmaxRow[float32], logSoftmaxRow[float64])},
	{name: "Hardmax", versions: []int{1, 11, 13}, minIn: 1, maxIn: 1, build: alongAxis(hardmaxRow[float32], hardmaxRow[float64])},
	{name: "LpNormalization", versions: []int{1, 22}, minIn: 1, maxIn: 1, build: buildLpNormalization},
}

// alongAxis builds an operator that maps vectors along an axis to vectors.
func alongAxis(f32 func(dst, src []float32), f64 func(dst, src []float64)) builder {
	return func(n *node) (kernel, error) {
		flatten := n.opset < 13
		axis := n.Int("axis", -1)
		if flatten {
			axis = n.Int("axis", 1)
		}
		return byFloat(func(c *call) error { return rowwise(c, axis, flatten, f32) }, func(c *call) error { return rowwise(c, axis, flatten, f64) }), nil
	}
}

func rowwise[T float](c *call, axis int, flatten bool, f func(dst, src []T)) error {
	x := c.arg(0)
	out := data[T](c.make(0, x.DType(), x.Shape()...))
	src := data[T](x)
	if x.Rank() == 0 {
		f(out, src)
		return nil
	}
	if flatten && axis == x.Rank() {
		for i := range src {
			f(out[i:i+1], src[i:i+1])
		}
		return nil
	}
	a, err := normAxis(axis, x.Rank())
	if err != nil {
		return err
	}
	d, inner := x.Shape()[a], product(x.Shape()[a+1:])
	if flatten {
		d, inner = d*inner, 1
	}
	if d == 0 {
		return nil
	}
	if inner == 1 {
		for i := 0; i < len(src); i += d {
			f(out[i:i+d], src[i:i+d])
		}
		return nil
	}
	line, res := scratch[T](c, 0, d), scratch[T](c, 1, d)
	for o := 0; o < len(src); o += d * inner {
		for j := range inner {
			for i := range d {
				line[i] = src[o+i*inner+j]
			}
			f(res, line)
			for i := range d {
				out[o+i*inner+j] = res[i]
			}
		}
	}
	return nil
}

func maxOf[T float](v []T) T {
	m := v[0]
	for _, x := range v[1:] {
		if x > m {
			m = x
		}
	}
	return m
}

func softmaxRow[T float](dst, src []T) {
	m := float64(maxOf(src))
	if math.IsInf(m, -1) {
		m = 0 // a row of -Inf is 0/0 below, as everywhere
	}
	sum := 0.0
	for i, v := range src {
		e := math.Exp(float64(v) - m)
		dst[i] = T(e)
		sum += e
	}
	for i := range dst {
		dst[i] = T(float64(dst[i]) / sum)
	}
}

func logSoftmaxRow[T float](dst, src []T) {
	m := float64(maxOf(src))
	sum := 0.0
	for _, v := range src {
		sum += math.Exp(float64(v) - m)
	}
	l := m + math.Log(sum)
	for i, v := range src {
		dst[i] = T(float64(v) - l)
	}
}

func hardmaxRow[T float](dst, src []T) {
	best := 0
	for i, v := range src {
		dst[i] = 0
		if v > src[best] {
			best = i
		}
	}
	dst[best] = 1
}

func buildLpNormalization(n *node) (kernel, error) {
	axis, p := n.Int("axis", -1), n.Int("p", 2)
	if p != 1 && p != 2 {
		return nil, unsupported("p = %d", p)
	}
	return byFloat(func(c *call) error { return rowwise(c, axis, false, lpRow[float32](p)) }, func(c *call) error { return rowwise(c, axis, false, lpRow[float64](p)) }), nil
}

func lpRow[T float](p int) func(dst, src []T) {
	return func(dst, src []T) {
		s := 0.0
		for _, v := range src {
			if p == 1 {
				s += math.Abs(float64(v))
			} else {
				s += float64(v) * float64(v)
			}
		}
		if p == 2 {
			s = math.Sqrt(s)
		}
		for i, v := range src {
			dst[i] = 0
			if s != 0 {
				dst[i] = T(float64(v) / s)
			}
		}
	}
}
