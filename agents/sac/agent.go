package sac

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/models/program"
)

var algorithm = agents.Algorithm[Config]{Name: "sac", Replay: true, New: newAgent}

// Kind makes SAC agents from a configuration, CQLKind the same ones with the defaults of CQL.
var (
	Kind    = algorithm.Kind("sac", "soft actor-critic, off-policy: continuous actions, or discrete ones", Defaults)
	CQLKind = algorithm.Kind("cql", "conservative q-learning, sac from data sets: continuous actions, or discrete ones", CQLDefaults).FromData()
)

// NewMaker returns a maker for a configuration made in code.
func NewMaker(c Config) (agents.Maker, error) { return algorithm.Maker(c) }

func newAgent(c Config, s agents.Setup) (agents.Agent, error) {
	l := &learner{c: c, metrics: agents.Metrics{}}
	l.Name = "sac"
	err := l.build(s)
	return &agents.Parts{Name: "sac", Learning: l, Recording: l.rec, Acting: l.NewActor}, err
}

// build makes networks, parameters, replay and programs.
func (l *learner) build(s agents.Setup) error {
	f, err := l.c.Config.Frame(s.Spec, s.Encoders)
	if err != nil {
		return err
	}
	c := l.c
	if s.Replay == nil {
		// There are no other policies.
		c.Sharing = nil
	}
	d, err := newDesign(c, f, s.Encoders, s.Key.Split("params"))
	if err != nil {
		return err
	}
	// Final observations take rooms too, at most one for each transition.
	if n := l.c.VTrace.Length; n > 0 && s.Replay == nil && l.c.BufferSize/s.Envs < 2*n {
		return fmt.Errorf("buffer_size: %d transitions of %d environments have no room for sequences of vtrace.length %d", l.c.BufferSize, s.Envs, n)
	}
	if err := l.Build(s, &l.c.Settings, &l.c.CriticSettings, d.Networks, d.corrects()); err != nil {
		return err
	}
	l.bind()
	if err := l.bindConservative(); err != nil {
		return err
	}
	if c.Sharing != nil {
		if l.Sources == nil {
			return fmt.Errorf("sharing: the replay %q does not tell whose transitions it has", s.Replay.Identity())
		}
		l.sharing = newSharing(l)
	}
	l.Explore(c.explored(true))
	l.Sums = &l.sum
	if err := l.Constrain(&l.c.Settings); err != nil {
		return err
	}
	l.rec = l.Recorder(l.Constraints.Recorder(l.Buffer))
	if err := l.Diversify(l.c.Diversity); err != nil {
		return err
	}
	l.temperature, err = newTemperature(l.c, f)
	return err
}

// bind finds the buffers of the programs that are SAC's own.
func (l *learner) bind() {
	l.alpha, l.logProb = l.Actor.Input(alphaInput).Float32s(), l.Actor.Output(logProbOutput).Float32s()
	if l.c.BC != nil {
		l.lambda = l.Actor.Input(lambdaInput).Float32s()
	}
	if l.Networks.Frame.Continuous() {
		l.nextLogProb = l.Targets.Output(logProbOutput).Float32s()
		for _, p := range []*program.Program{l.Targets, l.Actor} {
			if t := p.Input(offpolicy.NoiseInput); t != nil {
				l.noises = append(l.noises, t.Float32s())
			}
		}
	} else {
		l.nextLogProb = l.Targets.Output(agents.LogProbsOutput).Float32s()
	}
	if l.c.VTrace.Length > 0 {
		l.trace = newTrace(l.c.VTrace, l.c.BatchSize)
		l.trace.logPi, l.Batch.LogProb, l.Batch.Ended = l.Targets.Output(behaviourOutput).Float32s(), l.trace.logMu, l.trace.ended
	}
}
