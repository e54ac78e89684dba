package es

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// limited says of a spec that its episodes end.
func limited(s envs.Spec) envs.Spec {
	s.MaxSteps = 1000
	return s
}

// openAIMaker and cmaMaker make agents of few parameters, which change edits.
func openAIMaker(t testing.TB, change func(c *OpenAIConfig)) agents.Maker {
	t.Helper()
	c := OpenAIDefaults()
	c.Population, c.Hidden, c.Sigma = 6, []int{5}, 0.1
	change(&c)
	m, err := NewOpenAIMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func cmaMaker(t testing.TB, change func(c *CMAConfig)) agents.Maker {
	t.Helper()
	c := CMADefaults()
	c.Population, c.Hidden = 7, []int{3}
	change(&c)
	m, err := NewCMAMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestResume(t *testing.T) {
	longtest.Slow(t)
	o, c := openAIMaker(t, func(*OpenAIConfig) {}), cmaMaker(t, func(*CMAConfig) {})
	m := openAIMaker(t, func(c *OpenAIConfig) {
		c.Population, c.EvalEpisodes, c.Encoder = 4, 2, agenttest.TinyEncoder(t, 0)
	})
	agenttest.ResumeEverywhere(t, map[string]agenttest.Variant{
		"openai box": {Maker: o, Spec: limited(agenttest.Box())}, "openai choice": {Maker: o, Spec: limited(agenttest.Choice())}, "openai wide": {Maker: o, Spec: limited(agenttest.Wide())},
		"openai series": {Maker: m, Spec: limited(agenttest.Series(t))}, "openai assets": {Maker: m, Spec: limited(agenttest.Assets(t))},
		"cma box": {Maker: c, Spec: limited(agenttest.Box())}, "cma choice": {Maker: c, Spec: limited(agenttest.Choice())},
	}, 70, 130, 2)
}

func TestNoAllocations(t *testing.T) {
	o := openAIMaker(t, func(*OpenAIConfig) {})
	agenttest.NoAllocations(t, map[string]agenttest.Variant{"box": {Maker: o, Spec: limited(agenttest.Box())}, "choice": {Maker: o, Spec: limited(agenttest.Choice())}}, 60)
}

// TestThreads: the bits do not depend on how many goroutines draw, act and add.
func TestThreads(t *testing.T) {
	e, compared := testengines.Fastest(t), 0
	makers := map[string]agents.Maker{
		// More parameters than one block has.
		"openai": openAIMaker(t, func(c *OpenAIConfig) { c.Hidden = []int{80, 80} }), "cma": cmaMaker(t, func(*CMAConfig) {}),
	}
	for name, m := range sorted.All(makers) {
		var want []float32
		for _, threads := range []int{1, 2, 3} {
			v := agenttest.Toys(t, 3, limited(agenttest.Box()))
			r := agenttest.NewTraining(t, agenttest.Agent(t, m, v, e, threads), v)
			for range 4 {
				r.Update(t)
			}
			_, p := r.Agent.Learner().Policy()
			got := p.Segment(models.Trainable).Floats()
			if want == nil {
				want = slices.Clone(got)
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: other bits by %d threads", name, threads)
			}
			compared++
		}
	}
	if compared != 6 {
		t.Errorf("%d comparisons", compared)
	}
}

func TestCentredRanks(t *testing.T) {
	got := make([]float64, 5)
	centredRanks(got, []float64{3, -1, 3, 100, 0}, make([]int, 5))
	if want := []float64{0.125, -0.5, 0.125, 0.5, -0.25}; !slices.Equal(got, want) {
		t.Errorf("ranks %v, expected %v", got, want)
	}
	centredRanks(got, []float64{7, 7, 7, 7, 7}, make([]int, 5))
	if !slices.Equal(got, make([]float64, 5)) {
		t.Errorf("equal values have ranks %v", got)
	}
}

// TestUpdateIsTheFormula compares a step with that of the paper, from members that were written
// down, and Adam's first step, which is the sign of the gradient.
func TestUpdateIsTheFormula(t *testing.T) {
	e := testengines.Fastest(t)
	v := agenttest.Toys(t, 2, limited(agenttest.Box()))
	m := openAIMaker(t, func(c *OpenAIConfig) {
		c.Population, c.Hidden, c.Optimizer.Kind, c.LearningRate = 8, []int{80, 60}, "sgd", 0.5
	})
	a := agenttest.Agent(t, m, v, e, 2)
	l := a.Learner().(*learner)
	o := l.strategy.(*openAI)
	before := slices.Clone(o.centre.Floats())
	n := len(before)
	members := make([][]float32, 8)
	for k := range members {
		members[k] = make([]float32, n)
		o.write(k, members[k], make([]float32, block))
	}
	sum, squares := 0.0, 0.0
	for i := range n {
		up, down := float64(members[2][i]-before[i]), float64(members[3][i]-before[i])
		if math.Abs(up+down) > 1e-5 {
			t.Fatalf("parameter %d is moved by %g and by %g", i, up, down)
		}
		sum, squares = sum+up, squares+up*up
	}
	if std := math.Sqrt(squares / float64(n)); math.Abs(std-0.1) > 0.01 || math.Abs(sum/float64(n)) > 0.01 {
		t.Errorf("perturbations of deviation %g and mean %g, expected 0.1 and 0", std, sum/float64(n))
	}
	returns := []float64{4, 1, -2, 9, 0, 0, 30, 2}
	ranks := make([]float64, 8)
	centredRanks(ranks, returns, make([]int, 8))
	if err := o.step(t.Context(), returns, 0, agents.Metrics{}); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for i := range o.centre.Specs() {
		off, k := o.centre.Range(i)
		for at := off; at < off+k; at++ {
			g := 0.0
			for member, r := range ranks {
				g += r * float64(members[member][at]-before[at]) / 0.1
			}
			want := float64(before[at]) + 0.5*(g/8-0.005*float64(before[at]))
			if got := float64(o.centre.Floats()[at]); math.Abs(got-want) > 1e-5 {
				t.Fatalf("parameter %d is %g, expected %g", at, got, want)
			}
			compared++
		}
	}
	if compared < block || o.generation != 1 {
		t.Errorf("%d parameters compared, generation %d", compared, o.generation)
	}
	// The next generation has other members.
	again := make([]float32, n)
	copy(o.centre.Floats(), before)
	if o.write(2, again, make([]float32, block)); slices.Equal(again, members[2]) {
		t.Error("two generations have the same member")
	}
}

// TestMembersAct: each environment acts by the member that it measures, one after the other, and by
// the centre when there is none left.
func TestMembersAct(t *testing.T) {
	v := agenttest.Toys(t, 2, limited(agenttest.Box()))
	r := agenttest.NewTraining(t, agenttest.Agent(t, openAIMaker(t, func(*OpenAIConfig) {}), v, testengines.Fastest(t), 1), v)
	l, x := r.Agent.Learner().(*learner), r.Actor.(*explorer)
	centre := l.params.Segment(models.Trainable).Floats()
	want, seen := make([]float32, len(centre)), map[int]int{}
	for l.updates < 3 {
		r.Round(t)
		for e, row := range x.rows {
			if copy(want, centre); row.has.member >= 0 {
				l.strategy.write(row.has.member, want, make([]float32, block))
			}
			if !slices.Equal(row.params.Segment(models.Trainable).Floats(), want) {
				t.Fatalf("environment %d does not act by member %d", e, row.has.member)
			}
			seen[row.has.member]++
		}
		if l.Ready() {
			r.Learn(t)
		}
	}
	if len(seen) != 7 || seen[-1] == 0 {
		t.Errorf("rounds by member: %v, expected six members and the centre", seen)
	}
}

// TestRefuses what cannot be measured or does not fit.
func TestRefuses(t *testing.T) {
	e, n := testengines.Fastest(t), 0
	try := func(m agents.Maker, s envs.Spec, envs int) error {
		_, err := m.New(t.Context(), agents.Setup{Spec: s, Envs: envs, Engine: e, Threads: 1, Encoders: encoder.Kinds()})
		return err
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{try(openAIMaker(t, func(*OpenAIConfig) {}), agenttest.Box(), 2), "openai_es: the episodes of toy have no limit, and a member is measured by whole ones; give them one by wrappers.time_limit"},
		{try(openAIMaker(t, func(*OpenAIConfig) {}), limited(agenttest.Box()), 7), "openai_es: 7 environments (train.num_envs), and a generation of 6 members has 6 episodes"},
		{try(cmaMaker(t, func(c *CMAConfig) { c.Hidden = []int{64, 64} }), limited(agenttest.Box()), 2), "cma_es: the policy has 4738 parameters to perturb, and CMA-ES keeps the covariance of each with each: expected at most 2048; openai_es has no limit"},
		{try(openAIMaker(t, func(c *OpenAIConfig) { c.Encoder = agenttest.TinyEncoder(t, 0.1) }), limited(agenttest.Series(t)), 2), "dropout of 0.1 is asked for"},
		{try(openAIMaker(t, func(c *OpenAIConfig) { c.Freeze = []string{"*"} }), limited(agenttest.Box()), 2), "leave no parameter to perturb"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v does not say %q", c.err, c.want)
		}
		n++
	}
	bad := OpenAIDefaults()
	bad.Population, bad.Sigma, bad.LearningRate, bad.EvalEpisodes, bad.Privileged = 5, 0, -1, 0, []string{"x"}
	_, err := NewOpenAIMaker(bad)
	for _, want := range []string{"population", "sigma", "learning_rate", "n_eval_episodes", "privileged"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
		n++
	}
	worlds := agenttest.Shifts(t, 1, true, false)
	r := agenttest.NewTraining(t, agenttest.Agent(t, openAIMaker(t, func(*OpenAIConfig) {}), worlds, e, 1, func(s *agents.Setup) { s.Spec.MaxSteps = 10 }), worlds)
	d, err := r.Actor.Act(t.Context(), rng.New(1), worlds.Batch())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Agent.Recorder().Begin(worlds.Batch(), d); err == nil || !strings.Contains(err.Error(), "a world of several agents") {
		t.Errorf("several agents: %v", err)
	}
	if n != 10 {
		t.Errorf("%d cases", n)
	}
}

// TestLearns CartPole by both strategies: a reduced form of "onnxrl bench learn cartpole_*_es".
func TestLearns(t *testing.T) {
	longtest.Slow(t)
	ran := 0
	for name, m := range sorted.All(map[string]agents.Maker{
		"openai": openAIMaker(t, func(c *OpenAIConfig) { c.Population, c.Hidden, c.LearningRate = 32, []int{16}, 0.03 }),
		"cma":    cmaMaker(t, func(c *CMAConfig) { c.Population, c.Hidden = 0, []int{8} }),
	}) {
		v := agenttest.Vector(t, 8, func() (*classic.Env, error) { return classic.NewCartPole(classic.CartPoleDefaults()) })
		r := agenttest.NewTraining(t, agenttest.Agent(t, m, v, testengines.Fastest(t), 1), v)
		before := agenttest.Return(t, r.Agent, v, 40)
		rounds := r.Done
		for r.Done < 40000 && agenttest.Return(t, r.Agent, v, 40) < 475 {
			for range 5 {
				r.Update(t)
			}
		}
		after := agenttest.Return(t, r.Agent, v, 40)
		t.Logf("%s: %.0f before, %.0f after %d env steps", name, before, after, 8*(r.Done-rounds))
		if before > 200 || after < 475 {
			t.Errorf("%s: a return of %g before and of %g after, expected 475 at least", name, before, after)
		}
		ran++
	}
	if ran != 2 {
		t.Errorf("%d strategies", ran)
	}
}

// BenchmarkCartPole measures complete training in 16 environments, a round for each iteration.
func BenchmarkCartPole(b *testing.B) {
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			v := agenttest.Vector(b, 16, func() (*classic.Env, error) { return classic.NewCartPole(classic.CartPoleDefaults()) })
			m := openAIMaker(b, func(c *OpenAIConfig) { c.Population, c.Hidden = 32, []int{64, 64} })
			r := agenttest.NewTraining(b, agenttest.Agent(b, m, v, testengines.Fastest(b), threads), v)
			r.Run(b, 500)
			b.ReportAllocs()
			for b.Loop() {
				r.Run(b, 1)
			}
			b.ReportMetric(16*float64(b.N)/b.Elapsed().Seconds(), "env-steps/s")
		})
	}
}
