package experiment

import (
	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/a2c"
	"github.com/onnxrl/onnxrl/agents/dqn"
	"github.com/onnxrl/onnxrl/agents/ppo"
	"github.com/onnxrl/onnxrl/agents/sac"
	"github.com/onnxrl/onnxrl/agents/td3"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/gymnasium"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/feed"
)

// Envs lists the environments that a document can name.
func Envs() []envs.Kind {
	return append([]envs.Kind{corridor.Kind, trading.Kind(feed.Load), gymnasium.Kind}, classic.Kinds()...)
}

// Agents lists the algorithms that a document can name.
func Agents() []agents.Kind {
	return append([]agents.Kind{a2c.Kind, dqn.Kind, sac.Kind, td3.Kind, td3.DDPGKind}, ppo.Kinds()...)
}
