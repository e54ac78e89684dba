package shape

import (
	"math"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// content is the value of a small tensor: integers and booleans as values that may be symbolic,
// floats as float64 (every float32 is one exactly).
type content struct {
	dtype tensor.DType
	shape []int
	ints  []val
	flts  []float64
}

func isInt(d tensor.DType) bool { return d.IsInteger() || d == tensor.Bool }

func isFlt(d tensor.DType) bool { return d == tensor.Float32 || d == tensor.Float64 }

func (t *content) len() int { return len(t.ints) + len(t.flts) }

// like returns a content of the same element type with room for a shape, to be filled.
func (t *content) like(shape []int) *content {
	n := 1
	for _, d := range shape {
		n *= d
	}
	out := &content{dtype: t.dtype, shape: shape}
	if isFlt(t.dtype) {
		out.flts = make([]float64, n)
	} else {
		out.ints = make([]val, n)
	}
	return out
}

// copyFrom sets element i to element j of o.
func (t *content) copyFrom(i int, o *content, j int) {
	if t.flts != nil {
		t.flts[i] = o.flts[j]
	} else {
		t.ints[i] = o.ints[j]
	}
}

// foldable reports, cheaply, whether every given input has content that folding can read and
// whether the first output is small enough to be worth it.
func (c *call) foldable() bool {
	if len(c.ins) == 0 {
		return false
	}
	if n, ok := elements(c.out[0].Type); ok && n > MaxConst {
		return false
	}
	for i, f := range c.ins {
		if f == nil || f.Const != nil || f.vals != nil || f.Ints != nil {
			continue
		}
		n, ok := elements(f.Type)
		if !ok || n > MaxConst || f.Kind != Tensor {
			return false
		}
		if _, s := c.env.find(c.node.Input[i]); s == nil || s.init[c.node.Input[i]] == nil {
			return false
		}
	}
	return true
}

// content returns the content of input i, nil when it is not known or of a type that is not
// followed.
func (c *call) content(i int) *content {
	f := c.loaded(i)
	if f == nil || f.Kind != Tensor {
		return nil
	}
	if f.Const != nil {
		return contentOf(f.Const)
	}
	shape, ok := f.Type.Static()
	if !ok {
		return nil
	}
	vals := f.vals
	if vals == nil && f.Ints != nil {
		vals = make([]val, len(f.Ints))
		for i, d := range f.Ints {
			vals[i] = ofDim(d)
		}
	}
	if n, ok := elements(f.Type); vals == nil || !ok || n != len(vals) {
		return nil
	}
	return &content{dtype: f.Type.DType, shape: shape, ints: vals}
}

func contentOf(t *tensor.Tensor) *content {
	if t.Len() > MaxConst {
		return nil
	}
	out := &content{dtype: t.DType(), shape: t.Shape()}
	switch t.DType() {
	case tensor.Int64:
		out.ints = widen(t.Int64s())
	case tensor.Int32:
		out.ints = widen(t.Int32s())
	case tensor.Int16:
		out.ints = widen(tensor.Data[int16](t))
	case tensor.Int8:
		out.ints = widen(tensor.Data[int8](t))
	case tensor.Uint8:
		out.ints = widen(tensor.Data[uint8](t))
	case tensor.Uint16:
		out.ints = widen(tensor.Data[uint16](t))
	case tensor.Uint32:
		out.ints = widen(tensor.Data[uint32](t))
	case tensor.Uint64:
		d := tensor.Data[uint64](t)
		out.ints = make([]val, len(d))
		for i, x := range d {
			if x <= math.MaxInt64 {
				out.ints[i] = num(int64(x))
			}
		}
	case tensor.Bool:
		b := t.Bytes()
		out.ints = make([]val, len(b))
		for i, x := range b {
			out.ints[i] = truth(x != 0)
		}
	case tensor.Float32:
		d := t.Float32s()
		out.flts = make([]float64, len(d))
		for i, x := range d {
			out.flts[i] = float64(x)
		}
	case tensor.Float64:
		out.flts = append(make([]float64, 0, t.Len()), t.Float64s()...)
	default:
		return nil
	}
	return out
}

func widen[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32](d []T) []val {
	out := make([]val, len(d))
	for i, x := range d {
		out[i] = num(int64(x))
	}
	return out
}

func truth(b bool) val {
	if b {
		return num(1)
	}
	return num(0)
}

// intRange returns the bounds of an integer type that int64 can express.
func intRange(d tensor.DType) (lo, hi int64) {
	switch d {
	case tensor.Bool:
		return 0, 1
	case tensor.Int8:
		return math.MinInt8, math.MaxInt8
	case tensor.Int16:
		return math.MinInt16, math.MaxInt16
	case tensor.Int32:
		return math.MinInt32, math.MaxInt32
	case tensor.Uint8:
		return 0, math.MaxUint8
	case tensor.Uint16:
		return 0, math.MaxUint16
	case tensor.Uint32:
		return 0, math.MaxUint32
	case tensor.Uint64:
		return 0, math.MaxInt64
	}
	return math.MinInt64, math.MaxInt64
}

// give sets the content of output i. Its type must be set already; content that does not fit the
// type is an inconsistency of the rule and is dropped, so that a wrong fold can never contradict a
// right type.
func (c *call) give(i int, t *content) {
	if t == nil || i >= len(c.out) || t.len() > MaxConst || len(t.shape) > maxRank {
		return
	}
	f := &c.out[i]
	// A shape that no tensor can have is refused after the rule; here it only must not be built.
	if f.Type.DType != t.dtype || checkDims(f.Type.Dims) != nil {
		return
	}
	got, err := merge(f.Type, onnx.TypeOf(t.dtype, t.shape...))
	if err != nil {
		return
	}
	if c.env.folded -= t.len(); c.env.folded < 0 {
		c.env.folded = 0
		return
	}
	if t.flts != nil {
		f.Type = got
		f.Const = fltTensor(t)
		return
	}
	if !isInt(t.dtype) {
		return
	}
	lo, hi := intRange(t.dtype)
	known, some := true, len(t.ints) == 0
	for j, v := range t.ints {
		if v.known && (v.n < lo || v.n > hi) {
			// The runtime would wrap around; nothing depends on such numbers being followed.
			t.ints[j] = val{}
			v = val{}
		}
		known = known && v.known
		some = some || !v.unknown()
	}
	f.Type = got
	switch {
	case known:
		f.Const = intTensor(t)
	case some && t.dtype != tensor.Bool:
		f.vals = t.ints
		f.Ints = make([]onnx.Dim, len(t.ints))
		for j, v := range t.ints {
			f.Ints[j] = v.dim()
		}
	case some:
		f.vals = t.ints
	}
}

func fltTensor(t *content) *tensor.Tensor {
	if t.dtype == tensor.Float64 {
		return tensor.Of(t.flts, t.shape...)
	}
	d := make([]float32, len(t.flts))
	for i, x := range t.flts {
		d[i] = float32(x)
	}
	return tensor.Of(d, t.shape...)
}

func intTensor(t *content) *tensor.Tensor {
	switch t.dtype {
	case tensor.Int64:
		return tensor.Of(narrow[int64](t.ints), t.shape...)
	case tensor.Int32:
		return tensor.Of(narrow[int32](t.ints), t.shape...)
	case tensor.Int16:
		return tensor.Of(narrow[int16](t.ints), t.shape...)
	case tensor.Int8:
		return tensor.Of(narrow[int8](t.ints), t.shape...)
	case tensor.Uint8:
		return tensor.Of(narrow[uint8](t.ints), t.shape...)
	case tensor.Uint16:
		return tensor.Of(narrow[uint16](t.ints), t.shape...)
	case tensor.Uint32:
		return tensor.Of(narrow[uint32](t.ints), t.shape...)
	case tensor.Uint64:
		return tensor.Of(narrow[uint64](t.ints), t.shape...)
	}
	d := make([]bool, len(t.ints))
	for i, v := range t.ints {
		d[i] = v.n != 0
	}
	return tensor.Of(d, t.shape...)
}

func narrow[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](vs []val) []T {
	d := make([]T, len(vs))
	for i, v := range vs {
		d[i] = T(v.n)
	}
	return d
}

// values returns the content of an integer input of any rank, flattened. ok is false when nothing
// is known of it.
func (c *call) values(i int) ([]val, bool) {
	if !c.hasContent(i) {
		return nil, false
	}
	t := c.content(i)
	if t == nil || t.flts != nil || !isInt(t.dtype) {
		return nil, false
	}
	return t.ints, true
}

// hasContent is a cheap test before content is converted.
func (c *call) hasContent(i int) bool {
	f := c.loaded(i)
	return f != nil && (f.Const != nil || f.vals != nil || f.Ints != nil)
}

// numbers returns the content of an integer input where every element is a number.
func (c *call) numbers(i int) ([]int, bool) {
	vs, ok := c.values(i)
	if !ok {
		return nil, false
	}
	out := make([]int, len(vs))
	for j, v := range vs {
		if !v.known {
			return nil, false
		}
		out[j] = int(v.n)
	}
	return out, true
}

// number returns the single number of a rank-0 or one-element integer input.
func (c *call) number(i int) (int, bool) {
	vs, ok := c.numbers(i)
	if !ok || len(vs) != 1 {
		return 0, false
	}
	return vs[0], true
}

// scalars returns the content of a float input.
func (c *call) scalars(i int) ([]float64, bool) {
	if !c.hasContent(i) {
		return nil, false
	}
	t := c.content(i)
	if t == nil || !isFlt(t.dtype) {
		return nil, false
	}
	return t.flts, true
}

// lengthOf returns the extent of a rank-1 input.
func (c *call) lengthOf(i int) (int, bool) {
	t := c.typ(i)
	if t.Ranked && len(t.Dims) == 1 && t.Dims[0].IsKnown() {
		return t.Dims[0].Value, true
	}
	return 0, false
}
