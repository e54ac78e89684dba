package qrdqn

import (
	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/valuebased"
)

var algorithm = valuebased.Algorithm("qrdqn", Config.design)

// Kind makes QR-DQN agents from a configuration.
var Kind = algorithm.Kind("qrdqn", "quantile regression dqn, off-policy, which learns distributions of returns: discrete actions", Defaults)

// NewMaker returns a maker for a configuration made in code.
func NewMaker(c Config) (agents.Maker, error) { return algorithm.Maker(c) }
