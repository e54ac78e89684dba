package portable

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var binaryOperators = []operator{
	{name: "Add", versions: []int{7, 13, 14}, minIn: 2, maxIn: 2, build: arithmetic(addLoops[float32](), addLoops[float64](), func() []binaryLoop {
		return []binaryLoop{pair(loopsOf(add[int8])), pair(loopsOf(add[int16])), pair(loopsOf(add[int32])), pair(loopsOf(add[int64])),
			pair(loopsOf(add[uint8])), pair(loopsOf(add[uint16])), pair(loopsOf(add[uint32])), pair(loopsOf(add[uint64]))}
	})},
	{name: "Sub", versions: []int{7, 13, 14}, minIn: 2, maxIn: 2, build: arithmetic(subLoops[float32](), subLoops[float64](), func() []binaryLoop {
		return []binaryLoop{pair(loopsOf(sub[int8])), pair(loopsOf(sub[int16])), pair(loopsOf(sub[int32])), pair(loopsOf(sub[int64])),
			pair(loopsOf(sub[uint8])), pair(loopsOf(sub[uint16])), pair(loopsOf(sub[uint32])), pair(loopsOf(sub[uint64]))}
	})},
	{name: "Mul", versions: []int{7, 13, 14}, minIn: 2, maxIn: 2, build: arithmetic(mulLoops[float32](), mulLoops[float64](), func() []binaryLoop {
		return []binaryLoop{pair(loopsOf(mul[int8])), pair(loopsOf(mul[int16])), pair(loopsOf(mul[int32])), pair(loopsOf(mul[int64])),
			pair(loopsOf(mul[uint8])), pair(loopsOf(mul[uint16])), pair(loopsOf(mul[uint32])), pair(loopsOf(mul[uint64]))}
	})},
	{name: "Div", versions: []int{7, 13, 14}, minIn: 2, maxIn: 2, build: arithmetic(divLoops[float32](), divLoops[float64](), func() []binaryLoop {
		return []binaryLoop{pair(loopsOf(div[int8])), pair(loopsOf(div[int16])), pair(loopsOf(div[int32])), pair(loopsOf(div[int64])),
			pair(loopsOf(div[uint8])), pair(loopsOf(div[uint16])), pair(loopsOf(div[uint32])), pair(loopsOf(div[uint64]))}
	})},
	{name: "Mod", versions: []int{10, 13, 28}, minIn: 2, maxIn: 2, build: buildMod},
	{name: "Pow", versions: []int{7, 12, 13, 15}, minIn: 2, maxIn: 2, build: plain(power)},

	{name: "Equal", versions: []int{7, 11, 13, 19}, minIn: 2, maxIn: 2, exact: true, build: plain(equal)},
	{name: "Less", versions: []int{7, 9, 13}, minIn: 2, maxIn: 2, build: binary(compared(less[float32], less[float64], less[int8], less[int16], less[int32], less[int64],
		less[uint8], less[uint16], less[uint32], less[uint64])...)},
	{name: "LessOrEqual", versions: []int{12, 16}, minIn: 2, maxIn: 2, build: binary(compared(lessEq[float32], lessEq[float64], lessEq[int8], lessEq[int16], lessEq[int32],
		lessEq[int64], lessEq[uint8], lessEq[uint16], lessEq[uint32], lessEq[uint64])...)},
	{name: "Greater", versions: []int{7, 9, 13}, minIn: 2, maxIn: 2, build: binary(compared(more[float32], more[float64], more[int8], more[int16], more[int32], more[int64],
		more[uint8], more[uint16], more[uint32], more[uint64])...)},
	{name: "GreaterOrEqual", versions: []int{12, 16}, minIn: 2, maxIn: 2, build: binary(compared(moreEq[float32], moreEq[float64], moreEq[int8], moreEq[int16], moreEq[int32],
		moreEq[int64], moreEq[uint8], moreEq[uint16], moreEq[uint32], moreEq[uint64])...)},

	{name: "And", versions: []int{7}, minIn: 2, maxIn: 2, build: binary(pair(loopsOf(func(a, b bool) bool { return a && b })))},
	{name: "Or", versions: []int{7}, minIn: 2, maxIn: 2, build: binary(pair(loopsOf(func(a, b bool) bool { return a || b })))},
	{name: "Xor", versions: []int{7}, minIn: 2, maxIn: 2, build: binary(pair(loopsOf(func(a, b bool) bool { return a != b })))},
	{name: "BitwiseAnd", versions: []int{18}, minIn: 2, maxIn: 2, build: binary(onIntegers(bitAnd[int8], bitAnd[int16], bitAnd[int32], bitAnd[int64],
		bitAnd[uint8], bitAnd[uint16], bitAnd[uint32], bitAnd[uint64])...)},
	{name: "BitwiseOr", versions: []int{18}, minIn: 2, maxIn: 2, build: binary(onIntegers(bitOr[int8], bitOr[int16], bitOr[int32], bitOr[int64],
		bitOr[uint8], bitOr[uint16], bitOr[uint32], bitOr[uint64])...)},
	{name: "BitwiseXor", versions: []int{18}, minIn: 2, maxIn: 2, build: binary(onIntegers(bitXor[int8], bitXor[int16], bitXor[int32], bitXor[int64],
		bitXor[uint8], bitXor[uint16], bitXor[uint32], bitXor[uint64])...)},
	{name: "BitShift", versions: []int{11, 28}, minIn: 2, maxIn: 2, build: buildBitShift},
}

