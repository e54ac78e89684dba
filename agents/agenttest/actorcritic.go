package agenttest

import (
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// ActorCritic is an algorithm of package offpolicy, and how tests look into it. C is its
// configuration.
type ActorCritic[C any] struct {
	// Small returns a configuration that learns from the beginning on, with little work.
	Small func() C
	// Parts returns what algorithms of this kind have in common.
	Parts func(c *C) Parts
	Maker func(c C) (agents.Maker, error)
	// Learner returns what learners have in common.
	Learner func(a agents.Agent) *offpolicy.Learner
}

// Parts are the parts of a configuration that suites change.
type Parts struct {
	*offpolicy.Settings
	*network.Config
	*models.Options
}

// Training begins a run of a small configuration with changes in n environments.
func (x ActorCritic[C]) Training(t testing.TB, n int, spec envs.Spec, change func(c *C), setup ...func(*agents.Setup)) (*Training, *offpolicy.Learner) {
	t.Helper()
	c := x.Small()
	if change != nil {
		change(&c)
	}
	m, err := x.Maker(c)
	if err != nil {
		t.Fatal(err)
	}
	v := Toys(t, n, spec)
	a := Agent(t, m, v, testengines.Fastest(t), 1, setup...)
	return NewTraining(t, a, v), x.Learner(a)
}

// Variant is one of the variants of the algorithm: a small configuration with changes.
func (x ActorCritic[C]) Variant(t testing.TB, spec envs.Spec, change func(c *C)) Variant {
	t.Helper()
	c := x.Small()
	change(&c)
	m, err := x.Maker(c)
	if err != nil {
		t.Fatal(err)
	}
	return Variant{m, spec}
}

// Misfits makes agents for environments and with patterns of names that no actor-critic fits to.
func (x ActorCritic[C]) Misfits(t *testing.T) {
	t.Helper()
	for _, a := range []envs.Space{envs.Unbounded(2), envs.NewBox(0, math.Inf(1), 2)} {
		s := Box()
		s.Action = a
		x.Refuse(t, s, nil, "toy", "finite bounds")
	}
	bytes := Box()
	bytes.Action = envs.Box{Of: tensor.Uint8, Dims: []int{1}, Low: []float64{0}, High: []float64{3}}
	x.Refuse(t, bytes, nil, "toy", "float32 or float64")
	x.Refuse(t, Box(), func(c *C) { x.Parts(c).Freeze = []string{"actor.*"} }, "no parameter of the actor")
	x.Refuse(t, Box(), func(c *C) { x.Parts(c).Train = []string{"decoder.*"} }, "decoder.*", "critic.q1.fc0.weight")
	x.Refuse(t, Box(), func(c *C) { x.Parts(c).Optimizer.NoDecay = []string{"*.gamma"} }, "*.gamma")
	x.Refuse(t, Series(t), func(c *C) { x.Parts(c).Encoder = TinyEncoder(t, 0.1) }, "dropout of 0.1")
	x.Refuse(t, Series(t), func(c *C) {
		x.Parts(c).Encoder, x.Parts(c).LoRA = TinyEncoder(t, 0.1), &lora.Config{Rank: 2}
	}, "dropout of 0.1", "adapters")
	x.Refuse(t, Series(t), func(c *C) { x.Parts(c).LoRA = &lora.Config{Rank: 2, Target: []string{"fc9*"}} }, `"fc9*"`, "encoder.conv0.weight")
	x.Refuse(t, Box(), func(c *C) { x.Parts(c).LoRA = &lora.Config{Rank: 2} }, "no encoder to adapt")
	x.Refuse(t, Assets(t), func(c *C) { x.Parts(c).CrossAsset.NHeads = 3 }, "3 heads")
}

// Refuse requires that no agent of a small configuration with changes is made, and that the error
// has all of the words.
func (x ActorCritic[C]) Refuse(t testing.TB, spec envs.Spec, change func(c *C), words ...string) {
	t.Helper()
	c := x.Small()
	if change != nil {
		change(&c)
	}
	m, err := x.Maker(c)
	Refuse(t, m, err, spec, words...)
}

// WarmUp: actions are random and nothing is learnt before learning_starts, counted over all
// environments; then there are as many updates as asked for.
func (x ActorCritic[C]) WarmUp(t *testing.T) {
	t.Helper()
	for _, w := range []struct{ envs, starts, freq, steps, rounds, updates int }{
		{1, 10, 1, 1, 30, 20},
		{3, 10, 1, 1, 30, 27},
		{2, 8, 5, 3, 20, 12},
		{2, 8, 5, -1, 20, 40},
		{1, 0, 1, 2, 5, 10},
	} {
		r, l := x.Training(t, w.envs, Box(), func(c *C) {
			s := x.Parts(c)
			s.LearningStarts, s.TrainFreq, s.GradientSteps = w.starts, offpolicy.TrainFreq(w.freq), w.steps
		})
		uniform := 0
		for range w.rounds {
			before := l.Updates
			if isUniform(t, r) {
				uniform++
			}
			r.Run(t, 1)
			if _, ok := r.Last["train/loss"]; ok != (l.Updates > 0) {
				t.Errorf("%+v: train/loss %v after %d updates", w, ok, l.Updates)
			}
			if before < l.Updates && int(l.EnvSteps()) <= w.starts {
				t.Errorf("%+v: an update after %d env steps", w, l.EnvSteps())
			}
		}
		if int(l.Updates) != w.updates || uniform != (w.starts+w.envs-1)/w.envs {
			t.Errorf("%+v: %d updates, %d rounds of random actions", w, l.Updates, uniform)
		}
	}
}

// isUniform reports whether actions are drawn from all valid ones, by their key alone.
func isUniform(t *testing.T, r *Training) bool {
	t.Helper()
	key := rng.New(1)
	d, err := r.Actor.Act(t.Context(), key, r.Env.Batch())
	if err != nil {
		t.Fatal(err)
	}
	want := make([]float32, d.Drawn.Len())
	key.Stream().FillUniform32(want, -1, 1)
	return slices.Equal(d.Drawn.Float32s(), want)
}

// Metrics: the tags are Stable-Baselines3's, the learning rate follows its schedule, and the time
// of the phases is measured.
func (x ActorCritic[C]) Metrics(t *testing.T, tags ...string) {
	t.Helper()
	rate := 0.0
	linear := func(c *C) {
		x.Parts(c).LearningRateSchedule.Kind = "linear"
		rate = x.Parts(c).LearningRate
	}
	now := time.Time{}
	p := agents.NewProfile(func() time.Time { now = now.Add(time.Second); return now })
	r, l := x.Training(t, 1, Box(), linear, func(s *agents.Setup) { s.TotalEnvSteps, s.Profile = 80, p })
	r.Run(t, 20)
	if got := slices.Sorted(maps.Keys(r.Last)); !slices.Equal(got, tags) {
		t.Errorf("metrics %v, expected %v", got, tags)
	}
	if got := r.Last["train/learning_rate"]; math.Abs(got-0.75*rate) > 1e-9 || math.Abs(float64(l.CriticDescent.Groups[0].LR)-got) > 1e-9 {
		t.Errorf("a learning rate of %g after a quarter of the run, and of %g for the critics", got, l.CriticDescent.Groups[0].LR)
	}
	for _, phase := range []agents.Phase{agents.Sampling, agents.Gradient, agents.Optimising} {
		if _, calls := p.Spent(phase); calls < 8 {
			t.Errorf("%v was measured %d times", phase, calls)
		}
	}
	// Where nobody knows how long the run is, the schedule stays where it begins.
	r, _ = x.Training(t, 1, Box(), linear)
	if r.Run(t, 20); r.Last["train/learning_rate"] != rate {
		t.Errorf("a learning rate of %g", r.Last["train/learning_rate"])
	}
}

// NothingFlowsAcross runs the programs one by one: each gives the gradient of its own side, finite
// and not zero, and leaves the other side's alone. It also counts the parameters of target
// networks, which move in one range.
func (x ActorCritic[C]) NothingFlowsAcross(t *testing.T, followed int, change func(c *C)) {
	t.Helper()
	r, l := x.Training(t, 1, Box(), change)
	r.Run(t, 20)
	n := 0
	for scope, run := range map[string]func() error{offpolicy.ActorScope: l.Actor.Run, offpolicy.CriticScope: l.Critic.Run} {
		for i := range l.Grads.Floats() {
			l.Grads.Floats()[i] = 7
		}
		if err := run(); err != nil {
			t.Fatal(err)
		}
		for i, s := range l.Grads.Specs() {
			own, zero, g := 0, 0, l.Grads.View(i).Float32s()
			for _, x := range g {
				if x != 7 {
					own++
				}
				if x == 0 {
					zero++
				}
			}
			switch {
			case !offpolicy.Below(s.Name, scope) && own > 0:
				t.Errorf("the %s's program wrote the gradient of %s", scope, s.Name)
			case offpolicy.Below(s.Name, scope) && (own != len(g) || zero == len(g)):
				t.Errorf("the gradient of %s is %v", s.Name, g)
			}
			n++
		}
	}
	if target := 0; n < 24 {
		t.Errorf("%d gradients", n)
	} else {
		for _, s := range l.Networks.Specs {
			if offpolicy.Below(s.Name, offpolicy.TargetScope) {
				target++
			}
		}
		if target != followed || len(l.Follower.Pairs) != 1 {
			t.Errorf("%d parameters of target networks in %d ranges, expected %d in 1", target, len(l.Follower.Pairs), followed)
		}
	}
}

// SaturatedActions: an engine's tanh may round beyond 1, and environments refuse actions beyond
// their bounds. weight names the weights of the layer before.
func (x ActorCritic[C]) SaturatedActions(t *testing.T, weight string) {
	t.Helper()
	n, list := 0, testengines.All(t)
	for _, e := range list {
		for what, space := range map[string]envs.Box{
			"plain": envs.NewBox(-2, 2, 1), "odd": {Of: tensor.Float32, Dims: []int{2}, Low: []float64{-0.1, 0.3}, High: []float64{0.7, 1e6}}, "wide": {Of: tensor.Float64, Dims: []int{2, 1}, Low: []float64{-1. / 3}, High: []float64{0.1}},
		} {
			spec := Box()
			spec.Action = space
			r, l := x.Training(t, 3, spec, nil, func(s *agents.Setup) { s.Engine = e })
			w := l.Params.View(weight).Float32s()
			for i := range w {
				// From slightly to hopelessly saturated.
				w[i] *= 300
			}
			for range 40 {
				r.Run(t, 1)
				l.Stepped = l.Buffer.Rounds() + 1000
				action := Exported(t, r, e)[agents.ActionOutput]
				for i := range 3 {
					if err := space.Check(row(t, action, i)); err != nil {
						t.Errorf("%s, %s: %v", e.Name(), what, err)
					}
					n++
				}
			}
		}
	}
	if n != len(list)*3*40*3 {
		t.Errorf("%d actions", n)
	}
}

// row returns row i of a batch without its first axis.
func row(t testing.TB, x *tensor.Tensor, i int) *tensor.Tensor {
	t.Helper()
	size := len(x.Bytes()) / x.Shape()[0]
	one, err := tensor.OfBytes(x.DType(), x.Bytes()[i*size:(i+1)*size], x.Shape()[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	return one
}

// EncoderFromFile trains with a user's ONNX model in front of actor and critics: the model's
// weights change below all of the scopes.
func (x ActorCritic[C]) EncoderFromFile(t *testing.T, scopes ...string) {
	t.Helper()
	r, l := x.Training(t, 1, Box(), func(c *C) { x.Parts(c).Encoder = File(t, 6, 5) })
	before := map[string][]float32{}
	for _, s := range l.Networks.Specs {
		before[s.Name] = slices.Clone(l.Params.View(s.Name).Float32s())
	}
	r.Run(t, 30)
	for _, scope := range scopes {
		name := scope + ".encoder.fc.weight"
		p := l.Params.View(name)
		if p == nil {
			t.Fatalf("no parameter %q among %v", name, l.Networks.Specs)
		}
		if slices.Equal(p.Float32s(), before[name]) {
			t.Errorf("%q has not moved", name)
		}
	}
	if len(scopes) < 3 {
		t.Errorf("%d scopes", len(scopes))
	}
}

// PolicyFromFile trains a user's ONNX policy that gives so many numbers, and returns the learner;
// its parameters move.
func (x ActorCritic[C]) PolicyFromFile(t *testing.T, spec envs.Spec, width int) *offpolicy.Learner {
	t.Helper()
	r, l := x.Training(t, 1, spec, func(c *C) { x.Parts(c).Policy = File(t, 6, width) })
	w := l.Params.View(offpolicy.ActorScope + ".policy.fc.weight")
	if w == nil {
		t.Fatalf("no weights of the policy among %v", l.Networks.Specs)
	}
	before := slices.Clone(w.Float32s())
	if r.Run(t, 30); slices.Equal(before, w.Float32s()) {
		t.Errorf("a policy of %d numbers has not moved", width)
	}
	return l
}

// NoNumbers gives a learner rewards that are no numbers: learn is an error, and changes no
// parameter.
func NoNumbers(t *testing.T, l *offpolicy.Learner, learn func() error) {
	t.Helper()
	before := slices.Clone(l.Params.Segments()[0].Floats())
	for i := range l.Batch.Reward {
		l.Batch.Reward[i] = float32(math.NaN())
	}
	Has(t, learn(), "critics", "NaN", "learning rate")
	if !slices.Equal(l.Params.Segments()[0].Floats(), before) {
		t.Error("a loss that is no number has changed the parameters")
	}
}
