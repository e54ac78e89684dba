package bc

import (
	"github.com/onnxrl/onnxrl/agents"
)

var algorithm = agents.Algorithm[Config]{Name: "bc", Replay: true, New: func(c Config, s agents.Setup) (agents.Agent, error) {
	l := &learner{c: c, metrics: agents.Metrics{}}
	l.Name = "bc"
	err := l.build(s)
	return &agents.Parts{Name: "bc", Learning: l, Recording: l.rec, Acting: l.NewActor}, err
}}

// Kind makes BC agents from a configuration.
var Kind = algorithm.Kind("bc", "behaviour cloning of a data set, also by ensembles: all actions", Defaults).FromData()

// NewMaker returns a maker for a configuration made in code.
func NewMaker(c Config) (agents.Maker, error) { return algorithm.Maker(c) }
