package portable

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var quantizeOperators = []operator{
	{name: "QuantizeLinear", versions: []int{10, 13, 19, 21, 23, 24, 25, 28}, minIn: 2, maxIn: 3, build: buildQuantize},
	{name: "DequantizeLinear", versions: []int{10, 13, 19, 21, 23, 24, 25, 28}, minIn: 2, maxIn: 3, exact: true, build: buildDequantize},
	{name: "DynamicQuantizeLinear", versions: []int{11}, minIn: 1, maxIn: 1, build: plain(dynamicQuantize)},
	{name: "MatMulInteger", versions: []int{10}, minIn: 2, maxIn: 4, build: plain(matMulInteger)},
	{name: "ConvInteger", versions: []int{10}, minIn: 2, maxIn: 4, build: buildConvInteger},
	{name: "QLinearMatMul", versions: []int{10, 21}, minIn: 8, maxIn: 8, build: plain(qLinearMatMul)},
	{name: "QLinearConv", versions: []int{10}, minIn: 8, maxIn: 9, build: buildQLinearConv},
}

// limits returns the range of an 8- or 16-bit integer type.
func limits(d tensor.DType) (lo, hi float64, ok bool) {
	switch d {
	case tensor.Uint8:
		return 0, 255, true
	case tensor.Int8:
		return -128, 127, true
	case tensor.Uint16:
		return 0, 65535, true
	case tensor.Int16:
		return -32768, 32767, true
	}
	return 0, 0, false
}

// granularity says which scale belongs to an element: one for all, one per position of an axis, or
// one per block along it.
type granularity struct {
	x           []int
	axis, block int
	scales      []int
	inner       int
}

func granularityOf(x, scale *tensor.Tensor, axis, block int) (g granularity, err error) {
	g = granularity{x: x.Shape(), block: block, scales: scale.Shape()}
	if scale.Len() == 1 && scale.Rank() <= 1 {
		g.axis = -1
		return g, nil
	}
	if g.axis, err = normAxis(axis, x.Rank()); err != nil {
		return g, err
	}
	g.inner = product(g.x[g.axis+1:])
	if block == 0 {
		if scale.Rank() != 1 || scale.Len() != g.x[g.axis] {
			return g, fmt.Errorf("scale %v for axis %d of %v", scale, g.axis, x)
		}
		return g, nil
	}
	if scale.Rank() != x.Rank() {
		return g, fmt.Errorf("scale %v for blocks of %v", scale, x)
	}
	for i, d := range g.x {
		want := d
		if i == g.axis {
			want = (d + block - 1) / block
		}
		if g.scales[i] != want {
			return g, fmt.Errorf("scale %v for blocks of %d along axis %d of %v", scale, block, g.axis, x)
		}
	}
	return g, nil
}

// of returns the index of the scale of element i.
func (g *granularity) of(i int) int {
	switch {
	case g.axis < 0:
		return 0
	case g.block == 0:
		return i / g.inner % g.x[g.axis]
	}
	d := g.x[g.axis]
	return (i/(g.inner*d)*g.scales[g.axis]+i/g.inner%d/g.block)*g.inner + i%g.inner
}

func buildQuantize(n *node) (kernel, error) {
	axis, block, to := n.Int("axis", 1), n.Int("block_size", 0), tensor.DType(n.Int("output_dtype", 0))
	if p := tensor.DType(n.Int("precision", 0)); p != tensor.Undefined && p != tensor.Float32 {
		return nil, unsupported("dividing in precision %v", p)
	}
	return func(c *call) error {
		x, scale, zero := c.arg(0), c.arg(1), c.arg(2)
		d := to
		if zero != nil {
			d = zero.DType()
		} else if d == tensor.Undefined {
			d = tensor.Uint8
		}
		lo, hi, ok := limits(d)
		if !ok {
			return unsupported("quantising to %v", d)
		}
		g, v, s, z, err := quantized(x, scale, zero, axis, block)
		if err != nil {
			return err
		}
		r := tensor.New(tensor.Float64, x.Shape()...)
		for i, a := range v {
			k := g.of(i)
			q := math.RoundToEven(float64(float32(a)/float32(s[k]))) + z[k]
			r.Float64s()[i] = math.Max(lo, math.Min(hi, q))
		}
		return convertInto(c.make(0, d, x.Shape()...), r)
	}, nil
}

// quantized returns the elements of x, the scales and the zero points, and which belong together.
func quantized(x, scale, zero *tensor.Tensor, axis, block int) (g granularity, v, s, z []float64, err error) {
	if g, err = granularityOf(x, scale, axis, block); err != nil {
		return g, nil, nil, nil, err
	}
	if v, err = asFloats(x); err != nil {
		return g, nil, nil, nil, err
	}
	if s, err = asFloats(scale); err != nil {
		return g, nil, nil, nil, err
	}
	z, err = zeros(zero, len(s))
	return g, v, s, z, err
}

