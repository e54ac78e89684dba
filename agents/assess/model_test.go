package assess

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// oracle is a policy that buys an asset when the last row of its window, 3 bars of 2 assets, is
// above 0, and else sells it; its log-probabilities are NaN where the row is above nan.
func oracle(t *testing.T, nan float32) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("oracle", 18)
	batched := func(d tensor.DType, dims ...int) onnx.TensorType {
		out := onnx.TensorType{DType: d, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch")}}
		for _, n := range dims {
			out.Dims = append(out.Dims, onnx.Known(n))
		}
		return out
	}
	ints := func(name string, x ...int64) onnx.Value { return b.Initializer(name, tensor.Of(x, len(x))) }
	floats := func(name string, x ...float32) onnx.Value { return b.Initializer(name, tensor.Of(x, len(x))) }
	x := b.Input("window", batched(tensor.Float32, 3, 2, 1))
	b.Input("mask", batched(tensor.Bool, 6))
	last := b.Op("Slice", []onnx.Value{x, ints("from", 2), ints("to", 3), ints("axis", 1)})
	flat := b.Op("Reshape", []onnx.Value{last, ints("flat", -1, 2, 1)})
	// Buy scores x, sell −x and hold −1000.
	scores := b.Op("Add", []onnx.Value{b.Op("Mul", []onnx.Value{flat, floats("weights", 1, -1, 0)}), floats("bias", 0, 0, -1000)})
	// √(limit − x) is NaN beyond the limit; nothing is added otherwise.
	root := b.Op("Sqrt", []onnx.Value{b.Op("Sub", []onnx.Value{floats("limit", nan), flat})})
	action := b.Rename(b.Op("ArgMax", []onnx.Value{scores}, onnx.AttrInt("axis", 2), onnx.AttrInt("keepdims", 0)), "action")
	logs := b.Rename(b.Op("Reshape", []onnx.Value{b.Op("Add", []onnx.Value{scores, b.Op("Mul", []onnx.Value{root, floats("zero", 0)})}), ints("heads", -1, 6)}), "log_probs")
	b.Output(action, batched(tensor.Int64, 2))
	b.Output(logs, batched(tensor.Float32, 6))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestModel runs a model from memory and from a file, compares it with the agent that does the
// same, and holds what is refused.
func TestModel(t *testing.T) {
	m := market(11, 200, 2)
	f, c := factory(t, m, ""), portable.New()
	bars := f.Data().Splits[envs.Test]
	spec, err := Spec(f, envs.Test)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "oracle.onnx")
	if err := onnx.Save(path, oracle(t, 5), onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	opened := 0
	run := func(a evaluate.Actors) (*backtest.Record, error) {
		t.Helper()
		p, err := NewPolicy("oracle", a, agents.Greedy, spec, nil)
		if err != nil {
			return nil, err
		}
		defer p.Close()
		return backtest.Run(t.Context(), f.Source(), bars, p, rng.New(1))
	}
	want, err := run(follower{m, false, &opened})
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for _, a := range []*publish.Model{publish.ModelOf(t.Context(), oracle(t, 5), c, f, envs.Test), publish.ModelFile(t.Context(), path, c, f, envs.Test)} {
		got, err := run(a)
		if err != nil {
			t.Fatal(err)
		}
		for i, o := range got.Actions {
			if o != want.Actions[i] {
				t.Fatalf("action %d is %d, expected %d", i, o, want.Actions[i])
			}
			compared++
		}
	}
	if compared != 2*2*(bars.Last-bars.First) {
		t.Errorf("%d actions were compared", compared)
	}
	if _, err := run(publish.ModelOf(t.Context(), oracle(t, 0.5), c, f, envs.Test)); err == nil || !strings.Contains(err.Error(), `output "log_probs" of the model is NaN`) {
		t.Errorf("NaN: %v", err)
	}
	if _, err := publish.ModelFile(t.Context(), path, c, f, envs.Test).NewActor(agents.Explore, 1); err == nil || !strings.Contains(err.Error(), "takes the best action") {
		t.Errorf("drawing actions: %v", err)
	}
	wide := factory(t, m, "  state: {include_pos: false, include_cash: false}\n")
	if _, err := publish.ModelFile(t.Context(), path, c, wide, envs.Test).NewActor(agents.Greedy, 1); err != nil {
		t.Errorf("fields that a model does not use may be missing: %v", err)
	}
	other := factory(t, market(12, 200, 3), "")
	if _, err := publish.ModelFile(t.Context(), path, c, other, envs.Test).NewActor(agents.Greedy, 1); err == nil || !strings.Contains(err.Error(), "[3 2 1]") || !strings.Contains(err.Error(), "[3 3 1]") {
		t.Errorf("another number of assets: %v", err)
	}
}

// TestValidationsDrawWhatIsNotLearntFrom: what only training has, such as dropout, is in none.
func TestValidationsDrawWhatIsNotLearntFrom(t *testing.T) {
	if m := (evaluate.Config{}).Mode(); m != agents.Sample {
		t.Errorf("a validation that draws is of the mode %v", m)
	}
	if m := (evaluate.Config{Deterministic: true}).Mode(); m != agents.Greedy {
		t.Errorf("a deterministic validation is of the mode %v", m)
	}
}
