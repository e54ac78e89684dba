package ppo

import (
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// lone is a configuration of small networks and few rounds.
func lone() Config {
	c := Defaults()
	c.NSteps, c.BatchSize, c.NEpochs, c.Hidden, c.EntCoef, c.LearningRate = 11, 8, 2, []int{4}, 0.1, 1e-2
	return c
}

// TestGradientEqualsTheDefinition compares gradient and diagnostics of one minibatch, at parameters
// other than those that acted, with the definition of the loss in float64 and its central
// differences: over spaces, masks, memory, clipped values, minibatches that do not fill the program
// up, terminations and truncations.
func TestGradientEqualsTheDefinition(t *testing.T) {
	agenttest.SplitSmall(t)
	box := envs.NewBox(-0.5, 0.5, 2)
	cases := []struct {
		name   string
		spec   envs.Spec
		change func(c *Config)
		units  int
	}{
		{"discrete", spec(envs.Discrete{N: 3}, false), nil, 8},
		{"masked heads", spec(envs.MultiDiscrete{N: []int{2, 3}}, true), nil, 8},
		{"bits, clipped values, a minibatch of 5", spec(envs.MultiBinary{N: 3}, false), func(c *Config) { c.ClipRangeVF = 0.05 }, 5},
		{"Gaussian", spec(box, false), func(c *Config) { c.LogStdInit = -0.4 }, 8},
		{"gSDE", spec(box, false), func(c *Config) { c.UseSDE, c.LogStdInit = true, -0.5 }, 8},
		{"one sample, no entropy, plain advantages", spec(envs.Discrete{N: 3}, false), func(c *Config) { c.EntCoef, c.NormalizeAdvantage = 0, false }, 1},
		{"one sample, which is not normalised", spec(envs.Discrete{N: 3}, false), nil, 1},
		{"two samples", spec(envs.Discrete{N: 3}, false), nil, 2},
		{"lstm", spec(envs.Discrete{N: 3}, true), func(c *Config) { c.Recurrent = Recurrent{LSTM, 3, 1, Separate, 4}; c.BatchSize = 12 }, 3},
		{"lstm, box, a short sequence", spec(box, false), func(c *Config) { c.Recurrent = Recurrent{LSTM, 3, 1, Separate, 4}; c.BatchSize = 36 }, 9},
		{"lstm, shared", spec(envs.Discrete{N: 3}, false), func(c *Config) { c.Recurrent = Recurrent{LSTM, 3, 1, Shared, 4}; c.BatchSize = 12 }, 3},
	}
	n, ends, clips, ways := 0, 0, 0.0, longtest.Cases(t, 2, 1)
	engines := testengines.All(t)
	for _, e := range engines {
		for _, threads := range []int{2, 1}[:ways] {
			for _, x := range cases {
				c := lone()
				if x.change != nil {
					x.change(&c)
				}
				const envs = 3
				v := agenttest.Toys(t, envs, x.spec)
				a := agentOf(t, c, v, e, threads)
				for _, s := range a.learner.Params.Segments() {
					rng.New(9).Stream().FillNormal32(s.Floats(), 0, 0.4)
				}
				d := &diary{Recorder: a.Recorder(), spec: x.spec}
				if err := agents.Collect(t.Context(), v, agenttest.Actor(t, a, agents.Explore, envs), d, rng.New(4), 0, c.NSteps, nil); err != nil {
					t.Fatal(err)
				}
				before := newNaive(c, x.spec, a.learner.Params)
				l := a.learner
				l.Estimate(c.GAELambda)
				if g := l.g.length; g == 0 {
					before.estimate(d.samples, envs)
				} else {
					// The values that end sequences need the memory; see TestMemory.
					for i, s := range d.samples {
						s.advantage, s.target = l.Advantage[i], l.Target[i]
					}
				}
				for i, s := range d.samples {
					if s.last {
						ends++
					}
					if n++; math.Abs(l.Advantage[i]-s.advantage) > 1e-4*(1+math.Abs(s.advantage)) || math.Abs(l.Target[i]-s.target) > 1e-4*(1+math.Abs(s.target)) {
						t.Fatalf("%s: sample %d has advantage %g and target %g, expected %g and %g", x.name, i, l.Advantage[i], l.Target[i], s.advantage, s.target)
					}
				}
				for _, s := range a.learner.Params.Segments() {
					noise := make([]float32, len(s.Floats()))
					rng.New(10).Stream().FillNormal32(noise, 0, 0.1)
					for i := range noise {
						s.Floats()[i] += noise[i]
					}
				}
				now := coefficients{clip: 0.1, clipVF: c.ClipRangeVF}
				units := make([]int, x.units)
				for i := range units {
					units[i] = (i*7 + 2) % l.units()
				}
				l.fill(units, now)
				if err := l.learn.prog.Run(); err != nil {
					t.Fatal(err)
				}
				kl := l.diagnose(now)
				after := newNaive(c, x.spec, a.learner.Params)
				after.fixed = newNaive(c, x.spec, a.learner.Params)
				loss := func() terms { return after.minibatch(l, d.samples, units, now) }
				want := loss()
				clips += want.clipped
				for _, got := range []struct {
					what      string
					got, want float64
				}{
					{"loss", l.sums.loss, want.loss}, {"loss of the graph", float64(l.learn.prog.Output(onpolicy.LossOutput).Float32s()[0]) + sum(l.in.floor), want.loss}, {"policy", l.sums.policy, want.policy}, {"value", l.sums.value, want.value}, {"entropy", l.sums.entropy, want.entropy}, {"approx_kl", kl, want.kl}, {"clip_fraction", l.sums.clipped, want.clipped},
				} {
					if n++; math.Abs(got.got-got.want) > 1e-4*(1+math.Abs(got.want)) {
						t.Errorf("%s, %s, %d threads: %s is %g, expected %g", e.Name(), x.name, threads, got.what, got.got, got.want)
					}
				}
				for i, s := range a.learner.Grads.Specs() {
					off, _ := a.learner.Grads.Range(i)
					p := after.p[s.Name]
					for k := range p {
						const h = 1e-5
						x0 := p[k]
						p[k] = x0 + h
						up := loss().loss
						p[k] = x0 - h
						down := loss().loss
						p[k] = x0
						want, got := (up-down)/(2*h), float64(a.learner.Grads.Floats()[off+k])
						if n++; math.Abs(got-want) > 2e-4*(1+math.Abs(want)) {
							t.Errorf("%s, %s, %d threads: the gradient of %s[%d] is %g, expected %g", e.Name(), x.name, threads, s.Name, k, got, want)
						}
					}
				}
			}
		}
	}
	if n < 1250*ways*len(engines) || ends < 50*ways || clips < 2.5*float64(ways) {
		t.Errorf("%d comparisons, %d ends of episodes, %g clipped", n, ends, clips)
	}
}

func sum(x []float32) (s float64) {
	for _, v := range x {
		s += float64(v)
	}
	return s
}

// minibatch is the loss of units of a rollout.
func (n *naive) minibatch(l *learner, all []*sample, units []int, now coefficients) terms {
	var samples []*sample
	var logProbs, entropies, values []float64
	term := func(s *sample, m memory64) {
		samples = append(samples, s)
		l, h := n.evaluate(s, m)
		logProbs, entropies, values = append(logProbs, l), append(entropies, h), append(values, n.value(s.x, m))
	}
	for _, u := range units {
		if l.g.length == 0 {
			term(all[u], nil)
			continue
		}
		m := memory64{}
		width := len(l.initial[0]) / l.units()
		for i, owner := range []string{"actor", "critic"} {
			var s [2][]float64
			for k := range s {
				for _, x := range l.initial[(2*i+k)%len(l.initial)][u*width:][:width] {
					s[k] = append(s[k], float64(x))
				}
			}
			m[owner] = s
		}
		for t := range l.g.length {
			i := (u/l.Rollout.Envs*l.g.length+t)*l.Rollout.Envs + u%l.Rollout.Envs
			if i >= len(all) {
				break
			}
			if all[i].begins {
				m = memory64{"actor": {make([]float64, width), make([]float64, width)}, "critic": {make([]float64, width), make([]float64, width)}}
			}
			term(all[i], m)
		}
	}
	advantages := normalised(samples)
	if !n.c.NormalizeAdvantage {
		advantages = slices.Collect(func(yield func(float64) bool) {
			for _, s := range samples {
				if !yield(s.advantage) {
					return
				}
			}
		})
	}
	return n.loss(samples, advantages, logProbs, entropies, values, now)
}
