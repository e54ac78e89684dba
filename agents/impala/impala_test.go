package impala

import (
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func maker(t testing.TB, c Config, changes ...func(c *Config)) agents.Maker {
	t.Helper()
	c.NSteps, c.Hidden, c.LearningRate = 7, []int{6}, 3e-3
	for _, change := range changes {
		change(&c)
	}
	m, err := NewMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func variants(t testing.TB) map[string]agenttest.Variant {
	epochs, shared := func(c *Config) { c.NEpochs = 3 }, func(c *Config) { c.Encoders, c.Encoder = Shared, agenttest.TinyEncoder(t, 0) }
	encoder, dropout := func(c *Config) { c.Encoder = agenttest.TinyEncoder(t, 0) }, func(c *Config) { c.Encoder = agenttest.TinyEncoder(t, 0.5) }
	return map[string]agenttest.Variant{
		"impala box": {Maker: maker(t, Defaults(), epochs), Spec: agenttest.Box()}, "impala choice": {Maker: maker(t, Defaults()), Spec: agenttest.Choice()},
		"appo wide": {Maker: maker(t, APPODefaults(), epochs), Spec: agenttest.Wide()}, "appo series": {Maker: maker(t, APPODefaults(), epochs, encoder), Spec: agenttest.Series(t)},
		"impala dropout": {Maker: maker(t, Defaults(), epochs, dropout), Spec: agenttest.Series(t)},
		"appo assets":    {Maker: maker(t, APPODefaults(), epochs, shared), Spec: agenttest.Assets(t)},
	}
}

func TestResume(t *testing.T) {
	longtest.Slow(t)
	agenttest.ResumeEverywhere(t, variants(t), 10, 60, 2)
}

func TestNoAllocations(t *testing.T) { agenttest.NoAllocations(t, variants(t), 21) }

func TestPolicyIsTheActor(t *testing.T) { agenttest.PolicyIsTheActor(t, variants(t), nil) }

// TestDropout: log-probabilities agree between rollout and update.
func TestDropout(t *testing.T) {
	dropout := func(c *Config) { c.Encoder, c.CrossAsset.Dropout = agenttest.TinyEncoder(t, 0.5), 0.3 }
	agenttest.Dropout(t, map[string]agenttest.Variant{
		"impala": {Maker: maker(t, Defaults(), dropout), Spec: agenttest.Series(t)},
		"appo":   {Maker: maker(t, APPODefaults(), dropout), Spec: agenttest.Assets(t)},
	}, func(l *learner) (acted, learnt []float64) {
		for i, p := range l.logMu {
			acted, learnt = append(acted, p), append(learnt, float64(l.logPi[i]))
		}
		return acted, learnt
	})
}

func TestMisuse(t *testing.T) {
	agenttest.Misuse(t, "impala", agenttest.Variant{Maker: maker(t, Defaults()), Spec: agenttest.Choice()})
}

// TestAbsentRows trains in worlds whose agents come and go.
func TestAbsentRows(t *testing.T) {
	makers := map[string]agents.Maker{"impala": maker(t, Defaults()), "appo": maker(t, APPODefaults())}
	agenttest.Absent(t, makers, false, 60)
	agenttest.Haunted(t, makers, 4)
}

// TestStepIsTheFormula compares targets, advantages and the policy's loss of a step with those of
// package rlmath, whose vectors are published, on-policy and with ratios that are known.
func TestStepIsTheFormula(t *testing.T) {
	n := 0
	for name, c := range sorted.All(map[string]Config{"impala": Defaults(), "appo": APPODefaults()}) {
		for _, shift := range []float32{0, float32(math.Ln2), -float32(math.Ln2)} {
			c := c
			c.NSteps, c.GAELambda, c.NormalizeAdvantage, c.VTrace.ClipPGRho = 6, 0.9, false, 1.5
			v := agenttest.Toys(t, 3, agenttest.Choice())
			m, err := NewMaker(c)
			if err != nil {
				t.Fatal(err)
			}
			a := agenttest.Agent(t, m, v, testengines.Fastest(t), 1)
			x := agenttest.Actor(t, a, agents.Explore, 3)
			if err := agents.Collect(t.Context(), v, agenttest.Stranger{Actor: x, Shift: shift}, a.Recorder(), rng.New(4), 0, 6, nil); err != nil {
				t.Fatal(err)
			}
			l := a.Learner().(*learner)
			r := l.Rollout
			reward, discount := slices.Clone(r.Reward), slices.Clone(r.Discount)
			values := slices.Clone(r.Value)
			metrics, err := a.Learner().Step(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			rho := math.Exp(float64(shift))
			rlmath.FoldTruncation(reward, discount, r.Final, r.Ended)
			vs, pg, weights := make([]float64, 18), make([]float64, 18), slices.Repeat([]float64{rho}, 18)
			clip := 1.5
			if c.ClipRange > 0 {
				// Whatever pg is, it is the ratio's minimum times the advantage.
				clip = rho
			}
			rlmath.VTrace(vs, pg, reward, discount, values, slices.Concat(values[3:], r.Bootstrap), weights, rlmath.VTraceConfig{Lambda: 0.9, ClipRho: 1, ClipC: 1, ClipPGRho: clip}, 3)
			loss := 0.0
			for i := range vs {
				want := pg[i]
				if c.ClipRange > 0 {
					want /= rho
					loss -= min(rho*want, min(max(rho, 0.9), 1.1)*want) / 18
				} else {
					loss -= want * float64(l.logProb[i]) / 18
				}
				if n++; math.Abs(l.Target[i]-vs[i]) > 1e-4*(1+math.Abs(vs[i])) || math.Abs(l.Advantage[i]-want) > 1e-4*(1+math.Abs(want)) {
					t.Errorf("%s, shift %g, sample %d: target %g and advantage %g, expected %g and %g", name, shift, i, l.Target[i], l.Advantage[i], vs[i], want)
				}
			}
			for tag, want := range sorted.All(map[string]float64{"train/mean_rho": rho, "train/policy_loss": loss}) {
				if n++; math.Abs(metrics[tag]-want) > 1e-4*(1+math.Abs(want)) {
					t.Errorf("%s, shift %g: %s is %g, expected %g", name, shift, tag, metrics[tag], want)
				}
			}
		}
	}
	if n != 6*20 {
		t.Errorf("%d comparisons", n)
	}
}

// TestJoinedUnrollsAreTheRollout: a learner that is given the unrolls of two agents that act takes
// the step of one that has recorded all rows by itself, bit for bit.
func TestJoinedUnrollsAreTheRollout(t *testing.T) {
	n := 0
	for what, x := range sorted.All(variants(t)) {
		e := testengines.Fastest(t)
		v := agenttest.Toys(t, 4, x.Spec)
		whole := agenttest.NewTraining(t, agenttest.Agent(t, x.Maker, v, e, 1), v)
		whole.Run(t, 6)
		whole.Round(t)
		l := whole.Agent.Learner().(*learner)
		u, err := (&learner{Learner: l.Learner, c: l.c, logMu: l.logMu}).TakeUnroll(l.arrays())
		if err != nil {
			t.Fatal(err)
		}
		l.Rollout.T = l.Rollout.Rounds
		parts := [2]*agents.Unroll{{Rows: 1, Arrays: map[string]any{}}, {Rows: 3, Arrays: map[string]any{}}}
		for name, a := range sorted.All(u.Arrays) {
			rounds := 7
			if name == "bootstrap" {
				rounds = 1
			}
			parts[0].Arrays[name], parts[1].Arrays[name] = cut(a, rounds, 0, 1), cut(a, rounds, 1, 4)
		}
		other := agenttest.Agent(t, x.Maker, v, e, 1).Learner().(*learner)
		for i, first := range []int{0, 1} {
			if other.Ready() {
				t.Errorf("%s: ready after %d of 2 unrolls", what, i)
			}
			if err := other.Join(parts[i], first); err != nil {
				t.Fatal(err)
			}
		}
		for _, l := range []*learner{l, other} {
			if _, err := l.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for i, s := range l.Params.Segments() {
			if n++; !slices.Equal(s.Floats(), other.Params.Segments()[i].Floats()) {
				t.Errorf("%s: other parameters than by recording", what)
			}
		}
		short := &agents.Unroll{Rows: 2, Arrays: u.Arrays}
		agenttest.Has(t, other.Join(short, 0), "impala: join", "of other length than 2 rows")
		agenttest.Has(t, other.Join(u, 1), "impala: join", "4 rows from row 1 on, and there are 4")
		delete(u.Arrays, "reward")
		agenttest.Has(t, other.Join(u, 0), "the unroll has no \"reward\"")
	}
	if n < 5 {
		t.Errorf("%d comparisons", n)
	}
}

// cut returns the elements of the rows from first to last of four.
func cut(a any, rounds, first, last int) any {
	switch x := a.(type) {
	case []bool:
		return cutRows(x, rounds, first, last)
	case []byte:
		return cutRows(x, rounds, first, last)
	case []int64:
		return cutRows(x, rounds, first, last)
	case []float64:
		return cutRows(x, rounds, first, last)
	}
	panic("another type")
}

func cutRows[E any](x []E, rounds, first, last int) (y []E) {
	size := len(x) / (4 * rounds)
	for t := range rounds {
		y = append(y, x[(4*t+first)*size:(4*t+last)*size]...)
	}
	return y
}

// TestActing: an agent that acts has no programs that learn.
func TestActing(t *testing.T) {
	v := agenttest.Toys(t, 2, agenttest.Choice())
	a := agenttest.Agent(t, maker(t, Defaults()), v, testengines.Fastest(t), 1, func(s *agents.Setup) { s.Acting = true })
	r := agenttest.NewTraining(t, a, v)
	for range 7 {
		r.Round(t)
	}
	_, err := a.Learner().Step(t.Context())
	agenttest.Has(t, err, "impala: learn: the agent was made to act only")
	l := a.Learner().(*learner)
	l.Adopt(41)
	if u, err := l.Unroll(); err != nil || u.Version != 41 || u.Rows != 2 || l.Ready() {
		t.Errorf("unroll %v, %v", u, err)
	}
}

// TestLearns CartPole: a reduced form of "onnxrl bench learn cartpole_appo".
func TestLearns(t *testing.T) {
	c := APPODefaults()
	c.NEpochs, c.Gamma, c.GAELambda, c.LearningRate, c.ClipRange, c.EntCoef, c.MaxGradNorm = 10, 0.98, 0.9, 1e-3, 0.2, 0, 0.5
	m, err := NewMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	cartpoles := func() *vector.Local {
		return agenttest.Vector(t, 8, func() (*classic.Env, error) { return classic.NewCartPole(classic.CartPoleDefaults()) })
	}
	v := cartpoles()
	r := agenttest.NewTraining(t, agenttest.Agent(t, m, v, testengines.Fastest(t), 1), v)
	best := 0.0
	for r.Done*8 < 150_000 && best < 475 {
		for range 40 {
			r.Update(t)
		}
		best = max(best, agenttest.Return(t, r.Agent, cartpoles(), 16))
	}
	t.Logf("%.0f after %d env steps", best, r.Done*8)
	if best < 475 {
		t.Errorf("the best greedy policy balances for %.1f steps, expected 475", best)
	}
}
