package games

import (
	"context"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
)

// Kinds lists the games.
func Kinds() []envs.Kind {
	return []envs.Kind{
		{Name: connectFour, Summary: "connect four, of two players who take turns", Defaults: func() any { return ConnectFourConfig{} }, Open: func(_ context.Context, params configs.Section) (envs.Factory, error) {
			var c ConnectFourConfig
			if err := params.Decode(&c); err != nil {
				return nil, err
			}
			return &factory{c, func() (envs.Multi, error) { return NewConnectFour(c) }, []envs.PlayerKind{alphaBetaKind}}, nil
		}},
		{Name: matrixGame, Summary: "a matrix game, such as rock, paper, scissors", Defaults: func() any { return DefaultMatrix() }, Open: func(_ context.Context, params configs.Section) (envs.Factory, error) {
			c := DefaultMatrix()
			if err := params.Decode(&c); err != nil {
				return nil, err
			}
			if len(c.Payoff) > 0 {
				c.Game = ""
			}
			return &factory{c, func() (envs.Multi, error) { return NewMatrix(c) }, []envs.PlayerKind{mixedKind}}, nil
		}},
	}
}

var alphaBetaKind = envs.PlayerKind{Name: "alpha_beta", Summary: "searches so many moves ahead", New: func(params configs.Section) (envs.Player, error) {
	c := AlphaBetaConfig{Depth: 4}
	if err := params.Decode(&c); err != nil {
		return nil, err
	}
	return alphaBeta{c}, nil
}}

var mixedKind = envs.PlayerKind{Name: "mixed", Summary: "draws from probabilities", New: func(params configs.Section) (envs.Player, error) {
	var c MixedConfig
	if err := params.Decode(&c); err != nil {
		return nil, err
	}
	p := &mixed{weights: c.Probabilities}
	for _, x := range p.weights {
		p.sum += x
	}
	return p, nil
}}

// factory makes the worlds of a game, all of two players.
type factory struct {
	c       any
	world   func() (envs.Multi, error)
	players []envs.PlayerKind
}

var (
	_ envs.MultiFactory = (*factory)(nil)
	_ envs.Scripted     = (*factory)(nil)
)

// Config implements envs.Factory.
func (f *factory) Config() any { return f.c }

// Agents implements envs.MultiFactory.
func (f *factory) Agents() []string { return []string{"player_0", "player_1"} }

// Players implements envs.Scripted.
func (f *factory) Players() []envs.PlayerKind { return f.players }

// New implements envs.Factory.
func (f *factory) New(split envs.Split, i int) (envs.Env, error) {
	w, err := f.NewMulti(split, i)
	if err != nil {
		return nil, err
	}
	return envs.AgentOf(w), nil
}

// NewMulti implements envs.MultiFactory.
func (f *factory) NewMulti(envs.Split, int) (envs.Multi, error) { return f.world() }

// Close implements envs.Factory.
func (f *factory) Close() error { return nil }
