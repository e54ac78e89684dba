package sac

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/diversity"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// small is a configuration that learns from the beginning on, with little work.
func small() Config {
	c := Defaults()
	c.Hidden, c.BatchSize, c.BufferSize, c.LearningStarts = []int{16, 16}, 8, 60, 12
	return c
}

var suite = agenttest.ActorCritic[Config]{
	Small: small, Maker: NewMaker,
	Parts: func(c *Config) agenttest.Parts {
		return agenttest.Parts{Settings: &c.Settings, Config: &c.Config, Options: &c.Options}
	},
	Learner: func(a agents.Agent) *offpolicy.Learner { return &a.Learner().(*learner).Learner },
}

// training begins a run of a small configuration with changes.
func training(t testing.TB, n int, spec envs.Spec, change func(c *Config)) (*agenttest.Training, *learner) {
	r, _ := suite.Training(t, n, spec, change)
	return r, r.Agent.Learner().(*learner)
}

// diverse pays for skills of a toy that can be told from its fields and its actions.
func diverse(c *Config) {
	d := diversity.Defaults()
	d.Features, d.Hidden, d.Embedding = []string{"x", "kind", "action"}, []int{8}, 4
	c.Diversity = &d
}

// TestEditDiversity changes what a learner takes while it lives.
func TestEditDiversity(t *testing.T) {
	from, to := small(), small()
	diverse(&from)
	diverse(&to)
	to.Diversity.Beta, to.Diversity.LearningRate, to.Diversity.Normalize = 2, 1e-2, false
	makers := [2]agents.Maker{}
	for i, c := range []Config{from, to} {
		var err error
		if makers[i], err = NewMaker(c); err != nil {
			t.Fatal(err)
		}
	}
	r, before := agenttest.Edited(t, agenttest.Skilled(agenttest.Box()), makers[0], makers[1], 30)
	if before["diversity/beta"] != 0.5 || r.Last["diversity/beta"] != 2 || before["diversity/scale"] == 1 || r.Last["diversity/scale"] != 1 {
		t.Errorf("%v, then %v", before, r.Last)
	}
	var rebuild *agents.RebuildError
	other := *to.Diversity
	other.Kind, to.Diversity = diversity.InfoNCE, &other
	if err := r.Agent.Learner().(agents.Editor).Edit(to, 300); !errors.As(err, &rebuild) || rebuild.Path != "diversity.kind" {
		t.Error(err)
	}
	if err := r.Agent.Learner().(agents.Editor).Edit(small(), 300); !errors.As(err, &rebuild) || rebuild.Path != "diversity" {
		t.Error(err)
	}
}

