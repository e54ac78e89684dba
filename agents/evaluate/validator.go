package evaluate

import (
	"context"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// ValidationKey is where the randomness of validations descends from.
func ValidationKey() rng.Key { return rng.New(0).Split("validation") }

// Metrics lists the names of the metrics that a [Validator] returns in any environment.
func Metrics() []string { return []string{"mean_reward", "std_reward", "mean_length"} }

// Validator returns a function that evaluates an agent's present policy by whole episodes of the
// validation split, as the configuration of evaluation says. All of its calls face the same episodes
// and, where actions are drawn, draw from the same stream, so that two policies differ by what they
// do and not by their luck.
//
// mean_reward is the mean return of episodes, std_reward their standard deviation, mean_length their
// mean length, and mean_cost that of the sum of a cost (mean_cost/NAME where there are several).
// success_rate is there too where the environments say which episodes were successes.
func Validator(f envs.Factory, c Config) func(ctx context.Context, a agents.Agent, envSteps int64) (map[string]float64, error) {
	return func(ctx context.Context, a agents.Agent, _ int64) (map[string]float64, error) {
		r, err := Episodes(ctx, f, envs.Valid, a, c.Mode(), c.Episodes, c.MaxEpisodeSteps, ValidationKey())
		if err != nil {
			return nil, fmt.Errorf("validation: %w", err)
		}
		m := map[string]float64{"mean_reward": r.Return, "std_reward": r.ReturnStd, "mean_length": r.Length}
		if !math.IsNaN(r.Success) {
			m["success_rate"] = r.Success
		}
		for name, x := range r.Costs {
			m[vector.CostTag("mean_cost", name, len(r.Costs))] = x
		}
		return m, nil
	}
}
