package valuebased

import (
	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// Design is what an algorithm of the family is, for one configuration.
type Design struct {
	// Settings, Network and Options are sections of the configuration.
	Settings Settings
	Network  network.Config
	Options  models.Options
	// Numbers is how many numbers there are for each action: 1 for its value, or those of its
	// quantiles, whose mean is its value.
	Numbers int
	// Loss appends the loss to a graph. Of each sample there are the numbers of all actions, [batch,
	// actions] or with several [batch, Numbers, actions], the action taken, [batch], and the
	// targets, [batch] or [batch, Numbers], through which nothing flows.
	Loss func(g *layer.Graph, values, actions, targets onnx.Value) Loss
}

// Loss names values of a graph.
type Loss struct {
	// Rows [batch] are the losses of the samples, and Errors [batch] what a prioritised replay ranks
	// them by, by size.
	Rows, Errors onnx.Value
	// Constants are values that nothing flows through.
	Constants []string
}

// Algorithm returns an algorithm of the family by its name. Two configurations that differ in keys
// of [Settings] alone have the same Numbers and Loss.
func Algorithm[C any](name string, design func(C) Design) agents.Algorithm[C] {
	return agents.Algorithm[C]{Name: name, Replay: true, New: func(c C, s agents.Setup) (agents.Agent, error) {
		l := &Learner{name: name, config: c, setup: s, metrics: agents.Metrics{}, design: func(c any) Design { return design(c.(C)) }}
		err := l.build()
		return &agents.Parts{Name: name, Learning: l, Recording: l.rec, Acting: l.newActor}, err
	}}
}
