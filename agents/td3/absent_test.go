package td3

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/constraint"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestAbsentRows trains in worlds whose agents come and go.
func TestAbsentRows(t *testing.T) {
	makers := map[string]agents.Maker{}
	for what, change := range sorted.All(map[string]func(c *Config){
		"plain": func(*Config) {},
		"constraints": func(c *Config) {
			x := constraint.Defaults()
			x.Cost, x.Limit, x.Measure, x.Window = "wrong", 0.1, constraint.CVaR, 10
			c.Constraints = []constraint.Config{x}
		},
		"noise": func(c *Config) { c.ActionNoise.Kind, c.NSteps = offpolicy.OU, 3 },
	}) {
		makers[what] = suite.Variant(t, agenttest.Box(), change).Maker
	}
	agenttest.Absent(t, makers, true, 60)
}