// arithmetic lists hand-written loops for floats and element functions for integers.
func arithmetic(f32 loops[float32, float32], f64 loops[float64, float64], ints func() []binaryLoop) builder {
	return binary(append([]binaryLoop{pair(f32), pair(f64)}, ints()...)...)
}

func add[T number](a, b T) T { return a + b }
func sub[T number](a, b T) T { return a - b }
func mul[T number](a, b T) T { return a * b }

// div divides integers towards zero. Dividing by zero leaves the kernel through Go's own panic,
// which names the node.
func div[T number](a, b T) T { return a / b }

func less[T number](a, b T) bool   { return a < b }
func lessEq[T number](a, b T) bool { return a <= b }
func more[T number](a, b T) bool   { return a > b }
func moreEq[T number](a, b T) bool { return a >= b }
func same2[T comparable](a, b T) bool {
	return a == b
}

func bitAnd[T integer](a, b T) T { return a & b }
func bitOr[T integer](a, b T) T  { return a | b }
func bitXor[T integer](a, b T) T { return a ^ b }

func addLoops[T float]() loops[T, T] {
	return loops[T, T]{
		vv: func(dst, a, b []T) {
			b, dst = b[:len(a)], dst[:len(a)]
			for i, v := range a {
				dst[i] = v + b[i]
			}
		},
		vs: func(dst, a []T, b T) {
			dst = dst[:len(a)]
			for i, v := range a {
				dst[i] = v + b
			}
		},
		sv: func(dst []T, a T, b []T) {
			dst = dst[:len(b)]
			for i, v := range b {
				dst[i] = a + v
			}
		},
	}
}

func subLoops[T float]() loops[T, T] {
	return loops[T, T]{
		vv: func(dst, a, b []T) {
			b, dst = b[:len(a)], dst[:len(a)]
			for i, v := range a {
				dst[i] = v - b[i]
			}
		},
		vs: func(dst, a []T, b T) {
			dst = dst[:len(a)]
			for i, v := range a {
				dst[i] = v - b
			}
		},
		sv: func(dst []T, a T, b []T) {
			dst = dst[:len(b)]
			for i, v := range b {
				dst[i] = a - v
			}
		},
	}
}

