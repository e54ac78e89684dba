package sac

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/constraint"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestAbsentRows trains in worlds whose agents come and go.
func TestAbsentRows(t *testing.T) {
	makers := map[string]agents.Maker{}
	for what, change := range sorted.All(map[string]func(c *Config){
		"plain": func(*Config) {},
		"constraints": func(c *Config) {
			x := constraint.Defaults()
			x.Cost, x.Limit = "wrong", 0.1
			c.Constraints = []constraint.Config{x}
		},
		"V-trace": func(c *Config) { c.VTrace.Length = 4 },
	}) {
		makers[what] = suite.Variant(t, agenttest.Box(), change).Maker
	}
	agenttest.Absent(t, makers, true, 60)
}
