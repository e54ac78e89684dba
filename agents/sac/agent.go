package sac

import (
	"context"
	"errors"
	"fmt"

	"onnxrl/agents"
	"onnxrl/agents/network"
	"onnxrl/agents/replay"
	"onnxrl/configs"
	"onnxrl/models"
	"onnxrl/runtime/crew"
	"onnxrl/runtime/tensor"
)

// Kind makes SAC agents from a configuration.
var Kind = agents.Kind{Name: "sac", Parse: func(params configs.Section) (agents.Maker, error) {
	c := Defaults()
	if err := params.Decode(&c); err != nil {
		return nil, err
	}
	return Maker{c}, nil
}}

// Maker makes agents of one configuration.
type Maker struct{ c Config }

// NewMaker returns a maker for a configuration made in code.
func NewMaker(c Config) (Maker, error) {
	if err := configs.Validate(c); err != nil {
		return Maker{}, fmt.Errorf("sac: %w", err)
	}
	return Maker{c}, nil
}

// Config implements agents.Maker.
func (m Maker) Config() any { return m.c }

// New implements agents.Maker.
func (m Maker) New(_ context.Context, s agents.Setup) (agents.Agent, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("sac: %w", err)
	}
	a := &Agent{c: m.c, setup: s}
	if err := a.build(); err != nil {
		return nil, fmt.Errorf("sac: %w", errors.Join(err, a.Close()))
	}
	return a, nil
}

// Agent is a SAC agent.
type Agent struct {
	c      Config
	setup  agents.Setup
	graphs *graphs
	params *models.Params
	grads  *models.Segment
	buffer *replay.Uniform
	hands  *crew.Crew
	learner
}

// build makes networks, parameters, replay and programs.
func (a *Agent) build() error {
	s := &a.setup
	f, err := network.NewFrame(s.Spec)
	if err != nil {
		return err
	}
	if a.graphs, err = newGraphs(a.c, f, s.Encoders, s.Key.Split("params")); err != nil {
		return err
	}
	if err := a.initialise(); err != nil {
		return err
	}
	// Final observations take rooms too, at most one for each transition.
	if n := a.c.VTrace.Length; n > 0 && a.c.BufferSize/s.Envs < 2*n {
		return fmt.Errorf("buffer_size: %d transitions of %d environments have no room for sequences of vtrace.length %d", a.c.BufferSize, s.Envs, n)
	}
	dtype, shape := stored(f)
	layout := replay.LayoutOf(s.Spec, replay.Column{Name: "action", DType: dtype, Shape: shape})
	layout.LogProb = a.c.VTrace.Length > 0
	if a.buffer, err = replay.NewUniform(layout, replay.Config{Capacity: a.c.BufferSize, Envs: s.Envs, NSteps: a.c.NSteps, Gamma: a.c.Gamma}); err != nil {
		return err
	}
	a.hands = crew.New(max(s.Threads, 1))
	return a.learner.init(a)
}

// initialise gives all parameters their values; target networks begin equal to those that they follow.
func (a *Agent) initialise() error {
	g := a.graphs
	if a.setup.Init != nil {
		if err := a.setup.Init(g.values); err != nil {
			return err
		}
	}
	values := map[string]*tensor.Tensor{}
	for name, v := range g.values {
		values[name] = v
		if below(name, criticScope) {
			values[targetScope+"."+name] = v
		}
	}
	g.values = nil
	var err error
	if a.params, err = models.NewParams(&models.Network{Specs: g.specs}, nil); err != nil {
		return err
	}
	if err := a.params.Load(values); err != nil {
		return err
	}
	a.grads, err = a.params.Segment(models.Trainable).Like()
	return err
}

// NewActor implements agents.Agent.
func (a *Agent) NewActor(m agents.Mode, n int) (agents.Actor, error) {
	if n < 1 {
		return nil, fmt.Errorf("sac: an actor for %d environments", n)
	}
	x, err := newActor(a, m, n)
	if err != nil {
		return nil, fmt.Errorf("sac: %w", err)
	}
	return x, nil
}

// Recorder implements agents.Agent.
func (a *Agent) Recorder() agents.Recorder { return a.rec }

// Learner implements agents.Agent.
func (a *Agent) Learner() agents.Learner { return &a.learner }

// Close implements agents.Agent.
func (a *Agent) Close() error {
	errs := []error{a.learner.close()}
	if a.buffer != nil {
		errs = append(errs, a.buffer.Close())
	}
	if a.grads != nil {
		errs = append(errs, a.grads.Close())
	}
	if a.params != nil {
		errs = append(errs, a.params.Close())
	}
	a.hands.Close()
	a.buffer, a.grads, a.params, a.hands = nil, nil, nil, nil
	return errors.Join(errs...)
}
