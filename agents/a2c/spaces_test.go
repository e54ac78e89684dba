package a2c

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// identities steps n identity environments of a space.
func identities(t testing.TB, n int, change func(c *classic.IdentityConfig)) vector.Env {
	c := classic.IdentityDefaults()
	if change != nil {
		change(&c)
	}
	return agenttest.Vector(t, n, func() (envs.Env, error) { return classic.NewIdentity(c) })
}

// space is an action space, with the environment that has it.
type space struct {
	name  string
	sde   int
	world func(n int) vector.Env
}

// spaces lists every action space, and Box with a diagonal Gaussian and with gSDE.
func spaces(t testing.TB) []space {
	identity := func(kind string, dims ...int) func(n int) vector.Env {
		return func(n int) vector.Env {
			return identities(t, n, func(c *classic.IdentityConfig) { c.Space, c.Dims, c.MaxSteps = kind, dims, 5 })
		}
	}
	masked := func(kind string, invalid int, dims ...int) func(n int) vector.Env {
		return func(n int) vector.Env {
			return agenttest.Vector(t, n, func() (envs.Env, error) {
				return classic.NewInvalidAction(classic.InvalidActionConfig{MaxSteps: 6, Space: kind, Dims: dims, Invalid: invalid})
			})
		}
	}
	return []space{
		{name: "discrete", world: identity(classic.SpaceDiscrete, 4)},
		{name: "multi-discrete", world: identity(classic.SpaceMultiDiscrete, 3, 2)},
		{name: "multi-binary", world: identity(classic.SpaceMultiBinary, 3)},
		{name: "masked multi-binary", world: masked(classic.SpaceMultiBinary, 3, 4)},
		{name: "masked multi-discrete", world: masked(classic.SpaceMultiDiscrete, 3, 4, 3)},
		{name: "box", world: identity(classic.SpaceBox, 2)},
		{name: "box, gSDE for a rollout", sde: -1, world: identity(classic.SpaceBox, 2)},
		{name: "pendulum, gSDE for three rounds", sde: 3, world: func(n int) vector.Env {
			return agenttest.Vector(t, n, func() (envs.Env, error) {
				return classic.NewPendulum(classic.PendulumConfig{MaxSteps: 9, Gravity: 10})
			})
		}},
		{name: "cartpole", world: func(n int) vector.Env { return cartpoles(t, n) }},
	}
}

func cartpoles(t testing.TB, n int) vector.Env {
	return agenttest.Vector(t, n, func() (envs.Env, error) { return classic.NewCartPole(classic.CartPoleDefaults()) })
}

// config returns a small configuration for a space.
func (s space) config() Config {
	c := Defaults()
	c.Hidden, c.NSteps, c.LogStdInit = []int{8}, 7, -0.5
	c.UseSDE, c.SDESampleFreq = s.sde != 0, max(s.sde, -1)
	if s.sde == 0 {
		c.SDESampleFreq = -1
	}
	return c
}

// TestDecisionsAreWhatIsLearnt: the log-probability and the value that the learner's graph computes
// before an update are those that the actor decided with, in every space.
func TestDecisionsAreWhatIsLearnt(t *testing.T) {
	n := 0
	for _, e := range testengines.All(t) {
		for _, s := range spaces(t) {
			v := s.world(3)
			a := agent(t, s.config(), v, e, 1)
			r := agenttest.NewTraining(t, a, v)
			w := &decided{Actor: r.Actor}
			r.Actor = w
			for range 3 {
				w.logProb, w.value = nil, nil
				m := r.Update(t)
				for what, pair := range sorted.All(map[string][2][]float32{"log-probabilities": {w.logProb, a.learner.logProb}, "values": {w.value, a.learner.value}}) {
					if n++; len(pair[0]) != 21 || apart(pair[0], pair[1]) > 1e-5 {
						t.Errorf("%s, %s: %s: the actor has %v, the learner %v", e.Name(), s.name, what, pair[0], pair[1])
					}
				}
				if std, ok := m["train/std"]; ok != a.learner.g.Frame.Continuous() || ok && math.Abs(std-math.Exp(-0.5)) > 0.05 {
					t.Errorf("%s: the deviation is %g", s.name, std)
				}
			}
		}
	}
	if n < 9*3*2 {
		t.Errorf("%d comparisons", n)
	}
}

// decided keeps the numbers of an actor's decisions.
type decided struct {
	agents.Actor
	logProb, value []float32
}

