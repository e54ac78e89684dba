package ppo

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/constraint"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
)

// Kind makes PPO agents from a configuration, and MaskableKind those of environments with action
// masks, which it requires.
var (
	Kind         = NewKind("ppo", "proximal policy optimisation, on-policy, with or without memory: discrete, multi-discrete, multi-binary and continuous actions, masks", Defaults)
	MaskableKind = algorithm("ppo", true).Kind("maskable_ppo", "ppo for environments with action masks, which are required", Defaults)
)

// Kinds lists the kinds of this package.
func Kinds() []agents.Kind { return []agents.Kind{Kind, MaskableKind} }

// NewKind returns a kind of PPO with other defaults, whose errors begin with its name.
func NewKind(name, summary string, defaults func() Config) agents.Kind {
	return algorithm(name, false).Kind(name, summary, defaults)
}

// NewMaker returns a maker for a configuration made in code.
func NewMaker(c Config) (agents.Maker, error) { return algorithm("ppo", false).Maker(c) }

func algorithm(name string, masked bool) agents.Algorithm[Config] {
	return agents.Algorithm[Config]{Name: name, New: func(c Config, s agents.Setup) (agents.Agent, error) {
		l := &learner{Learner: onpolicy.Learner{Name: name}, c: c}
		a := &agents.Parts{Name: name, Learning: l, Acting: l.newActor}
		if masked && !s.Spec.Masked {
			return a, fmt.Errorf("agent.kind maskable_ppo is for environments that mask their actions, and %s does not; use ppo", s.Spec.Name)
		}
		err := l.build(s)
		a.Recording = l.Rollout
		return a, err
	}}
}

// build makes networks, parameters, programs, the rollout and the optimiser.
func (l *learner) build(s agents.Setup) error {
	f, err := l.c.Config.Frame(s.Spec, s.Encoders)
	if err != nil {
		return err
	}
	c := l.c
	g, err := newGraphs(c, f, s.Encoders, s.Key.Split("params"))
	if err != nil {
		return err
	}
	l.g = g
	// Sequences are filled up.
	length := max(1, g.length)
	if n := (c.NSteps + length - 1) / length * length * s.Envs; c.BatchSize > n {
		return fmt.Errorf("agent.batch_size is %d, more than the %d samples of a rollout: agent.n_steps is %d and train.num_envs %d", c.BatchSize, n, c.NSteps, s.Envs)
	}
	if err := l.Build(l.Name, s, &g.Networks); err != nil {
		return err
	}
	forward, err := l.NewForward(s.Envs)
	if err != nil {
		return err
	}
	l.Programs = append(l.Programs, forward.Program)
	if l.states = newStates(g, s.Envs); l.states != nil {
		l.states.feed(forward)
	}
	l.record(forward)
	if len(c.Constraints) > 0 {
		set, err := constraint.New(c.Constraints, &s.Spec, s.Envs)
		if err != nil {
			return err
		}
		l.Rollout.Constrain(set)
	}
	if l.norm, err = newValueNorm(c, l.Params); err != nil {
		return err
	}
	units := l.units()
	if c.BatchSize > 0 {
		units = min(max(1, c.BatchSize/length), units)
	}
	if l.learn, err = l.newMinibatch(g.Learn, units, true); err != nil {
		return err
	}
	// The programs wrote there while they were tried out.
	clear(l.Grads.Floats())
	if g.Evaluate != nil {
		m, err := l.newMinibatch(g.Evaluate, units, false)
		if err != nil {
			return err
		}
		l.off = newOffPolicy(m, l.Rollout.Samples(), l.units())
	}
	l.bind()
	return l.newOptimizer(c)
}

func (l *learner) newOptimizer(c Config) error {
	return l.NewOptimizer(c.Optimizer, l.learn.prog.Pool(), l.learn.prog.Unreached(), func(string) int { return 0 }, c.LearningRate)
}

// Edit implements agents.Editor. Graphs have the entropy, and bounds of the value, only where these
// are not 0.
func (l *learner) Edit(config any, totalEnvSteps int64) error {
	own := []string{"ent_coef", "vtrace", "n_epochs", "clip_range", "clip_range_schedule", "clip_range_vf", "target_kl", "target_kl_schedule", "constraints"}
	if err := agents.Editable(l.c, config, append(own, onpolicy.Editable...)...); err != nil {
		return err
	}
	c := config.(Config)
	switch {
	case (c.EntCoef > 0) != (l.in.entropy != nil):
		return &agents.RebuildError{Path: "ent_coef"}
	case (c.ClipRangeVF > 0) != (l.in.valueLow != nil):
		return &agents.RebuildError{Path: "clip_range_vf"}
	}
	set := l.Rollout.Constraints
	if err := set.Editable(c.Constraints); err != nil {
		return err
	}
	if err := l.newOptimizer(c); err != nil {
		return fmt.Errorf("%s: %w", l.Name, err)
	}
	set.Edit(c.Constraints)
	l.c, l.Rollout.Gamma, l.Setup.TotalEnvSteps = c, c.Gamma, totalEnvSteps
	clear(l.Metrics)
	return nil
}

// newActor returns an actor. The first exploring one for all environments is the one whose states a
// recurrent policy records.
func (l *learner) newActor(m agents.Mode, n int) (agents.Actor, error) {
	x, err := onpolicy.NewActor(&l.Learner, l.c.Exploration, m, n)
	if err != nil || l.states == nil {
		return x, err
	}
	own := l.states
	if m == agents.Explore && n == l.Setup.Envs && !l.inUse {
		l.inUse = true
		x.Closed = func() error { l.inUse, l.states.before = false, nil; return nil }
	} else {
		own = newStates(l.g, n)
	}
	memory := own.feed(x.Forward)
	if own == l.states {
		own.before = memory.in
	}
	x.Recurrent, x.Acted = true, memory.keep
	return x, nil
}
