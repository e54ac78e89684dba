package gymnasium

import (
	"encoding/json"
	"errors"
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
	// Obs, Mask and Info are what the next actions are decided on.
	Obs  [][]byte    `json:"obs"`
	Mask []byte      `json:"mask"`
	Info [][]float64 `json:"info"`
	Envs []held      `json:"envs"`
}

// held is what an environment holds, as the worker writes it.
type held struct {
	Steps int    `json:"steps"`
	Held  string `json:"held"`
}

// SaveState implements vector.Saver. Python objects can be saved or not, and some pretend to be; so
// the first call saves one for trial, in a process of its own, and compares how the copy goes on.
// Where it differs, and where a worker has just ended, the error wraps envs.ErrCannotSave and says
// what happened; the vector goes on.
func (v *Vector) SaveState() ([]byte, error) {
	switch {
	case v.closed:
		return nil, fmt.Errorf("save %s: %w", v.spec.Name, envs.ErrClosed)
	case !v.running:
		return nil, fmt.Errorf("save %s: %w", v.spec.Name, envs.ErrNoEpisode)
	}
	s := state{Name: v.spec.Name, Key: v.key, Began: v.began, Return: v.ret, Length: v.length, Info: v.batch.Info}
	for _, t := range v.batch.Obs {
		s.Obs = append(s.Obs, t.Bytes())
	}
	if v.batch.Mask != nil {
		s.Mask = v.batch.Mask.Bytes()
	}
	err := v.f.provable()
	for w := 0; err == nil && w < len(v.workers); w++ {
		var part []held
		err = v.workers[w].call(v.f.c.Timeout, "save", nil, &part)
		s.Envs = append(s.Envs, part...)
	}
	if ended(err) {
		// The next step replaces the worker and truncates its episodes.
		err = fmt.Errorf("%w: %w", envs.ErrCannotSave, err)
	}
	if err != nil {
		return nil, fmt.Errorf("save %s: %w", v.spec.Name, err)
	}
	return json.Marshal(s)
}

// LoadState implements vector.Saver.
func (v *Vector) LoadState(data []byte) error {
	if v.closed {
		return fmt.Errorf("load %s: %w", v.spec.Name, envs.ErrClosed)
	}
	v.running = false
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load %s: %w", v.spec.Name, err)
	}
	if err := v.fits(&s); err != nil {
		return fmt.Errorf("load %s: %w", v.spec.Name, err)
	}
	err := v.start()
	for w := 0; err == nil && w < len(v.workers); w++ {
		j := v.jobs[w]
		err = v.workers[w].call(v.f.c.Timeout, "load", map[string]any{"states": s.Envs[j.from : j.from+j.n]}, nil)
	}
	if err != nil {
		v.drop(err)
		return fmt.Errorf("load %s: %w", v.spec.Name, err)
	}
	b := v.batch
	for f, t := range b.Obs {
		copy(t.Bytes(), s.Obs[f])
	}
	if b.Mask != nil {
		copy(b.Mask.Bytes(), s.Mask)
	}
	for i := range v.rows {
		clear(b.Costs[i])
		copy(b.Info[i], s.Info[i])
		b.Type[i], b.Reward[i], b.Discount[i] = envs.First, 0, 1
		if s.Length[i] > 0 {
			b.Type[i] = envs.Mid
		}
	}
	copy(v.began, s.Began)
	copy(v.ret, s.Return)
	copy(v.length, s.Length)
	v.key, v.running, b.Ended = s.Key, true, b.Ended[:0]
	v.next()
	return nil
}

// fits reports whether a state is of as many environments with observations of the same size.
func (v *Vector) fits(s *state) error {
	n := len(v.rows)
	if s.Name != v.spec.Name || len(s.Envs) != n || len(s.Began) != n || len(s.Return) != n || len(s.Length) != n || len(s.Info) != n {
		return fmt.Errorf("the state is of %d environments %q, expected %d", len(s.Envs), s.Name, n)
	}
	bad := len(s.Obs) != len(v.batch.Obs) || v.batch.Mask != nil && len(s.Mask) != len(v.batch.Mask.Bytes())
	for f := 0; !bad && f < len(s.Obs); f++ {
		bad = len(s.Obs[f]) != len(v.batch.Obs[f].Bytes())
	}
	for i := 0; !bad && i < n; i++ {
		bad = len(s.Info[i]) != len(v.spec.Info)
	}
	if bad {
		return errors.New("the state is of environments with other observations, masks or diagnostics")
	}
	return nil
}

// drop gives up workers that an error says have ended, so that the next Reset starts others.
func (v *Vector) drop(err error) {
	if !ended(err) {
		return
	}
	v.running = false
	for w, p := range v.workers {
		if p != nil && p.wait(0) {
			// It is gone, and closing tells nothing new.
			_ = p.close()
			v.workers[w] = nil
		}
	}
}
