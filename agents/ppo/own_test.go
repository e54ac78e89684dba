package ppo

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// own writes a policy with a memory of two rows of three, as somebody's file, from in numbers to
// out, with its features beside it, and returns its section.
func own(t testing.TB, in, out int) configs.Kinded {
	t.Helper()
	b, s := onnx.NewBuilder("own", onnx.DefaultOpset), rng.New(4).Stream()
	weight := func(name string, shape ...int) onnx.Value {
		w := tensor.New(tensor.Float32, shape...)
		s.FillNormal32(w.Float32s(), 0, 0.5)
		return b.Initializer(name, w)
	}
	form := func(dims ...int) onnx.TensorType {
		t := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n")}}
		for _, d := range dims {
			t.Dims = append(t.Dims, onnx.Known(d))
		}
		return t
	}
	x, h := b.Input("x", form(in)), b.Input("state/h", form(2, 3))
	before := b.Op("Gemm", []onnx.Value{b.Op("Reshape", []onnx.Value{h, b.Ints(-1, 6)}), weight("recurrent.weight", 6, 6)})
	hidden := b.Op("Tanh", []onnx.Value{b.Op("Add", []onnx.Value{before, b.Op("Gemm", []onnx.Value{x, weight("body.weight", in, 6), weight("body.bias", 6)})})})
	b.Output(b.Rename(b.Op("Reshape", []onnx.Value{hidden, b.Ints(-1, 2, 3)}), "next_state/h"), form(2, 3))
	b.Output(b.Rename(b.Op("Identity", []onnx.Value{hidden}), "features"), form(6))
	b.Output(b.Rename(b.Op("Gemm", []onnx.Value{hidden, weight("last.weight", 6, out), weight("last.bias", out)}), "y"), form(out))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return agenttest.Own(t, m)
}

// TestOwnMemoryIsTheBuiltIn trains a policy with an LSTM, and what that exports as a policy of
// one's own: the same gradients through the same sequences, up to rounding.
func TestOwnMemoryIsTheBuiltIn(t *testing.T) {
	c := lone()
	c.Recurrent, c.Hidden = Recurrent{LSTM, 5, 2, Separate, 4}, []int{6}
	n := 0
	for _, e := range testengines.All(t) {
		world := func() *vector.Local { return recalls(t, 3) }
		v := world()
		a := agentOf(t, c, v, e, 1)
		baked, err := a.learner.g.Policy.Bake(a.learner.Params.View)
		if err != nil {
			t.Fatal(err)
		}
		in, out := []onnx.Value{"x"}, []onnx.Value{agents.LogProbsOutput}
		for _, s := range a.learner.g.states {
			if strings.HasPrefix(s.Name(), "actor_") {
				in, out = append(in, onnx.Value(s.Input)), append(out, onnx.Value(s.Output))
			}
		}
		m, err := onnx.Extract(baked, in, out, nil)
		if err != nil {
			t.Fatal(err)
		}
		given := c
		given.Policy = agenttest.Own(t, m)
		w := world()
		b := agentOf(t, given, w, e, 1)
		x, y := agenttest.NewTraining(t, a, v), agenttest.NewTraining(t, b, w)
		updates(t, x, 3)
		updates(t, y, 3)
		moved := false
		for _, s := range a.learner.g.Policy.Specs {
			name := s.Name
			if strings.HasPrefix(name, "actor.") {
				name = "actor.policy." + name
			}
			p, q := a.learner.Params.View(s.Name), b.learner.Params.View(name)
			if p == nil || q == nil || !slices.Equal(p.Shape(), q.Shape()) {
				t.Fatalf("%s: %s is %v, and %s %v", e.Name(), s.Name, p, name, q)
			}
			for i, want := range p.Float32s() {
				got := q.Float32s()[i]
				if n++; got-want > 2e-4 || want-got > 2e-4 {
					t.Fatalf("%s: %s[%d] is %v after three updates, and the built-in one's %v", e.Name(), name, i, got, want)
				}
			}
		}
		for _, s := range a.learner.g.Policy.Specs {
			if strings.HasPrefix(s.Name, "actor.lstm1.recurrent") {
				fresh := agentOf(t, c, world(), e, 1)
				moved = !slices.Equal(fresh.learner.Params.View(s.Name).Float32s(), a.learner.Params.View(s.Name).Float32s())
			}
		}
		if !moved {
			t.Errorf("%s: the memory has not learnt", e.Name())
		}
	}
	if n < 500 {
		t.Errorf("%d comparisons", n)
	}
}

