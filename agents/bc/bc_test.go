package bc

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/offline/offlinetest"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// small is a configuration with little work.
func small() Config {
	c := Defaults()
	c.Hidden, c.BatchSize = []int{16, 16}, 8
	return c
}

// training begins a run of a small configuration with changes, over a data set.
func training(t testing.TB, spec envs.Spec, change func(*agents.Setup), edit func(c *Config)) (*agenttest.Training, *learner) {
	t.Helper()
	c := small()
	if edit != nil {
		edit(&c)
	}
	m, err := NewMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	v := agenttest.Toys(t, 1, spec)
	a := agenttest.Agent(t, m, v, testengines.Fastest(t), 2, change)
	return agenttest.NewTraining(t, a, v), a.Learner().(*learner)
}

// best is the greedy actor's decision on what the environments show.
func best(t testing.TB, r *agenttest.Training) *vector.Decision {
	t.Helper()
	d, err := agenttest.Actor(t, r.Agent, agents.Greedy, r.Env.Len()).Act(t.Context(), rng.New(2), r.Env.Batch())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

type variant struct {
	spec   envs.Spec
	change func(c *Config)
}

// variants go through everything between them.
func variants(t testing.TB) map[string]variant {
	tiny := agenttest.TinyEncoder(t, 0)
	ensemble := func(c *Config) { c.Ensemble, c.UncertaintyPenalty = 3, 0.5 }
	list := map[string]variant{
		"box":                {agenttest.Box(), func(*Config) {}},
		"float64":            {agenttest.Wide(), func(c *Config) { c.MaxGradNorm = 0.5 }},
		"discrete":           {agenttest.Choice(), func(c *Config) { c.LearningRateSchedule.Kind, c.LearningRateSchedule.Steps = "linear", 100 }},
		"box, ensemble":      {agenttest.Box(), ensemble},
		"discrete, ensemble": {agenttest.Choice(), ensemble},
		"series":             {agenttest.Series(t), func(c *Config) { c.Encoder = tiny }},
		"assets, ensemble":   {agenttest.Assets(t), func(c *Config) { ensemble(c); c.Encoder, c.CrossAsset.NHeads = tiny, 2 }},
		"privileged":         {agenttest.Box(), func(c *Config) { c.Privileged = []string{"kind"} }},
		"bounds":             {limited(true), func(c *Config) { c.Bounds = "limits" }},
		"bounds, ensemble":   {limited(false), func(c *Config) { ensemble(c); c.Bounds = "limits" }},
	}
	if len(list) != 10 {
		t.Fatal(len(list), "variants")
	}
	return list
}

// limited is a spec with a field of bounds, which the policy reads or not.
func limited(central bool) envs.Spec {
	s := agenttest.Box()
	s.Observation = append(slices.Clone(s.Observation), envs.Field{Name: "limits", Space: envs.Unbounded(4), Central: central})
	return s
}

// TestBounds: where going beyond costs much, the policy goes less far beyond.
func TestBounds(t *testing.T) {
	spec, d := limited(false), offlinetest.Dataset(t, limited(false), 200)
	box := spec.Action.(envs.Box)
	var beyond [2]float64
	rows := 0
	for i, penalty := range []float64{0, 300} {
		r, l := training(t, spec, offlinetest.Setup(t, d, spec), func(c *Config) { c.Bounds, c.BoundsPenalty, c.BatchSize = "limits", penalty, 32 })
		r.Idle(t, 400)
		if l.c.BoundsPenalty != penalty {
			t.Fatal(l.c)
		}
		for range 100 {
			b := r.Env.Batch()
			limits := b.Obs[spec.Observation.Index("limits")].Float32s()
			for k, a := range best(t, r).Actions.Float32s() {
				bounds := box.Bounds(k)
				x := 2*(float64(a)-bounds.Low)/(bounds.High-bounds.Low) - 1
				off := x - min(max(x, float64(limits[k])), float64(limits[2+k]))
				beyond[i] += off * off
			}
			rows++
			if err := r.Env.Step(best(t, r).Actions); err != nil {
				t.Fatal(err)
			}
		}
	}
	if !(beyond[1] < 0.8*beyond[0]) || rows != 200 {
		t.Errorf("squares beyond the bounds are %v with a penalty, and %v without, over %d rows", beyond[1], beyond[0], rows)
	}
}

// TestResume: a learner that has loaded the state of another goes on with the same bits.
func TestResume(t *testing.T) {
	agenttest.SplitSmall(t)
	for what, v := range sorted.All(longtest.Few(t, variants(t), 2)) {
		change := offlinetest.Setup(t, offlinetest.Dataset(t, v.spec, 20), v.spec)
		whole, _ := training(t, v.spec, change, v.change)
		whole.Idle(t, 12)
		path := agenttest.Save(t, whole.Agent)
		whole.Idle(t, 12)
		again, l := training(t, v.spec, change, v.change)
		if err := agenttest.Load(t, path, again.Agent); err != nil {
			t.Fatal(err)
		}
		again.Idle(t, 12)
		if l.Updates != 24 || whole.Last["train/loss"] != again.Last["train/loss"] {
			t.Errorf("%s: %d updates, losses of %v and %v", what, l.Updates, whole.Last["train/loss"], again.Last["train/loss"])
		}
		for _, s := range l.Networks.Specs {
			if !slices.Equal(l.Params.View(s.Name).Float32s(), whole.Agent.Learner().(*learner).Params.View(s.Name).Float32s()) {
				t.Errorf("%s: %s differs", what, s.Name)
			}
		}
	}
}

// TestTrainingAllocatesNothing takes whole learner steps.
func TestTrainingAllocatesNothing(t *testing.T) {
	for what, v := range sorted.All(variants(t)) {
		r, _ := training(t, v.spec, offlinetest.Setup(t, offlinetest.Dataset(t, v.spec, 20), v.spec), v.change)
		r.Idle(t, 5)
		if n := testing.AllocsPerRun(20, func() { r.Idle(t, 1) }); n > testengines.Allocations(testengines.Fastest(t)) {
			t.Errorf("%s: %v allocations in a round", what, n)
		}
	}
}

// TestPolicyIsTheActor compares the exported network with the greedy actor, and looks at the
// uncertainty of ensembles.
func TestPolicyIsTheActor(t *testing.T) {
	compared := 0
	for what, v := range sorted.All(variants(t)) {
		r, l := training(t, v.spec, offlinetest.Setup(t, offlinetest.Dataset(t, v.spec, 20), v.spec), v.change)
		r.Idle(t, 10)
		greedy := best(t, r)
		out := agenttest.Exported(t, r, testengines.Fastest(t))
		got, want := numbers(out[agents.ActionOutput]), numbers(greedy.Actions)
		if !slices.EqualFunc(got, want, func(a, b float64) bool { return math.Abs(a-b) < 1e-5 }) {
			t.Errorf("%s: the exported network gives %v, and the actor %v", what, got, want)
		}
		compared += greedy.Actions.Len()
		u := out[UncertaintyOutput]
		if (u != nil) != (l.c.Ensemble > 1) {
			t.Errorf("%s: uncertainty %v", what, u)
		} else if u != nil && !(u.Float32s()[0] > 0) {
			t.Errorf("%s: the uncertainty is %v", what, u.Float32s())
		}
	}
	if compared < 8 {
		t.Errorf("%d numbers", compared)
	}
}

// numbers are those of a tensor of actions.
func numbers(t *tensor.Tensor) (list []float64) {
	for i := range t.Len() {
		switch t.DType() {
		case tensor.Float32:
			list = append(list, float64(t.Float32s()[i]))
		case tensor.Float64:
			list = append(list, t.Float64s()[i])
		default:
			list = append(list, float64(t.Int64s()[i]))
		}
	}
	return list
}

// TestPenaltyShrinks: where policies disagree an action lies nearer to the middle of the box.
func TestPenaltyShrinks(t *testing.T) {
	spec := agenttest.Box()
	d := offlinetest.Dataset(t, spec, 20)
	var actions [2][]float32
	for i, kappa := range []float64{0, 10} {
		r, _ := training(t, spec, offlinetest.Setup(t, d, spec), func(c *Config) { c.Ensemble, c.UncertaintyPenalty = 4, kappa })
		r.Idle(t, 20)
		actions[i] = slices.Clone(best(t, r).Actions.Float32s())
	}
	box := spec.Action.(envs.Box)
	for k := range actions[0] {
		b := box.Bounds(k)
		from := func(x float32) float64 { return math.Abs(float64(x) - (b.Low+b.High)/2) }
		if !(from(actions[1][k]) < from(actions[0][k])) {
			t.Errorf("component %d: %v with a penalty, %v without", k, actions[1][k], actions[0][k])
		}
	}
}

// TestBootstrap: transitions count as often as a Poisson number of mean 1 says, the same whenever
// they are drawn, and policies have numbers of their own.
func TestBootstrap(t *testing.T) {
	const n = 100_000
	var counts [17]int
	sum, equal := 0, 0
	for row := range uint64(n) {
		m := multiplicity(row, 0)
		if m != multiplicity(row, 0) {
			t.Fatalf("row %d counts differently the second time", row)
		}
		counts[m]++
		sum += m
		if m == multiplicity(row, 1) {
			equal++
		}
	}
	// Two such numbers are equal with probability Σ p² = 0.3085.
	if math.Abs(float64(sum)/n-1) > 0.015 || math.Abs(float64(equal)/n-0.3085) > 0.01 {
		t.Errorf("a mean of %v, and %v are equal", float64(sum)/n, float64(equal)/n)
	}
	for k, p := 0, math.Exp(-1); k < 5; k++ {
		if got := float64(counts[k]) / n; math.Abs(got-p) > 0.01 {
			t.Errorf("%d times: %v, expected %v", k, got, p)
		}
		p /= float64(k + 1)
	}
}

// TestRefuses has what cannot be cloned.
func TestRefuses(t *testing.T) {
	m, err := NewMaker(small())
	agenttest.Refuse(t, m, err, agenttest.Box(), "dataset")
	for want, spec := range sorted.All(map[string]envs.Spec{`no field "limits"`: agenttest.Box(), "the least and the greatest": func() envs.Spec {
		s := limited(true)
		s.Observation[2].Space = envs.Unbounded(3)
		return s
	}(), "expected a box": agenttest.Choice()}) {
		c := small()
		c.Bounds = "limits"
		m, err := NewMaker(c)
		if err != nil {
			t.Fatal(err)
		}
		v := agenttest.Toys(t, 1, spec)
		s := agents.Setup{Spec: spec, Envs: 1, Engine: testengines.Fastest(t), Threads: 1, Key: rng.New(1)}
		offlinetest.Setup(t, offlinetest.Dataset(t, spec, 5), spec)(&s)
		if _, err := m.New(t.Context(), s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q (%d rows)", err, want, v.Len())
		}
	}
	agenttest.BadConfigs(t, Kind, map[string][]string{
		"ensemble: 0":             {"ensemble"},
		"uncertainty_penalty: 1":  {"uncertainty_penalty", "ensemble"},
		"beta: -1\nbatch_size: 0": {"beta", "batch_size"},
		"gamma: 0.9":              {"unknown key"},
		"learning_rate: 0":        {"learning_rate"},
		"bounds_penalty: -1":      {"bounds_penalty"},
		"optimizer: {lr: 1}":      {"optimizer.lr"},
		"ensemble: 2\npolicy: {kind: file, path: x.onnx}": {"ensemble", "user-supplied"},
	})
}
