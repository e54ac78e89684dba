package vector

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// wrapped is a vector with the same wrappers around each of its rows. The vector inside steps once
// for all of them; then each row's wrappers see what became of theirs, as if its environment had
// been stepped alone.
type wrapped struct {
	inner Env
	// rows steps the wrappers.
	rows *Local
}

var (
	_ Env   = (*wrapped)(nil)
	_ Saver = (*wrapped)(nil)
)

// maker returns what makes whole vectors of a factory's environments, which may have wrappers
// around them.
func maker(f envs.Factory) (Maker, bool) {
	if m, ok := f.(Maker); ok {
		return m, true
	}
	if m, ok := f.(envs.MultiFactory); ok {
		return multiMaker{m}, true
	}
	w, ok := f.(wrap.Wrapper)
	if !ok {
		return nil, false
	}
	m, ok := maker(w.Unwrap())
	return &wrapMaker{m, w}, ok
}

// wrapMaker is a Maker with wrappers.
type wrapMaker struct {
	Maker
	by wrap.Wrapper
}

// NewVector implements Maker. Time limits are the vector's own, because it has to begin the next
// episode; all other wrappers are around its rows.
func (a *wrapMaker) NewVector(split envs.Split, n int, o Options) (Env, error) {
	inner := o
	if limit := a.by.TimeLimit(); limit > 0 && (o.Truncate == 0 || limit < o.Truncate) {
		inner.Truncate = limit
	}
	v, err := a.Maker.NewVector(split, n, inner)
	if err != nil {
		return nil, err
	}
	if !a.by.Rows() {
		return v, nil
	}
	w, err := newWrapped(v, a.by, split, o)
	if err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return w, nil
}

func newWrapped(v Env, by wrap.Wrapper, split envs.Split, o Options) (*wrapped, error) {
	list := make([]envs.Env, v.Len())
	for i := range list {
		var err error
		if list[i], err = by.Wrap(newSeen(v, i), split); err != nil {
			return nil, fmt.Errorf("environment %d: %w", i, err)
		}
	}
	rows, err := New(list, Options{Workers: 1, Windows: o.Windows, Check: o.Check})
	if err != nil {
		return nil, err
	}
	if b := v.Batch(); b.Present != nil {
		rows.batch.Present, rows.batch.Agents, rows.acted = b.Present, b.Agents, make([]bool, len(list))
	}
	return &wrapped{v, rows}, nil
}

// Spec implements Env.
func (w *wrapped) Spec() envs.Spec { return w.rows.spec }

// Len implements Env.
func (w *wrapped) Len() int { return w.rows.Len() }

// Batch implements Env.
func (w *wrapped) Batch() *Batch { return w.rows.batch }

// Reset implements Env.
func (w *wrapped) Reset(key rng.Key) error {
	w.rows.running = false
	if err := w.inner.Reset(key); err != nil {
		return err
	}
	return w.rows.Reset(key)
}

// Step implements Env.
func (w *wrapped) Step(actions *tensor.Tensor) error {
	if w.rows.running {
		if err := w.step(actions); err != nil {
			w.rows.running = false
			return err
		}
	}
	if err := w.rows.Step(actions); err != nil {
		return err
	}
	if w.rows.acted != nil {
		// The episodes that have ended are the same, but here they are not counted by worlds.
		for k, e := range w.inner.Batch().Ended {
			to := &w.rows.batch.Ended[k]
			to.Number, to.WorldGoesOn = e.Number, e.WorldGoesOn
		}
	}
	return nil
}

// step lets the vector inside take what the wrappers make of the actions.
func (w *wrapped) step(actions *tensor.Tensor) error {
	b := w.rows.batch
	if actions != b.Actions {
		if err := b.Actions.CopyFrom(actions); err != nil {
			return fmt.Errorf("step %s: actions: %w", w.rows.spec.Name, err)
		}
	}
	to := w.inner.Batch().Actions
	for i, e := range w.rows.envs {
		if w.rows.absent(i) {
			continue
		}
		a, err := wrap.Inward(e, w.rows.rows[i].action)
		if err == nil {
			err = put(to, i, a)
		}
		if err != nil {
			return fmt.Errorf("environment %d: %w", i, err)
		}
	}
	return w.inner.Step(to)
}

