package trace

import (
	"context"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Finding is a value with elements that are NaN or infinite, and what it was made from. The JSON
// keys are stable.
type Finding struct {
	Value  onnx.Value `json:"value"`
	Source Source     `json:"source"`
	// Node describes the node that made the value, Op is its operator; both are empty for inputs
	// and initializers. Position is the node's place in execution order.
	Node     string `json:"node,omitempty"`
	Op       string `json:"op,omitempty"`
	Position int    `json:"position"`
	Range    Range  `json:"range"`
	// Inputs are the values that the node reads, those of its sub-graphs included.
	Inputs []Operand `json:"inputs,omitempty"`
}

// Operand is one value that a node reads.
type Operand struct {
	Value onnx.Value `json:"value"`
	// Range is nil for a value that was not visited, such as a sequence.
	Range *Range `json:"range"`
}

// Report tells what [FirstNonFinite] saw. The JSON keys are stable.
type Report struct {
	// Values counts the values looked at.
	Values int `json:"values"`
	// First is the first value that is not finite, in execution order; nil when all are finite.
	// Masks do not count; see [FirstNonFinite].
	First *Finding `json:"first"`
	// FirstNaN is the first value with a NaN, when that is not First.
	FirstNaN *Finding `json:"first_nan,omitempty"`
	// InfiniteConstants lists initializers and constants that hold infinities, Masks the computed
	// values that have theirs from these.
	InfiniteConstants []onnx.Value `json:"infinite_constants,omitempty"`
	Masks             []onnx.Value `json:"masks,omitempty"`
}

// FirstNonFinite runs the model and finds the first value that is not finite. Infinite constants,
// with which attention is masked, do not count, and neither do infinities of the same sign in a
// value that is computed from them, one node after the other; a NaN always counts. each, when it is
// not nil, sees every value's range. The run ends early once a NaN is found and each is nil.
func FirstNonFinite(ctx context.Context, c engine.Compiler, m *onnx.Model, in map[string]*tensor.Tensor, o Options, each func(Visit, Range)) (Report, error) {
	var rep Report
	seen := map[onnx.Value]Range{}
	masks := map[onnx.Value]Range{}
	err := Values(ctx, []engine.Compiler{c}, m, in, o, func(v Visit) error {
		r := RangeOf(v.Got[0])
		seen[v.Value] = r
		rep.Values++
		if each != nil {
			each(v, r)
		}
		if r.NonFinite() == 0 {
			return nil
		}
		if fixed := v.Source == Initializer || v.Source == Constant; fixed && r.NaN == 0 {
			rep.InfiniteConstants = append(rep.InfiniteConstants, v.Value)
			masks[v.Value] = r
			return nil
		}
		if v.Node != nil && masked(v.Node, r, masks) {
			rep.Masks = append(rep.Masks, v.Value)
			masks[v.Value] = r
			return nil
		}
		switch {
		case rep.First == nil:
			rep.First = finding(v, r, seen)
		case r.NaN > 0 && rep.First.Range.NaN == 0 && rep.FirstNaN == nil:
			rep.FirstNaN = finding(v, r, seen)
		}
		if each == nil && r.NaN > 0 {
			return ErrStop
		}
		return nil
	})
	return rep, err
}

// masked reports whether the infinities of a value can all come from the masks that its node reads.
func masked(n *onnx.Node, r Range, masks map[onnx.Value]Range) bool {
	var from Range
	for _, in := range onnx.Reads(n) {
		from.PosInf += masks[in].PosInf
		from.NegInf += masks[in].NegInf
	}
	return r.NaN == 0 && (r.PosInf == 0 || from.PosInf > 0) && (r.NegInf == 0 || from.NegInf > 0)
}

func finding(v Visit, r Range, seen map[onnx.Value]Range) *Finding {
	f := &Finding{Value: v.Value, Source: v.Source, Position: v.Position, Range: r}
	if v.Node == nil {
		return f
	}
	f.Node, f.Op = v.Node.Describe(), v.Node.OpType
	for _, in := range onnx.Reads(v.Node) {
		if in == "" {
			continue
		}
		op := Operand{Value: in}
		if r, ok := seen[in]; ok {
			op.Range = &r
		}
		f.Inputs = append(f.Inputs, op)
	}
	return f
}
