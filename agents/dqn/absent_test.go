package dqn

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func maker(t testing.TB, c Config) agents.Maker {
	t.Helper()
	m, err := NewMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestAbsentRows trains in worlds whose agents come and go.
func TestAbsentRows(t *testing.T) {
	makers := map[string]agents.Maker{}
	for what, change := range sorted.All(map[string]func(c *Config){
		"plain":       func(*Config) {},
		"prioritised": func(c *Config) { c.Double, c.NSteps, c.Prioritised.Enabled = true, 3, true },
		"large":       func(c *Config) { c.BufferSize = 1000 },
	}) {
		c := small()
		change(&c)
		makers[what] = maker(t, c)
	}
	agenttest.Absent(t, makers, false, 60)
}

// TestLearnsShifts: three agents that die and come back learn one policy to near its best.
func TestLearnsShifts(t *testing.T) {
	c := Defaults()
	c.LearningRate, c.BufferSize, c.LearningStarts, c.TrainFreq, c.Gamma, c.TargetUpdateInterval = 3e-3, 5000, 100, 1, 0.9, 100
	agenttest.LearnsShifts(t, maker(t, c), false, 700)
}