// wrappedState is the form of a saved vector.
type wrappedState struct {
	Inner []byte `json:"inner"`
	Rows  []byte `json:"rows"`
}

// SaveState implements Saver.
func (w *wrapped) SaveState() ([]byte, error) {
	inner, err := SaveState(w.inner)
	if err != nil {
		return nil, err
	}
	rows, err := w.rows.SaveState()
	if err != nil {
		return nil, err
	}
	return json.Marshal(wrappedState{inner, rows})
}

// LoadState implements Saver.
func (w *wrapped) LoadState(data []byte) error {
	var s wrappedState
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load %s: %w", w.rows.spec.Name, err)
	}
	if s.Inner == nil || s.Rows == nil {
		return fmt.Errorf("load %s: the state is not of a vector with wrappers around its rows", w.rows.spec.Name)
	}
	w.rows.running = false
	if err := LoadState(w.inner, s.Inner); err != nil {
		return err
	}
	return w.rows.LoadState(s.Rows)
}

// Close implements Env.
func (w *wrapped) Close() error { return errors.Join(w.rows.Close(), w.inner.Close()) }

// seen is row i of a vector as the innermost environment of wrappers: what it is asked for has
// happened already, and it tells of it.
type seen struct {
	v    Env
	i    int
	spec envs.Spec
}

var (
	_ envs.Env   = (*seen)(nil)
	_ envs.Saver = (*seen)(nil)
)

func newSeen(v Env, i int) *seen { return &seen{v, i, v.Spec()} }

// Spec implements envs.Env.
func (e *seen) Spec() envs.Spec { return e.spec }

// Reset implements envs.Env: the vector has begun the episode, with the same key.
func (e *seen) Reset(_ rng.Key, ts *envs.TimeStep) error {
	b := e.v.Batch()
	e.show(ts, b.Obs, b.Rows, b.Mask)
	ts.Restart()
	return nil
}

// Step implements envs.Env: the vector has taken the action.
func (e *seen) Step(_ *tensor.Tensor, ts *envs.TimeStep) error {
	b := e.v.Batch()
	if b.Type[e.i] == envs.Last {
		e.show(ts, b.Final, b.FinalRows, b.FinalMask)
	} else {
		e.show(ts, b.Obs, b.Rows, b.Mask)
	}
	ts.Type, ts.Reward, ts.Discount = b.Type[e.i], b.Reward[e.i], b.Discount[e.i]
	copy(ts.Costs, b.Costs[e.i])
	return nil
}

// show writes what the batch has of the row.
func (e *seen) show(ts *envs.TimeStep, obs []*tensor.Tensor, last [][]int64, mask *tensor.Tensor) {
	for f := range obs {
		if w := e.spec.Observation[f].Window; w != nil {
			ts.SetWindow(f, w, int(last[f][e.i]))
			continue
		}
		to := ts.Obs[f].Bytes()
		copy(to, obs[f].Bytes()[e.i*len(to):])
	}
	if mask != nil {
		to := ts.Mask.Bytes()
		copy(to, mask.Bytes()[e.i*len(to):])
	}
	copy(ts.Info, e.v.Batch().Info[e.i])
}

// SaveState implements envs.Saver. The vector saves the environment.
func (e *seen) SaveState() ([]byte, error) { return []byte{}, nil }

// LoadState implements envs.Saver, after the vector has gone back to where it was.
func (e *seen) LoadState(_ []byte, ts *envs.TimeStep) error {
	b := e.v.Batch()
	e.show(ts, b.Obs, b.Rows, b.Mask)
	ts.Type, ts.Reward, ts.Discount = b.Type[e.i], 0, 1
	clear(ts.Costs)
	return nil
}

// Close implements envs.Env. The vector is closed by its owner.
func (e *seen) Close() error { return nil }
