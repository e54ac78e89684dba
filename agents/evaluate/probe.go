package evaluate

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// probeLanes is how many worlds are stepped together while observations are shown to a policy.
const probeLanes = 8

// ProbeValid returns what a policy does, at its best, after at least n observations of the
// validation split, see [Probe]; limit cuts off episodes of environments without a limit.
func ProbeValid(ctx context.Context, f envs.Factory, a Actors, n, limit int) (actions []float64, err error) {
	lanes := probeLanes
	if m, ok := wrap.FindFactory[envs.MultiFactory](f); ok {
		lanes *= len(m.Agents())
	}
	return Probe(ctx, f, a, ProbeOptions{Split: envs.Valid, Lanes: lanes, Rounds: (n + lanes - 1) / lanes, Limit: limit})
}

// ProbeOptions say which observations policies are compared on.
type ProbeOptions struct {
	Split envs.Split
	// Lanes is how many worlds are stepped together, and Rounds how many observations of each are
	// shown to a policy.
	Lanes, Rounds int
	// Stride is how many env steps there are between two of them; 0 is 1.
	Stride int
	// Limit cuts off episodes of environments without one; 0 does not.
	Limit int
}

// Probe returns what a policy does, at its best, after observations of a split: those that random
// actions lead to, which are the same for every policy.
func Probe(ctx context.Context, f envs.Factory, a Actors, o ProbeOptions) (actions []float64, err error) {
	lanes := o.Lanes
	v, err := vector.Open(f, o.Split, lanes, vector.Options{Workers: 1, Limit: o.Limit})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	actor, err := a.NewActor(agents.Greedy, lanes)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, actor.Close()) }()
	key := rng.New(0).Split("probe")
	if err := v.Reset(key.Split("environments")); err != nil {
		return nil, err
	}
	space, draws := v.Spec().Action, key.Split("actions").Stream()
	one := tensor.New(space.DType(), space.Shape()...)
	stride := max(1, o.Stride)
	for step := range o.Rounds * stride {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b := v.Batch()
		if step%stride == 0 {
			d, err := actor.Act(ctx, key.Split("policy", step/stride), b)
			if err != nil {
				return nil, err
			}
			before := len(actions)
			if actions, err = appendNumbers(actions, d.Actions); err != nil {
				return nil, err
			}
			for i, present := range b.Present {
				if width := (len(actions) - before) / lanes; !present {
					clear(actions[before+i*width:][:width])
				}
			}
		}
		for i := range lanes {
			var mask []bool
			if b.Mask != nil {
				mask = b.Mask.Rows(i, i+1).Bools()
			}
			space.Sample(draws, mask, one)
			copy(b.Actions.Rows(i, i+1).Bytes(), one.Bytes())
		}
		if err := v.Step(b.Actions); err != nil {
			return nil, err
		}
	}
	return actions, nil
}

// appendNumbers appends the elements of an action tensor.
func appendNumbers(to []float64, t *tensor.Tensor) ([]float64, error) {
	switch t.DType() {
	case tensor.Float32:
		return widen(to, t.Float32s()), nil
	case tensor.Float64:
		return widen(to, t.Float64s()), nil
	case tensor.Int64:
		return widen(to, t.Int64s()), nil
	case tensor.Int32:
		return widen(to, t.Int32s()), nil
	case tensor.Uint8, tensor.Bool:
		return widen(to, t.Bytes()), nil
	}
	return nil, fmt.Errorf("actions of %v are not compared", t.DType())
}

func widen[T float32 | float64 | int64 | int32 | uint8](to []float64, list []T) []float64 {
	for _, x := range list {
		to = append(to, float64(x))
	}
	return to
}
