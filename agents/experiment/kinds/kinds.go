// Package kinds lists the environments, algorithms, encoders, formats of data sets and protocols that
// come with onnxrl.
//
// # How to add one
//
// Add its Kind to one of the lists of [All], or, for an encoder, to encoder.Kinds. An environment
// whose policies are evaluated or published in a way of their own brings a package below agents, as
// agents/assess and agents/trader are the market's. Its judge joins the list of judges, and its Kind
// is the one whose factory is a publish.Domain. A program with kinds of its own appends them to what
// All returns.
package kinds

import (
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/a2c"
	"github.com/onnxrl/onnxrl/agents/actors"
	actorflight "github.com/onnxrl/onnxrl/agents/actors/flight"
	"github.com/onnxrl/onnxrl/agents/assess"
	"github.com/onnxrl/onnxrl/agents/bc"
	"github.com/onnxrl/onnxrl/agents/dqn"
	"github.com/onnxrl/onnxrl/agents/es"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/convert"
	"github.com/onnxrl/onnxrl/agents/impala"
	"github.com/onnxrl/onnxrl/agents/iql"
	"github.com/onnxrl/onnxrl/agents/mappo"
	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/ppo"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/qrdqn"
	"github.com/onnxrl/onnxrl/agents/replay"
	replayflight "github.com/onnxrl/onnxrl/agents/replay/flight"
	"github.com/onnxrl/onnxrl/agents/sac"
	"github.com/onnxrl/onnxrl/agents/scml/seat"
	"github.com/onnxrl/onnxrl/agents/td3"
	"github.com/onnxrl/onnxrl/agents/trader"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/cover"
	"github.com/onnxrl/onnxrl/envs/games"
	"github.com/onnxrl/onnxrl/envs/gymnasium"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/synthetic"
	"github.com/onnxrl/onnxrl/envs/meta"
	"github.com/onnxrl/onnxrl/envs/pettingzoo"
	"github.com/onnxrl/onnxrl/envs/versus"
	"github.com/onnxrl/onnxrl/models/encoder"
)

// All returns what comes with the program. The lists are the caller's.
func All() experiment.Kinds {
	inside := slices.Concat([]envs.Kind{corridor.Kind, cover.Kind, trader.Kind(), gymnasium.Kind, pettingzoo.Kind, seat.GoalsKind, seat.ThreadsKind}, games.Kinds(), classic.Kinds())
	return experiment.Kinds{
		Envs:      append(slices.Clone(inside), meta.Kind(inside, publish.Experts), versus.Kind(inside, publish.Opponent)),
		Agents:    slices.Concat([]agents.Kind{a2c.Kind, bc.Kind, dqn.Kind, dqn.CQLKind, qrdqn.Kind, sac.Kind, sac.CQLKind, iql.Kind, iql.AWACKind, iql.AWRKind, td3.Kind, td3.DDPGKind, td3.BCKind, es.OpenAIKind, es.CMAKind, impala.Kind, impala.APPOKind}, ppo.Kinds(), mappo.Kinds()),
		Encoders:  encoder.Kinds(),
		Datasets:  []replay.DatasetKind{offline.Kind},
		Replays:   []replay.ServedKind{replayflight.Kind},
		Actors:    []actors.Kind{actorflight.Kind},
		Judges:    []experiment.Judge{assess.Judge{}},
		Lists:     lists(),
		Translate: convert.Known,
	}
}

// lists are what the sections of a market's data name.
func lists() map[string][]configs.Kind {
	var markets []configs.Kind
	for _, k := range synthetic.Kinds() {
		markets = append(markets, configs.Kind{Name: k.Name, Summary: k.Summary, Defaults: k.Defaults})
	}
	return map[string][]configs.Kind{"market": markets, "source": {{Defaults: func() any { return bars.DefaultSource() }}}}
}
