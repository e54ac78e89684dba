package shape

import (
	"math"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// arith is one element-wise operation on integers (possibly symbolic) and on floats.
type arith struct {
	ints func(s *state, a, b val) val
	flts func(a, b float64) float64
}

var (
	addition = arith{(*state).add, func(a, b float64) float64 { return a + b }}
	subtract = arith{(*state).sub, func(a, b float64) float64 { return a - b }}
	multiply = arith{(*state).mul, func(a, b float64) float64 { return a * b }}
	division = arith{(*state).divTrunc, func(a, b float64) float64 { return a / b }}
	minimum  = arith{func(s *state, a, b val) val { return s.extreme(a, b, -1) }, math.Min}
	maximum  = arith{func(s *state, a, b val) val { return s.extreme(a, b, 1) }, math.Max}
)

// divTrunc is integer division as ONNX has it, rounding towards zero.
func (s *state) divTrunc(a, b val) val {
	if a.known && b.known {
		if b.n == 0 || b.n == -1 && a.n == math.MinInt64 {
			return val{}
		}
		return num(a.n / b.n)
	}
	if a.unknown() || b.unknown() {
		return val{}
	}
	up, down := true, true
	for _, m := range s.polyOf(a) {
		if len(m.f) > 0 {
			up, down = up && m.c > 0, down && m.c < 0
		}
	}
	switch {
	case up && b.known:
		// Something like len-1: not negative for any axis that the model can mean, so rounding down
		// is rounding towards zero.
		return s.divFloor(a, b.n)
	case down && b.known:
		return negVal(s, s.divFloor(negVal(s, a), b.n))
	case up:
		return s.quotient(a, b)
	}
	return val{}
}

// extreme returns the greater (dir 1) or lesser (dir -1) value where it is known which that is.
func (s *state) extreme(a, b val, dir int) val {
	if a.unknown() || b.unknown() {
		return val{}
	}
	low, high := s.sign(s.sub(a, b))
	switch {
	case low*dir >= 0 && high*dir >= 0:
		return a
	case low*dir <= 0 && high*dir <= 0:
		return b
	}
	return val{}
}

// modulo is ONNX's Mod: the sign of the divisor, or of the dividend when fmod is set.
func (s *state) modulo(a, b val, fmod bool) val {
	if a.known && b.known && b.n != 0 {
		if b.n == -1 {
			return num(0)
		}
		r := a.n % b.n
		if !fmod && r != 0 && (r < 0) != (b.n < 0) {
			r += b.n
		}
		return num(r)
	}
	if b.known && b.n > 0 && !a.unknown() {
		if _, ok := dividePoly(s.polyOf(a), mono{c: b.n}); ok {
			return num(0)
		}
	}
	return val{}
}

// compare answers a relation by the sign of a - b: 1 true, 0 false, unknown where it is not
// decided.
func (s *state) compare(op string, a, b val) val {
	if a.unknown() || b.unknown() {
		return val{}
	}
	low, high := s.sign(s.sub(a, b))
	if a.known && b.known {
		// The difference of two numbers may overflow.
		low = 0
		if a.n < b.n {
			low = -1
		} else if a.n > b.n {
			low = 1
		}
		high = low
	}
	decide := func(yes, no bool) val {
		if yes || no {
			return truth(yes)
		}
		return val{}
	}
	switch op {
	case "Equal":
		return decide(low == 0 && high == 0, low > 0 || high < 0)
	case "Less":
		return decide(high < 0, low >= 0)
	case "LessOrEqual":
		return decide(high <= 0, low > 0)
	case "Greater":
		return decide(low > 0, high <= 0)
	}
	return decide(low >= 0, high < 0)
}

func compareFloats(op string, a, b float64) bool {
	switch op {
	case "Equal":
		return a == b
	case "Less":
		return a < b
	case "LessOrEqual":
		return a <= b
	case "Greater":
		return a > b
	}
	return a >= b
}

// pair returns the contents of two inputs, the static shape they broadcast to and their strides;
// nil when the output is not small and static.
func (c *call) pair() (a, b *content, shape []int) {
	n, ok := elements(c.out[0].Type)
	if !ok || n > MaxConst || c.opset() < 7 {
		// Before opset 7 operators broadcast by attributes, which shape arithmetic of that age does
		// not use.
		return nil, nil, nil
	}
	a, b = c.content(0), c.content(1)
	if a == nil || b == nil || (a.flts == nil) != (b.flts == nil) && a.len() > 0 && b.len() > 0 {
		return nil, nil, nil
	}
	return a, b, c.out[0].Type.MustStatic()
}

// rounded narrows a result computed in float64. For one addition, subtraction, multiplication,
// division or square root of float32 numbers, rounding twice equals rounding once, because float64
// carries more than twice the bits.
func rounded(d tensor.DType, x float64) float64 {
	if d == tensor.Float32 {
		return float64(float32(x))
	}
	return x
}

func foldBinary(op arith) rule {
	return func(c *call) error {
		a, b, shape := c.pair()
		if a == nil {
			return nil
		}
		as, bs := strides(a.shape), strides(b.shape)
		out := a.like(shape)
		walk(shape, func(pos int, at []int) {
			i, j := broadcastIndex(at, a.shape, as), broadcastIndex(at, b.shape, bs)
			if out.flts != nil {
				out.flts[pos] = rounded(out.dtype, op.flts(a.flts[i], b.flts[j]))
			} else {
				out.ints[pos] = op.ints(c.env.state, a.ints[i], b.ints[j])
			}
		})
		c.give(0, out)
		return nil
	}
}

func foldMod(c *call) error {
	if t := c.dtype(0); !t.IsInteger() {
		return nil
	}
	fmod := c.int("fmod", 0) != 0
	return foldBinary(arith{ints: func(s *state, a, b val) val { return s.modulo(a, b, fmod) }})(c)
}

// foldVariadic folds Min, Max and Sum over any number of inputs of one shape each.
func foldVariadic(op arith) rule {
	return func(c *call) error {
		if len(c.ins) == 1 {
			return foldSame(c)
		}
		if len(c.ins) != 2 {
			return nil
		}
		return foldBinary(op)(c)
	}
}

func foldCompare(c *call) error {
	a, b, shape := c.pair()
	if a == nil {
		return nil
	}
	as, bs := strides(a.shape), strides(b.shape)
	out := (&content{dtype: tensor.Bool}).like(shape)
	walk(shape, func(pos int, at []int) {
		i, j := broadcastIndex(at, a.shape, as), broadcastIndex(at, b.shape, bs)
		if a.flts != nil {
			out.ints[pos] = truth(compareFloats(c.node.OpType, a.flts[i], b.flts[j]))
		} else {
			out.ints[pos] = c.env.compare(c.node.OpType, a.ints[i], b.ints[j])
		}
	})
	c.give(0, out)
	return nil
}

func foldLogic(c *call) error {
	op := map[string]func(a, b val) val{
		"And": func(a, b val) val {
			if a.known && a.n == 0 || b.known && b.n == 0 {
				return num(0)
			}
			if a.known && b.known {
				return num(1)
			}
			return val{}
		},
		"Or": func(a, b val) val {
			if a.known && a.n != 0 || b.known && b.n != 0 {
				return num(1)
			}
			if a.known && b.known {
				return num(0)
			}
			return val{}
		},
		"Xor": func(a, b val) val {
			if a.known && b.known {
				return truth(a.n != b.n)
			}
			return val{}
		},
	}[c.node.OpType]
	return foldBinary(arith{ints: func(_ *state, a, b val) val { return op(a, b) }})(c)
}

// foldMap folds an operator of one input; a nil function leaves that kind of element alone.
func foldMap(ints func(s *state, v val) val, flts func(float64) float64) rule {
	return func(c *call) error {
		src, shape := c.movable(0)
		if src == nil {
			return nil
		}
		out := src.like(shape)
		for i := range out.flts {
			if flts == nil {
				return nil
			}
			out.flts[i] = rounded(src.dtype, flts(src.flts[i]))
		}
		for i := range out.ints {
			if ints == nil {
				return nil
			}
			out.ints[i] = ints(c.env.state, src.ints[i])
		}
		c.give(0, out)
		return nil
	}
}

func negVal(s *state, v val) val { return s.addMul(num(0), v, -1) }

func absVal(s *state, v val) val {
	low, high := s.sign(v)
	switch {
	case low >= 0:
		return v
	case high <= 0:
		return negVal(s, v)
	}
	return val{}
}

func signVal(s *state, v val) val {
	if low, high := s.sign(v); low == high {
		return num(int64(low))
	}
	return val{}
}

func notVal(_ *state, v val) val {
	if v.known {
		return truth(v.n == 0)
	}
	return val{}
}

func foldCast(c *call) error {
	src, shape := c.movable(0)
	if src == nil {
		return foldSame(c)
	}
	out := (&content{dtype: c.out[0].Type.DType}).like(shape)
	switch {
	case isFlt(out.dtype) && src.flts != nil:
		for i, x := range src.flts {
			out.flts[i] = rounded(out.dtype, x)
		}
	case isFlt(out.dtype):
		for i, v := range src.ints {
			if !v.known {
				return nil
			}
			out.flts[i] = rounded(out.dtype, float64(v.n))
		}
	case isInt(out.dtype) && src.flts != nil:
		for i, x := range src.flts {
			if out.dtype == tensor.Bool {
				out.ints[i] = truth(x != 0)
			} else if math.Abs(x) < 1<<62 {
				out.ints[i] = num(int64(x))
			}
		}
	case out.dtype == tensor.Bool:
		for i, v := range src.ints {
			if low, high := c.env.sign(v); low == high || low > 0 {
				out.ints[i] = truth(low != 0)
			}
		}
	case isInt(out.dtype):
		copy(out.ints, src.ints)
	default:
		return nil
	}
	c.give(0, out)
	return nil
}

func foldWhere(c *call) error {
	n, ok := elements(c.out[0].Type)
	if !ok || n > MaxConst {
		return nil
	}
	cond, x, y := c.content(0), c.content(1), c.content(2)
	if cond == nil || x == nil || y == nil || cond.dtype != tensor.Bool {
		return nil
	}
	shape := c.out[0].Type.MustStatic()
	cs, xs, ys := strides(cond.shape), strides(x.shape), strides(y.shape)
	out := x.like(shape)
	whole := true
	walk(shape, func(pos int, at []int) {
		i, j := broadcastIndex(at, x.shape, xs), broadcastIndex(at, y.shape, ys)
		switch v := cond.ints[broadcastIndex(at, cond.shape, cs)]; {
		case v.known && v.n != 0:
			out.copyFrom(pos, x, i)
		case v.known:
			out.copyFrom(pos, y, j)
		case out.flts != nil:
			whole = false
		case x.ints[i] == y.ints[j]:
			out.ints[pos] = x.ints[i]
		}
	})
	if whole {
		c.give(0, out)
	}
	return nil
}

// foldReduce folds a reduction over the axes that the rule has resolved, by combining elements in
// order from a start value.
func foldReduce(op arith, start *float64) rule {
	return func(c *call) error {
		src, shape := c.movable(0)
		if src == nil || src.flts != nil {
			// Sums of floats depend on the order of the engine's additions, and shapes do not need
			// them.
			return nil
		}
		axes, ok, err := c.reduceAxes(len(src.shape))
		if err != nil || !ok {
			return err
		}
		out := src.like(shape)
		if start != nil {
			for i := range out.ints {
				out.ints[i] = num(int64(*start))
			}
		}
		full := make([]int, len(src.shape))
		for i, d := range src.shape {
			if full[i] = d; axes[i] {
				full[i] = 1
			}
		}
		str := strides(full)
		seen := make([]bool, out.len())
		walk(src.shape, func(pos int, at []int) {
			j := broadcastIndex(at, full, str)
			if !seen[j] && start == nil {
				out.ints[j] = src.ints[pos]
			} else {
				out.ints[j] = op.ints(c.env.state, out.ints[j], src.ints[pos])
			}
			seen[j] = true
		})
		c.give(0, out)
		return nil
	}
}

func foldCumulate(op arith, start int64) rule {
	return func(c *call) error {
		src, shape := c.movable(0)
		axis, ok := c.number(1)
		if src == nil || src.flts != nil || !ok || len(shape) == 0 {
			return nil
		}
		axis, err := axisOf(axis, len(shape))
		if err != nil {
			return err
		}
		n, inner := shape[axis], strides(shape)[axis]
		out := src.like(shape)
		exclusive, reverse := c.int("exclusive", 0) != 0, c.int("reverse", 0) != 0
		for line := range out.len() / max(n, 1) {
			acc := num(start)
			for k := range n {
				if reverse {
					k = n - 1 - k
				}
				i := line/inner*inner*n + k*inner + line%inner
				next := op.ints(c.env.state, acc, src.ints[i])
				if exclusive {
					out.ints[i] = acc
				} else {
					out.ints[i] = next
				}
				acc = next
			}
		}
		c.give(0, out)
		return nil
	}
}
