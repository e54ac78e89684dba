package app

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/export/dashboard"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestExplainDecision compares a decision with what was recorded, and its gradients with what the
// policy does when an element of the observation is a little greater or less.
func TestExplainDecision(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	store := filepath.Join(apptest.Trained(t, "tiny"), publish.StoreDir)
	s, err := artifact.Open(store, artifact.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list, err := s.List()
	if err != nil || len(list) != 1 {
		t.Fatalf("%v %v", list, err)
	}
	v := list[0]
	golden, err := v.Golden()
	if err != nil {
		t.Fatal(err)
	}
	model, err := v.Model()
	if err != nil {
		t.Fatal(err)
	}
	session, err := portable.New().Compile(model, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	const row, head = 2, 1
	e, err := attribution(t.Context(), dashboard.Question{Store: store, Version: v.Digest, Row: row, Head: head})
	if err != nil {
		t.Fatal(err)
	}
	logs := golden.Outputs["log_probs"].Rows(row, row+1).Float32s()
	actions := golden.Outputs["action"].Rows(row, row+1).Int64s()
	options := len(logs) / len(actions)
	if e.Rows != v.Manifest.Golden.Rows || len(e.Heads) != len(actions) || float32(*e.Value) != golden.Outputs["value"].Float32s()[row] {
		t.Errorf("%+v", e)
	}
	for i, h := range e.Heads {
		sum := 0.0
		for j, p := range h.Probabilities {
			if want := math.Exp(float64(logs[i*options+j])); math.Abs(p-want) > 1e-12 {
				t.Errorf("%s %s: probability %v, expected %v", h.Name, h.Options[j], p, want)
			}
			if h.Allowed[j] != golden.Inputs["mask"].Rows(row, row+1).Bools()[i*options+j] {
				t.Errorf("%s %s: allowed %v", h.Name, h.Options[j], h.Allowed[j])
			}
			sum += p
		}
		if h.Chosen != int(actions[i]) || math.Abs(sum-1) > 1e-5 {
			t.Errorf("%s: %d is chosen of %v", h.Name, h.Chosen, h.Probabilities)
		}
	}
	// log is the objective for an observation in which an element differs.
	log := func(input string, element int, by float32) float64 {
		in := make([]*tensor.Tensor, len(session.Inputs()))
		for i, p := range session.Inputs() {
			in[i] = golden.Inputs[p.Name].Rows(row, row+1)
			if p.Name == input {
				in[i] = in[i].Clone()
				in[i].Float32s()[element] += by
			}
		}
		out := make([]*tensor.Tensor, len(session.Outputs()))
		if err := session.Run(t.Context(), out, in); err != nil {
			t.Fatal(err)
		}
		for i, p := range session.Outputs() {
			if p.Name == "log_probs" {
				return float64(out[i].Float32s()[head*options+int(actions[head])])
			}
		}
		t.Fatal("no log_probs")
		return 0
	}
	compared := 0
	for _, f := range e.Influences[:5] {
		x := golden.Inputs[f.Input].Rows(row, row+1)
		value := x.Float32s()[f.Element]
		h := float32(0.02 * max(math.Abs(f.Value), 0.1))
		numeric := (log(f.Input, f.Element, h) - log(f.Input, f.Element, -h)) / float64(2*h)
		if float64(value) != f.Value || math.Abs(f.Product-f.Value*f.Gradient) > 1e-12 || math.Abs(numeric-f.Gradient) > 0.05*math.Abs(f.Gradient)+1e-5 {
			t.Errorf("%s: value %v of %v, gradient %v, by difference %v", f.Label, f.Value, value, f.Gradient, numeric)
		}
		compared++
	}
	if compared != 5 {
		t.Errorf("%d gradients were compared", compared)
	}
	for _, q := range []dashboard.Question{{Store: store, Version: v.Digest, Row: e.Rows}, {Store: store, Version: v.Digest, Head: len(e.Heads)}, {Store: store, Version: "none"}, {Store: t.TempDir(), Version: v.Digest}} {
		if e, err := attribution(t.Context(), q); err == nil {
			t.Errorf("%+v: %+v", q, e)
		}
	}
}

// attribution explains with the engine in Go.
func attribution(ctx context.Context, q dashboard.Question) (*dashboard.Explanation, error) {
	return dashboard.Attribution(func(context.Context) (engine.Compiler, error) { return portable.New(), nil })(ctx, q)
}
