package experiment

import (
	"onnxrl/agents"
	"onnxrl/agents/a2c"
	"onnxrl/agents/dqn"
	"onnxrl/agents/ppo"
	"onnxrl/agents/sac"
	"onnxrl/agents/td3"
	"onnxrl/envs"
	"onnxrl/envs/classic"
	"onnxrl/envs/corridor"
	"onnxrl/envs/gymnasium"
	"onnxrl/envs/market/trading"
	"onnxrl/envs/market/trading/feed"
)

// Envs lists the environments that a document can name.
func Envs() []envs.Kind {
	return append([]envs.Kind{corridor.Kind, trading.Kind(feed.Load), gymnasium.Kind}, classic.Kinds()...)
}

// Agents lists the algorithms that a document can name.
func Agents() []agents.Kind {
	return append([]agents.Kind{a2c.Kind, dqn.Kind, sac.Kind, td3.Kind, td3.DDPGKind}, ppo.Kinds()...)
}
