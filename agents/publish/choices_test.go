package publish

import (
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// counting shows one of four numbers from 10 on and one of two from −5 on, and takes choices of
// three from −1 on and of two from 7 on.
type counting struct {
	step   int
	stream rng.Stream
}

func (*counting) Spec() envs.Spec {
	return envs.Spec{
		Name: "counting", Observation: envs.Dict{{Name: "one", Space: envs.Discrete{N: 4, Start: 10}}, {Name: "two", Space: envs.MultiDiscrete{N: []int{2, 3}, Start: []int64{-5, 0}}}},
		Action: envs.MultiDiscrete{N: []int{3, 2}, Start: []int64{-1, 7}}, MaxSteps: 8, Random: true,
	}
}

func (c *counting) show(ts *envs.TimeStep) error {
	spec := c.Spec()
	for i, f := range spec.Observation {
		f.Space.Sample(&c.stream, nil, ts.Obs[i])
	}
	return nil
}

func (c *counting) Reset(key rng.Key, ts *envs.TimeStep) error {
	c.stream.Seed(key)
	c.step, ts.Type, ts.Discount = 0, envs.First, 1
	return c.show(ts)
}

func (c *counting) Step(a *tensor.Tensor, ts *envs.TimeStep) error {
	if err := c.Spec().Action.Check(a); err != nil {
		return err
	}
	c.step++
	if ts.Type = envs.Mid; c.step == 8 {
		ts.Type = envs.Last
	}
	return c.show(ts)
}

func (*counting) Close() error { return nil }

type countingFactory struct{ envs.Factory }

func (countingFactory) New(envs.Split, int) (envs.Env, error) { return &counting{}, nil }

// TestExportedChoicesAreTheEnvironments publishes a policy of choices that do not begin at 0: the
// file is given and gives the environment's numbers and says so, and an actor of it has those of
// the program.
func TestExportedChoicesAreTheEnvironments(t *testing.T) {
	c := document(t, "env: {kind: corridor, cells: 5}")
	f := countingFactory{open(t, c)}
	g := layer.New("policy", rng.New(3), layer.Options{})
	float := func(x onnx.Value) onnx.Value {
		return g.Op("Cast", []onnx.Value{x}, onnx.AttrInt("to", int(tensor.Float32)))
	}
	one, two := g.Unsqueeze(float(g.Batched("one", tensor.Int64)), 1), float(g.Batched("two", tensor.Int64, 2))
	z := g.In("body").MLP(g.Concat(1, one, two), []int{16}, "tanh", layer.Orthogonal(1))
	choice := head.NewCategorical(g, head.Logits(g, z, layer.Orthogonal(1), 3, 2), "", 3, 2)
	g.Output(agents.ActionOutput, choice.Mode())
	g.Output(agents.LogProbsOutput, choice.LogProbs)
	net, params := agenttest.Loaded(t, g)
	e := testengines.Fastest(t)
	dir := t.TempDir()
	p := publisher(t, c, f, e, dir)
	if _, err := p.Version(t.Context(), train.Policy{Network: net, Params: params}); err != nil {
		t.Fatal(err)
	}
	m, err := onnx.Load(filepath.Join(dir, BestFile))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := m.Meta(artifact.SpacesKey)
	if want := `{"inputs":{"one":{"type":"discrete","n":[4],"start":[10]},"two":{"type":"multi_discrete","n":[2,3],"start":[-5,0]}},"outputs":{"action":{"type":"multi_discrete","n":[3,2],"start":[-1,7]}}}`; text != want {
		t.Errorf("the model says %s, expected %s", text, want)
	}
	bare, err := net.Bake(params.View)
	if err != nil {
		t.Fatal(err)
	}
	policyOf := func(m *onnx.Model) *served.Policy {
		p, err := served.New(t.Context(), m, e, 1)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	inside, outside, again := policyOf(bare), policyOf(m), policyOf(m)
	defer inside.Close()
	defer outside.Close()
	actor, err := served.NewActor(again, (&counting{}).Spec(), served.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer actor.Close()
	ts := envs.NewTimeStep((&counting{}).Spec())
	seen := map[int64]bool{}
	for k := range int64(24) {
		obs := []int64{k % 4, k / 4 % 2, k / 8}
		ts.Type = envs.Mid
		ts.Obs[0].Int64s()[0] = obs[0]
		copy(ts.Obs[1].Int64s(), obs[1:])
		inside.Input("one").Int64s()[0], outside.Input("one").Int64s()[0] = obs[0], obs[0]+10
		copy(inside.Input("two").Int64s(), obs[1:])
		copy(outside.Input("two").Int64s(), []int64{obs[1] - 5, obs[2]})
		for _, p := range []*served.Policy{inside, outside} {
			if err := p.Run(); err != nil {
				t.Fatal(err)
			}
		}
		if err := actor.Observe(0, ts); err != nil {
			t.Fatal(err)
		}
		d, err := actor.Decide()
		if err != nil {
			t.Fatal(err)
		}
		want := inside.Output(agents.ActionOutput).Int64s()
		got, own := outside.Output(agents.ActionOutput).Int64s(), d.Actions.Int64s()
		if got[0] != want[0]-1 || got[1] != want[1]+7 || own[0] != want[0] || own[1] != want[1] {
			t.Errorf("for %v the network chooses %v, the file %v and its actor %v", obs, want, got, own)
		}
		seen[2*want[0]+want[1]] = true
	}
	if len(seen) < 3 {
		t.Errorf("the policy makes %d choices only", len(seen))
	}
	// Choices that begin elsewhere are those of another environment.
	other := (&counting{}).Spec()
	other.Action = envs.MultiDiscrete{N: []int{3, 2}}
	if _, err := served.NewActor(outside, other, served.Options{}); err == nil || err.Error() != `policy for environment "counting": output action: the model's choices begin at [-1 7], and the environment's are multi-discrete[3 2]` {
		t.Errorf("error %v", err)
	}
	// So do those that are drawn.
	choices, err := Choices(m)
	if err != nil || len(choices) != 1 || choices[0].Start[0] != -1 {
		t.Errorf("choices %+v, %v", choices, err)
	}
}
