package pettingzoo

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Vector steps worlds in worker processes, and divides what they tell among the rows of agents.
type Vector struct {
	s *split
	// worlds has a row for each world, rows one for each agent of each.
	worlds  vector.Env
	rows    *vector.Multi
	actions []*tensor.Tensor
	running bool
}

var (
	_ vector.Env   = (*Vector)(nil)
	_ vector.Saver = (*Vector)(nil)
)

func newVector(f *Factory, split envs.Split, n int, o vector.Options) (_ *Vector, err error) {
	k := len(f.s.agents)
	if n%k != 0 {
		return nil, vector.AgentRows(n, k)
	}
	inner := o
	// The worker begins the next episode where one is cut off, so it is the one to count.
	if o.Truncate == 0 && f.s.spec.MaxSteps == 0 {
		inner.Truncate = o.Limit
	}
	inner.Check = false
	v := &Vector{s: f.s}
	if v.worlds, err = f.inner.NewVector(split, n/k, inner); err != nil {
		return nil, err
	}
	list := make([]envs.Multi, n/k)
	for i := range list {
		list[i] = newPart(f.s, v.worlds, i)
	}
	// Rows are copied, and nothing is gained by several workers.
	o.Workers = 1
	if v.rows, err = vector.NewMulti(list, o); err != nil {
		return nil, errors.Join(err, v.worlds.Close())
	}
	all := v.rows.Batch().Actions
	for i := range n {
		v.actions = append(v.actions, all.Rows(i, i+1).Reshape(all.Shape()[1:]...))
	}
	return v, nil
}

// Spec implements vector.Env.
func (v *Vector) Spec() envs.Spec { return v.rows.Spec() }

// Len implements vector.Env.
func (v *Vector) Len() int { return v.rows.Len() }

// Batch implements vector.Env.
func (v *Vector) Batch() *vector.Batch { return v.rows.Batch() }

// Reset implements vector.Env.
func (v *Vector) Reset(key rng.Key) error {
	v.running = false
	if err := v.worlds.Reset(key); err != nil {
		return err
	}
	if err := v.rows.Reset(key); err != nil {
		return err
	}
	v.running = true
	return nil
}

// Step implements vector.Env.
func (v *Vector) Step(actions *tensor.Tensor) error {
	b := v.rows.Batch()
	if v.running {
		if err := v.step(b, actions); err != nil {
			return err
		}
	} else if err := v.worlds.Step(v.worlds.Batch().Actions); err != nil {
		// It says what is missing.
		return err
	}
	if err := v.rows.Step(b.Actions); err != nil {
		v.running = false
		return err
	}
	return nil
}

// step lets the workers take the actions of those agents that act.
func (v *Vector) step(b *vector.Batch, actions *tensor.Tensor) error {
	if actions != b.Actions {
		if err := b.Actions.CopyFrom(actions); err != nil {
			return fmt.Errorf("step %s: actions: %w", v.s.spec.Name, err)
		}
	}
	k, to := len(v.s.agents), v.worlds.Batch()
	for r, acts := range b.Present {
		if acts {
			if err := envs.CheckAction(&v.s.spec, v.actions[r]); err != nil {
				return fmt.Errorf("world %d, agent %q: %w", r/k, b.Agents[r], err)
			}
		}
		v.s.fill(to, r%k, r/k, v.actions[r], acts)
	}
	if err := v.worlds.Step(to.Actions); err != nil {
		v.running = false
		return err
	}
	return nil
}

// vectorState is the form of a saved vector.
type vectorState struct {
	Worlds []byte `json:"worlds"`
	Rows   []byte `json:"rows"`
}

// SaveState implements vector.Saver.
func (v *Vector) SaveState() ([]byte, error) {
	worlds, err := vector.SaveState(v.worlds)
	if err != nil {
		return nil, err
	}
	rows, err := v.rows.SaveState()
	if err != nil {
		return nil, err
	}
	return json.Marshal(vectorState{worlds, rows})
}

// LoadState implements vector.Saver.
func (v *Vector) LoadState(data []byte) error {
	var s vectorState
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load %s: %w", v.s.spec.Name, err)
	}
	v.running = false
	if err := vector.LoadState(v.worlds, s.Worlds); err != nil {
		return err
	}
	if err := v.rows.LoadState(s.Rows); err != nil {
		return err
	}
	v.running = true
	return nil
}

// Close implements vector.Env.
func (v *Vector) Close() error { return errors.Join(v.rows.Close(), v.worlds.Close()) }
