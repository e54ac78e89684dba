package ppo

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Kind makes PPO agents from a configuration, and MaskableKind those of environments that mask
// their actions, which it insists on.
var (
	Kind         = algorithm(false).Kind("ppo", "proximal policy optimisation, on-policy, with or without memory: discrete, multi-discrete, multi-binary and continuous actions, masks", Defaults)
	MaskableKind = algorithm(true).Kind("maskable_ppo", "ppo for environments that mask their actions, which it insists on", Defaults)
)

// Kinds lists the kinds of this package.
func Kinds() []agents.Kind { return []agents.Kind{Kind, MaskableKind} }

// NewMaker returns a maker for a configuration made in code.
func NewMaker(c Config) (agents.Maker, error) { return algorithm(false).Maker(c) }

func algorithm(masked bool) agents.Algorithm[Config] {
	return agents.Algorithm[Config]{Name: "ppo", New: func(c Config, s agents.Setup) (agents.Agent, error) {
		a := &Agent{setup: s, c: c}
		if masked && !s.Spec.Masked {
			return a, fmt.Errorf("agent.kind maskable_ppo is for environments that mask their actions, and %s does not; use ppo", s.Spec.Name)
		}
		return a, a.build()
	}}
}

// Agent is a PPO agent.
type Agent struct {
	setup   agents.Setup
	c       Config
	graphs  *graphs
	params  *models.Params
	grads   *models.Segment
	learn   *minibatch
	check   *minibatch // V-trace's; nil without it
	forward *forward
	states  *states
	learner *learner
	// inUse says that an exploring actor has the states.
	inUse bool
}

// build makes networks, parameters and programs.
func (a *Agent) build() error {
	s, c := &a.setup, a.c
	f, err := network.NewFrame(s.Spec)
	if err != nil {
		return err
	}
	if a.graphs, err = newGraphs(c, f, s.Encoders, s.Key.Split("params")); err != nil {
		return err
	}
	g := a.graphs
	// Sequences are filled up.
	length := max(1, g.length)
	if n := (c.NSteps + length - 1) / length * length * s.Envs; c.BatchSize > n {
		return fmt.Errorf("agent.batch_size is %d, more than the %d samples of a rollout: agent.n_steps is %d and train.num_envs %d", c.BatchSize, n, c.NSteps, s.Envs)
	}
	if !slices.ContainsFunc(g.policy.Specs, func(s models.Spec) bool { return s.Role == models.Trainable }) {
		return errors.New("train and freeze leave no parameter to train")
	}
	if a.params, a.grads, err = newParams(g.policy, g.values, s.Init); err != nil {
		return err
	}
	g.values = nil
	if a.forward, err = newForward(g, a.params, s, s.Envs); err != nil {
		return err
	}
	a.states, a.learner = newStates(g, s.Envs), &learner{}
	r := newRollout(g, c, s.Envs, a.forward, a.states, a.learner)
	units := min(max(1, c.BatchSize/max(1, g.length)), r.units())
	if a.learn, err = newMinibatch(g, g.learn, a.params, a.grads, s, units, r); err != nil {
		return err
	}
	// What the programs left there while they were tried out.
	clear(a.grads.Floats())
	var off *offPolicy
	if g.evaluate != nil {
		if a.check, err = newMinibatch(g, g.evaluate, a.params, nil, s, units, r); err != nil {
			return err
		}
		off = newOffPolicy(a.check, len(r.reward))
	}
	return a.learner.init(c, g, *s, a.params, a.grads, r, a.learn, off)
}

// newParams returns the parameters of a network with their initial values, and a segment for the
// gradient. initial, unless nil, may change the values.
func newParams(net *models.Network, values map[string]*tensor.Tensor, initial func(map[string]*tensor.Tensor) error) (*models.Params, *models.Segment, error) {
	if initial != nil {
		if err := initial(values); err != nil {
			return nil, nil, err
		}
	}
	params, err := models.NewParams(net, nil)
	if err != nil {
		return nil, nil, err
	}
	if err := params.Load(values); err != nil {
		return params, nil, err
	}
	grads, err := params.Segment(models.Trainable).Like()
	return params, grads, err
}

// NewActor implements agents.Agent. The first exploring actor for all environments is the one whose
// states a recurrent policy records.
func (a *Agent) NewActor(m agents.Mode, n int) (agents.Actor, error) {
	if n < 1 {
		return nil, fmt.Errorf("ppo: an actor for %d environments", n)
	}
	f, err := newForward(a.graphs, a.params, &a.setup, n)
	if err != nil {
		return nil, fmt.Errorf("ppo: %w", err)
	}
	x := &actor{f: f, learner: a.learner, sampler: network.NewSampler(a.graphs.frame, a.c.Exploration, m, n, f.prog.Output, a.params.View(a.graphs.logStd))}
	switch {
	case a.states == nil:
	case m == agents.Explore && n == a.setup.Envs && !a.inUse:
		a.inUse, x.states = true, a.states
		a.states.before = f.in
		x.release = func() { a.inUse, a.states.before = false, nil }
	default:
		x.states = newStates(a.graphs, n)
	}
	return x, nil
}

// Recorder implements agents.Agent.
func (a *Agent) Recorder() agents.Recorder { return a.learner.r }

// Learner implements agents.Agent.
func (a *Agent) Learner() agents.Learner { return a.learner }

// Close implements agents.Agent.
func (a *Agent) Close() error {
	var errs []error
	for _, m := range []*minibatch{a.learn, a.check} {
		if m != nil {
			errs = append(errs, m.prog.Close())
		}
	}
	if a.forward != nil {
		errs = append(errs, a.forward.prog.Close())
	}
	if a.grads != nil {
		errs = append(errs, a.grads.Close())
	}
	if a.params != nil {
		errs = append(errs, a.params.Close())
	}
	a.learn, a.check, a.forward, a.grads, a.params = nil, nil, nil, nil, nil
	return errors.Join(errs...)
}
