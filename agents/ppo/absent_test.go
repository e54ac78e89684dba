package ppo

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestAbsentRows trains in worlds whose agents come and go, with and without memory.
func TestAbsentRows(t *testing.T) {
	makers := map[string]agents.Maker{}
	for what, change := range sorted.All(map[string]func(c *Config){
		"plain":   func(*Config) {},
		"V-trace": func(c *Config) { c.Correction = VTrace },
		"lstm":    func(c *Config) { c.Recurrent = Recurrent{LSTM, 5, 1, Separate, 4} },
		"lstm, V-trace": func(c *Config) {
			c.Recurrent, c.Correction = Recurrent{LSTM, 5, 1, Shared, 4}, VTrace
		},
	}) {
		c := lone()
		change(&c)
		makers[what] = maker(t, c)
	}
	agenttest.Absent(t, makers, false, 60)
}

// TestLearnsShifts: three agents that die and come back learn one policy to near its best.
func TestLearnsShifts(t *testing.T) {
	c := Defaults()
	c.NSteps, c.BatchSize, c.LearningRate, c.Gamma = 64, 64, 3e-3, 0.9
	agenttest.LearnsShifts(t, maker(t, c), false, 64*8)
}

func maker(t testing.TB, c Config) agents.Maker {
	t.Helper()
	m, err := NewMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
