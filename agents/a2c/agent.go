package a2c

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/models"
)

var algorithm = agents.Algorithm[Config]{Name: "a2c", New: func(c Config, s agents.Setup) (agents.Agent, error) {
	a := &Agent{setup: s, c: c}
	return a, a.build(c)
}}

// Kind makes A2C agents from a configuration.
var Kind = algorithm.Kind("a2c", "advantage actor-critic, on-policy: discrete, multi-discrete, multi-binary and continuous actions, masks", Defaults)

// NewMaker returns a maker for a configuration made in code.
func NewMaker(c Config) (agents.Maker, error) { return algorithm.Maker(c) }

// Agent is an A2C agent.
type Agent struct {
	setup  agents.Setup
	graphs *graphs
	params *models.Params
	grads  *models.Segment
	train  *minibatches
	// evaluate is nil without a correction.
	evaluate *minibatches
	bank     *bank
	forward  *forward
	back     *backward
	learner  *learner
	c        Config
	// inUse says that an exploring actor uses the bank of the learner, so that what it computes is
	// not computed again.
	inUse bool
}

// build makes networks, parameters and programs.
func (a *Agent) build(c Config) error {
	s := &a.setup
	f, err := network.NewFrame(s.Spec)
	if err != nil {
		return err
	}
	if a.graphs, err = newGraphs(c, f, s.Encoders, s.Key.Split("params")); err != nil {
		return err
	}
	g := a.graphs
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
	if !trainable(g.policy) {
		return errors.New("train and freeze leave no parameter to train")
	}
	if s.Init != nil {
		if err := s.Init(g.values); err != nil {
			return err
		}
	}
	if a.params, err = models.NewParams(g.policy, nil); err != nil {
		return err
	}
	if err := a.params.Load(g.values); err != nil {
		return err
	}
	g.values = nil
	if a.grads, err = a.params.Segment(models.Trainable).Like(); err != nil {
		return err
	}
	if a.train, err = newTraining(g, a.params, a.grads, *s, c.NSteps*s.Envs); err != nil {
		return err
	}
	if g.encode != nil {
		if a.bank, err = newBank(g, a.params, s, s.Envs); err != nil {
			return err
		}
		if trainable(g.encode) {
			if a.back, err = newBackward(g, a.params, a.grads, s, c.NSteps*s.Envs); err != nil {
				return err
			}
		}
	}
	// What the programs left there while they were tried out.
	clear(a.grads.Floats())
	if a.forward, err = newForward(g, a.params, s, s.Envs, a.bank); err != nil {
		return err
	}
	if g.evaluate != nil {
		if a.evaluate, err = newMinibatches(g.evaluate, a.params, nil, *s, c.NSteps*s.Envs, nil, []string{logProbOutput, agents.ValueOutput}); err != nil {
			return err
		}
	}
	a.learner = &learner{}
	rec := newRecorder(g, c, s.Envs, a.train, a.forward, a.bank, a.learner)
	return a.learner.init(a, rec)
}

// NewActor implements agents.Agent.
func (a *Agent) NewActor(m agents.Mode, n int) (agents.Actor, error) {
	if n < 1 {
		return nil, fmt.Errorf("a2c: an actor for %d environments", n)
	}
	k, own := a.bank, (*bank)(nil)
	if k != nil && (m == agents.Greedy || n != a.setup.Envs || a.inUse) {
		var err error
		if own, err = newBank(a.graphs, a.params, &a.setup, n); err != nil {
			return nil, fmt.Errorf("a2c: %w", err)
		}
		k = own
	}
	f, err := newForward(a.graphs, a.params, &a.setup, n, k)
	if err != nil {
		if own != nil {
			err = errors.Join(err, own.close())
		}
		return nil, fmt.Errorf("a2c: %w", err)
	}
	x := newActor(m, f, own, a)
	if k != nil && own == nil {
		a.inUse = true
		x.release = func() { a.inUse = false }
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
	if a.train != nil {
		errs = append(errs, a.train.close())
	}
	if a.evaluate != nil {
		errs = append(errs, a.evaluate.close())
	}
	if a.bank != nil {
		errs = append(errs, a.bank.close())
	}
	if a.back != nil {
		errs = append(errs, a.back.close())
	}
	if a.forward != nil {
		errs = append(errs, a.forward.close())
	}
	if a.grads != nil {
		errs = append(errs, a.grads.Close())
	}
	if a.params != nil {
		errs = append(errs, a.params.Close())
	}
	a.train, a.evaluate, a.bank, a.back, a.forward, a.grads, a.params = nil, nil, nil, nil, nil, nil, nil
	return errors.Join(errs...)
}
