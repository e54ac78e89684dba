package sac

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// sharers are members of one store, with the policies 0, 1 … and the keys of seeds.
func sharers(t testing.TB, spec envs.Spec, seeds []uint64, change func(c *Config)) (list []*agenttest.Training, all []*learner) {
	t.Helper()
	l, err := offpolicy.LayoutOf(spec, true, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := replay.NewShared(l, replay.SharedConfig{Capacity: 600, ChunkRows: 16, Name: "store"})
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, s)
	for i, seed := range seeds {
		r, _ := suite.Training(t, 2, spec, func(c *Config) {
			c.LearningStarts, c.BatchSize, c.Sharing = 0, 32, &offpolicy.Sharing{ClipRho: 1}
			if change != nil {
				change(c)
			}
		}, func(x *agents.Setup) {
			x.Key, x.Replay = rng.New(seed), s.Member(fmt.Sprint("member ", i), int32(i), replay.SamplerConfig{})
		})
		list, all = append(list, r), append(all, r.Agent.Learner().(*learner))
	}
	return list, all
}

// densities are the log-probabilities of the batch of l by the policy of another learner, computed
// from the parameters of its distribution.
func densities(t testing.TB, l, by *learner) []float64 {
	t.Helper()
	n, f := l.c.BatchSize, l.Networks.Frame
	p, err := program.New(by.Networks.Act, by.Params, program.Config{Engine: l.Setup.Engine, Batch: n, BatchSymbol: layer.Batch})
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, p)
	for i, field := range f.Spec.Observation {
		copy(p.Input(field.Name).Bytes(), l.Batch.Obs[i].Bytes())
	}
	if m := p.Input(agents.MaskInput); m != nil {
		copy(m.Bytes(), l.Batch.Mask.Bytes())
	}
	if err := p.Run(); err != nil {
		t.Fatal(err)
	}
	out := make([]float64, n)
	if !f.Continuous() {
		for i, a := range l.Batch.Action.Int64s() {
			out[i] = float64(p.Output(agents.LogProbsOutput).Float32s()[i*f.Heads[0]+int(a)])
		}
		return out
	}
	mean, logStd := p.Output(agents.MeanOutput).Float32s(), p.Output(agents.LogStdOutput).Float32s()
	for k, a := range l.Batch.Action.Float32s() {
		// The density of tanh(u) at a: the Gaussian's at u, divided by the derivative 1 − a².
		u, s := math.Atanh(float64(a)), math.Exp(float64(logStd[k]))
		z := (u - float64(mean[k])) / s
		out[k/f.Dims] += -z*z/2 - math.Log(s*math.Sqrt(2*math.Pi)) - math.Log(1-float64(a)*float64(a))
	}
	return out
}

// TestSharingWeights: transitions of another policy weigh min(ρ̄, π/μ) with the densities of both,
// squashing and masks included, and its own 1; metrics tell of them by policy.
func TestSharingWeights(t *testing.T) {
	own, others, less := 0, 0, 0
	for what, spec := range sorted.All(map[string]envs.Spec{"box": agenttest.Box(), "masked": agenttest.Choice()}) {
		for _, clip := range []float64{1, 1.5} {
			// A learner that is never ready changes nothing.
			list, all := sharers(t, spec, []uint64{1, 2}, func(c *Config) { c.Sharing.ClipRho, c.LogStd.High, c.TrainFreq = clip, 0, 1000 })
			for range 25 {
				for _, r := range list {
					r.Run(t, 1)
				}
			}
			l := all[0]
			if err := errors.Join(l.draw(), l.Targets.Run()); err != nil {
				t.Fatal(err)
			}
			pi, mu := densities(t, l, l), densities(t, l, all[1])
			rho, weights := l.ratios(), l.Actor.Input(offpolicy.WeightInput).Float32s()
			l.Sources.Count(rho)
			sum, square, age, n := [2]float64{}, [2]float64{}, [2]float64{}, [2]float64{}
			for i, policy := range l.Batch.Policy {
				want := 1.0
				if policy == 1 {
					others++
					if want = min(clip, math.Exp(pi[i]-mu[i])); want < clip {
						less++
					}
				} else {
					own++
				}
				if math.Abs(float64(rho[i])-want) > 5e-3 || policy == 0 && weights[i] != 1.0/32 || weights[i] != rho[i]*(1.0/32) {
					t.Errorf("%s: row %d of policy %d: ρ is %g and the weight %g; expected %g", what, i, policy, rho[i], weights[i], want)
				}
				w := float64(rho[i])
				n[policy], sum[policy], square[policy], age[policy] = n[policy]+1, sum[policy]+w, square[policy]+w*w, age[policy]+float64(99-l.Batch.Time[i])
			}
			m := agents.Metrics{}
			l.Sources.Measure(m)
			for p := range 2 {
				at := fmt.Sprintf("replay/policy_%d/", p)
				for tag, want := range sorted.All(map[string]float64{"share": n[p] / 32, "age": age[p] / n[p], "rho": sum[p] / n[p], "ess": sum[p] * sum[p] / square[p] / n[p]}) {
					if math.Abs(m[at+tag]-want) > 1e-6*want {
						t.Errorf("%s: %s%s is %g, expected %g", what, at, tag, m[at+tag], want)
					}
				}
			}
			a, b := sum[0]+sum[1], square[0]+square[1]
			if len(m) != 9 || math.Abs(m["replay/ess"]-a*a/b/32) > 1e-6 {
				t.Errorf("%s: %v, expected an effective sample size of %g", what, m, a*a/b/32)
			}
		}
	}
	if own+others != 4*32 || own < 40 || others < 40 || less < 20 {
		t.Errorf("%d rows of its own and %d of another policy, %d of them less likely now", own, others, less)
	}
}