// TestActionNoise: noise is added to what the policy draws, and the densities of what comes of it
// are not claimed to be known.
func TestActionNoise(t *testing.T) {
	draw := func(n *offpolicy.Noise) *vector.Decision {
		r, _ := training(t, 64, agenttest.Box(), func(c *Config) { c.LearningStarts, c.ActionNoise = 0, n })
		d, err := r.Actor.Act(t.Context(), rng.New(9), r.Env.Batch())
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	plain, noisy, square, n := draw(nil), draw(&offpolicy.Noise{Kind: offpolicy.Normal, Sigma: 0.1, Dt: 1}), 0.0, 0.0
	for i, x := range plain.Drawn.Float32s() {
		y := noisy.Drawn.Float32s()[i]
		if y < -1 || y > 1 {
			t.Errorf("an action of %g", y)
		}
		if max(y, -y) < 1 {
			square, n = square+float64((y-x)*(y-x)), n+1
		}
	}
	if std := math.Sqrt(square / n); math.Abs(std-0.1) > 0.025 || n < 80 || noisy.LogProb != nil || plain.LogProb == nil {
		t.Errorf("noise of %g over %g actions, expected 0.1", std, n)
	}
}

// TestActionNoiseOff: noise of the kind none, or without a deviation, is none: actions and their
// densities have the same bits, Discrete ones take it, and weights and V-trace do, too.
func TestActionNoiseOff(t *testing.T) {
	for what, n := range sorted.All(map[string]offpolicy.Noise{"none": {Kind: offpolicy.None, Sigma: 1, Dt: 1}, "sigma": {Kind: offpolicy.Normal, Dt: 1}, "ou": {Kind: offpolicy.OU, Theta: 1, Dt: 1}}) {
		for _, corrected := range []bool{false, true} {
			draw := func(n *offpolicy.Noise) *vector.Decision {
				r, _ := training(t, 4, agenttest.Box(), func(c *Config) {
					if c.LearningStarts, c.ActionNoise = 0, n; corrected {
						c.VTrace.Length = 2
					}
				})
				d, err := r.Actor.Act(t.Context(), rng.New(9), r.Env.Batch())
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			plain, off := draw(nil), draw(&n)
			if !slices.Equal(plain.Drawn.Float32s(), off.Drawn.Float32s()) || !slices.Equal(plain.LogProb, off.LogProb) || off.LogProb == nil {
				t.Errorf("%s, corrected %t: %v %v, expected %v %v", what, corrected, off.Drawn.Float32s(), off.LogProb, plain.Drawn.Float32s(), plain.LogProb)
			}
		}
		training(t, 2, agenttest.Choice(), func(c *Config) { c.ActionNoise = &n })
	}
}

// TestNoiseHasADensity: with weights or V-trace, noise is drawn before squashing, and what is
// recorded is the density of N(μ, σ² + sigma²) squashed: the ratios of the policy's density to it
// have a mean of 1.
func TestNoiseHasADensity(t *testing.T) {
	const envs, rounds, sigma = 64, 120, 0.6
	compared := 0
	for what, change := range sorted.All(map[string]func(c *Config){"plain": func(*Config) {}, "gsde": func(c *Config) { c.UseSDE, c.LogStdInit = true, -0.5 }}) {
		r, l := training(t, envs, agenttest.Box(), func(c *Config) {
			c.LearningStarts, c.BufferSize, c.VTrace.Length, c.ActionNoise, c.LogStd = 0, 600, 2, &offpolicy.Noise{Kind: offpolicy.Normal, Sigma: sigma, Dt: 1}, LogStd{"clip", -1, -0.5}
			change(c)
		})
		a := r.Actor
		whole, n, square := 0.0, 0.0, 0.0
		for round := range rounds {
			// gSDE's matrices stay between learner steps; here each round has its own.
			l.Updates = int64(round)
			d, err := a.Act(t.Context(), rng.New(uint64(round)), r.Env.Batch())
			if err != nil {
				t.Fatal(err)
			}
			for i, mu := range d.LogProb {
				pi, want := 0.0, 0.0
				for k := range l.Networks.Frame.Dims {
					at := i*l.Networks.Frame.Dims + k
					u, m, s := math.Atanh(float64(d.Drawn.Float32s()[at])), float64(d.Mean[at]), math.Exp(float64(d.LogStd[at]))
					det := math.Log(1 - math.Pow(math.Tanh(u), 2))
					normal := func(s float64) float64 { return -(u-m)*(u-m)/2/s/s - math.Log(s*math.Sqrt(2*math.Pi)) - det }
					pi, want = pi+normal(s), want+normal(math.Hypot(s, sigma))
				}
				if math.Abs(want-float64(mu)) < 0.01 {
					compared++
				}
				whole, n = whole+math.Exp(pi-float64(mu)), n+1
				square += math.Exp(2 * (pi - float64(mu)))
			}
		}
		mean := whole / n
		if deviation := math.Sqrt((square/n - mean*mean) / n); math.Abs(mean-1) > 4*deviation || deviation > 0.03 {
			t.Errorf("%s: ratios have a mean of %g ± %g, expected 1", what, mean, deviation)
		}
	}
	if compared < 2*envs*rounds*99/100 {
		t.Errorf("%d of %d densities are those of N(μ, σ² + sigma²)", compared, 2*envs*rounds)
	}
}

// variants go through everything between them.
func variants(t testing.TB) map[string]agenttest.Variant {
	list, tiny := map[string]agenttest.Variant{}, agenttest.TinyEncoder(t, 0)
	for what, x := range sorted.All(map[string]struct {
		spec   envs.Spec
		change func(c *Config)
	}{
		"box":                 {agenttest.Box(), func(*Config) {}},
		"float64":             {agenttest.Wide(), func(c *Config) { c.EntCoef, c.MaxGradNorm, c.LogStd = EntCoef{Value: 0.1}, 0.5, LogStd{"tanh", -5, 2} }},
		"gsde":                {agenttest.Box(), func(c *Config) { c.UseSDE, c.SDESampleFreq, c.TrainFreq, c.GradientSteps = true, 3, 5, -1 }},
		"gsde from the start": {agenttest.Box(), func(c *Config) { c.UseSDE, c.UseSDEAtWarmup, c.ClipMean = true, true, 0 }},
		"cql": {agenttest.Box(), func(c *Config) {
			c.Conservative = &Conservative{Weight: 5, NActionSamples: 3, AlphaLearningRate: 1e-3, AlphaThreshold: 1, InitialAlpha: 1}
		}},
		"cql, series": {agenttest.Series(t), func(c *Config) {
			c.Freeze, c.Encoder = []string{"*encoder*"}, tiny
			c.Conservative = &Conservative{Weight: 1, NActionSamples: 2, SoftQBackup: true, InitialAlpha: 1}
		}},
		"bc":            {agenttest.Box(), func(c *Config) { c.BC = &offpolicy.BC{Alpha: 2.5} }},
		"discrete, bc":  {agenttest.Choice(), func(c *Config) { c.BC = &offpolicy.BC{Alpha: 1} }},
		"discrete, cql": {agenttest.Choice(), func(c *Config) { c.Conservative = &Conservative{Weight: 1, NActionSamples: 1, InitialAlpha: 1} }},
		"v-trace":       {agenttest.Box(), func(c *Config) { c.VTrace.Length = 4 }},
		"episodes":      {agenttest.Box(), func(c *Config) { c.TrainFreq, c.GradientSteps = offpolicy.EachEpisode, -1 }},
		"noise":         {agenttest.Box(), func(c *Config) { c.ActionNoise = &offpolicy.Noise{Kind: offpolicy.OU, Sigma: 0.3, Theta: 0.2, Dt: 1} }},
		"v-trace, noise": {agenttest.Box(), func(c *Config) {
			c.VTrace.Length, c.ActionNoise = 4, &offpolicy.Noise{Kind: offpolicy.Normal, Sigma: 0.1, Dt: 1}
		}},
		"privileged": {agenttest.Box(), func(c *Config) { c.Privileged = []string{"kind"} }},
		"diversity": {agenttest.Skilled(agenttest.Box()), func(c *Config) {
			diverse(c)
			c.Diversity.BetaSchedule.Kind, c.Diversity.BetaSchedule.Steps = "linear", 100
		}},
		"discrete, diversity, v-trace": {agenttest.Skilled(agenttest.Choice()), func(c *Config) {
			diverse(c)
			c.VTrace.Length, c.Diversity.Kind, c.Diversity.BatchSize, c.TrainFreq, c.GradientSteps = 4, diversity.InfoNCE, 4, 5, 3
		}},
		"discrete":              {agenttest.Choice(), func(c *Config) { c.NSteps, c.TargetUpdateInterval = 3, 2 }},
		"discrete, v-trace":     {agenttest.Choice(), func(c *Config) { c.VTrace.Length, c.Critics, c.TargetEntropy = 2, 3, TargetEntropy{Value: 0.5} }},
		"constraints":           {agenttest.Costly(agenttest.Box()), constrain},
		"discrete, constraints": {agenttest.Costly(agenttest.Choice()), func(c *Config) { constrain(c); c.NSteps, c.Critics = 2, 1 }},
		"series": {agenttest.Series(t), func(c *Config) {
			c.CriticHidden, c.LearningRateSchedule.Kind, c.LearningRateSchedule.Steps = []int{8}, "linear", 100
			c.Encoder = tiny
		}},
		"assets": {agenttest.Assets(t), func(c *Config) { c.Critics, c.Optimizer.Kind, c.Encoder, c.CrossAsset.NHeads = 1, "rmsprop", tiny, 2 }},
		"assets, diversity": {agenttest.Skilled(agenttest.Assets(t)), func(c *Config) {
			diverse(c)
			c.Diversity.Features, c.Encoder, c.CrossAsset.NHeads = []string{"position"}, tiny, 2
		}},
		"assets, gsde":    {agenttest.Assets(t), func(c *Config) { c.UseSDE, c.Encoder, c.CrossAsset.NHeads = true, tiny, 2 }},
		"lora, series":    {agenttest.Series(t), func(c *Config) { c.Encoder, c.LoRA = tiny, &lora.Config{Rank: 2} }},
		"lora, assets":    {agenttest.Assets(t), func(c *Config) { c.Encoder, c.CrossAsset.NHeads, c.LoRA = tiny, 2, &lora.Config{Rank: 3, Alpha: 6} }},
		"frozen encoders": {agenttest.Series(t), func(c *Config) { c.Freeze, c.Encoder = []string{"*encoder*"}, tiny }},
	}) {
		list[what] = suite.Variant(t, x.spec, x.change)
	}
	return list
}

func TestLoRA(t *testing.T) { agenttest.LoRA(t, variants(t), 24) }

func TestResume(t *testing.T) {
	longtest.Nightly(t)
	agenttest.SplitSmall(t)
	agenttest.ResumeEverywhere(t, variants(t), 18, 32, 10)
}

func TestTrainingAllocatesNothing(t *testing.T) {
	longtest.Slow(t)
	agenttest.SplitSmall(t)
	agenttest.NoAllocations(t, variants(t), 60)
}

func TestWarmUp(t *testing.T) {
	suite.WarmUp(t)
}

func TestMetrics(t *testing.T) {
	suite.Metrics(t, "train/actor_loss", "train/critic_loss", "train/ent_coef", "train/ent_coef_loss", "train/entropy", "train/learning_rate", "train/loss", "train/n_updates")
}

func TestNothingFlowsAcross(t *testing.T) {
	suite.NothingFlowsAcross(t, 12, nil)
	suite.NothingFlowsAcross(t, 12, func(c *Config) { c.UseSDE = true })
}

func TestSaturatedActionsKeepToTheBounds(t *testing.T) {
	suite.SaturatedActions(t, "actor.mean.weight")
}

func TestEncoderFromFile(t *testing.T) {
	suite.EncoderFromFile(t, "actor", "critic", "target.critic")
}

// BenchmarkPendulum measures training at the defaults: two layers of 256, batches of 256, one
// update for each env step.
func BenchmarkPendulum(b *testing.B) { agenttest.BenchmarkPendulum(b, benchmarked(b), 110) }

func BenchmarkUpdateAgainstProducts(b *testing.B) {
	agenttest.BenchmarkUpdatesAgainstProducts(b, benchmarked(b), 600, 1, func(a agents.Agent) (*offpolicy.Learner, func() error) {
		l, sum := a.Learner().(*learner), &losses{}
		return &l.Learner, func() error { return l.update(1, sum) }
	})
}

func benchmarked(b *testing.B) agents.Maker {
	c := Defaults()
	c.BufferSize = 100_000
	m, err := NewMaker(c)
	if err != nil {
		b.Fatal(err)
	}
	return m
}
