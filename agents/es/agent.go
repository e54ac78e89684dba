package es

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/pool"
)

var openAIAlgorithm = agents.Algorithm[OpenAIConfig]{Name: "openai_es", New: func(c OpenAIConfig, s agents.Setup) (agents.Agent, error) {
	l := newLearner("openai_es", s)
	return l.agent(c.Settings, func(p *models.Params) (strategy, error) { return newOpenAI(c, &l.setup, p, l.pool) })
}}

// OpenAIKind makes agents by OpenAI's evolution strategy from a configuration.
var OpenAIKind = openAIAlgorithm.Kind("openai_es", "mirrored evolution strategy of OpenAI with ranks and Adam, without gradients: discrete, multi-discrete, multi-binary and continuous actions, masks", OpenAIDefaults)

var cmaAlgorithm = agents.Algorithm[CMAConfig]{Name: "cma_es", New: func(c CMAConfig, s agents.Setup) (agents.Agent, error) {
	l := newLearner("cma_es", s)
	return l.agent(c.Settings, func(p *models.Params) (strategy, error) { return newCMA(c, &l.setup, p) })
}}

// CMAKind makes agents by CMA-ES from a configuration.
var CMAKind = cmaAlgorithm.Kind("cma_es", "evolution strategy with covariance matrix adaptation, without gradients, for policies of few parameters: the actions of openai_es", CMADefaults)

// NewCMAMaker returns a maker for a configuration made in code.
func NewCMAMaker(c CMAConfig) (agents.Maker, error) { return cmaAlgorithm.Maker(c) }

// NewOpenAIMaker returns a maker for a configuration made in code.
func NewOpenAIMaker(c OpenAIConfig) (agents.Maker, error) { return openAIAlgorithm.Maker(c) }

func newLearner(name string, s agents.Setup) *learner {
	return &learner{name: name, setup: s, metrics: agents.Metrics{}, pool: pool.New(max(1, min(s.Threads, s.Envs)), pool.Spin)}
}

// agent returns the agent of a learner, which it builds.
func (l *learner) agent(c Settings, begin func(p *models.Params) (strategy, error)) (agents.Agent, error) {
	err := l.build(c, begin)
	return &agents.Parts{Name: l.name, Learning: l, Recording: l, Acting: l.newActor}, err
}

// build makes the policy, its parameters and the strategy that changes them.
func (l *learner) build(c Settings, begin func(p *models.Params) (strategy, error)) error {
	s := &l.setup
	if s.Spec.MaxSteps == 0 {
		return fmt.Errorf("the episodes of %s have no limit, and a member is measured by whole ones; give them one by wrappers.time_limit", s.Spec.Name)
	}
	var err error
	if l.frame, err = c.Config.Frame(s.Spec, s.Encoders); err != nil {
		return err
	}
	net, values, err := newPolicy(c, l.frame, s.Encoders, s.Key.Split("params"))
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

// newActor returns an actor. The first one that explores in as many environments as the agent learns
// from acts by the members of the generation, all others by the centre.
func (l *learner) newActor(m agents.Mode, n int) (agents.Actor, error) {
	if m == agents.Explore && n == len(l.episode) && !l.exploring {
		l.exploring = true
		return newExplorer(l, l.frame, func() { l.exploring = false })
	}
	return newActor(l, l.frame, n)
}
