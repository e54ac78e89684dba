package offline

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// judgeRows is the number of observations that a policy is asked about at once.
const judgeRows = 256

// Judge compares a policy's best actions with those of episodes that are held out, as d3rlpy's
// ContinuousActionDiffEvaluator and DiscreteActionMatchEvaluator do. It keeps these episodes in
// memory.
type Judge struct {
	spec   envs.Spec
	bounds []envs.Range
	// held are the observations, and actions the bytes of what was done.
	held    *Observations
	actions []byte
}

// NewJudge reads the episodes that are held out.
func NewJudge(ctx context.Context, d *Dataset, spec envs.Spec, held []bool) (*Judge, error) {
	j := &Judge{spec: spec, held: d.NewObservations()}
	if box, ok := spec.Action.(envs.Box); ok {
		for i := range tensor.New(box.Of, box.Dims...).Len() {
			j.bounds = append(j.bounds, box.Bounds(i))
		}
	}
	part := Part{held, true}
	err := d.Each(ctx, func(e *Episode) error {
		if !part.has(e.Number) {
			return nil
		}
		j.held.Add(e, e.Len())
		j.actions = append(j.actions, e.Action...)
		return nil
	})
	if err == nil && j.held.Len() == 0 {
		err = errors.New("no episode is held out")
	}
	return j, err
}

// Metrics returns, of a policy's best actions, for actions in a box action_diff, the mean over
// transitions of Σ (a − π(s))² in units in which the bounds are ±1, and for others action_match,
// the share of transitions in which it takes the recorded one. action_score is what a better policy
// has more of: −action_diff, or action_match.
func (j *Judge) Metrics(ctx context.Context, a interface {
	NewActor(m agents.Mode, n int) (agents.Actor, error)
}) (_ map[string]float64, err error) {
	actor, err := a.NewActor(agents.Greedy, judgeRows)
	if err != nil {
		return nil, fmt.Errorf("held-out episodes: %w", err)
	}
	defer func() { err = errors.Join(err, actor.Close()) }()
	frame, err := vector.NewFrame(j.spec, judgeRows, false)
	if err != nil {
		return nil, fmt.Errorf("held-out episodes: %w", err)
	}
	defer func() { err = errors.Join(err, frame.Close()) }()
	b, sum, all := frame.Batch(), 0.0, j.held.Len()
	for at := 0; at < all; at += judgeRows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := min(judgeRows, all-at)
		for i := range judgeRows {
			// Rows that are left over are asked about, too, and need an observation.
			j.held.Put(b, i, at+min(i, n-1))
		}
		d, err := actor.Act(ctx, rng.Key{}, b)
		if err != nil {
			return nil, fmt.Errorf("held-out episodes: act: %w", err)
		}
		sum += j.compare(d.Actions, at, n)
	}
	sum /= float64(all)
	if j.bounds != nil {
		return map[string]float64{"action_diff": sum, "action_score": -sum}, nil
	}
	return map[string]float64{"action_match": sum, "action_score": sum}, nil
}

// compare adds up over n rows the squared distances of actions to the recorded ones, or how many
// are equal.
func (j *Judge) compare(actions *tensor.Tensor, at, n int) (sum float64) {
	all := actions.Bytes()
	size := len(all) / judgeRows
	recorded := j.actions[at*size : (at+n)*size]
	if j.bounds == nil {
		for i := range n {
			if string(all[i*size:(i+1)*size]) == string(recorded[i*size:(i+1)*size]) {
				sum++
			}
		}
		return sum
	}
	was := tensor.New(actions.DType(), n*len(j.bounds))
	copy(was.Bytes(), recorded)
	for i := range n * len(j.bounds) {
		r := j.bounds[i%len(j.bounds)]
		x := (number(actions, i) - number(was, i)) / ((r.High - r.Low) / 2)
		sum += x * x
	}
	return sum
}

// number is element i of float32 or float64.
func number(t *tensor.Tensor, i int) float64 {
	if t.DType() == tensor.Float64 {
		return t.Float64s()[i]
	}
	return float64(t.Float32s()[i])
}
