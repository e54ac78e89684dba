package portable

import (
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Reductions. Floats are accumulated in float64 and rounded once; integers in their own type.
var reduceOperators = slices.Concat(
	reduceOp("ReduceSum", []int{1, 11}, []int{13}, fold{sumFloat[float32], sumFloat[float64], sumInt[int32], sumInt[int64], sumInt[uint32], sumInt[uint64], nil, nil, false}),
	reduceOp("ReduceMean", []int{1, 11, 13}, []int{18}, fold{meanFloat[float32], meanFloat[float64], meanInt[int32], meanInt[int64], meanInt[uint32], meanInt[uint64], nil, nil, false}),
	reduceOp("ReduceMax", []int{1, 11, 12, 13}, []int{18, 20}, fold{maxFloat[float32], maxFloat[float64], maxInt[int32], maxInt[int64], maxInt[uint32], maxInt[uint64], maxInt[int8], maxInt[uint8], false}),
	reduceOp("ReduceMin", []int{1, 11, 12, 13}, []int{18, 20}, fold{minFloat[float32], minFloat[float64], minInt[int32], minInt[int64], minInt[uint32], minInt[uint64], minInt[int8], minInt[uint8], false}),
	reduceOp("ReduceProd", []int{1, 11, 13}, []int{18}, fold{prodFloat[float32], prodFloat[float64], prodInt[int32], prodInt[int64], prodInt[uint32], prodInt[uint64], nil, nil, false}),
	reduceOp("ReduceL1", []int{1, 11, 13}, []int{18}, foldVia(func(v []float64) float64 { return sum64(v, math.Abs) })),
	reduceOp("ReduceL2", []int{1, 11, 13}, []int{18}, foldVia(func(v []float64) float64 { return math.Sqrt(sum64(v, square)) })),
	reduceOp("ReduceSumSquare", []int{1, 11, 13}, []int{18}, foldVia(func(v []float64) float64 { return sum64(v, square) })),
	reduceOp("ReduceLogSum", []int{1, 11, 13}, []int{18, 28}, foldVia(func(v []float64) float64 { return math.Log(sum64(v, func(x float64) float64 { return x })) })),
	reduceOp("ReduceLogSumExp", []int{1, 11, 13}, []int{18, 28}, foldVia(logSumExp)),
	[]operator{
		{name: "ArgMax", versions: []int{1, 11, 12, 13}, minIn: 1, maxIn: 1, build: buildArg(true)},
		{name: "ArgMin", versions: []int{1, 11, 12, 13}, minIn: 1, maxIn: 1, build: buildArg(false)},
	},
)

// fold holds a reduction of one vector for each element type that has it.
type fold struct {
	f32 func([]float32) float32
	f64 func([]float64) float64
	i32 func([]int32) int32
	i64 func([]int64) int64
	u32 func([]uint32) uint32
	u64 func([]uint64) uint64
	i8  func([]int8) int8
	u8  func([]uint8) uint8
	// one says that a single element is computed with too: its size, square or logarithm is taken
	// also where no axis is reduced.
	one bool
}

// reduceOp lists an operator whose axes are an attribute in some versions and an input in later
// ones.
func reduceOp(name string, attribute, input []int, f fold) []operator {
	b := buildReduce(f)
	return []operator{
		{name: name, versions: attribute, minIn: 1, maxIn: 1, build: b},
		{name: name, versions: input, minIn: 1, maxIn: 2, build: b},
	}
}

// foldVia makes a reduction that is computed in float64 for every type.
func foldVia(f func([]float64) float64) fold {
	return fold{via[float32](f), f, via[int32](f), via[int64](f), via[uint32](f), via[uint64](f), nil, nil, true}
}

func via[T number](f func([]float64) float64) func([]T) T {
	return func(v []T) T {
		w := make([]float64, len(v))
		convertSlice(w, v)
		return T(f(w))
	}
}

func square(x float64) float64 { return x * x }

func sum64(v []float64, f func(float64) float64) float64 {
	s := 0.0
	for _, x := range v {
		s += f(x)
	}
	return s
}

func logSumExp(v []float64) float64 {
	m := math.Inf(-1)
	for _, x := range v {
		m = math.Max(m, x)
	}
	if math.IsInf(m, 0) {
		return m
	}
	return m + math.Log(sum64(v, func(x float64) float64 { return math.Exp(x - m) }))
}

func sumFloat[T float](v []T) T {
	// Two accumulators halve the chain of dependent additions; their order is fixed.
	var a, b float64
	i := 0
	for ; i+1 < len(v); i += 2 {
		a += float64(v[i])
		b += float64(v[i+1])
	}
	if i < len(v) {
		a += float64(v[i])
	}
	return T(a + b)
}

func sumInt[T integer](v []T) T {
	var s T
	for _, x := range v {
		s += x
	}
	return s
}

func meanFloat[T float](v []T) T {
	s := 0.0
	for _, x := range v {
		s += float64(x)
	}
	return T(s / float64(len(v)))
}

func meanInt[T integer](v []T) T {
	if len(v) == 0 {
		return 0
	}
	return sumInt(v) / T(len(v))
}

func maxFloat[T float](v []T) T {
	m := T(math.Inf(-1))
	for _, x := range v {
		if x > m || x != x {
			m = x
		}
		if m != m {
			return m
		}
	}
	return m
}

func minFloat[T float](v []T) T {
	m := T(math.Inf(1))
	for _, x := range v {
		if x < m || x != x {
			m = x
		}
		if m != m {
			return m
		}
	}
	return m
}

// maxInt of nothing is the type's smallest value, as an infinity is for floats.
func maxInt[T integer](v []T) T {
	if len(v) == 0 {
		return lowest[T]()
	}
	return slices.Max(v)
}

func minInt[T integer](v []T) T {
	if len(v) == 0 {
		return ^lowest[T]()
	}
	return slices.Min(v)
}

// lowest returns the smallest value of an integer type; its complement is the largest.
func lowest[T integer]() T {
	var z T
	if ^z > 0 {
		return 0 // unsigned
	}
	low := T(1)
	for low > 0 {
		low <<= 1
	}
	return low
}

func prodFloat[T float](v []T) T {
	p := 1.0
	for _, x := range v {
		p *= float64(x)
	}
	return T(p)
}

func prodInt[T integer](v []T) T {
	p := T(1)
	for _, x := range v {
		p *= x
	}
	return p
}

// reduceState is the plan of a reduction: the axes reduced, moved to the end where they are not
// there already.
type reduceState struct {
	gone  []bool
	out   []int
	copy  strided
	st    []int
	inner int
}

// plan finds the axes. It reports false when nothing is reduced.
func (r *reduceState) plan(c *call, attr []int, noop, keepDims bool) (bool, error) {
	x := c.arg(0)
	axes, given, err := c.axesArg(0, 1, attr, x.Rank())
	if err != nil {
		return false, err
	}
	r.gone = r.gone[:0]
	none := len(axes) == 0 && noop
	for i := range x.Rank() {
		r.gone = append(r.gone, !none && (!given || len(axes) == 0 || slices.Contains(axes, i)))
	}
	r.out, r.inner = r.out[:0], 1
	for i, d := range x.Shape() {
		switch {
		case !r.gone[i]:
			r.out = append(r.out, d)
		case keepDims:
			r.out = append(r.out, 1)
		}
		if r.gone[i] {
			r.inner *= d
		}
	}
	return !none, nil
}

// rows returns x's elements with the reduced axes innermost, in scratch when they have to be moved.
func rows[T tensor.Element](c *call, r *reduceState, x *tensor.Tensor) []T {
	last := true
	for i := len(r.gone) - 1; i > 0; i-- {
		if !r.gone[i] && r.gone[i-1] {
			last = false
		}
	}
	src := data[T](x)
	if last {
		return src
	}
	r.st = rowMajor(r.st, x.Shape())
	r.copy.reset()
	// The destination is written in order, so its strides follow from the axes that come later.
	order := c.shapeBuf(3)
	for _, reduced := range []bool{false, true} {
		for i := range r.gone {
			if r.gone[i] == reduced {
				order = append(order, i)
			}
		}
	}
	c.keepBuf(3, order)
	n := len(src)
	for _, i := range order {
		d := x.Shape()[i]
		if d == 0 {
			return nil
		}
		n /= d
		r.copy.axis(d, n, r.st[i])
	}
	dst := scratch[T](c, 0, len(src))
	e, _ := elementsOf(x)
	r.copy.run(elements{bytes: c.f.buffer[0], size: e.size}, e)
	return dst
}

func reduceInto[T tensor.Element](c *call, r *reduceState, f func([]T) T) error {
	if f == nil {
		return unsupported("element type %v", c.arg(0).DType())
	}
	x := c.arg(0)
	out := data[T](c.make(0, x.DType(), r.out...))
	v := rows[T](c, r, x)
	for i := range out {
		out[i] = f(v[i*r.inner : (i+1)*r.inner])
	}
	return nil
}

func buildReduce(f fold) builder {
	return func(n *node) (kernel, error) {
		attr, keepDims, noop := n.Ints("axes"), n.Int("keepdims", 1) != 0, n.Int("noop_with_empty_axes", 0) != 0
		return func(c *call) error {
			r := keep[reduceState](c)
			some, err := r.plan(c, attr, noop, keepDims)
			if err != nil {
				return err
			}
			x := c.arg(0)
			if !some && !f.one {
				copyTensor(c.make(0, x.DType(), x.Shape()...), x)
				return nil
			}
			switch x.DType() {
			case tensor.Float32:
				return reduceInto(c, r, f.f32)
			case tensor.Float64:
				return reduceInto(c, r, f.f64)
			case tensor.Int32:
				return reduceInto(c, r, f.i32)
			case tensor.Int64:
				return reduceInto(c, r, f.i64)
			case tensor.Uint32:
				return reduceInto(c, r, f.u32)
			case tensor.Uint64:
				return reduceInto(c, r, f.u64)
			case tensor.Int8:
				return reduceInto(c, r, f.i8)
			case tensor.Uint8, tensor.Bool:
				if f.u8 == nil {
					return unsupported("element type %v", x.DType())
				}
				out := c.make(0, x.DType(), r.out...).Bytes()
				// A bool is stored as 0 or 1, so its largest and smallest are those of bytes.
				v := rowsOfBytes(c, r, x)
				for i := range out {
					out[i] = f.u8(v[i*r.inner : (i+1)*r.inner])
					if x.DType() == tensor.Bool && r.inner == 0 {
						out[i] &= 1
					}
				}
				return nil
			}
			return unsupported("element type %v", x.DType())
		}, nil
	}
}

func rowsOfBytes(c *call, r *reduceState, x *tensor.Tensor) []byte {
	if x.DType() == tensor.Uint8 {
		return rows[uint8](c, r, x)
	}
	b := rows[bool](c, r, x)
	out := scratch[uint8](c, 1, len(b))
	for i, v := range b {
		out[i] = 0
		if v {
			out[i] = 1
		}
	}
	return out
}

func buildArg(largest bool) builder {
	return func(n *node) (kernel, error) {
		axis, keepDims, last := n.Int("axis", 0), n.Int("keepdims", 1) != 0, n.Int("select_last_index", 0) != 0
		return func(c *call) error {
			x := c.arg(0)
			a, err := normAxis(axis, x.Rank())
			if err != nil {
				return err
			}
			shape := c.shapeBuf(0)
			for i, d := range x.Shape() {
				switch {
				case i != a:
					shape = append(shape, d)
				case keepDims:
					shape = append(shape, 1)
				}
			}
			out := c.make(0, tensor.Int64, c.keepBuf(0, shape)...).Int64s()
			inner, d := product(x.Shape()[a+1:]), x.Shape()[a]
			ops, err := numbersOf(x)
			if err != nil {
				return err
			}
			ops.arg(out, x, d, inner, largest, last)
			return nil
		}, nil
	}
}

func argOf[T number](out []int64, x []T, d, inner int, largest, last bool) {
	for o := range out {
		base := o/inner*d*inner + o%inner
		best := 0
		for i := 1; i < d; i++ {
			v, b := x[base+i*inner], x[base+best*inner]
			if largest && v > b || !largest && v < b || last && v == b {
				best = i
			}
		}
		out[o] = int64(best)
	}
}