// zeros returns n zero points; absent ones are zero.
func zeros(t *tensor.Tensor, n int) ([]float64, error) {
	if t == nil {
		return make([]float64, n), nil
	}
	if t.Len() != n {
		return nil, fmt.Errorf("zero point %v, expected %d elements", t, n)
	}
	return asFloats(t)
}

func buildDequantize(n *node) (kernel, error) {
	axis, block := n.Int("axis", 1), n.Int("block_size", 0)
	to := tensor.DType(n.Int("output_dtype", 0))
	return func(c *call) error {
		x, scale, zero := c.arg(0), c.arg(1), c.arg(2)
		g, v, s, z, err := quantized(x, scale, zero, axis, block)
		if err != nil {
			return err
		}
		d := to
		if d == tensor.Undefined {
			d = scale.DType()
		}
		r := tensor.New(tensor.Float64, x.Shape()...)
		for i, a := range v {
			k := g.of(i)
			r.Float64s()[i] = (a - z[k]) * s[k]
		}
		return convertInto(c.make(0, d, x.Shape()...), r)
	}, nil
}

func dynamicQuantize(c *call) error {
	x := c.arg(0)
	if x.DType() != tensor.Float32 {
		return unsupported("element type %v", x.DType())
	}
	lo, hi := float32(0), float32(0)
	for _, v := range x.Float32s() {
		lo, hi = min(lo, v), max(hi, v)
	}
	scale := (hi - lo) / 255
	zero := float32(0)
	if scale != 0 {
		zero = float32(math.RoundToEven(math.Max(0, math.Min(255, float64(-lo/scale)))))
	} else {
		scale = 1
	}
	out := c.make(0, tensor.Uint8, x.Shape()...).Bytes()
	for i, v := range x.Float32s() {
		q := math.RoundToEven(float64(v/scale)) + float64(zero)
		out[i] = uint8(math.Max(0, math.Min(255, q)))
	}
	c.make(1, tensor.Float32).Float32s()[0] = scale
	c.make(2, tensor.Uint8).Bytes()[0] = uint8(zero)
	return nil
}

// shifted returns x - zero as int32 values in float64, which holds every product and sum of 8-bit
// integers exactly. per maps an element to its zero point.
func shifted(x, zero *tensor.Tensor, per func(i int) int) ([]float64, error) {
	if d := x.DType(); d != tensor.Int8 && d != tensor.Uint8 {
		return nil, unsupported("element type %v", d)
	}
	v, err := asFloats(x)
	if err != nil || zero == nil {
		return v, err
	}
	z, err := asFloats(zero)
	if err != nil {
		return nil, err
	}
	for i := range v {
		k := 0
		if len(z) > 1 {
			k = per(i)
		}
		if k >= len(z) {
			return nil, fmt.Errorf("zero point %v for %v", zero, x)
		}
		v[i] -= z[k]
	}
	return v, nil
}

// wholeProduct multiplies matrices of integers held as float64, with MatMul's shapes. Zero points
// are per row of a and per column of b.
func wholeProduct(c *call, a, za, b, zb *tensor.Tensor) ([]float64, []int, error) {
	p := keep[matmulPlan](c)
	if err := p.shapes(a.Shape(), b.Shape(), false, false); err != nil {
		return nil, nil, err
	}
	x, err := shifted(a, za, func(i int) int {
		if za.Rank() > 1 {
			return i / p.k // one per row of every matrix of the batch
		}
		return i / p.k % p.m
	})
	if err != nil {
		return nil, nil, err
	}
	y, err := shifted(b, zb, func(i int) int {
		if zb.Rank() > 1 {
			return i/(p.k*p.n)*p.n + i%p.n
		}
		return i % p.n
	})
	if err != nil {
		return nil, nil, err
	}
	out := make([]float64, product(p.out))
	p.each(func(o, i, j int) {
		gemm(c, false, false, p.m, p.n, p.k, 1, x[i*p.m*p.k:], p.k, y[j*p.k*p.n:], p.n, 0, out[o*p.m*p.n:], p.n)
	})
	return out, p.out, nil
}

func matMulInteger(c *call) error {
	v, shape, err := wholeProduct(c, c.arg(0), c.arg(2), c.arg(1), c.arg(3))
	if err != nil {
		return err
	}
	out := c.make(0, tensor.Int32, shape...).Int32s()
	for i, a := range v {
		out[i] = int32(int64(a))
	}
	return nil
}

// scaleOf reads a scale that has one element or one for each of n channels.
func scaleOf(t *tensor.Tensor, n int) (func(k int) float64, error) {
	s, err := asFloats(t)
	if err != nil {
		return nil, err
	}
	if len(s) == 1 {
		return func(int) float64 { return s[0] }, nil
	}
	if len(s) != n {
		return nil, fmt.Errorf("scale %v, expected 1 or %d elements", t, n)
	}
	return func(k int) float64 { return s[k] }, nil
}

