package dqn

import (
	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/valuebased"
)

var algorithm = valuebased.Algorithm("dqn", Config.design)

// Kind makes DQN agents from a configuration, CQLKind the same ones with the defaults of CQL.
var (
	Kind    = algorithm.Kind("dqn", "deep Q-learning, off-policy: discrete actions", Defaults)
	CQLKind = algorithm.Kind("discrete_cql", "conservative q-learning, dqn from data sets: discrete actions", CQLDefaults).FromData()
)

// NewMaker returns a maker for a configuration made in code.
func NewMaker(c Config) (agents.Maker, error) { return algorithm.Maker(c) }
