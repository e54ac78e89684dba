package ppo

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// dropping has dropout in an encoder of vectors.
func dropping(t testing.TB, c *Config) {
	k, err := configs.NewKinded("mlp", map[string]any{"hidden": []int{8}, "dropout": 0.5})
	if err != nil {
		t.Fatal(err)
	}
	c.Encoder = k
}

// TestDropout: log-probabilities agree between rollout and update.
func TestDropout(t *testing.T) {
	list := map[string]agenttest.Variant{}
	series := func(c *Config) { c.Encoder = agenttest.TinyEncoder(t, 0.5) }
	for name, x := range sorted.All(map[string]struct {
		spec   envs.Spec
		change func(c *Config)
	}{
		"masks":              {spec(envs.MultiDiscrete{N: []int{2, 3}}, true), func(c *Config) { dropping(t, c) }},
		"shared, normalised": {spec(envs.Discrete{N: 3}, false), func(c *Config) { dropping(t, c); c.Encoders, c.NormalizeValue = Shared, PopArt }},
		"lstm":               {spec(envs.NewBox(-1, 1, 2), false), func(c *Config) { dropping(t, c); c.Recurrent = Recurrent{LSTM, 5, 1, Separate, 4} }},
		"lstm, windows":      {windows(t, 0, envs.Discrete{N: 3}, false), func(c *Config) { series(c); c.Recurrent = Recurrent{LSTM, 5, 1, Shared, 0} }},
		"windows, V-trace":   {windows(t, 0, envs.Discrete{N: 3}, false), func(c *Config) { series(c); c.Correction = VTrace }},
		"assets":             {windows(t, 3, envs.MultiDiscrete{N: []int{2, 2, 2}}, true), func(c *Config) { series(c); c.CrossAsset.Dropout = 0.3 }},
		"across assets":      {windows(t, 3, envs.MultiDiscrete{N: []int{2, 2, 2}}, true), func(c *Config) { c.Encoder, c.CrossAsset.Dropout = agenttest.TinyEncoder(t, 0), 0.3 }},
	}) {
		c := lone()
		c.BatchSize, c.NEpochs = -1, 1
		x.change(&c)
		m, err := NewMaker(c)
		if err != nil {
			t.Fatal(err)
		}
		list[name] = agenttest.Variant{Maker: m, Spec: x.spec}
	}
	agenttest.Dropout(t, list, func(l *learner) (acted, learnt []float64) {
		m := l.learn
		for row, i := range m.samples {
			if m.valid[row] {
				acted, learnt = append(acted, float64(l.logProb[i])), append(learnt, float64(l.out.logProb[row]))
			}
		}
		return acted, learnt
	})
}