// TestOwnMemoryLearns trains user-supplied policies on recall, which nobody solves who forgets.
func TestOwnMemoryLearns(t *testing.T) {
	c := Defaults()
	c.NSteps, c.BatchSize, c.NEpochs, c.LearningRate, c.Gamma, c.EntCoef, c.Hidden = 8, 64, 5, 5e-3, 0.9, 0.01, []int{16}
	n := 0
	for name, r := range sorted.All(map[string]Recurrent{
		"without a memory of the value": {None, 12, 1, Separate, 8},
		"with one":                      {LSTM, 12, 1, Separate, 4},
	}) {
		c := c
		c.Recurrent, c.Policy = r, own(t, 2, 2)
		v := recalls(t, 16)
		a := agentOf(t, c, v, testengines.Fastest(t), 1)
		updates(t, agenttest.NewTraining(t, a, v), 60)
		got := agenttest.Return(t, a, recalls(t, 8), 200)
		t.Logf("%s: %.2f", name, got)
		if n++; got < 0.95 {
			t.Errorf("%s: right in %.2f of the episodes", name, got)
		}
	}
	if n != 2 {
		t.Errorf("%d cases", n)
	}
}

// TestOwnGSDE trains a user-supplied policy whose noise comes from its features.
func TestOwnGSDE(t *testing.T) {
	c := identityConfig()
	c.LearningRate, c.NEpochs, c.UseSDE, c.SDESampleFreq, c.LogStdInit, c.Recurrent.Length = 1e-3, 10, true, 4, -2, 1
	c.Policy = own(t, 1, 1)
	box := func(c *classic.IdentityConfig) { c.Space, c.Dims, c.Eps = classic.SpaceBox, []int{1}, 0.5 }
	v := identities(t, 1, box)
	a := agentOf(t, c, v, testengines.Fastest(t), 1)
	if s := a.learner.Params.View("actor.log_std"); s == nil || !slices.Equal(s.Shape(), []int{6, 1}) {
		t.Fatalf("the matrix of the noise is %v, expected one row for each feature", s)
	}
	updates(t, agenttest.NewTraining(t, a, v), 40)
	if got := agenttest.Return(t, a, identities(t, 1, box), 20); got < 90 {
		t.Errorf("the greedy policy is right in %.1f of 100 steps, expected 90", got)
	}
}

// TestOwnMemoryMisfits names what does not fit.
func TestOwnMemoryMisfits(t *testing.T) {
	n := 0
	for _, x := range []struct {
		change func(c *Config)
		words  []string
	}{
		{func(c *Config) { c.Recurrent = Recurrent{LSTM, 4, 1, Shared, 4} }, []string{"recurrent.critic: shared", "separate"}},
		{func(c *Config) { c.Recurrent.Length = c.NSteps + 1 }, []string{"recurrent.length"}},
		{func(c *Config) { c.Policy = own(t, 2, 5) }, []string{"gives 5 numbers", "discrete(2)"}},
		{func(c *Config) { c.Policy = own(t, 3, 2) }, []string{`own.onnx: its input "x" is float32[n,3]`, "float32[batch,2]"}},
	} {
		c := lone()
		c.Policy, c.Recurrent.Length = own(t, 2, 2), 4
		x.change(&c)
		m, err := NewMaker(c)
		if err != nil {
			t.Fatal(err)
		}
		agenttest.Refuse(t, m, nil, (&recall{}).Spec(), x.words...)
		n += len(x.words)
	}
	if n != 7 {
		t.Errorf("%d checks", n)
	}
}