// TestSharingOnPolicy: what an equal policy does has a ratio of 1 but for rounding, and a learner
// that shares its store with nobody has the bits of one that weighs nothing. (Not those of one with
// a replay of its own, whose rows lie elsewhere, so that equal numbers draw others.)
func TestSharingOnPolicy(t *testing.T) {
	list, all := sharers(t, agenttest.Box(), []uint64{1, 1}, func(c *Config) { c.LogStd.High, c.TrainFreq = 0, 1000 })
	for range 25 {
		for _, r := range list {
			r.Run(t, 1)
		}
	}
	if err := errors.Join(all[0].draw(), all[0].Targets.Run()); err != nil {
		t.Fatal(err)
	}
	for i, rho := range all[0].ratios() {
		if math.Abs(float64(rho)-1) > 2e-3 {
			t.Errorf("row %d of policy %d: ρ is %g", i, all[0].Batch.Policy[i], rho)
		}
	}
	weighed, _ := sharers(t, agenttest.Box(), []uint64{1}, nil)
	plain, l := sharers(t, agenttest.Box(), []uint64{1}, func(c *Config) { c.Sharing = nil })
	for round := range 60 {
		weighed[0].Run(t, 1)
		plain[0].Run(t, 1)
		for tag, want := range sorted.All(plain[0].Last) {
			if got := weighed[0].Last[tag]; got != want {
				t.Fatalf("round %d: %s is %g, expected %g", round, tag, got, want)
			}
		}
	}
	if m := weighed[0].Last; l[0].Updates != 60 || m["replay/policy_0/rho"] != 1 || m["replay/ess"] != 1 || m["replay/policy_0/share"] != 1 {
		t.Errorf("%d updates, %v", l[0].Updates, m)
	}
}

// TestSharingAllocatesNothing: neither sampling of what several record nor weighing allocates.
func TestSharingAllocatesNothing(t *testing.T) {
	n := 0
	for what, change := range sorted.All(map[string]func(c *Config){"weights": nil, "v-trace": func(c *Config) { c.Sharing, c.VTrace.Length = nil, 4 }}) {
		list, all := sharers(t, agenttest.Box(), []uint64{1, 2}, change)
		for range 60 {
			for _, r := range list {
				r.Run(t, 1)
			}
		}
		if a := testing.AllocsPerRun(50, func() { list[0].Run(t, 1); list[1].Run(t, 1) }); a > 2*testengines.Allocations(testengines.Fastest(t)) {
			t.Errorf("%s: %v allocations", what, a)
		}
		m := list[0].Last
		if all[0].Updates < 100 || m["replay/policy_1/share"] == 0 || m["replay/policy_1/ess"] == 0 {
			t.Errorf("%s: %d updates, %v", what, all[0].Updates, m)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d cases", n)
	}
}
