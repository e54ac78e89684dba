package nodecases

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Outcome is how a case ended.
type Outcome string

// The outcomes. Skipped cases ask for something outside the engines' contract: sequences and
// optionals entering or leaving the graph, or results that are random.
const (
	Pass        Outcome = "pass"
	Skip        Outcome = "skip"
	Unsupported Outcome = "unsupported"
	Fail        Outcome = "fail"
	// Machine is that of a case that needs what this machine has not: a locale.
	Machine Outcome = "machine"
)

// Result is the outcome of one case, with the reason unless it passed.
type Result struct {
	Name    string
	Outcome Outcome
	Reason  string
}

// Options of a run. The zero value is ONNX's own.
type Options struct {
	Tolerance Tolerance
	// SkipRoundTrip leaves out encoding, decoding and running again.
	SkipRoundTrip bool
}

// Run runs every case on an engine. It returns one result per case, in order; ctx ends it early
// with ctx's error.
func Run(ctx context.Context, cases []Case, e engine.Compiler, o Options) ([]Result, error) {
	if o.Tolerance == (Tolerance{}) {
		o.Tolerance = DefaultTolerance
	}
	out := make([]Result, len(cases))
	for i, c := range cases {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		out[i] = runCase(ctx, c, e, o)
	}
	return out, nil
}

// errSkip marks a case as outside the contract.
var errSkip = errors.New("")

func skip(format string, args ...any) error {
	return fmt.Errorf("%w%s", errSkip, fmt.Sprintf(format, args...))
}

func runCase(ctx context.Context, c Case, e engine.Compiler, o Options) Result {
	err := check(ctx, c, e, o)
	r := Result{Name: c.Name, Outcome: Pass}
	var u *engine.UnsupportedError
	switch {
	case err == nil:
		return r
	case errors.Is(err, errSkip):
		r.Outcome = Skip
	case errors.As(err, &u):
		r.Outcome, r.Reason = Unsupported, oneLine(u.Reason)
		if strings.Contains(u.Reason, "no locale") {
			r.Outcome = Machine
		}
		return r
	default:
		r.Outcome = Fail
	}
	r.Reason = oneLine(err.Error())
	return r
}

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 160 {
		s = s[:160] + "…"
	}
	return s
}

func check(ctx context.Context, c Case, e engine.Compiler, o Options) error {
	m, err := onnx.Unmarshal(c.Model)
	if err != nil {
		return err
	}
	for _, list := range [][]*onnx.ValueInfo{m.GetGraph().GetInput(), m.GetGraph().GetOutput()} {
		for _, v := range list {
			if _, ok := v.TensorType(); !ok {
				return skip("value %q is not a tensor", v.Name)
			}
		}
	}
	for _, n := range m.GetGraph().GetNode() {
		if random(n) {
			return skip("%s is random", n.OpType)
		}
	}
	s, err := e.Compile(m, engine.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	var again engine.Session
	if !o.SkipRoundTrip {
		b, err := onnx.Marshal(m)
		if err != nil {
			return fmt.Errorf("encode: %w", err)
		}
		m2, err := onnx.Unmarshal(b)
		if err != nil {
			return fmt.Errorf("decode what was encoded: %w", err)
		}
		if again, err = e.Compile(m2, engine.Options{}); err != nil {
			return fmt.Errorf("compile what was encoded: %w", err)
		}
		defer again.Close()
	}
	if len(c.Sets) == 0 {
		return errors.New("the case has no data")
	}
	for i, set := range c.Sets {
		err := checkSet(ctx, set, s, again, o)
		if err != nil && drops(m.GetGraph()) {
			return skip("data set %d: Dropout in training is random: %v", i, err)
		}
		if err != nil {
			return fmt.Errorf("data set %d: %w", i, err)
		}
	}
	return nil
}

// random reports whether a node's result is not determined by its inputs.
func random(n *onnx.Node) bool {
	switch n.OpType {
	case "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli":
		return true
	}
	return false
}

// drops reports whether a Dropout is in training mode; with a ratio of zero its result is
// determined all the same.
func drops(g *onnx.Graph) bool {
	for _, n := range g.GetNode() {
		if n.OpType == "Dropout" && n.In(2) != "" {
			return true
		}
	}
	return false
}

func checkSet(ctx context.Context, set Set, s, again engine.Session, o Options) error {
	in, err := tensors(set.Inputs)
	if err != nil {
		return fmt.Errorf("input: %w", err)
	}
	want, err := tensors(set.Outputs)
	if err != nil {
		return fmt.Errorf("expected output: %w", err)
	}
	got := make([]*tensor.Tensor, len(s.Outputs()))
	if err := s.Run(ctx, got, in); err != nil {
		// An engine refuses what it cannot run when it loads the model.
		if u := new(engine.UnsupportedError); errors.As(err, &u) {
			return fmt.Errorf("refused at the run and not before: %s", u.Reason)
		}
		return err
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d outputs, expected %d", len(got), len(want))
	}
	for i := range got {
		if err := Compare(got[i], want[i], o.Tolerance); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
	}
	if again == nil {
		return nil
	}
	second := make([]*tensor.Tensor, len(got))
	if err := again.Run(ctx, second, in); err != nil {
		return fmt.Errorf("run what was encoded and decoded: %w", err)
	}
	if err := identical(got, second); err != nil {
		return fmt.Errorf("after encoding and decoding: %w", err)
	}
	return nil
}

func tensors(files [][]byte) ([]*tensor.Tensor, error) {
	out := make([]*tensor.Tensor, len(files))
	for i, b := range files {
		p, err := onnx.UnmarshalTensor(b)
		if err != nil {
			return nil, fmt.Errorf("%d: %w", i, err)
		}
		if out[i], err = onnx.TensorOf(p); err != nil {
			return nil, err
		}
	}
	return out, nil
}
