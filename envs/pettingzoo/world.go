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

// The state of an agent after a step, as worlds.py writes it.
const (
	absent = iota
	begins
	goesOn
	terminated
	truncated
)

// part is a world of a vector of worlds, as one that has several agents: what it is asked for has
// happened already, and it tells of it.
type part struct {
	s   *split
	of  vector.Env
	row int
	// acts says which agents act next, and begun that they have acted.
	acts, begun []bool
}

var (
	_ envs.Multi      = (*part)(nil)
	_ envs.MultiSaver = (*part)(nil)
)

func newPart(s *split, of vector.Env, row int) *part {
	k := len(s.agents)
	return &part{s: s, of: of, row: row, acts: make([]bool, k), begun: make([]bool, k)}
}

// Spec implements envs.Multi.
func (w *part) Spec() envs.Spec { return w.s.spec }

// Agents implements envs.Multi.
func (w *part) Agents() []string { return w.s.agents }

// Reset implements envs.Multi: the worker has begun the episode.
func (w *part) Reset(_ rng.Key, steps []*envs.TimeStep, present []bool) error {
	b := w.of.Batch()
	copy(present, w.s.there(w.row, b.Obs, w.of.Len()))
	copy(w.acts, present)
	for i, here := range present {
		w.begun[i] = false
		if here {
			w.s.observe(i, w.row, b.Obs, b.Mask, w.of.Len(), steps[i])
			clear(steps[i].Info)
			steps[i].Restart()
		}
	}
	return nil
}

// Step implements envs.Multi: the worker has taken the actions.
func (w *part) Step(_ []*tensor.Tensor, steps []*envs.TimeStep, present []bool) error {
	b := w.of.Batch()
	obs, mask := b.Obs, b.Mask
	over := b.Type[w.row] == envs.Last
	if over {
		obs, mask = b.Final, b.FinalMask
	}
	// A worker that has ended was replaced, and tells nothing of its worlds.
	lost := over
	for i := range present {
		end, _, _ := w.s.told(i, b.Info[w.row])
		lost = lost && end == absent
	}
	for i, ts := range steps {
		end, reward, rest := w.s.told(i, b.Info[w.row])
		if lost && w.acts[i] {
			end = truncated
		}
		if present[i] = end != absent; end == absent {
			w.acts[i] = false
			continue
		}
		w.s.observe(i, w.row, obs, mask, w.of.Len(), ts)
		n := copy(ts.Info, rest)
		copy(ts.Costs, rest[n:])
		switch end {
		case begins:
			ts.Restart()
		case goesOn:
			ts.Continue(reward)
		case terminated:
			ts.Terminate(reward)
		case truncated:
			ts.Truncate(reward)
		}
		w.begun[i] = end == goesOn
		w.acts[i] = end == begins || end == goesOn
	}
	return nil
}

// partState is the form of a saved part; the worker saves the world.
type partState struct {
	Acts  []bool `json:"acts"`
	Begun []bool `json:"begun"`
}

// SaveState implements envs.MultiSaver.
func (w *part) SaveState() ([]byte, error) { return json.Marshal(partState{w.acts, w.begun}) }

// LoadState implements envs.MultiSaver, after the worker has gone back to where it was.
func (w *part) LoadState(data []byte, steps []*envs.TimeStep, present []bool) error {
	var s partState
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load %s: %w", w.s.spec.Name, err)
	}
	if len(s.Acts) != len(w.acts) || len(s.Begun) != len(w.acts) {
		return fmt.Errorf("load %s: of %d agents, expected %d", w.s.spec.Name, len(s.Acts), len(w.acts))
	}
	b := w.of.Batch()
	copy(w.acts, s.Acts)
	copy(w.begun, s.Begun)
	copy(present, s.Acts)
	for i, ts := range steps {
		if !present[i] {
			continue
		}
		w.s.observe(i, w.row, b.Obs, b.Mask, w.of.Len(), ts)
		_, _, rest := w.s.told(i, b.Info[w.row])
		clear(ts.Costs)
		clear(ts.Info)
		if ts.Restart(); w.begun[i] {
			copy(ts.Info, rest)
			ts.Continue(0)
		}
	}
	return nil
}

// Close implements envs.Multi. The vector is closed by its owner.
func (w *part) Close() error { return nil }

// lone is a world in a process of its own.
type lone struct {
	*part
	running, closed bool
}

var (
	_ envs.Multi      = (*lone)(nil)
	_ envs.MultiSaver = (*lone)(nil)
)

// Reset implements envs.Multi.
func (w *lone) Reset(key rng.Key, steps []*envs.TimeStep, present []bool) error {
	if w.closed {
		return fmt.Errorf("reset %s: %w", w.s.spec.Name, envs.ErrClosed)
	}
	w.running = false
	if err := w.of.Reset(key); err != nil {
		return err
	}
	w.running = true
	return w.part.Reset(key, steps, present)
}

// Step implements envs.Multi.
func (w *lone) Step(actions []*tensor.Tensor, steps []*envs.TimeStep, present []bool) error {
	switch {
	case w.closed:
		return fmt.Errorf("step %s: %w", w.s.spec.Name, envs.ErrClosed)
	case !w.running:
		return fmt.Errorf("step %s: %w", w.s.spec.Name, envs.ErrNoEpisode)
	}
	b := w.of.Batch()
	for i, acts := range w.acts {
		if acts {
			if err := envs.CheckAction(&w.s.spec, actions[i]); err != nil {
				return err
			}
		}
		w.s.fill(b, i, 0, actions[i], acts)
	}
	w.running = false
	if err := w.of.Step(b.Actions); err != nil {
		return err
	}
	w.running = b.Type[0] != envs.Last
	return w.part.Step(actions, steps, present)
}

// loneState is the form of a saved world with its process.
type loneState struct {
	World []byte `json:"world"`
	Part  []byte `json:"part"`
}

// SaveState implements envs.MultiSaver.
func (w *lone) SaveState() ([]byte, error) {
	if !w.running {
		return nil, fmt.Errorf("save %s: %w", w.s.spec.Name, envs.ErrNoEpisode)
	}
	world, err := vector.SaveState(w.of)
	if err != nil {
		return nil, err
	}
	part, err := w.part.SaveState()
	if err != nil {
		return nil, err
	}
	return json.Marshal(loneState{world, part})
}

// LoadState implements envs.MultiSaver.
func (w *lone) LoadState(data []byte, steps []*envs.TimeStep, present []bool) error {
	var s loneState
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load %s: %w", w.s.spec.Name, err)
	}
	w.running = false
	if err := errors.Join(vector.LoadState(w.of, s.World), w.part.LoadState(s.Part, steps, present)); err != nil {
		return err
	}
	w.running = true
	return nil
}

// Close implements envs.Multi.
func (w *lone) Close() error {
	w.closed, w.running = true, false
	return w.of.Close()
}
