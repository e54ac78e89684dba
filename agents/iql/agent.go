package iql

import (
	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/models/program"
)

var algorithm = agents.Algorithm[Config]{Name: "iql", Replay: true, New: newAgent}

// Kind makes IQL agents from a configuration, AWACKind and AWRKind the same ones with the defaults
// of AWAC and AWR.
var (
	Kind     = algorithm.Kind("iql", "implicit q-learning, from data sets: continuous actions, or discrete ones", Defaults).FromData()
	AWACKind = algorithm.Kind("awac", "advantage-weighted actor-critic, from data sets: continuous actions, or discrete ones", AWACDefaults).FromData()
	AWRKind  = algorithm.Kind("awr", "advantage-weighted regression on returns, from data sets: continuous actions, or discrete ones", AWRDefaults).FromData()
)

// NewMaker returns a maker for a configuration made in code.
func NewMaker(c Config) (agents.Maker, error) { return algorithm.Maker(c) }

func newAgent(c Config, s agents.Setup) (agents.Agent, error) {
	l := &learner{c: c, metrics: agents.Metrics{}}
	l.Name = "iql"
	err := l.build(s)
	return &agents.Parts{Name: "iql", Learning: l, Recording: l.rec, Acting: l.NewActor}, err
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
	l.advantage, l.weights = l.Ahead.Output(advantageOutput).Float32s(), l.Actor.Input(weightInput).Float32s()
	if l.c.Advantage == ofExpectile {
		l.recorded, l.given = l.Targets.Output(recordedOutput).Float32s(), l.Critic.Input(recordedInput).Float32s()
	}
	for _, p := range []*program.Program{l.Targets, l.Ahead} {
		if t := p.Input(offpolicy.NoiseInput); t != nil {
			l.noises = append(l.noises, t.Float32s())
		}
	}
	l.Explore(offpolicy.Exploration{Noise: offpolicy.DefaultNoise()})
	l.rec = l.Recorder(l.Buffer)
	l.Sums = &l.sum
	return nil
}
