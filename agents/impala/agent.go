package impala

import (
	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
)

// Kind makes IMPALA agents from a configuration, and APPOKind APPO agents.
var (
	Kind     = algorithm("impala").Kind("impala", "actor-critic with V-trace, whose actors may act by older parameters: discrete, multi-discrete, multi-binary and continuous actions, masks", Defaults)
	APPOKind = algorithm("appo").Kind("appo", "impala with the clipped surrogate of ppo: the actions of impala", APPODefaults)
)

// NewMaker returns a maker for a configuration made in code.
func NewMaker(c Config) (agents.Maker, error) { return algorithm("impala").Maker(c) }

func algorithm(name string) agents.Algorithm[Config] {
	return agents.Algorithm[Config]{Name: name, New: func(c Config, s agents.Setup) (agents.Agent, error) {
		l := &learner{Learner: onpolicy.Learner{Name: name}, c: c}
		err := l.build(s)
		return &agents.Parts{Name: name, Learning: l, Recording: l.Rollout, Acting: l.newActor}, err
	}}
}

// newActor returns an actor for n environments. Its exploration is that of the present configuration,
// which an edit of the agent changes.
func (l *learner) newActor(m agents.Mode, n int) (agents.Actor, error) {
	return onpolicy.NewActor(&l.Learner, l.c.Exploration, m, n)
}

// build makes networks, parameters, programs, the rollout and the optimiser.
func (l *learner) build(s agents.Setup) error {
	f, err := l.c.Config.Frame(s.Spec, s.Encoders)
	if err != nil {
		return err
	}
	g, err := newGraphs(l.c, f, s.Encoders, s.Key.Split("params"))
	if err != nil {
		return err
	}
	if err := l.Build(l.Name, s, g); err != nil {
		return err
	}
	forward, err := l.NewForward(s.Envs)
	if err != nil {
		return err
	}
	l.Programs = append(l.Programs, forward.Program)
	if !s.Acting {
		if err := l.compile(); err != nil {
			return err
		}
	}
	l.record(forward)
	return l.newOptimizer(l.c)
}