func qLinearMatMul(c *call) error {
	a, b, y := c.arg(0), c.arg(3), c.arg(7)
	v, shape, err := wholeProduct(c, a, c.arg(2), b, c.arg(5))
	if err != nil {
		return err
	}
	p := keep[matmulPlan](c)
	sa, err := scaleOf(c.arg(1), p.m)
	if err != nil {
		return err
	}
	sb, err := scaleOf(c.arg(4), p.n)
	if err != nil {
		return err
	}
	sy, err := asFloats(c.arg(6))
	if err != nil || len(sy) != 1 {
		return fmt.Errorf("y_scale is %v", c.arg(6))
	}
	return requantize(c, v, shape, y, func(i int) float64 { return sa(i/p.n%p.m) * sb(i%p.n) / sy[0] })
}

// requantize writes v times a factor, rounded and shifted by the zero point, in the zero point's
// type.
func requantize(c *call, v []float64, shape []int, zero *tensor.Tensor, factor func(i int) float64) error {
	lo, hi, ok := limits(zero.DType())
	if !ok || zero.Len() != 1 {
		return fmt.Errorf("y_zero_point is %v", zero)
	}
	z, err := asFloats(zero)
	if err != nil {
		return err
	}
	r := tensor.New(tensor.Float64, shape...)
	for i, a := range v {
		r.Float64s()[i] = math.Max(lo, math.Min(hi, math.RoundToEven(a*factor(i))+z[0]))
	}
	return convertInto(c.make(0, zero.DType(), shape...), r)
}

// wholeConv convolves integers held as float64.
func wholeConv(c *call, w window, group int, x, zx, weight, zw *tensor.Tensor) ([]float64, []int, error) {
	if x.Rank() < 3 || weight.Rank() != x.Rank() || group < 1 || weight.Shape()[1]*group != x.Shape()[1] || weight.Shape()[0]%group != 0 {
		return nil, nil, fmt.Errorf("input %v with weights %v in %d groups", x, weight, group)
	}
	in, out, err := w.convolves(x.Shape(), weight.Shape())
	if err != nil {
		return nil, nil, err
	}
	src, err := shifted(x, zx, func(int) int { return 0 })
	if err != nil {
		return nil, nil, err
	}
	per := product(weight.Shape()[1:])
	wd, err := shifted(weight, zw, func(i int) int { return i / per })
	if err != nil {
		return nil, nil, err
	}
	batch, channels, maps := x.Shape()[0], x.Shape()[1]/group, weight.Shape()[0]/group
	inLen, outLen := volume(in), volume(out)
	rows, dst := make([]float64, outLen*per), make([]float64, batch*maps*group*outLen)
	for b := range batch {
		for g := range group {
			im2row(rows, src[(b*group+g)*channels*inLen:], &w, in, out, channels)
			gemm(c, false, true, maps, outLen, per, 1, wd[g*maps*per:], per, rows, per, 0, dst[(b*group+g)*maps*outLen:], outLen)
		}
	}
	return dst, w.appendSpatial([]int{batch, maps * group}, out), nil
}

func buildConvInteger(n *node) (kernel, error) {
	w, err := buildWindow(n)
	if err != nil {
		return nil, err
	}
	group := n.Int("group", 1)
	return func(c *call) error {
		v, shape, err := wholeConv(c, w, group, c.arg(0), c.arg(2), c.arg(1), c.arg(3))
		if err != nil {
			return err
		}
		out := c.make(0, tensor.Int32, shape...).Int32s()
		for i, a := range v {
			out[i] = int32(int64(a))
		}
		return nil
	}, nil
}

func buildQLinearConv(n *node) (kernel, error) {
	w, err := buildWindow(n)
	if err != nil {
		return nil, err
	}
	group := n.Int("group", 1)
	return func(c *call) error {
		v, shape, err := wholeConv(c, w, group, c.arg(0), c.arg(2), c.arg(3), c.arg(5))
		if err != nil {
			return err
		}
		maps, inner := shape[1], product(shape[2:])
		sx, err := asFloats(c.arg(1))
		if err != nil {
			return err
		}
		sw, err := scaleOf(c.arg(4), maps)
		if err != nil {
			return err
		}
		sy, err := asFloats(c.arg(6))
		if err != nil || len(sy) != 1 || len(sx) != 1 {
			return fmt.Errorf("scales are %v and %v, expected scalars", c.arg(1), c.arg(6))
		}
		if bias := c.arg(8); bias != nil {
			b, err := asFloats(bias)
			if err != nil || len(b) != maps {
				return fmt.Errorf("bias is %v, expected %d elements", bias, maps)
			}
			for i := range v {
				v[i] += b[i/inner%maps]
			}
		}
		return requantize(c, v, shape, c.arg(7), func(i int) float64 { return sx[0] * sw(i/inner%maps) / sy[0] })
	}, nil
}
