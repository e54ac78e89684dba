package es

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/pool"
)

var openAIAlgorithm = agents.Algorithm[OpenAIConfig]{Name: "openai_es", New: func(c OpenAIConfig, s agents.Setup) (agents.Agent, error) {
	a := newAgent("openai_es", s)
	return a, a.build(c.Settings, func(p *models.Params) (strategy, error) { return newOpenAI(c, &a.learner.setup, p, a.learner.pool) })
}}

// OpenAIKind makes agents by OpenAI's evolution strategy from a configuration.
var OpenAIKind = openAIAlgorithm.Kind("openai_es", "mirrored evolution strategy of OpenAI with ranks and Adam, without gradients: discrete, multi-discrete, multi-binary and continuous actions, masks", OpenAIDefaults)

var cmaAlgorithm = agents.Algorithm[CMAConfig]{Name: "cma_es", New: func(c CMAConfig, s agents.Setup) (agents.Agent, error) {
	a := newAgent("cma_es", s)
	return a, a.build(c.Settings, func(p *models.Params) (strategy, error) { return newCMA(c, &a.learner.setup, p) })
}}

// CMAKind makes agents by CMA-ES from a configuration.
var CMAKind = cmaAlgorithm.Kind("cma_es", "evolution strategy with covariance matrix adaptation, without gradients, for policies of few parameters: the actions of openai_es", CMADefaults)

// NewCMAMaker returns a maker for a configuration made in code.
func NewCMAMaker(c CMAConfig) (agents.Maker, error) { return cmaAlgorithm.Maker(c) }

// NewOpenAIMaker returns a maker for a configuration made in code.
func NewOpenAIMaker(c OpenAIConfig) (agents.Maker, error) { return openAIAlgorithm.Maker(c) }

// Agent is an agent of an evolution strategy.
type Agent struct {
	learner *learner
	frame   *network.Frame
	// exploring says that there is an actor of the members.
	exploring bool
}

func newAgent(name string, s agents.Setup) *Agent {
	return &Agent{learner: &learner{name: name, setup: s, metrics: agents.Metrics{}, pool: pool.New(max(1, min(s.Threads, s.Envs)), pool.Spin)}}
}

// build makes the policy, its parameters and the strategy that changes them.
func (a *Agent) build(c Settings, begin func(p *models.Params) (strategy, error)) error {
	l := a.learner
	s := &l.setup
	if s.Spec.MaxSteps == 0 {
		return fmt.Errorf("the episodes of %s have no limit, and a member is measured by whole ones; give them one by wrappers.time_limit", s.Spec.Name)
	}
	var err error
	if a.frame, err = c.Config.Frame(s.Spec, s.Encoders); err != nil {
		return err
	}
	net, values, err := newPolicy(c, a.frame, s.Encoders, s.Key.Split("params"))
	if err != nil {
		return err
	}
	l.policy = net
	if l.params, err = network.NewParams(s, net.Specs, values, nil); err != nil {
		return err
	}
	if l.strategy, err = begin(l.params); err != nil {
		return err
	}
	l.episodes, l.episode, l.begun = c.EvalEpisodes, make([]int64, s.Envs), make([]bool, s.Envs)
	n := l.strategy.members()
	if int64(s.Envs) > l.planned() {
		return fmt.Errorf("%d environments (train.num_envs), and a generation of %d members has %d episodes: some would have none; expected at most as many environments", s.Envs, n, l.planned())
	}
	l.sums, l.returns = make([]float64, n), make([]float64, n)
	l.begin()
	return nil
}

// NewActor implements agents.Agent. The first one that explores in as many environments as the
// agent learns from acts by the members of the generation, all others by the centre.
func (a *Agent) NewActor(m agents.Mode, n int) (agents.Actor, error) {
	l := a.learner
	if n < 1 {
		return nil, fmt.Errorf("%s: an actor for %d environments", l.name, n)
	}
	var x agents.Actor
	var err error
	if m == agents.Explore && n == len(l.episode) && !a.exploring {
		a.exploring = true
		x, err = newExplorer(l, a.frame, func() { a.exploring = false })
	} else {
		x, err = newActor(l, a.frame, n)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.name, err)
	}
	return x, nil
}

// Recorder implements agents.Agent.
func (a *Agent) Recorder() agents.Recorder { return a.learner }

// Learner implements agents.Agent.
func (a *Agent) Learner() agents.Learner { return a.learner }

// Close implements agents.Agent.
func (a *Agent) Close() error { return a.learner.close() }
