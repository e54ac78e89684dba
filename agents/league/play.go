package league

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/versus"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// opener opens the models of members.
var opener versus.Opener = publish.Opponent

// together is how many games of a match are played at once.
const together = 32

// play lets the last member play all others, and after the first generation these each other, too.
func (l *League) play(ctx context.Context, g int, list []versus.Opponent) ([]Match, error) {
	type pair struct{ a, b int }
	var pairs []pair
	if g == 0 {
		for a := range len(list) - 1 {
			for b := range a {
				pairs = append(pairs, pair{a, b})
			}
		}
	}
	for b := range len(list) - 1 {
		pairs = append(pairs, pair{len(list) - 1, b})
	}
	out := make([]Match, len(pairs))
	return out, run.Each(ctx, l.parallel(), len(pairs), func(ctx context.Context, i int) (err error) {
		p := pairs[i]
		a, b := list[p.a], list[p.b]
		out[i], err = Games(ctx, l.worlds, compiled(l.o.Run.Engine), a, b, l.c.Games, together, l.key.Split("games", g, i))
		out[i].Generation = g
		return err
	})
}

// Games lets two players play at least so many games, as many in each deal of the seats, some of
// them at once. In worlds of more than two agents A plays one seat and B all others.
func Games(ctx context.Context, worlds envs.MultiFactory, compile func(context.Context) (engine.Compiler, error), a, b versus.Opponent, n, at int, key rng.Key) (m Match, err error) {
	m.A, m.B = a.Called(), b.Called()
	pool, err := versus.OpenPool(ctx, worlds, envs.Test, []versus.Opponent{a, b}, opener, compile)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, pool.Close()) }()
	names := worlds.Agents()
	k := len(names)
	each := (n + k - 1) / k
	games := make([]versus.Game, each*k)
	for i := range games {
		players := make([]int, k)
		for s := range players {
			if s != i%k {
				players[s] = 1
			}
		}
		games[i].Players = players
	}
	if err := pool.Play(ctx, worlds, envs.Test, games, at, key); err != nil {
		return m, fmt.Errorf("%s against %s: %w", m.A, m.B, err)
	}
	for _, name := range names {
		m.Seats = append(m.Seats, Tally{Seat: name})
	}
	for i, g := range games {
		s := i % k
		m.Seats[s].add(g.Scores[s], g.Returns[s])
	}
	return m, nil
}
