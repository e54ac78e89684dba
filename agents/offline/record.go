package offline

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// partEpisodes is the number of episodes of a file that is recorded: what an interruption can cost.
const partEpisodes = 64

// Recording says what is recorded.
type Recording struct {
	// Factory makes the environments, of the split.
	Factory envs.Factory
	Split   envs.Split
	// NewActor returns an actor of the policy for n rows, which is closed here; nil where all
	// episodes are random.
	NewActor func(n int) (agents.Actor, error)
	// Behaviour is how the policy acts; Behaviour.Seed is where all randomness descends from.
	Behaviour Behaviour
	// Episodes are so many whole ones, or, where Transitions is not 0, as many as have that number
	// of transitions, at least. In worlds of several agents they count those of the world, of which
	// each agent has episodes of its own.
	Episodes, Transitions int64
	// Envs is the number of environments that step together: so many episodes are in memory. It
	// counts worlds.
	Envs int
	// Limit cuts off episodes of environments that have no limit of their own.
	Limit int
	// Progress, unless nil, receives the numbers of transitions as they are recorded.
	Progress func(episodes, transitions int64)
}

// SpecOf returns what the environments of a factory show, by which [Describe] makes a manifest. In
// worlds of several agents it is what each of them sees.
func SpecOf(f envs.Factory, split envs.Split, limit int) (spec envs.Spec, err error) {
	v, err := vector.Open(f, split, agentsOf(f), vector.Options{Workers: 1, Limit: limit})
	if err != nil {
		return spec, fmt.Errorf("record: %w", err)
	}
	return v.Spec(), v.Close()
}

// agentsOf is the number of agents of a world: so many rows of a vector belong together.
func agentsOf(f envs.Factory) int {
	if m, ok := wrap.FindFactory[envs.MultiFactory](f); ok {
		return len(m.Agents())
	}
	return 1
}

// Record lets a policy act, and writes what happens, as long as w has fewer episodes than are asked
// for. When ctx ends the error is ctx's, and the same call with a writer of the same folder goes on
// after the last whole file: the data set has the same bits as if there had been no interruption,
// because each file has randomness of its own.
func Record(ctx context.Context, r Recording, w *Writer) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("record: %w", err)
		}
	}()
	if r.Envs < 1 || r.Transitions == 0 && r.Episodes < 1 {
		return fmt.Errorf("%d episodes in %d environments, expected at least 1", r.Episodes, r.Envs)
	}
	k := agentsOf(r.Factory)
	v, err := vector.Open(r.Factory, r.Split, r.Envs*k, vector.Options{Workers: 1, Limit: r.Limit})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	for {
		m := w.Manifest()
		left := int64(partEpisodes)
		if r.Transitions == 0 {
			left = min(left, r.Episodes-partEpisodes*int64(w.Parts()))
		}
		if left <= 0 || r.Transitions > 0 && m.Transitions >= r.Transitions {
			return nil
		}
		key := rng.New(r.Behaviour.Seed).Split("record", w.Parts())
		err := w.Part(ctx, 0, func(add func(*Episode) error) error {
			return r.part(ctx, v, k, key, &m, partEpisodes*int64(w.Parts()), left, add)
		})
		if err != nil {
			return err
		}
	}
}

// part records the episodes of one file, of worlds of k agents, after those that are recorded. Each
// environment contributes a number of them that is fixed beforehand, so that short episodes do not
// count more than long ones.
func (r *Recording) part(ctx context.Context, v vector.Env, k int, key rng.Key, m *Manifest, before, episodes int64, add func(*Episode) error) (err error) {
	if err := v.Reset(key.Split("environments")); err != nil {
		return err
	}
	var actor agents.Actor
	if r.NewActor != nil {
		if actor, err = r.NewActor(v.Len()); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, actor.Close()) }()
	}
	b, n := v.Batch(), v.Len()
	act, err := newBehaviour(r.Behaviour, actor, v.Spec(), n)
	if err != nil {
		return err
	}
	list, number := make([]*Episode, n), make([]int, n)
	for e := range list {
		list[e] = m.newEpisode()
		act.random[e] = r.isRandom(key, e, 0)
	}
	acted := make([]bool, n)
	done, transitions := int64(0), m.Transitions
	for round := 0; done < episodes; round++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := act.act(ctx, key.Split("round", round), b); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		for e, x := range list {
			if acted[e] = present(b, e); acted[e] {
				x.show(e, b)
				x.Action, x.LogProb = append(x.Action, act.rowOf(e)...), append(x.LogProb, act.logProb[e])
			}
		}
		if err := v.Step(act.actions); err != nil {
			return fmt.Errorf("round %d: step: %w", round, err)
		}
		for e, x := range list {
			if acted[e] {
				x.take(e, b)
			}
		}
		over := -1 // The last world whose episode has ended.
		for _, end := range b.Ended {
			e, x := end.Env, list[end.Env]
			x.final(e, b)
			world := e / k
			if owed := end.Number*(n/k) + world; int64(owed) < episodes {
				if err := add(x); err != nil {
					return err
				}
				if !end.WorldGoesOn && world != over {
					over = world
					done++
				}
				transitions += int64(x.Len())
				if r.Progress != nil {
					r.Progress(before+done, transitions)
				}
				if r.Transitions > 0 && transitions >= r.Transitions {
					return nil
				}
			}
			x.reset()
			number[e]++
			act.random[e] = r.isRandom(key, e, number[e])
		}
	}
	return nil
}

// present reports whether row e is that of somebody who acts next.
func present(b *vector.Batch, e int) bool { return b.Present == nil || b.Present[e] }

// isRandom decides of an episode whether all of its actions are random.
func (r *Recording) isRandom(key rng.Key, env, number int) bool {
	return key.Split("random", env, number).Stream().Bernoulli(r.Behaviour.RandomEpisodes)
}

// show appends what environment e shows.
func (x *Episode) show(e int, b *vector.Batch) {
	for f, t := range b.Obs {
		if b.Rows[f] != nil {
			x.Rows[f] = append(x.Rows[f], b.Rows[f][e])
			continue
		}
		size := len(t.Bytes()) / len(b.Type)
		x.Obs[f] = append(x.Obs[f], t.Bytes()[e*size:(e+1)*size]...)
	}
	if b.Mask != nil {
		size := len(b.Mask.Bytes()) / len(b.Type)
		x.Mask = append(x.Mask, b.Mask.Bytes()[e*size:(e+1)*size]...)
	}
}

// take appends what a step of environment e gave.
func (x *Episode) take(e int, b *vector.Batch) {
	x.Reward, x.Discount = append(x.Reward, b.Earned()[e]), append(x.Discount, b.Discount[e])
	x.Cost = append(x.Cost, b.Costs[e]...)
}

// final appends the final observation of environment e, and says how the episode ended.
func (x *Episode) final(e int, b *vector.Batch) {
	for f, t := range b.Final {
		if b.Rows[f] != nil {
			x.Rows[f] = append(x.Rows[f], b.FinalRows[f][e])
			continue
		}
		size := len(t.Bytes()) / len(b.Type)
		x.Obs[f] = append(x.Obs[f], t.Bytes()[e*size:(e+1)*size]...)
	}
	if b.FinalMask != nil {
		size := len(b.FinalMask.Bytes()) / len(b.Type)
		x.Mask = append(x.Mask, b.FinalMask.Bytes()[e*size:(e+1)*size]...)
	}
	x.Terminated = b.Discount[e] == 0
	x.Truncated = !x.Terminated
}
