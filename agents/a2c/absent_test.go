package a2c

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestAbsentRows trains in worlds whose agents come and go.
func TestAbsentRows(t *testing.T) {
	makers := map[string]agents.Maker{}
	for what, change := range sorted.All(map[string]func(c *Config){
		"plain":      func(*Config) {},
		"normalised": func(c *Config) { c.NormalizeAdvantage, c.Reduction = true, Mean },
		"V-trace":    func(c *Config) { c.Correction = VTrace },
	}) {
		c := quick()
		c.NSteps = 5
		change(&c)
		m, err := NewMaker(c)
		if err != nil {
			t.Fatal(err)
		}
		makers[what] = m
	}
	agenttest.Absent(t, makers, false, 60)
	agenttest.Haunted(t, makers, 4)
}
