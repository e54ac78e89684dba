package ope

import (
	"context"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Data are the episodes of a data set in memory. An episode of T steps has T + 1 rows, of which the
// last is the observation after it and has nothing else.
type Data struct {
	Spec envs.Spec
	// Truncated counts the episodes that were cut off.
	Truncated int

	dir     string
	obs     *offline.Observations
	actions []byte
	size    int
	reward  []float64
	// discount are the environment's, without γ.
	discount, logProb []float64
	// starts are the first rows of the episodes, and at the end the number of rows; steps are the
	// rows of transitions.
	starts, steps []int
}

// Read reads a data set whose episodes fit environments of a spec, and checks them.
func Read(ctx context.Context, d *offline.Dataset, spec envs.Spec) (*Data, error) {
	if err := d.Fits(spec); err != nil {
		return nil, fmt.Errorf("data set %s: %w", d.Dir, err)
	}
	c, err := offline.NewChecker(d)
	if err != nil {
		return nil, fmt.Errorf("data set %s: %w", d.Dir, err)
	}
	x := &Data{Spec: spec, dir: d.Dir, obs: d.NewObservations(), size: len(tensor.New(spec.Action.DType(), spec.Action.Shape()...).Bytes())}
	err = d.Each(ctx, func(e *offline.Episode) error {
		if err := c.Check(e); err != nil {
			return err
		}
		n := e.Len()
		x.starts = append(x.starts, len(x.reward))
		for t := range n {
			x.steps = append(x.steps, len(x.reward)+t)
		}
		x.obs.Add(e, n+1)
		x.actions = append(append(x.actions, e.Action...), make([]byte, x.size)...)
		x.reward, x.discount, x.logProb = append(append(x.reward, e.Reward...), 0), append(append(x.discount, e.Discount...), 0), append(append(x.logProb, e.LogProb...), 0)
		if e.Truncated {
			x.Truncated++
		}
		return nil
	})
	if err == nil && len(x.starts) == 0 {
		err = fmt.Errorf("there is no episode")
	}
	if err != nil {
		return nil, fmt.Errorf("data set %s: %w", d.Dir, err)
	}
	x.starts = append(x.starts, len(x.reward))
	return x, nil
}

// Episodes and Transitions count them.
func (d *Data) Episodes() int { return len(d.starts) - 1 }

// Transitions counts the steps of all episodes.
func (d *Data) Transitions() int { return len(d.steps) }

// rows counts the observations.
func (d *Data) rows() int { return len(d.reward) }

// trajectories returns the episodes with discounts of γ, and neither ratios nor values.
func (d *Data) trajectories(gamma float64) []Trajectory {
	list := make([]Trajectory, d.Episodes())
	for i := range list {
		from, to := d.starts[i], d.starts[i+1]-1
		x := Trajectory{Reward: d.reward[from:to], Discount: make([]float64, to-from)}
		for t := range x.Discount {
			x.Discount[t] = gamma * d.discount[from+t]
		}
		list[i] = x
	}
	return list
}

// known is nil where the behaviour's probability of every action is known.
func (d *Data) known() error {
	missing, first := 0, ""
	for i := range d.Episodes() {
		for row := d.starts[i]; row < d.starts[i+1]-1; row++ {
			if math.IsNaN(d.logProb[row]) {
				if missing++; missing == 1 {
					first = fmt.Sprintf("episode %d, step %d", i, row-d.starts[i])
				}
			}
		}
	}
	if missing > 0 {
		return fmt.Errorf("data set %s: column log_prob: the behaviour's probability is not known (NaN) in %d of %d transitions, the first in %s; only %s does without (onnxrl record --stochastic keeps it)", d.dir, missing, len(d.steps), first, FQE)
	}
	return nil
}
