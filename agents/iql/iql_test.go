package iql

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/runtime/longtest"
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

// of makes a configuration that of another kind.
func of(c *Config, kind Config) {
	c.Advantage, c.NActionSamples, c.WeightTemp, c.MaxWeight = kind.Advantage, kind.NActionSamples, kind.WeightTemp, kind.MaxWeight
}

// variants go through everything between them.
func variants(t testing.TB) map[string]agenttest.Variant {
	list, tiny := map[string]agenttest.Variant{}, agenttest.TinyEncoder(t, 0)
	for what, x := range sorted.All(map[string]struct {
		spec   envs.Spec
		change func(c *Config)
	}{
		"box":             {agenttest.Box(), func(*Config) {}},
		"float64":         {agenttest.Wide(), func(c *Config) { c.MaxGradNorm, c.NSteps, c.Expectile = 0.5, 3, 0.9 }},
		"privileged":      {agenttest.Box(), func(c *Config) { c.Privileged = []string{"kind"} }},
		"episodes":        {agenttest.Box(), func(c *Config) { c.TrainFreq, c.GradientSteps = offpolicy.EachEpisode, -1 }},
		"discrete":        {agenttest.Choice(), func(c *Config) { c.TrainFreq, c.GradientSteps, c.Critics, c.CriticHidden = 3, 2, 1, []int{8} }},
		"series":          {agenttest.Series(t), func(c *Config) { c.Encoder = tiny }},
		"assets":          {agenttest.Assets(t), func(c *Config) { c.Optimizer.Kind, c.Encoder, c.CrossAsset.NHeads = "rmsprop", tiny, 2 }},
		"lora, series":    {agenttest.Series(t), func(c *Config) { c.Encoder, c.LoRA = tiny, &lora.Config{Rank: 2} }},
		"frozen encoders": {agenttest.Series(t), func(c *Config) { c.Freeze, c.Encoder = []string{"*encoder*"}, tiny }},
		"awac":            {agenttest.Wide(), func(c *Config) { of(c, AWACDefaults()); c.NActionSamples = 3 }},
		"awac, discrete":  {agenttest.Choice(), func(c *Config) { of(c, AWACDefaults()) }},
		"awac, assets":    {agenttest.Assets(t), func(c *Config) { of(c, AWACDefaults()); c.Encoder, c.CrossAsset.NHeads = tiny, 2 }},
		"awr":             {agenttest.Box(), func(c *Config) { of(c, AWRDefaults()); c.NSteps = 5 }},
		"awr, discrete":   {agenttest.Choice(), func(c *Config) { of(c, AWRDefaults()); c.NSteps = 2 }},
	}) {
		list[what] = suite.Variant(t, x.spec, x.change)
	}
	if len(list) != 14 {
		t.Fatal(len(list), "variants")
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
	suite.Metrics(t, "train/actor_loss", "train/critic_loss", "train/learning_rate", "train/loss", "train/n_updates", "train/weight_mean")
}

func TestPolicyIsTheActor(t *testing.T) {
	longtest.Slow(t)
	agenttest.PolicyIsTheActor(t, variants(t), nil)
}

func TestNothingFlowsAcross(t *testing.T) { suite.NothingFlowsAcross(t, 12, nil) }

func TestSaturatedActionsKeepToTheBounds(t *testing.T) {
	suite.SaturatedActions(t, "actor.mean.weight")
}

func TestEncoderFromFile(t *testing.T) {
	suite.EncoderFromFile(t, "actor", "critic", "target.critic")
}

func TestWholePolicyFromFile(t *testing.T) { suite.PolicyFromFile(t, agenttest.Box(), 2) }

// TestBadConfigs has values that mean nothing.
func TestBadConfigs(t *testing.T) {
	agenttest.BadConfigs(t, Kind, map[string][]string{
		"expectile: 1":                    {"expectile", "between 0 and 1"},
		"max_weight: -1\nweight_temp: -1": {"max_weight", "weight_temp"},
		"advantage: q":                    {"advantage", "one of expectile, policy, return"},
		"n_action_samples: 0":             {"n_action_samples"},
		"vtrace: {length: 2}":             {"unknown key"},
		"n_critics: 0":                    {"n_critics"},
		"gamma: 2\ntau: -1":               {"gamma", "tau"},
		"learning_rate: 0":                {"learning_rate"},
	})
}

// TestWeights: the actor's weights are exp(weight_temp·u), cut off at max_weight.
func TestWeights(t *testing.T) {
	r, _ := suite.Training(t, 2, agenttest.Box(), func(c *Config) { c.WeightTemp, c.MaxWeight = 1, 0.55 })
	r.Run(t, 30)
	l, cut, whole := r.Agent.Learner().(*learner), 0, 0
	for _, w := range l.weights {
		switch {
		case math.Abs(float64(w)-0.55) < 1e-6:
			cut++
		case w > 0 && w < 0.55:
			whole++
		default:
			t.Errorf("a weight of %v", w)
		}
	}
	if cut == 0 || whole == 0 {
		t.Errorf("%d weights are cut off, and %d are not: %v", cut, whole, l.weights)
	}
}