func (w *decided) Act(ctx context.Context, key rng.Key, b *vector.Batch) (*vector.Decision, error) {
	d, err := w.Actor.Act(ctx, key, b)
	if err == nil {
		w.logProb, w.value = append(w.logProb, d.LogProb...), append(w.value, d.Value...)
	}
	return d, err
}

// TestPublishedPolicyIsTheActor compares the complete network, parameters baked in, with the greedy
// actor in every space.
func TestPublishedPolicyIsTheActor(t *testing.T) {
	n := 0
	for _, e := range testengines.All(t) {
		for _, s := range spaces(t) {
			v := s.world(3)
			a := agent(t, s.config(), v, e, 1)
			r := agenttest.NewTraining(t, a, v)
			r.Update(t)
			out := agenttest.Exported(t, r, e)
			d, err := agenttest.Actor(t, a, agents.Greedy, 3).Act(t.Context(), rng.New(1), v.Batch())
			if err != nil {
				t.Fatal(err)
			}
			action := out[agents.ActionOutput]
			same := slices.Equal(action.Bytes(), d.Actions.Bytes())
			if action.DType() == tensor.Float32 {
				same = apart(action.Float32s(), d.Actions.Float32s()) < 1e-5
			}
			if n++; !same || !slices.Equal(action.Shape(), d.Actions.Shape()) {
				t.Errorf("%s, %s: actions %v, the actor's are %v", e.Name(), s.name, action, d.Actions)
			}
			if n++; apart(out[agents.ValueOutput].Float32s(), d.Value) > 1e-5 {
				t.Errorf("%s, %s: values differ", e.Name(), s.name)
			}
		}
	}
	if n < 9*2 {
		t.Errorf("%d comparisons", n)
	}
}

// TestResumeInEverySpace saves between rollouts, loads into a fresh agent, and compares with never
// having stopped, bit by bit; with the matrices of gSDE, and with a correction.
func TestResumeInEverySpace(t *testing.T) {
	n := 0
	for _, e := range testengines.All(t) {
		for i, s := range spaces(t) {
			c := s.config()
			if i%2 == 0 {
				c.Correction = VTrace
			}
			v := s.world(2)
			r := agenttest.NewTraining(t, agent(t, c, v, e, 1), v)
			r.Run(t, 3*c.NSteps)
			path := agenttest.Save(t, r.Agent)
			state, err := v.(*vector.Local).SaveState()
			if err != nil {
				t.Fatal(err)
			}
			r.Run(t, 4*c.NSteps)
			v2 := s.world(2)
			if err := v2.(*vector.Local).LoadState(state); err != nil {
				t.Fatal(err)
			}
			fresh := agenttest.NewTraining(t, agent(t, c, v2, e, 1), v2)
			// The cache of an actor for a rollout must not outlive the parameters.
			if _, err := fresh.Actor.Act(t.Context(), rng.New(3), v2.Batch()); err != nil {
				t.Fatal(err)
			}
			if err := agenttest.Load(t, path, fresh.Agent); err != nil {
				t.Fatal(err)
			}
			fresh.Done = r.Done - 4*c.NSteps
			fresh.Run(t, 4*c.NSteps)
			n += neverStopped(t, e.Name()+", "+s.name, r, fresh)
		}
	}
	if n < 9 {
		t.Errorf("%d comparisons", n)
	}
}

// TestNothingIsAllocatedInAnySpace trains in steady state with ONNX Runtime, whose runs allocate
// nothing in Go.
func TestNothingIsAllocatedInAnySpace(t *testing.T) {
	n := 0
	for _, s := range spaces(t) {
		for _, correction := range []string{NoCorrection, VTrace} {
			c := s.config()
			c.Correction = correction
			e := testengines.Fastest(t)
			v := s.world(2)
			r := agenttest.NewTraining(t, agent(t, c, v, e, 1), v)
			update := func() { r.Update(t) }
			for range 10 {
				update()
			}
			if k := testing.AllocsPerRun(10, update); k > testengines.Allocations(e) {
				t.Errorf("%s, correction %s: %g allocations per update", s.name, correction, k)
			}
			n++
		}
	}
	if n != 18 {
		t.Errorf("%d cases", n)
	}
}

