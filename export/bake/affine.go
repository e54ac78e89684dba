package bake

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Affine scales the last axis, of F features, of one float32 input of a network: z = (x −
// Mean)/Std, limited to ±Clip. It belongs into the graph, because a served model is given x by
// people who do not have the statistics.
//
// The F values at one place of the other axes are one record, such as one asset on one day. A
// record with a feature that is not known — NaN or infinite — becomes all zero, except for the
// features in Keep: that is how the data it was trained on present an asset that is not listed yet,
// or whose indicators are still warming up.
type Affine struct {
	// Input names the network's input.
	Input string
	// Mean and Std [F] are the statistics. Features that are passed on have 0 and 1.
	Mean, Std []float64
	// Clip [F] limits what is scaled; 0 does not. nil limits nothing.
	Clip []float64
	// Keep [F] marks features that are known even where others are not, such as a flag that says
	// whether an asset is listed. nil keeps none.
	Keep []bool
}

// Validate reports statistics that do not fit together or cannot be divided by.
func (a *Affine) Validate() error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("scaling of input %q: "+format, append([]any{a.Input}, args...)...))
	}
	n := len(a.Mean)
	if n == 0 || len(a.Std) != n || a.Clip != nil && len(a.Clip) != n || a.Keep != nil && len(a.Keep) != n {
		fail("%d means, %d deviations, %d limits and %d marks", n, len(a.Std), len(a.Clip), len(a.Keep))
		return errors.Join(errs...)
	}
	for i := range n {
		if s := float64(float32(a.Std[i])); !(s > 0) || math.IsInf(s, 0) {
			fail("feature %d: deviation %g", i, a.Std[i])
		}
		if m := float64(float32(a.Mean[i])); m-m != 0 {
			fail("feature %d: mean %g", i, a.Mean[i])
		}
		if a.Clip != nil && !(a.Clip[i] >= 0) {
			fail("feature %d: limit %g", i, a.Clip[i])
		}
	}
	return errors.Join(errs...)
}

// Unscale returns the record's features as they were before scaling, x = z·Std + Mean in float64
// and then rounded, for z [..., F]. A record that is all zero except for what is kept comes from
// values that were not known, and gets NaN.
func (a *Affine) Unscale(z *tensor.Tensor) (*tensor.Tensor, error) {
	f := len(a.Mean)
	if z.DType() != tensor.Float32 || z.Rank() == 0 || z.Shape()[z.Rank()-1] != f {
		return nil, fmt.Errorf("unscale input %q: %v, expected float32[… %d]", a.Input, z, f)
	}
	x := tensor.New(tensor.Float32, z.Shape()...)
	from, to := z.Float32s(), x.Float32s()
	for i := 0; i < len(from); i += f {
		known := false
		for k, v := range from[i : i+f] {
			known = known || v != 0 && !a.keeps(k)
		}
		for k, v := range from[i : i+f] {
			switch {
			case a.keeps(k) || known:
				to[i+k] = float32(float64(v)*a.Std[k] + a.Mean[k])
			default:
				to[i+k] = float32(math.NaN())
			}
		}
	}
	return x, nil
}

func (a *Affine) keeps(k int) bool { return a.Keep != nil && a.Keep[k] }

// prepend puts the scaling in front of the input, which keeps its name, its type and its place.
func (a *Affine) wrap(m *onnx.Model) (*onnx.Model, error) {
	if err := a.Validate(); err != nil {
		return nil, err
	}
	at := slices.IndexFunc(m.Graph.Input, func(v *onnx.ValueInfo) bool { return v.Name == a.Input })
	if at < 0 {
		return nil, fmt.Errorf("scaling of input %q: the network has no such input", a.Input)
	}
	t, ok := m.Graph.Input[at].TensorType()
	f := len(a.Mean)
	if !ok || t.DType != tensor.Float32 || len(t.Dims) < 2 || t.Dims[len(t.Dims)-1] != onnx.Known(f) {
		return nil, fmt.Errorf("scaling of input %q: it is %v, the statistics are of %d features", a.Input, t, f)
	}
	m, err := inFront(m, a.Input, t, a.nodes)
	if err != nil {
		return nil, fmt.Errorf("scaling of input %q: %w", a.Input, err)
	}
	return m, nil
}

// nodes appends the scaling of x, in operators that opset 13 has. The mean is subtracted in two
// parts, its float32 and what that rounds off: where x is near the mean the first difference is
// exact, and z is as good as the float32 x itself allows. x/Std − Mean/Std would cancel.
func (a *Affine) nodes(b *onnx.Builder, x, scaled onnx.Value) {
	op := func(op string, in ...onnx.Value) onnx.Value { return b.Op(op, in) }

	unknown := op("Or", op("IsNaN", x), op("IsInf", x))
	number := b.Op("Cast", []onnx.Value{unknown}, onnx.AttrInt("to", int(tensor.Float32)))
	count := b.Op("ReduceSum", []onnx.Value{number, b.Ints(-1)}, onnx.AttrInt("keepdims", 1))
	record := op("Greater", count, b.Float(0))
	if slices.Contains(a.Keep, true) {
		falls := make([]bool, len(a.Keep))
		for i, k := range a.Keep {
			falls[i] = !k
		}
		record = op("Or", op("And", record, b.Const(tensor.Of(falls, len(falls)))), unknown)
	}

	n := len(a.Mean)
	vector := func(f func(i int) float64) (onnx.Value, bool) { return constant(b, f, n) }
	high, _ := vector(func(i int) float64 { return a.Mean[i] })
	std, _ := vector(func(i int) float64 { return a.Std[i] })
	z := op("Sub", x, high)
	if low, none := vector(func(i int) float64 { return a.Mean[i] - float64(float32(a.Mean[i])) }); !none {
		z = op("Sub", z, low)
	}
	z = op("Div", z, std)
	if slices.ContainsFunc(a.Clip, func(c float64) bool { return c > 0 }) {
		limit := func(sign float64) onnx.Value {
			v, _ := vector(func(i int) float64 {
				if a.Clip[i] == 0 {
					return math.Inf(int(sign))
				}
				return sign * a.Clip[i]
			})
			return v
		}
		z = op("Max", op("Min", z, limit(1)), limit(-1))
	}
	b.Append(&onnx.Node{Name: a.Input + "/Where", OpType: "Where", Input: []string{string(record), string(b.Float(0)), string(z)}, Output: []string{string(scaled)}})
}