func mulLoops[T float]() loops[T, T] {
	return loops[T, T]{
		vv: func(dst, a, b []T) {
			b, dst = b[:len(a)], dst[:len(a)]
			for i, v := range a {
				dst[i] = v * b[i]
			}
		},
		vs: func(dst, a []T, b T) {
			dst = dst[:len(a)]
			for i, v := range a {
				dst[i] = v * b
			}
		},
		sv: func(dst []T, a T, b []T) {
			dst = dst[:len(b)]
			for i, v := range b {
				dst[i] = a * v
			}
		},
	}
}

func divLoops[T float]() loops[T, T] {
	return loops[T, T]{
		vv: func(dst, a, b []T) {
			b, dst = b[:len(a)], dst[:len(a)]
			for i, v := range a {
				dst[i] = v / b[i]
			}
		},
		vs: func(dst, a []T, b T) {
			dst = dst[:len(a)]
			for i, v := range a {
				dst[i] = v / b
			}
		},
		sv: func(dst []T, a T, b []T) {
			dst = dst[:len(b)]
			for i, v := range b {
				dst[i] = a / v
			}
		},
	}
}

func compared(f32 func(a, b float32) bool, f64 func(a, b float64) bool, i8 func(a, b int8) bool, i16 func(a, b int16) bool, i32 func(a, b int32) bool,
	i64 func(a, b int64) bool, u8 func(a, b uint8) bool, u16 func(a, b uint16) bool, u32 func(a, b uint32) bool, u64 func(a, b uint64) bool) []binaryLoop {
	return []binaryLoop{pair(loopsOf(f32)), pair(loopsOf(f64)), pair(loopsOf(i8)), pair(loopsOf(i16)), pair(loopsOf(i32)), pair(loopsOf(i64)),
		pair(loopsOf(u8)), pair(loopsOf(u16)), pair(loopsOf(u32)), pair(loopsOf(u64))}
}

func onIntegers(i8 func(a, b int8) int8, i16 func(a, b int16) int16, i32 func(a, b int32) int32, i64 func(a, b int64) int64,
	u8 func(a, b uint8) uint8, u16 func(a, b uint16) uint16, u32 func(a, b uint32) uint32, u64 func(a, b uint64) uint64) []binaryLoop {
	return []binaryLoop{pair(loopsOf(i8)), pair(loopsOf(i16)), pair(loopsOf(i32)), pair(loopsOf(i64)),
		pair(loopsOf(u8)), pair(loopsOf(u16)), pair(loopsOf(u32)), pair(loopsOf(u64))}
}

var equalNumbers = binaryKernel(append(compared(same2[float32], same2[float64], same2[int8], same2[int16], same2[int32], same2[int64],
	same2[uint8], same2[uint16], same2[uint32], same2[uint64]), pair(loopsOf(same2[bool])))...)

func equal(c *call) error {
	a, b := c.arg(0), c.arg(1)
	switch a.DType() {
	case tensor.Float16, tensor.BFloat16:
		return c.viaFloat32(equalNumbers)
	case tensor.String:
		if b.DType() != tensor.String {
			return fmt.Errorf("element types %v and %v differ", a.DType(), b.DType())
		}
		p := keep[broadcastPlan](c)
		shape, err := p.shapes(a.Shape(), b.Shape())
		if err != nil {
			return err
		}
		runBroadcast(p, loopsOf(same2[string]), data[bool](c.make(0, tensor.Bool, shape...)), a.Strings(), b.Strings())
		return nil
	}
	return equalNumbers(c)
}

// modFloor has the sign of the divisor, as Python's % has.
func modFloor[T signed](a, b T) T {
	r := a % b
	if r != 0 && (r < 0) != (b < 0) {
		r += b
	}
	return r
}

func modUnsigned[T unsigned](a, b T) T { return a % b }

// modTrunc has the sign of the dividend, as C's fmod has.
func modTrunc[T integer](a, b T) T { return a % b }

func modFloat[T float](a, b T) T { return T(math.Mod(float64(a), float64(b))) }

