package a2c

import (
	"errors"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
)

var algorithm = agents.Algorithm[Config]{Name: "a2c", New: func(c Config, s agents.Setup) (agents.Agent, error) {
	l := &learner{c: c}
	err := l.begin(s)
	return &agents.Parts{Name: "a2c", Learning: l, Recording: l.Rollout, Acting: l.newActor}, err
}}

// Kind makes A2C agents from a configuration.
var Kind = algorithm.Kind("a2c", "advantage actor-critic, on-policy: discrete, multi-discrete, multi-binary and continuous actions, masks", Defaults)

// NewMaker returns a maker for a configuration made in code.
func NewMaker(c Config) (agents.Maker, error) { return algorithm.Maker(c) }

// begin makes networks, parameters and programs.
func (l *learner) begin(s agents.Setup) error {
	c := l.c
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
	l.g = g
	if err := l.Build("a2c", s, &g.Networks); err != nil {
		return err
	}
	return l.build()
}

// newActor returns an actor, which may have a bank of its own. It reads parameters where they are
// learnt; Sync drops what was computed from them, in case that something else than the learner has
// changed them.
func (l *learner) newActor(m agents.Mode, n int) (agents.Actor, error) {
	x, err := onpolicy.NewActor(&l.Learner, l.c.Exploration, m, n)
	if err != nil {
		return nil, err
	}
	bank := l.bank
	switch {
	case bank == nil:
		return x, nil
	case m == agents.Explore && n == l.Setup.Envs && !l.inUse:
		l.inUse = true
		x.Closed = func() error { l.inUse = false; return nil }
	default:
		if bank, err = newBank(l, n); err != nil {
			return nil, errors.Join(err, x.Close())
		}
		x.Closed = bank.Close
	}
	if !bank.still {
		x.Synced = bank.forget
	}
	x.Forward.Inputs = l.features(x.Forward, bank)
	return x, nil
}
