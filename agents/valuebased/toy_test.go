package valuebased_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/valuebased"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// config is that of the smallest algorithm of the family.
type config struct {
	valuebased.Settings `yaml:",inline"`
	Numbers             int `yaml:"numbers"`
	network.Config      `yaml:",inline"`
	models.Options      `yaml:",inline"`
}

func (c config) design() valuebased.Design {
	return valuebased.Design{Settings: c.Settings, Network: c.Config, Options: c.Options, Numbers: c.Numbers, Loss: func(g *layer.Graph, values, actions, targets onnx.Value) valuebased.Loss {
		errors := g.Sub(head.Pick(g, values, actions), targets)
		if c.Numbers > 1 {
			errors = g.Sum(errors, 1)
		}
		return valuebased.Loss{Rows: g.Square(errors), Errors: errors}
	}}
}

var toy = valuebased.Algorithm("toy", config.design)

// quick learns quickly from toys.
func quick() config {
	s, n := valuebased.Defaults()
	n.Hidden = []int{8}
	s.BatchSize, s.BufferSize, s.LearningStarts, s.TrainFreq, s.GradientSteps, s.TargetUpdateInterval, s.LearningRate = 6, 50, 12, 3, 2, 10, 1e-2
	return config{Settings: s, Numbers: 1, Config: n}
}

// flat begins a run of so many env steps in n toys.
func flat(t testing.TB, c config, n int, total int64) (*agenttest.Training, *valuebased.Learner) {
	t.Helper()
	m, err := toy.Maker(c)
	if err != nil {
		t.Fatal(err)
	}
	v := agenttest.Toys(t, n, agenttest.Choice())
	a := agenttest.Agent(t, m, v, testengines.Fastest(t), 1, func(s *agents.Setup) { s.TotalEnvSteps = total })
	return agenttest.NewTraining(t, a, v), a.Learner().(*valuebased.Learner)
}

// variants have one number for each action, and several.
func variants(t testing.TB) map[string]agenttest.Variant {
	list := map[string]agenttest.Variant{}
	for what, change := range sorted.All(map[string]func(c *config){
		"values": func(*config) {}, "numbers": func(c *config) { c.Numbers = 3 }, "duelling numbers": func(c *config) { c.Numbers, c.Duelling, c.Double = 3, true, true },
	}) {
		c := quick()
		change(&c)
		m, err := toy.Maker(c)
		if err != nil {
			t.Fatal(err)
		}
		list[what] = agenttest.Variant{Maker: m, Spec: agenttest.Choice()}
	}
	return list
}