// TestGaussianGradientEqualsTheFormula compares the gradient of a linear Gaussian policy with its
// formulas in float64:
//
//	∂log π/∂μ = (a−μ)/σ²,  ∂log π/∂log σ = ((a−μ)/σ)² − 1,  ∂H/∂log σ = 1
func TestGaussianGradientEqualsTheFormula(t *testing.T) {
	n := 0
	for _, e := range testengines.All(t) {
		const envCount, dims = 3, 2
		c := Defaults()
		c.Hidden, c.Reduction, c.EntCoef, c.VFCoef, c.NSteps, c.MaxGradNorm, c.LogStdInit = nil, Sum, 0.3, 0.7, 6, 0, -0.3
		// Episodes are longer than the rollout, so that returns are those of the rollout's end.
		v := identities(t, envCount, func(c *classic.IdentityConfig) {
			c.Space, c.Dims, c.Eps = classic.SpaceBox, []int{dims}, 0.8
		})
		a := agent(t, c, v, e, 1)
		rng.New(9).Stream().FillNormal32(a.learner.Params.Segment(models.Trainable).Floats(), 0, 0.4)
		d := &drawn{Recorder: a.Recorder()}
		if err := agents.Collect(t.Context(), v, agenttest.Actor(t, a, agents.Explore, envCount), d, rng.New(4), 0, c.NSteps, nil); err != nil {
			t.Fatal(err)
		}
		get := func(name string) []float64 {
			var out []float64
			for _, x := range a.learner.Params.View(name).Float32s() {
				out = append(out, float64(x))
			}
			return out
		}
		w, b, logStd := get("actor.mean.weight"), get("actor.mean.bias"), get(onpolicy.LogStdParam)
		vw, vb := get("critic.value.weight"), get("critic.value.bias")
		value := func(x []float64) float64 { return vb[0] + vw[0]*x[0] + vw[1]*x[1] }
		want := map[string][]float64{"actor.mean.weight": make([]float64, 4), "actor.mean.bias": make([]float64, 2), onpolicy.LogStdParam: make([]float64, 2), "critic.value.weight": make([]float64, 2), "critic.value.bias": make([]float64, 1)}
		for env := range envCount {
			g := value(row64(v.Batch(), v.Batch().Obs, env))
			for i := len(d.x) - envCount + env; i >= 0; i -= envCount {
				x := d.x[i]
				g = d.rewards[i] + c.Gamma*g
				diff := value(x) - g
				for k, u := range x {
					want["critic.value.weight"][k] += 2 * c.VFCoef * diff * u
				}
				want["critic.value.bias"][0] += 2 * c.VFCoef * diff
				for k := range dims {
					z := (d.actions[i][k] - b[k] - w[k*dims]*x[0] - w[k*dims+1]*x[1]) / math.Exp(logStd[k])
					// diff is minus the advantage.
					dm := diff * z / math.Exp(logStd[k])
					want["actor.mean.bias"][k] += dm
					for j, u := range x {
						want["actor.mean.weight"][k*dims+j] += dm * u
					}
					want[onpolicy.LogStdParam][k] += diff*(z*z-1) - c.EntCoef
				}
			}
		}
		if _, err := a.Learner().Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		for i, s := range a.learner.Grads.Specs() {
			off, _ := a.learner.Grads.Range(i)
			for k, x := range want[s.Name] {
				if n++; math.Abs(float64(a.learner.Grads.Floats()[off+k])-x) > 1e-4*(1+math.Abs(x)) {
					t.Errorf("%s: the gradient of %s[%d] is %g, expected %g", e.Name(), s.Name, k, a.learner.Grads.Floats()[off+k], x)
				}
			}
		}
	}
	if n < 11 {
		t.Errorf("%d comparisons", n)
	}
}

// drawn writes down the records of actions in a box.
type drawn struct {
	agents.Recorder
	x, actions [][]float64
	rewards    []float64
}

func (d *drawn) Begin(b *vector.Batch, dec *vector.Decision) error {
	for e := range b.Type {
		d.x = append(d.x, row64(b, b.Obs, e))
		var a []float64
		dims := network.StoredOf(dec).Shape()[1]
		for _, x := range network.StoredOf(dec).Float32s()[e*dims:][:dims] {
			a = append(a, float64(x))
		}
		d.actions = append(d.actions, a)
	}
	return d.Recorder.Begin(b, dec)
}

func (d *drawn) End(b *vector.Batch) error {
	d.rewards = append(d.rewards, b.Reward...)
	return d.Recorder.End(b)
}
