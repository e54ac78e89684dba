package versus

import (
	"context"
	"fmt"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Game is one that was played.
type Game struct {
	// Players are members of the pool by seat, which the caller gives.
	Players []int
	// Returns are the sums of the rewards of each seat, and Scores [seats] 1 for who earned more
	// than all others, 1/2 for who shares the most with others, and else 0.
	Returns, Scores []float64
	Length          int
}

// Play plays games between members, so many at once, for worlds of a factory, and fills in what
// came of them. A game depends on its players, its place in the list and key alone, but for the
// rounding of models.
func (p *Pool) Play(ctx context.Context, worlds envs.MultiFactory, split envs.Split, games []Game, at int, key rng.Key) (err error) {
	at = min(at, len(games))
	tables, of := make([]*table, at), make([]int, at)
	next := 0
	// begin gives a table its next game, or nothing to do.
	begin := func(k int) error {
		if of[k] = next; next == len(games) {
			return nil
		}
		g, t := &games[next], tables[k]
		if len(g.Players) != len(t.names) {
			return fmt.Errorf("game %d has %d players, and the world the seats %q", next, len(g.Players), t.names)
		}
		copy(t.players, g.Players)
		next++
		return t.reset(key.Split("game", of[k]))
	}
	for k := range tables {
		w, err := worlds.NewMulti(split, k)
		if err != nil {
			return err
		}
		defer func() {
			if e := w.Close(); err == nil {
				err = e
			}
		}()
		tables[k] = newTable(w)
		if err := begin(k); err != nil {
			return err
		}
	}
	for left := len(games); left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		for k, t := range tables {
			if of[k] < len(games) {
				if err := p.decide(t); err != nil {
					return err
				}
			}
		}
		if err := p.answer(); err != nil {
			return err
		}
		for k, t := range tables {
			if of[k] == len(games) {
				continue
			}
			over, err := t.step()
			if err != nil {
				return err
			}
			if !over {
				continue
			}
			g := &games[of[k]]
			g.Returns, g.Scores, g.Length = append([]float64(nil), t.returns...), scores(t.returns), t.length
			left--
			if err := begin(k); err != nil {
				return err
			}
		}
	}
	return nil
}

// scores compares returns.
func scores(returns []float64) []float64 {
	out := make([]float64, len(returns))
	for i, own := range returns {
		out[i] = 1
		for j, other := range returns {
			if j != i {
				out[i] = min(out[i], score(own, other))
			}
		}
	}
	return out
}

// Probabilities returns with what probabilities a member takes each action of a step in a world of a
// spec, as envs.MaskLen orders them; nil where it says nothing of them.
func (p *Pool) Probabilities(member int, spec envs.Spec, ts *envs.TimeStep) ([]float64, error) {
	m := &p.members[member]
	if m.policy == nil || m.greedy {
		return nil, nil
	}
	if err := p.show(0, spec, ts); err != nil {
		return nil, fmt.Errorf("opponent %q: %w", m.name, err)
	}
	d, err := p.ask(m, 1)
	if err != nil || d.Logits == nil {
		return nil, err
	}
	return exps(d.Logits.Float32s()[:d.Logits.Len()/block]), nil
}
