package bc

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
)

var algorithm = agents.Algorithm[Config]{Name: "bc", Replay: true, New: func(c Config, s agents.Setup) (agents.Agent, error) {
	a := &Agent{&learner{c: c, metrics: agents.Metrics{}}}
	return a, a.learner.build(s)
}}

// Kind makes BC agents from a configuration.
var Kind = algorithm.Kind("bc", "behaviour cloning of a data set, also by ensembles: all actions", Defaults).FromData()

// NewMaker returns a maker for a configuration made in code.
func NewMaker(c Config) (agents.Maker, error) { return algorithm.Maker(c) }

// Agent is a BC agent.
type Agent struct{ learner *learner }

// NewActor implements agents.Agent.
func (a *Agent) NewActor(m agents.Mode, n int) (agents.Actor, error) {
	if n < 1 {
		return nil, fmt.Errorf("bc: an actor for %d environments", n)
	}
	x, err := newActor(a.learner, m, n)
	if err != nil {
		return nil, fmt.Errorf("bc: %w", err)
	}
	return x, nil
}

// Recorder implements agents.Agent.
func (a *Agent) Recorder() agents.Recorder { return a.learner.rec }

// Learner implements agents.Agent.
func (a *Agent) Learner() agents.Learner { return a.learner }

// Close implements agents.Agent.
func (a *Agent) Close() error { return a.learner.close() }
