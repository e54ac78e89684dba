package td3

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/diversity"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// small is a configuration that learns from the beginning on, with little work.
func small() Config { return shrunk(Defaults()) }

func shrunk(c Config) Config {
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

// variants go through everything between them.
func variants(t testing.TB) map[string]agenttest.Variant {
	list, tiny := map[string]agenttest.Variant{}, agenttest.TinyEncoder(t, 0)
	for what, x := range sorted.All(map[string]struct {
		spec   envs.Spec
		change func(c *Config)
	}{
		"box":         {agenttest.Box(), func(*Config) {}},
		"float64":     {agenttest.Wide(), func(c *Config) { c.MaxGradNorm, c.NSteps, c.ActionNoise.Kind = 0.5, 3, offpolicy.Normal }},
		"privileged":  {agenttest.Box(), func(c *Config) { c.Privileged = []string{"kind"} }},
		"ou":          {agenttest.Box(), func(c *Config) { c.ActionNoise.Kind, c.TrainFreq, c.GradientSteps = offpolicy.OU, 5, -1 }},
		"episodes":    {agenttest.Box(), func(c *Config) { c.TrainFreq, c.GradientSteps = offpolicy.EachEpisode, -1 }},
		"ddpg":        {agenttest.Box(), func(c *Config) { c.PolicyDelay, c.TargetPolicyNoise, c.Critics, c.CriticHidden = 1, 0, 1, []int{8} }},
		"bc":          {agenttest.Box(), func(c *Config) { c.BC = &offpolicy.BC{Alpha: 2.5} }},
		"bc, series":  {agenttest.Series(t), func(c *Config) { c.Freeze, c.Encoder, c.BC = []string{"*encoder*"}, tiny, &offpolicy.BC{Alpha: 1} }},
		"constraints": {agenttest.Costly(agenttest.Box()), func(c *Config) { c.Constraints = agenttest.Tails() }},
		"diversity": {agenttest.Skilled(agenttest.Box()), func(c *Config) {
			d := diversity.Defaults()
			d.Features, d.Hidden, d.Embedding = []string{"action"}, []int{8}, 4
			c.Diversity, c.TrainFreq, c.GradientSteps = &d, 2, 3
		}},
		"series": {agenttest.Series(t), func(c *Config) {
			c.LearningRateSchedule.Kind, c.LearningRateSchedule.Steps, c.Encoder = "linear", 100, tiny
		}},
		"assets": {agenttest.Assets(t), func(c *Config) {
			c.PolicyDelay, c.Optimizer.Kind, c.Encoder, c.CrossAsset.NHeads, c.ActionNoise.Kind = 3, "rmsprop", tiny, 2, offpolicy.OU
		}},
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
	longtest.Slow(t)
	agenttest.SplitSmall(t)
	// Between two learner steps, where train_freq leaves room for that, and after an update without
	// the actor's.
	agenttest.Resume(t, variants(t), 18, 32, 10)
}

// TestResumeOnEveryEngine is TestResume of all variants on every engine.
func TestResumeOnEveryEngine(t *testing.T) {
	longtest.Nightly(t)
	agenttest.SplitSmall(t)
	agenttest.ResumeEverywhere(t, variants(t), 18, 32, 10)
}

func TestTrainingAllocatesNothing(t *testing.T) {
	agenttest.SplitSmall(t)
	agenttest.NoAllocations(t, variants(t), 60)
}

func TestWarmUp(t *testing.T) {
	suite.WarmUp(t)
}

func TestMetrics(t *testing.T) {
	suite.Metrics(t, "train/actor_loss", "train/critic_loss", "train/learning_rate", "train/loss", "train/n_updates")
}

func TestPolicyIsTheActor(t *testing.T) { agenttest.PolicyIsTheActor(t, variants(t), nil) }

func TestNothingFlowsAcross(t *testing.T) {
	suite.NothingFlowsAcross(t, 18, nil)
	suite.NothingFlowsAcross(t, 12, func(c *Config) { *c = shrunk(DDPGDefaults()) })
}

func TestSaturatedActionsKeepToTheBounds(t *testing.T) {
	suite.SaturatedActions(t, "actor.action.weight")
}

func TestEncoderFromFile(t *testing.T) {
	suite.EncoderFromFile(t, "actor", "critic", "target.actor", "target.critic")
}

// TestWholePolicyFromFile trains a user's ONNX policy, whose outputs are actions before squashing.
func TestWholePolicyFromFile(t *testing.T) {
	suite.PolicyFromFile(t, agenttest.Box(), 2)
	suite.Refuse(t, agenttest.Box(), func(c *Config) { c.Policy = agenttest.File(t, 6, 4) }, "policy: it gives", "toy")
}

// BenchmarkPendulum measures training at the defaults: layers of 400 and 300, batches of 256, one
// update for each env step.
func BenchmarkPendulum(b *testing.B) { agenttest.BenchmarkPendulum(b, benchmarked(b), 110) }

// BenchmarkUpdateAgainstProducts has the actor updated every other time.
func BenchmarkUpdateAgainstProducts(b *testing.B) {
	agenttest.BenchmarkUpdatesAgainstProducts(b, benchmarked(b), 600, 2, func(a agents.Agent) (*offpolicy.Learner, func() error) {
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
