package versus

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Vector steps environments whose opponents are those of one pool, and decide for all rows at once.
type Vector struct {
	*vector.Local
	pool    *Pool
	envs    []*Env
	actions []*tensor.Tensor
}

var (
	_ vector.Env   = (*Vector)(nil)
	_ vector.Saver = (*Vector)(nil)
)

// Step implements vector.Env.
func (v *Vector) Step(actions *tensor.Tensor) error {
	b := v.Batch()
	if actions != b.Actions {
		if err := b.Actions.CopyFrom(actions); err != nil {
			return fmt.Errorf("step %s: actions: %w", v.envs[0].spec.Name, err)
		}
	}
	for i, e := range v.envs {
		if !e.running {
			// The environment says itself what is missing.
			continue
		}
		if err := e.act(v.actions[i]); err != nil {
			for _, e := range v.envs {
				e.running, e.pending = false, false
			}
			return fmt.Errorf("environment %d: %w", i, err)
		}
		e.ahead = true
	}
	if err := v.pool.play(v.envs); err != nil {
		return fmt.Errorf("step %s: %w", v.envs[0].spec.Name, err)
	}
	return v.Local.Step(b.Actions)
}

// Close implements vector.Env.
func (v *Vector) Close() error {
	err := v.Local.Close()
	if v.pool != nil {
		err = errors.Join(err, v.pool.Close())
		v.pool = nil
	}
	return err
}
