// Package corridor is the smallest useful environment, and the one to copy when you write your own:
// a row of cells, a step to the left or to the right, and a reward of 1 at the right end.
//
// The start is random. Going left from the leftmost cell is masked, and does nothing if it is
// tried. The best policy goes right.
package corridor

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Config describes a corridor.
type Config struct {
	// Cells is the length, the end included.
	Cells int `yaml:"cells"`
}

// Defaults returns a corridor of eight cells.
func Defaults() Config { return Config{Cells: 8} }

// Validate requires somewhere to go.
func (c Config) Validate() error {
	var p configs.Problems
	p.AtLeast("cells", c.Cells, 2)
	return p.Err()
}

// Left and Right are the actions.
const Left, Right = 0, 1

// Env is a corridor.
type Env struct {
	spec    envs.Spec
	cells   int
	at      int
	moved   bool
	running bool
	closed  bool
	random  rng.Stream
}

var (
	_ envs.Env   = (*Env)(nil)
	_ envs.Saver = (*Env)(nil)
)

// New returns a corridor.
func New(c Config) (*Env, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("corridor: %w", err)
	}
	return &Env{cells: c.Cells, spec: envs.Spec{
		Name:        "corridor",
		Observation: envs.Dict{{Name: "position", Space: envs.NewBox(0, 1, 1)}},
		Action:      envs.Discrete{N: 2},
		Masked:      true,
		Reward:      envs.Range{Low: 0, High: 1},
		Random:      true,
	}}, nil
}

// Spec implements envs.Env. The position is 0 at the left end and 1 at the right end.
func (e *Env) Spec() envs.Spec { return e.spec }

// Reset implements envs.Env. The first cell is any but the last one.
func (e *Env) Reset(key rng.Key, ts *envs.TimeStep) error {
	if e.closed {
		return fmt.Errorf("reset corridor: %w", envs.ErrClosed)
	}
	e.random.Seed(key)
	e.at, e.moved, e.running = e.random.IntN(e.cells-1), false, true
	e.observe(ts)
	ts.Restart()
	return nil
}

// Step implements envs.Env.
func (e *Env) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	switch {
	case e.closed:
		return fmt.Errorf("step corridor: %w", envs.ErrClosed)
	case !e.running:
		return fmt.Errorf("step corridor: %w", envs.ErrNoEpisode)
	}
	if err := envs.CheckAction(&e.spec, action); err != nil {
		return err
	}
	e.moved = true
	if action.Int64s()[0] == Right {
		e.at++
	} else {
		e.at = max(e.at-1, 0)
	}
	e.observe(ts)
	if e.at == e.cells-1 {
		e.running = false
		ts.Terminate(1)
	} else {
		ts.Continue(0)
	}
	return nil
}

func (e *Env) observe(ts *envs.TimeStep) {
	ts.Obs[0].Float32s()[0] = float32(e.at) / float32(e.cells-1)
	mask := ts.Mask.Bools()
	mask[Left], mask[Right] = e.at > 0, true
}

// Close implements envs.Env.
func (e *Env) Close() error {
	e.closed = true
	return nil
}

// state is the form of a saved corridor.
type state struct {
	At    int  `json:"at"`
	Moved bool `json:"moved"`
}

// SaveState implements envs.Saver.
func (e *Env) SaveState() ([]byte, error) {
	if !e.running {
		return nil, fmt.Errorf("save corridor: %w", envs.ErrNoEpisode)
	}
	return json.Marshal(state{At: e.at, Moved: e.moved})
}

// LoadState implements envs.Saver.
func (e *Env) LoadState(data []byte, ts *envs.TimeStep) error {
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load corridor: %w", err)
	}
	if e.closed {
		return fmt.Errorf("load corridor: %w", envs.ErrClosed)
	}
	if s.At < 0 || s.At >= e.cells-1 {
		return fmt.Errorf("load corridor: cell %d of %d", s.At, e.cells)
	}
	e.at, e.moved, e.running = s.At, s.Moved, true
	e.observe(ts)
	if ts.Restart(); e.moved {
		ts.Continue(0)
	}
	return nil
}

// Kind makes corridors from a configuration.
var Kind = envs.Kind{Name: "corridor", Summary: "walk to the right end of a row of cells: the smallest environment, to copy", Defaults: func() any { return Defaults() }, Open: func(_ context.Context, params configs.Section) (envs.Factory, error) {
	c := Defaults()
	if err := params.Decode(&c); err != nil {
		return nil, err
	}
	return factory{c}, nil
}}

type factory struct{ c Config }

func (f factory) Config() any                           { return f.c }
func (f factory) New(envs.Split, int) (envs.Env, error) { return New(f.c) }
func (f factory) Close() error                          { return nil }
