package ppo

import (
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// variant is a policy in an environment.
type variant struct {
	name   string
	spec   envs.Spec
	change func(c *Config)
}

// variants covers spaces, masks, observations, encoders, memory and exploration.
func variants(t testing.TB) []variant {
	cnn := func(c *Config) {
		k, err := configs.NewKinded("timecnn", map[string]any{"d_model": 5, "n_layers": 2})
		if err != nil {
			t.Fatal(err)
		}
		c.Encoder, c.CrossAsset.DModel, c.CrossAsset.NHeads = k, 8, 2
	}
	memory := Recurrent{LSTM, 4, 1, Separate, 0}
	box := envs.NewBox(-0.5, 0.5, 2)
	return []variant{
		{"discrete", spec(envs.Discrete{N: 3}, false), nil},
		{"discrete, masked", spec(envs.Discrete{N: 4}, true), func(c *Config) { c.Encoders = Shared }},
		{"heads, masked", spec(envs.MultiDiscrete{N: []int{2, 3}}, true), nil},
		{"bits, masked", spec(envs.MultiBinary{N: 2}, true), nil},
		{"box", spec(box, false), nil},
		{"box, gSDE", spec(box, false), func(c *Config) { c.UseSDE, c.SDESampleFreq = true, 4 }},
		{"series", windows(t, 0, envs.Discrete{N: 2}, false), cnn},
		{"assets", windows(t, 3, envs.MultiDiscrete{N: []int{3, 3, 3}}, true), cnn},
		{"assets, gSDE", windows(t, 3, envs.NewBox(0, 1, 3), false), func(c *Config) { cnn(c); c.UseSDE, c.Encoders = true, Shared }},
		{"lstm", spec(envs.Discrete{N: 3}, true), func(c *Config) { c.Recurrent = memory }},
		{"lstm in pieces", spec(envs.MultiBinary{N: 2}, false), func(c *Config) { c.Recurrent = memory; c.Recurrent.Length = 4 }},
		{"lstm, two layers, shared, gSDE", spec(box, false), func(c *Config) {
			c.Recurrent, c.UseSDE = memory, true
			c.Recurrent.Layers, c.Recurrent.Critic, c.Recurrent.Length = 2, Shared, 5
		}},
		{"lstm, one torso, series", windows(t, 0, envs.Discrete{N: 2}, false), func(c *Config) { cnn(c); c.Recurrent, c.Encoders = memory, Shared }},
	}
}

func (v variant) config() Config {
	c := lone()
	if v.change != nil {
		v.change(&c)
	}
	return c
}

// TestRatioIsOneBeforeLearning evaluates a rollout as the learner does, with the parameters that
// acted: log-probabilities and values must be those of the actor. Several rollouts follow each
// other, so that states of a memory and gSDE's matrices go through their beginnings.
func TestRatioIsOneBeforeLearning(t *testing.T) {
	n := 0
	engines := testengines.All(t)
	for _, e := range engines {
		for _, x := range variants(t)[:longtest.Cases(t, 13, 4)] {
			c := x.config()
			c.Correction = VTrace
			v := agenttest.Toys(t, 3, x.spec)
			r := agenttest.NewTraining(t, agentOf(t, c, v, e, 1), v)
			for range 3 {
				r.Rollout(t)
				l := r.Agent.Learner().(*learner)
				now := l.schedules()
				l.Estimate(c.GAELambda)
				advantage, target := slices.Clone(l.Advantage), slices.Clone(l.Target)
				all := make([]int, l.units())
				for i := range all {
					all[i] = i
				}
				for from := 0; from < len(all); from += l.learn.units {
					l.fill(all[from:min(from+l.learn.units, len(all))], now)
					if err := l.learn.prog.Run(); err != nil {
						t.Fatal(err)
					}
					for row, i := range l.learn.samples {
						if !l.learn.valid[row] {
							continue
						}
						if n++; math.Abs(float64(l.out.logProb[row]-l.logProb[i])) > 2e-5*(1+math.Abs(float64(l.logProb[i]))) || math.Abs(float64(l.out.value[row])-l.Rollout.Value[i]) > 2e-5 {
							t.Fatalf("%s, %s: sample %d has log-probability %v and value %v, the actor's were %v and %v", e.Name(), x.name, i, l.out.logProb[row], l.out.value[row], l.logProb[i], l.Rollout.Value[i])
						}
					}
				}
				// With ratios of 1, V-trace is GAE.
				if err := l.correct(t.Context()); err != nil {
					t.Fatal(err)
				}
				for i := range advantage {
					if n++; math.Abs(l.Advantage[i]-advantage[i]) > 1e-4 || math.Abs(l.Target[i]-target[i]) > 1e-4 {
						t.Fatalf("%s, %s: V-trace gives sample %d advantage %v and target %v, GAE %v and %v", e.Name(), x.name, i, l.Advantage[i], l.Target[i], advantage[i], target[i])
					}
				}
				if _, err := l.Step(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if want := len(engines) * longtest.Cases(t, 13, 4) * 3 * 33 * 2; n != want {
		t.Errorf("%d comparisons of %d", n, want)
	}
}

// TestVTraceFollowsThePolicy compares targets and advantages for a policy that has changed since
// with the definition, as plain loops.
func TestVTraceFollowsThePolicy(t *testing.T) {
	n, below := 0, 0
	for _, e := range testengines.All(t) {
		c := lone()
		c.Correction, c.VTrace.ClipC, c.GAELambda = VTrace, 0.8, 0.9
		const envs = 3
		v := agenttest.Toys(t, envs, spec(discrete(3), false))
		r := agenttest.NewTraining(t, agentOf(t, c, v, e, 1), v)
		r.Rollout(t)
		l := r.Agent.Learner().(*learner)
		l.Estimate(c.GAELambda)
		for _, s := range r.Agent.Learner().(*learner).Params.Segments() {
			rng.New(9).Stream().FillNormal32(s.Floats(), 0, 0.5)
		}
		if err := l.correct(t.Context()); err != nil {
			t.Fatal(err)
		}
		for e := range envs {
			carry := 0.0
			for i := len(l.Target) - envs + e; i >= 0; i -= envs {
				rho, d := l.off.rho[i], l.Rollout.Discount[i]
				next, after := l.Rollout.Bootstrap[e], 0.0
				if i+envs < len(l.Target) {
					next, after = l.off.now[i+envs], carry
				}
				delta := min(1, rho) * (l.Rollout.Reward[i] + d*next - l.off.now[i])
				carry = delta + d*0.9*min(0.8, rho)*after
				advantage := l.Rollout.Reward[i] + d*(next+0.9*after) - l.off.now[i]
				if rho < 1 {
					below++
				}
				if n++; math.Abs(l.Target[i]-l.off.now[i]-carry) > 1e-9 || math.Abs(l.Advantage[i]-advantage) > 1e-9 {
					t.Errorf("sample %d: target %v and advantage %v, expected %v and %v", i, l.Target[i], l.Advantage[i], l.off.now[i]+carry, advantage)
				}
			}
		}
	}
	if n != 33*len(testengines.All(t)) || below == 0 {
		t.Errorf("%d comparisons, %d ratios below 1", n, below)
	}
}

func discrete(n int) envs.Space { return envs.Discrete{N: n} }

// TestPolicyIsTheActor runs the published network, with its parameters baked in, on what the
// environments show, and compares it with the greedy actor, for batches of several sizes; states of
// a memory are carried from its outputs to its inputs.
func TestPolicyIsTheActor(t *testing.T) {
	n := 0
	engines := testengines.All(t)
	for _, e := range engines {
		for _, x := range variants(t)[:longtest.Cases(t, 13, 4)] {
			for _, rows := range []int{1, 3} {
				c := x.config()
				v := agenttest.Toys(t, rows, x.spec)
				a := agentOf(t, c, v, e, 1)
				agenttest.NewTraining(t, a, v).Update(t)
				net, params := a.Learner().Policy()
				m, err := net.Bake(params.View)
				if err != nil {
					t.Fatal(err)
				}
				world := agenttest.Toys(t, rows, x.spec)
				b, greedy := world.Batch(), agenttest.Actor(t, a, agents.Greedy, rows)
				in := map[string]*tensor.Tensor{}
				for _, s := range a.learner.g.states {
					in[s.Input] = tensor.New(tensor.Float32, rows, c.Recurrent.Hidden)
				}
				for range 5 {
					for i, f := range x.spec.Observation {
						in[f.Name] = tensor.New(f.Space.DType(), append([]int{rows}, f.Space.Shape()...)...)
						if err := b.Gather(i, in[f.Name]); err != nil {
							t.Fatal(err)
						}
					}
					if b.Mask != nil {
						in[agents.MaskInput] = b.Mask
					}
					out, err := gradcheck.Run(t.Context(), e, m, in)
					if err != nil {
						t.Fatal(err)
					}
					d, err := greedy.Act(t.Context(), rng.New(1), b)
					if err != nil {
						t.Fatal(err)
					}
					if n++; !near(out[agents.ActionOutput], d.Actions) {
						t.Fatalf("%s, %s: the network's actions are %v, the actor's %v", e.Name(), x.name, out[agents.ActionOutput], d.Actions)
					}
					for i, got := range out[agents.ValueOutput].Float32s() {
						if n++; math.Abs(float64(got-d.Value[i])) > 1e-5 {
							t.Fatalf("%s, %s: value %v, the actor's is %v", e.Name(), x.name, got, d.Value[i])
						}
					}
					for i := range rows {
						logProb := 0.0
						if mean := out[agents.MeanOutput]; mean != nil {
							k := mean.Shape()[1]
							logProb = rlmath.GaussianLogProb(d.Drawn.Float32s()[i*k:][:k], mean.Float32s()[i*k:][:k], out[agents.LogStdOutput].Float32s()[i*k:][:k])
						} else {
							logProb = chosen(out[agents.LogProbsOutput], d.Actions, headsOf(x.spec.Action), i)
						}
						if n++; math.Abs(logProb-float64(d.LogProb[i])) > 1e-4*(1+math.Abs(logProb)) {
							t.Fatalf("%s, %s: log-probability %v, the actor's is %v", e.Name(), x.name, logProb, d.LogProb[i])
						}
					}
					if err := world.Step(d.Actions); err != nil {
						t.Fatal(err)
					}
					for _, state := range a.learner.g.states {
						s := out[state.Output]
						for i, kind := range b.Type {
							if kind == envs.Last {
								clear(s.Float32s()[i*c.Recurrent.Hidden:][:c.Recurrent.Hidden])
							}
						}
						in[state.Input] = s
					}
				}
			}
		}
	}
	if want := len(engines) * longtest.Cases(t, 13, 4) * 5 * (2 + 2*(1+3)); n != want {
		t.Errorf("%d comparisons of %d", n, want)
	}
}

// near compares actions.
func near(a, b *tensor.Tensor) bool {
	if a.DType() != tensor.Float32 {
		return slices.Equal(a.Shape(), b.Shape()) && slices.Equal(a.Bytes(), b.Bytes())
	}
	return slices.Equal(a.Shape(), b.Shape()) && slices.EqualFunc(a.Float32s(), b.Float32s(), func(x, y float32) bool { return math.Abs(float64(x-y)) < 1e-5 })
}

// chosen is the log-probability of row i's actions.
func chosen(logProbs, actions *tensor.Tensor, sizes []int, i int) float64 {
	sum, at := 0.0, i*logProbs.Shape()[1]
	for h, k := range sizes {
		choice := 0
		if actions.DType() == tensor.Bool {
			choice = int(actions.Bytes()[i*len(sizes)+h])
		} else {
			choice = int(actions.Int64s()[i*len(sizes)+h])
		}
		sum += float64(logProbs.Float32s()[at+choice])
		at += k
	}
	return sum
}

// TestFirstParameters checks that Init sees every parameter once, what they are drawn from, and
// that they are what acts.
func TestFirstParameters(t *testing.T) {
	v := agenttest.Toys(t, 1, spec(envs.NewBox(-1, 1, 2), false))
	c := Defaults()
	c.LogStdInit = -0.7
	names := map[string]int{"actor.hidden.fc0.weight": 5 * 64, "actor.hidden.fc0.bias": 64, "actor.hidden.fc1.weight": 64 * 64, "actor.hidden.fc1.bias": 64, "actor.mean.weight": 128, "actor.mean.bias": 2, "actor.log_std": 2}
	for name, n := range sorted.All(map[string]int{"critic.hidden.fc0.weight": 5 * 64, "critic.hidden.fc0.bias": 64, "critic.hidden.fc1.weight": 64 * 64, "critic.hidden.fc1.bias": 64, "critic.value.weight": 64, "critic.value.bias": 1}) {
		names[name] = n
	}
	// Sums of squares of orthogonal weights: gain² times the number of orthogonal vectors.
	squares := map[string]float64{"actor.hidden.fc0.weight": 2 * 5, "actor.hidden.fc1.weight": 2 * 64, "actor.mean.weight": 2e-4, "critic.value.weight": 1, "actor.mean.bias": 0, "actor.log_std": 2 * 0.49}
	calls := 0
	a := agentOf(t, c, v, testengines.Fastest(t), 1, func(s *agents.Setup) {
		s.Encoders = encoder.Kinds()
		s.Init = func(values map[string]*tensor.Tensor) error {
			calls++
			for name, n := range sorted.All(names) {
				if x := values[name]; x == nil || x.Len() != n {
					t.Errorf("%s is %v", name, x)
				}
			}
			for name, want := range sorted.All(squares) {
				sum := 0.0
				for _, x := range values[name].Float32s() {
					sum += float64(x) * float64(x)
				}
				if math.Abs(sum-want) > 1e-4*want {
					t.Errorf("%s: the squares' sum is %v, expected %v", name, sum, want)
				}
			}
			if len(values) != len(names) {
				t.Errorf("%d parameters", len(values))
			}
			clear(values["critic.value.weight"].Float32s())
			values["critic.value.bias"].Float32s()[0] = 42
			return nil
		}
	})
	d, err := agenttest.Actor(t, a, agents.Explore, 1).Act(t.Context(), rng.New(1), v.Batch())
	if err != nil {
		t.Fatal(err)
	}
	if calls != 1 || d.Value[0] != 42 {
		t.Errorf("%d calls, value %v", calls, d.Value)
	}
}
