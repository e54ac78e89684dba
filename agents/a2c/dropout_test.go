package a2c

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// dropping has dropout in the encoder of windows.
func dropping(t testing.TB) Config {
	return small(t, func(c *encoder.TimeCNNConfig) { c.Dropout = 0.5 })
}

// TestDropout: values and log-probabilities agree between rollout and update, which is cut into
// several runs.
func TestDropout(t *testing.T) {
	splitSmall(t)
	list := map[string]agenttest.Variant{}
	for name, change := range sorted.All(map[string]func(c *Config){
		"encoder":       func(*Config) {},
		"separate":      func(c *Config) { c.Encoders = Separate },
		"V-trace":       func(c *Config) { c.Correction = VTrace },
		"across assets": func(c *Config) { *c = small(t, nil); c.CrossAsset.Dropout = 0.3 },
	}) {
		c := dropping(t)
		change(&c)
		m, err := NewMaker(c)
		if err != nil {
			t.Fatal(err)
		}
		list[name] = agenttest.Variant{Maker: m, Spec: windowToy(t)}
	}
	agenttest.Dropout(t, list, func(l *learner) (acted, learnt []float64) {
		for i, v := range l.Rollout.Value {
			acted, learnt = append(acted, v), append(learnt, float64(l.value[i]))
		}
		for i, p := range l.logMu {
			acted, learnt = append(acted, p), append(learnt, float64(l.logProb[i]))
		}
		return acted, learnt
	})
}

// TestDropoutOfTheEncoderIsExplained: windows are then not encoded ahead of the rest.
func TestDropoutOfTheEncoderIsExplained(t *testing.T) {
	c := dropping(t)
	c.ShareWindows = On
	refuse(t, c, windowToy(t), "share_windows", "dropout")
	var out strings.Builder
	c.ShareWindows = Auto
	a := agent(t, c, agenttest.Toys(t, 2, windowToy(t)), testengines.Fastest(t), 1, func(s *agents.Setup) { s.Log = slog.New(slog.NewTextHandler(&out, nil)) })
	if a.learner.bank != nil || !strings.Contains(out.String(), "the encoder has dropout") {
		t.Errorf("a bank %t, and the log is %q", a.learner.bank != nil, out.String())
	}
	// Dropout elsewhere leaves what the encoder makes of windows as it is.
	c = small(t, nil)
	c.CrossAsset.Dropout = 0.3
	if agent(t, c, agenttest.Toys(t, 2, windowToy(t)), testengines.Fastest(t), 1).learner.bank == nil {
		t.Error("dropout across assets, and no bank")
	}
}
