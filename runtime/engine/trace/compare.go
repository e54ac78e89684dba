package trace

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Difference compares one value of two engines. The JSON keys are stable.
type Difference struct {
	Value onnx.Value `json:"value"`
	// Node describes the node that made the value and Op is its operator; empty for outputs
	// compared as such.
	Node string `json:"node,omitempty"`
	Op   string `json:"op,omitempty"`
	// AbsError is max|a−b|, Scale is max|a| over the finite elements of a, the first engine's
	// value, and Error their quotient, AbsError / (1e-6 + Scale). Problem, when not empty, says
	// what cannot be measured so: another type or shape, a NaN or infinity on one side only,
	// another integer or text. The errors are then 0.
	Error    float64 `json:"max_error"`
	AbsError float64 `json:"max_abs_error"`
	Scale    float64 `json:"scale"`
	Problem  string  `json:"problem,omitempty"`
	// Index is the row-major place of the largest difference, A and B what the two engines have
	// there.
	Index int    `json:"index"`
	A     string `json:"a,omitempty"`
	B     string `json:"b,omitempty"`
	// Inputs are the values that the node reads, as the first engine has them.
	Inputs []Operand `json:"inputs,omitempty"`
}

// Tolerance says what is no difference: max|a−b| ≤ Abs + Rel·max|a|. The absolute part is for
// values that are the rest of a cancellation, such as the gradient of something that the loss does
// not depend on; there nothing but rounding is left to compare.
type Tolerance struct{ Rel, Abs float64 }

// DefaultTolerance suits float32.
var DefaultTolerance = Tolerance{Rel: 1e-4, Abs: 1e-5}

// Within reports whether the two values agree.
func (d Difference) Within(t Tolerance) bool {
	return d.Problem == "" && d.AbsError <= t.Abs+t.Rel*d.Scale
}

// String prints the difference in one line, without the value's name.
func (d Difference) String() string {
	if d.Problem != "" {
		return d.Problem
	}
	if d.Error == 0 {
		return "equal"
	}
	return fmt.Sprintf("error %.3g, largest at element %d: %s and %s", d.Error, d.Index, d.A, d.B)
}

// Diff compares two tensors. NaN equals NaN, and infinities of one sign are equal.
func Diff(a, b *tensor.Tensor) Difference {
	if a.DType() != b.DType() || !slices.Equal(a.Shape(), b.Shape()) {
		return Difference{Problem: fmt.Sprintf("%v and %v", a, b)}
	}
	x, y := reader(a), reader(b)
	if x == nil {
		return diffOpaque(a, b)
	}
	var d Difference
	worst, most := 0.0, 0.0
	for i := range a.Len() {
		p, q := x(i), y(i)
		if !math.IsInf(p, 0) && !math.IsNaN(p) {
			most = max(most, math.Abs(p))
		}
		if p == q || math.IsNaN(p) && math.IsNaN(q) {
			continue
		}
		e := math.Abs(p - q)
		if !a.DType().IsFloat() || math.IsNaN(e) || math.IsInf(e, 0) {
			d.Problem = fmt.Sprintf("element %d is %v and %v", i, p, q)
			d.Index, d.A, d.B = i, fmt.Sprint(p), fmt.Sprint(q)
			return d
		}
		if e > worst {
			worst, d.Index, d.A, d.B = e, i, fmt.Sprint(p), fmt.Sprint(q)
		}
	}
	d.AbsError, d.Scale, d.Error = worst, most, min(worst/(1e-6+most), math.MaxFloat64)
	return d
}

func diffOpaque(a, b *tensor.Tensor) Difference {
	if a.DType() == tensor.String {
		for i, s := range a.Strings() {
			if t := b.Strings()[i]; s != t {
				return Difference{Index: i, A: s, B: t, Problem: fmt.Sprintf("element %d is %q and %q", i, s, t)}
			}
		}
		return Difference{}
	}
	if !slices.Equal(a.Bytes(), b.Bytes()) {
		return Difference{Problem: fmt.Sprintf("the bytes of two %v differ", a)}
	}
	return Difference{}
}

// Compare runs the model on two engines and returns the first computed value on which they differ
// by more than tol, nil when there is none, and how many values agreed before it. Since every value
// before it agrees, its node is where the engines part.
func Compare(ctx context.Context, a, b engine.Compiler, m *onnx.Model, in map[string]*tensor.Tensor, tol Tolerance, o Options) (first *Difference, agreed int, err error) {
	seen := map[onnx.Value]Range{}
	err = Values(ctx, []engine.Compiler{a, b}, m, in, o, func(v Visit) error {
		if v.Source != Computed {
			seen[v.Value] = RangeOf(v.Got[0])
			return nil
		}
		d := Diff(v.Got[0], v.Got[1])
		r := RangeOf(v.Got[0])
		seen[v.Value] = r
		if d.Within(tol) {
			agreed++
			return nil
		}
		f := finding(v, r, seen)
		d.Value, d.Node, d.Op, d.Inputs = v.Value, f.Node, f.Op, f.Inputs
		first = &d
		return ErrStop
	})
	return first, agreed, err
}

// Outputs runs the model on two engines as it is and compares its outputs, one difference per
// output in graph order.
func Outputs(ctx context.Context, a, b engine.Compiler, m *onnx.Model, in map[string]*tensor.Tensor, o Options) ([]Difference, error) {
	p := &plan{model: m, in: in, opts: o}
	if _, err := Bind(m, in); err != nil {
		return nil, fmt.Errorf("run %q: %w", m.GetGraph().GetName(), err)
	}
	x, err := p.outputs(ctx, a, m)
	if err != nil {
		return nil, err
	}
	y, err := p.outputs(ctx, b, m)
	if err != nil {
		return nil, err
	}
	var all []Difference
	for i, v := range m.Graph.Output {
		d := Diff(x[i], y[i])
		d.Value = onnx.Value(v.Name)
		all = append(all, d)
	}
	return all, nil
}
