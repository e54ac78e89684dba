package td3

import (
	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
)

var algorithm = agents.Algorithm[Config]{Name: "td3", Replay: true, New: newAgent}

// Kind makes TD3 agents from a configuration, DDPGKind the same ones with the defaults of DDPG, and
// BCKind with those of TD3+BC.
var (
	Kind     = algorithm.Kind("td3", "twin delayed deterministic policy gradients, off-policy: continuous actions", Defaults)
	DDPGKind = algorithm.Kind("ddpg", "deep deterministic policy gradients, off-policy: td3 with one critic, without delay and smoothing", DDPGDefaults)
	BCKind   = algorithm.Kind("td3_bc", "td3 kept near recorded actions, off-policy and from data sets: continuous actions", BCDefaults).FromData()
)

// NewMaker returns a maker for a configuration made in code.
func NewMaker(c Config) (agents.Maker, error) { return algorithm.Maker(c) }

func newAgent(c Config, s agents.Setup) (agents.Agent, error) {
	l := &learner{c: c, metrics: agents.Metrics{}}
	l.Name = "td3"
	err := l.build(s)
	return &agents.Parts{Name: "td3", Learning: l, Recording: l.rec, Acting: l.NewActor}, err
}

// build makes networks, parameters, replay and programs.
func (l *learner) build(s agents.Setup) error {
	f, err := l.c.Config.Frame(s.Spec, s.Encoders)
	if err != nil {
		return err
	}
	d, err := newDesign(l.c, f, s.Encoders, s.Key.Split("params"))
	if err != nil {
		return err
	}
	if err := l.Build(s, &l.c.Settings, &l.c.CriticSettings, d.Networks, false); err != nil {
		return err
	}
	if t := l.Targets.Input(offpolicy.NoiseInput); t != nil {
		l.noise = t.Float32s()
	}
	if l.Ahead != nil {
		l.values, l.lambda = l.Ahead.Output(valuesOutput).Float32s(), l.Actor.Input(lambdaInput).Float32s()
	}
	l.Explore(offpolicy.Exploration{Noise: l.c.ActionNoise})
	if err := l.Constrain(&l.c.Settings); err != nil {
		return err
	}
	l.rec = l.Recorder(l.Constraints.Recorder(l.Buffer))
	l.Sums = &l.sum
	return l.Diversify(l.c.Diversity)
}
