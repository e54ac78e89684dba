package vector

import (
	"encoding/json"
	"fmt"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// state is the form of a saved vector.
type state struct {
	Name   string    `json:"name"`
	Key    rng.Key   `json:"key"`
	Began  []int     `json:"began"`
	Return []float64 `json:"return"`
	Length []int     `json:"length"`
	Envs   [][]byte  `json:"envs"`
}

// SaveState returns everything that later steps depend on, or an error that wraps
// envs.ErrCannotSave.
func (v *Local) SaveState() ([]byte, error) {
	if !v.running {
		return nil, fmt.Errorf("save %s: %w", v.spec.Name, envs.ErrNoEpisode)
	}
	s := state{Name: v.spec.Name, Key: v.key, Began: v.began, Return: v.ret, Length: v.length, Envs: make([][]byte, len(v.envs))}
	for i, e := range v.envs {
		if v.absent(i) {
			continue
		}
		var err error
		if s.Envs[i], err = envs.SaveState(e); err != nil {
			return nil, fmt.Errorf("save environment %d: %w", i, err)
		}
	}
	return json.Marshal(s)
}

// LoadState continues where SaveState was called, in a vector of as many equal environments; the
// number of workers does not matter. Observations, masks and diagnostics of the batch are restored.
// What the batch said of the step before, which the learner had already taken, is not: its types
// are envs.First or envs.Mid, its rewards 0, and no episode has ended.
func (v *Local) LoadState(data []byte) error {
	if v.closed {
		return fmt.Errorf("load %s: %w", v.spec.Name, envs.ErrClosed)
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load %s: %w", v.spec.Name, err)
	}
	n := len(v.envs)
	if s.Name != v.spec.Name || len(s.Envs) != n || len(s.Began) != n || len(s.Return) != n || len(s.Length) != n {
		return fmt.Errorf("load %s: the state is of %d environments %q, expected %d", v.spec.Name, len(s.Envs), s.Name, n)
	}
	v.running = false
	for i, e := range v.envs {
		if v.absent(i) {
			v.away(i)
			continue
		}
		ts := &v.rows[i].step
		if err := envs.LoadState(e, s.Envs[i], ts); err != nil {
			return fmt.Errorf("load environment %d: %w", i, err)
		}
		if ts.Type == envs.Last {
			return fmt.Errorf("load environment %d: its episode has ended", i)
		}
		v.batch.Type[i], v.batch.Reward[i], v.batch.Discount[i] = ts.Type, 0, 1
		clear(v.batch.Costs[i])
		v.publish(i, ts)
	}
	copy(v.acted, v.batch.Present)
	copy(v.began, s.Began)
	copy(v.ret, s.Return)
	copy(v.length, s.Length)
	v.key, v.running, v.batch.Ended = s.Key, true, v.batch.Ended[:0]
	return nil
}
