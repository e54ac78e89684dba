package meta

import (
	"encoding/json"
	"fmt"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/risk"
)

// state is the form of a saved episode.
type state struct {
	Inside []byte    `json:"inside"`
	Charge []float64 `json:"charge"`
	// The decisions of the episode, and those of training, which go on to the next one.
	memory
	Training *memory       `json:"training,omitempty"`
	Value    float64       `json:"value,omitzero"`
	Values   []float64     `json:"values,omitempty"`
	Risk     []risk.Memory `json:"risk,omitempty"`
	Chosen   int           `json:"chosen"`
	KL       float64       `json:"kl"`
	Steps    int           `json:"steps"`
	// Held are the assets that might be held in the last segment.
	Held []bool `json:"held,omitempty"`
}

// SaveState implements envs.Saver. Experts that remember cannot be saved.
func (e *Env) SaveState() ([]byte, error) {
	if !e.running {
		return nil, fmt.Errorf("save %s: %w", e.spec.Name, envs.ErrNoEpisode)
	}
	if e.always {
		return nil, fmt.Errorf("save %s: an expert remembers steps before: %w", e.spec.Name, envs.ErrCannotSave)
	}
	inside, err := envs.SaveState(e.inside)
	if err != nil {
		return nil, err
	}
	s := state{Inside: inside, Charge: e.charge, memory: e.usage.memory(), Chosen: e.chosen, KL: e.kl, Steps: e.steps}
	if e.training != nil {
		m := e.training.memory()
		s.Training = &m
	}
	if e.held != nil {
		s.Held = e.held.may
	}
	if b := e.books; b != nil {
		s.Value, s.Values = b.value, b.values
		for _, m := range b.monitors {
			s.Risk = append(s.Risk, m.Memory())
		}
	}
	return json.Marshal(s)
}

// LoadState implements envs.Saver.
func (e *Env) LoadState(data []byte, ts *envs.TimeStep) error {
	if e.closed {
		return fmt.Errorf("load %s: %w", e.spec.Name, envs.ErrClosed)
	}
	e.running = false
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load %s: %w", e.spec.Name, err)
	}
	if err := e.restore(&s); err != nil {
		return fmt.Errorf("load %s: %w", e.spec.Name, err)
	}
	if err := envs.LoadState(e.inside, s.Inside, e.ts); err != nil {
		return err
	}
	first := e.ts.Type == envs.First
	e.observe(ts)
	if ts.Restart(); !first {
		ts.Continue(0)
	}
	e.running = true
	return nil
}

// restore takes over what is not of the environment inside.
func (e *Env) restore(s *state) error {
	n := len(e.experts)
	whole := len(s.Charge) == n && e.usage.fits(s.memory) && (s.Training == nil || e.usage.fits(*s.Training)) && s.Chosen >= -1 && s.Chosen < n
	if b := e.books; b != nil {
		whole = whole && len(s.Values) == n && len(s.Risk) == n
	} else {
		whole = whole && s.Values == nil && s.Risk == nil
	}
	if e.held != nil {
		whole = whole && len(s.Held) == len(e.held.may)
	}
	if !whole {
		return fmt.Errorf("the state is not one of %d experts, %d decisions and these limits on risk", n, len(e.usage.recent))
	}
	e.usage.restore(s.memory)
	if t := e.training; t != nil {
		// A state that was saved without this memory begins with none.
		if t.reset(); s.Training != nil {
			t.restore(*s.Training)
		}
	}
	copy(e.charge, s.Charge)
	if e.held != nil {
		copy(e.held.may, s.Held)
	}
	e.chosen, e.kl, e.steps = s.Chosen, s.KL, s.Steps
	if b := e.books; b != nil {
		b.value = s.Value
		copy(b.values, s.Values)
		for i, m := range b.monitors {
			if err := m.Restore(s.Risk[i]); err != nil {
				return fmt.Errorf("expert %d: %w", i, err)
			}
		}
	}
	return nil
}