// modFloatFloor is A − floor(A/B)·B, of the sign of B; so it is where B is infinite, and of zero
// (ONNX specification of Mod, opset 28).
func modFloatFloor[T float](a, b T) T {
	x, y := float64(a), float64(b)
	r := math.Mod(x, y)
	switch {
	case r == 0:
		r = math.Copysign(0, y)
	case (r < 0) != (y < 0):
		r += y
	}
	return T(r)
}

func buildMod(n *node) (kernel, error) {
	if n.Int("fmod", 0) == 1 {
		return binaryKernel(append(onIntegers(modTrunc[int8], modTrunc[int16], modTrunc[int32], modTrunc[int64], modTrunc[uint8], modTrunc[uint16],
			modTrunc[uint32], modTrunc[uint64]), pair(loopsOf(modFloat[float32])), pair(loopsOf(modFloat[float64])))...), nil
	}
	// Before opset 28 the specification asks for fmod=1 with floats; files without it expect
	// Python's meaning, which opset 28 has.
	return binaryKernel(append(onIntegers(modFloor[int8], modFloor[int16], modFloor[int32], modFloor[int64], modUnsigned[uint8], modUnsigned[uint16],
		modUnsigned[uint32], modUnsigned[uint64]), pair(loopsOf(modFloatFloor[float32])), pair(loopsOf(modFloatFloor[float64])))...), nil
}

func buildBitShift(n *node) (kernel, error) {
	switch d := n.Str("direction", ""); d {
	case "LEFT":
		return binaryKernel(onIntegers(shiftLeft[int8], shiftLeft[int16], shiftLeft[int32], shiftLeft[int64], shiftLeft[uint8], shiftLeft[uint16], shiftLeft[uint32],
			shiftLeft[uint64])...), nil
	case "RIGHT":
		return binaryKernel(onIntegers(shiftRight[int8], shiftRight[int16], shiftRight[int32], shiftRight[int64], shiftRight[uint8], shiftRight[uint16], shiftRight[uint32],
			shiftRight[uint64])...), nil
	default:
		return nil, fmt.Errorf("direction %q is neither LEFT nor RIGHT", d)
	}
}

// shiftLeft and shiftRight shift by a negative number as by one that is larger than any width, and
// to the right with copies of the sign, as opset 28 says.
func shiftLeft[T integer](a, b T) T {
	if b < 0 {
		return 0
	}
	return a << b
}

func shiftRight[T integer](a, b T) T {
	switch {
	case b < 0 && a < 0:
		return ^T(0)
	case b < 0:
		return 0
	}
	return a >> b
}

func powFloat[T float](a, b T) T {
	switch b {
	case 2:
		return a * a
	case 0.5:
		return T(math.Sqrt(float64(a)))
	}
	return T(math.Pow(float64(a), float64(b)))
}

func powInt[T signed](a, b T) T {
	if b < 0 {
		return T(math.Pow(float64(a), float64(b)))
	}
	r := T(1)
	for ; b > 0; b >>= 1 {
		if b&1 == 1 {
			r *= a
		}
		a *= a
	}
	return r
}

var powSame = binaryKernel(pair(loopsOf(powFloat[float32])), pair(loopsOf(powFloat[float64])), pair(loopsOf(powInt[int32])), pair(loopsOf(powInt[int64])))

// power allows base and exponent of different types; the result has the base's.
func power(c *call) error {
	x, y := c.arg(0), c.arg(1)
	if x.DType() == y.DType() {
		return powSame(c)
	}
	shape, err := broadcastShape(nil, x.Shape(), y.Shape())
	if err != nil {
		return err
	}
	p := keep[broadcastPlan](c)
	if _, err := p.shapes(x.Shape(), y.Shape()); err != nil {
		return err
	}
	wx, err := convert(x, tensor.Float64)
	if err != nil {
		return err
	}
	wy, err := convert(y, tensor.Float64)
	if err != nil {
		return err
	}
	r := tensor.New(tensor.Float64, shape...)
	runBroadcast(p, loopsOf(math.Pow), r.Float64s(), wx.Float64s(), wy.Float64s())
	return convertInto(c.make(0, x.DType(), shape...), r)
}
