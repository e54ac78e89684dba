package evaluate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// lanes is how many environments, or worlds of several agents, Episodes steps together.
const lanes = 8

// Actors makes actors of one policy: an agents.Agent, or a model that was exported from one.
type Actors interface {
	// NewActor returns an actor for batches of n rows, which the caller closes.
	NewActor(m agents.Mode, n int) (agents.Actor, error)
}

// Result sums up whole episodes.
type Result struct {
	// Episodes lists them by number and environment: of a world with several agents, those of all
	// agents in an episode of the world, as they ended.
	Episodes []vector.Episode
	// Return and Length are means; the standard deviations are of the population, 0 for a single
	// episode.
	Return, ReturnStd, Length, LengthStd float64
	// Low and High are the least and the greatest return.
	Low, High float64
	// Success is the share of episodes whose last step says in the diagnostic is_success that they
	// were one; NaN where environments have no such diagnostic.
	Success float64
	// Costs are the means of the sums over an episode of each cost of the spec, by name.
	Costs map[string]float64
	// Steps is the number of env steps in the episodes.
	Steps int64
}

// successInfo is the diagnostic of Gymnasium's robotics environments.
const successInfo = "is_success"

// Episodes lets an agent act through n whole episodes of a factory's environments. A policy that
// takes the best action in an environment without randomness goes through one episode only: all of
// them are equal. Each environment contributes a number of episodes that is fixed beforehand, so
// short episodes do not count more than long ones. Where the environment has no limit of its own,
// episodes are cut off after limit steps. In worlds of several agents n counts the worlds'
// episodes, and the result is of all episodes of agents in them.
func Episodes(ctx context.Context, f envs.Factory, split envs.Split, a Actors, mode agents.Mode, n, limit int, key rng.Key) (_ Result, err error) {
	if n < 1 {
		return Result{}, fmt.Errorf("evaluate: %d episodes, expected at least 1", n)
	}
	rows := 1
	if m, ok := wrap.FindFactory[envs.MultiFactory](f); ok {
		rows = len(m.Agents())
	}
	open := func(n int) (vector.Env, error) {
		return vector.Open(f, split, n*rows, vector.Options{Workers: 1, Limit: limit})
	}
	v, err := open(min(n, lanes))
	if err == nil && !v.Spec().Random && mode == agents.Greedy && n > 1 {
		n = 1
		if err = v.Close(); err == nil {
			v, err = open(n)
		}
	}
	if err != nil {
		return Result{}, fmt.Errorf("evaluate: %w", err)
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	actor, err := a.NewActor(mode, v.Len())
	if err != nil {
		return Result{}, fmt.Errorf("evaluate: %w", err)
	}
	defer func() { err = errors.Join(err, actor.Close()) }()
	return episodes(ctx, v, actor, n, rows, key)
}

// episodes is Episodes in a vector of worlds with so many rows each.
func episodes(ctx context.Context, v vector.Env, actor agents.Actor, n, rows int, key rng.Key) (r Result, _ error) {
	if err := v.Reset(key.Split("environments")); err != nil {
		return Result{}, fmt.Errorf("evaluate: %w", err)
	}
	// World i owes the episodes i, i+B, i+2B … of n.
	b, spec := v.Len()/rows, v.Spec()
	lists, over := make([][]vector.Episode, n), make([]bool, n)
	success, successes := spec.InfoIndex(successInfo), 0.0
	costs := vector.NewCostSum(spec, v.Len())
	var spent []float64
	for round, left := 0, n; left > 0; round++ {
		if err := agents.Collect(ctx, v, actor, nil, key.Split("policy"), round, 1, nil); err != nil {
			return Result{}, fmt.Errorf("evaluate: %w", err)
		}
		costs.Add(v.Batch())
		for _, e := range v.Batch().Ended {
			at := e.Number*b + e.Env/rows
			if at >= n {
				continue
			}
			lists[at] = append(lists[at], e)
			if !e.WorldGoesOn && !over[at] {
				over[at] = true
				left--
			}
			spent = append(spent, costs.Episode(e.Env)...)
			if success >= 0 {
				successes += v.Batch().Info[e.Env][success]
			}
		}
	}
	r.Episodes = slices.Concat(lists...)
	count := float64(len(r.Episodes))
	r.Costs = make(map[string]float64, len(spec.Costs))
	for i, x := range spent {
		r.Costs[spec.Costs[i%len(spec.Costs)]] += x / count
	}
	returns, lengths := make([]float64, len(r.Episodes)), make([]float64, len(r.Episodes))
	for i, e := range r.Episodes {
		returns[i], lengths[i] = e.Return, float64(e.Length)
		r.Steps += int64(e.Length)
	}
	r.Return, r.ReturnStd = stat.PopMeanStdDev(returns, nil)
	r.Length, r.LengthStd = stat.PopMeanStdDev(lengths, nil)
	r.Low, r.High, r.Success = slices.Min(returns), slices.Max(returns), math.NaN()
	if success >= 0 {
		r.Success = successes / count
	}
	return r, nil
}
