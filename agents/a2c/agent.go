package a2c

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
)

var algorithm = agents.Algorithm[Config]{Name: "a2c", New: func(c Config, s agents.Setup) (agents.Agent, error) {
	a := &Agent{learner: &learner{c: c}}
	return a, a.build(c, s)
}}

// Kind makes A2C agents from a configuration.
var Kind = algorithm.Kind("a2c", "advantage actor-critic, on-policy: discrete, multi-discrete, multi-binary and continuous actions, masks", Defaults)

// NewMaker returns a maker for a configuration made in code.
func NewMaker(c Config) (agents.Maker, error) { return algorithm.Maker(c) }

// Agent is an A2C agent.
type Agent struct {
	learner *learner
	// inUse says that an exploring actor uses the bank of the learner, so that what it computes is
	// not computed again.
	inUse bool
}

// build makes networks, parameters and programs.
func (a *Agent) build(c Config, s agents.Setup) error {
	f, err := c.network().Frame(s.Spec, s.Encoders)
	if err != nil {
		return err
	}
	g, err := newGraphs(c, f, s.Encoders, s.Key.Split("params"))
	if err != nil {
		return err
	}
	if s.Log != nil && f.Window() != nil {
		if g.chunk > 1 {
			s.Log.Info("overlapping windows are encoded together", "windows", g.chunk)
		} else {
			reason := "share_windows: off"
			if g.alone != nil {
				reason = g.alone.Error()
			}
			s.Log.Info("each window is encoded alone", "reason", reason)
		}
	}
	l := a.learner
	l.g = g
	if err := l.Build("a2c", s, &g.Networks); err != nil {
		return err
	}
	return l.build()
}

// NewActor implements agents.Agent.
func (a *Agent) NewActor(m agents.Mode, n int) (agents.Actor, error) {
	l := a.learner
	act, err := onpolicy.NewActor(&l.Learner, l.c.Exploration, m, n)
	if err != nil {
		return nil, fmt.Errorf("a2c: %w", err)
	}
	x := &actor{Actor: act, bank: l.bank}
	switch {
	case l.bank == nil:
		return x, nil
	case m == agents.Explore && n == l.Setup.Envs && !a.inUse:
		a.inUse = true
		x.release = func() { a.inUse = false }
	default:
		if x.bank, err = newBank(l, n); err != nil {
			return nil, fmt.Errorf("a2c: %w", errors.Join(err, act.Close()))
		}
		x.own = true
	}
	act.Forward.Inputs = l.features(act.Forward, x.bank)
	return x, nil
}

// Recorder implements agents.Agent.
func (a *Agent) Recorder() agents.Recorder { return a.learner.Rollout }

// Learner implements agents.Agent.
func (a *Agent) Learner() agents.Learner { return a.learner }

// Close implements agents.Agent.
func (a *Agent) Close() error { return a.learner.Close() }
