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
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// lanes is how many environments Episodes steps together.
const lanes = 8

// Result sums up whole episodes.
type Result struct {
	// Episodes lists them by environment and number.
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
// episodes are cut off after limit steps.
func Episodes(ctx context.Context, f envs.Factory, split envs.Split, a Actors, mode agents.Mode, n, limit int, key rng.Key) (_ Result, err error) {
	if n < 1 {
		return Result{}, fmt.Errorf("evaluate: %d episodes, expected at least 1", n)
	}
	open := func(n int) (vector.Env, error) {
		return vector.Open(f, split, n, vector.Options{Workers: 1, Limit: limit})
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
	return episodes(ctx, v, actor, n, key)
}

func episodes(ctx context.Context, v vector.Env, actor agents.Actor, n int, key rng.Key) (Result, error) {
	if err := v.Reset(key.Split("environments")); err != nil {
		return Result{}, fmt.Errorf("evaluate: %w", err)
	}
	// Environment i owes the episodes i, i+B, i+2B … of n.
	b, r := v.Len(), Result{Episodes: make([]vector.Episode, n)}
	spec := v.Spec()
	success, successes := spec.InfoIndex(successInfo), 0.0
	costs := vector.NewCostSum(spec, b)
	r.Costs = make(map[string]float64, len(spec.Costs))
	for round, left := 0, n; left > 0; round++ {
		err := agents.Collect(ctx, v, actor, nil, key.Split("policy"), round, 1, nil)
		if err != nil {
			return Result{}, fmt.Errorf("evaluate: %w", err)
		}
		costs.Add(v.Batch())
		for _, e := range v.Batch().Ended {
			if at := e.Number*b + e.Env; at < n {
				r.Episodes[at] = e
				left--
				for k, x := range costs.Episode(e.Env) {
					r.Costs[spec.Costs[k]] += x / float64(n)
				}
				if success >= 0 {
					successes += v.Batch().Info[e.Env][success]
				}
			}
		}
	}
	returns, lengths := make([]float64, n), make([]float64, n)
	for i, e := range r.Episodes {
		returns[i], lengths[i] = e.Return, float64(e.Length)
		r.Steps += int64(e.Length)
	}
	r.Return, r.ReturnStd = stat.PopMeanStdDev(returns, nil)
	r.Length, r.LengthStd = stat.PopMeanStdDev(lengths, nil)
	r.Low, r.High, r.Success = slices.Min(returns), slices.Max(returns), math.NaN()
	if success >= 0 {
		r.Success = successes / float64(n)
	}
	return r, nil
}
