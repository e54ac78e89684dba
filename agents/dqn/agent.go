package dqn

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/models"
)

var algorithm = agents.Algorithm[Config]{Name: "dqn", Replay: true, New: func(c Config, s agents.Setup) (agents.Agent, error) {
	a := &Agent{setup: s}
	return a, a.build(c)
}}

// Kind makes DQN agents from a configuration, CQLKind the same ones with the defaults of CQL.
var (
	Kind    = algorithm.Kind("dqn", "deep Q-learning, off-policy: discrete actions", Defaults)
	CQLKind = algorithm.Kind("discrete_cql", "conservative q-learning, dqn from data sets: discrete actions", CQLDefaults).FromData()
)

// NewMaker returns a maker for a configuration made in code.
func NewMaker(c Config) (agents.Maker, error) { return algorithm.Maker(c) }

// Agent is a DQN agent.
type Agent struct {
	setup  agents.Setup
	graphs *graphs
	// params is the online network, target the one that following states are evaluated by. Frozen
	// parameters are common to both.
	params, target *models.Params
	learner        *learner
}

// build makes networks, parameters and programs.
func (a *Agent) build(c Config) error {
	s := &a.setup
	var err error
	if a.graphs, err = newGraphs(c, s.Spec, s.Encoders, s.Key.Split("params")); err != nil {
		return err
	}
	g := a.graphs
	if !slices.ContainsFunc(g.policy.Specs, func(s models.Spec) bool { return s.Role == models.Trainable }) {
		return errors.New("train and freeze leave no parameter to train")
	}
	if a.params, err = network.NewParams(s, g.policy.Specs, g.values, nil); err != nil {
		return err
	}
	g.values = nil
	if a.target, err = models.NewParams(g.policy, a.params.Segment(models.Frozen), a.params.Segment(models.Base)); err != nil {
		return err
	}
	if err := a.target.CopyFrom(a.params); err != nil {
		return err
	}
	a.learner, err = newLearner(c, g, a.params, a.target, *s)
	return err
}

// NewActor implements agents.Agent.
func (a *Agent) NewActor(m agents.Mode, n int) (agents.Actor, error) {
	if n < 1 {
		return nil, fmt.Errorf("dqn: an actor for %d environments", n)
	}
	x, err := newActor(a, m, n)
	if err != nil {
		return nil, fmt.Errorf("dqn: %w", err)
	}
	return x, nil
}

// Recorder implements agents.Agent.
func (a *Agent) Recorder() agents.Recorder { return a.learner.rec }

// Learner implements agents.Agent.
func (a *Agent) Learner() agents.Learner { return a.learner }

// Close implements agents.Agent.
func (a *Agent) Close() error {
	var errs []error
	if a.learner != nil {
		errs = append(errs, a.learner.close())
	}
	for _, p := range []*models.Params{a.target, a.params} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	a.learner, a.target, a.params = nil, nil, nil
	return errors.Join(errs...)
}
