package wrap

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The diagnostics that Statistics adds.
const (
	// Return is the sum of the episode's rewards so far.
	Return = "episode/return"
	// Length is the number of steps so far.
	Length = "episode/length"
)

// Statistics adds the return and the length of the running episode to the diagnostics, after those
// of the environment. In a last step they are the episode's.
type Statistics struct {
	envs.Env
	spec   envs.Spec
	ret    float64
	length int
}

var (
	_ envs.Env   = (*Statistics)(nil)
	_ envs.Saver = (*Statistics)(nil)
)

// NewStatistics returns e with statistics.
func NewStatistics(e envs.Env) *Statistics {
	s := e.Spec()
	s.Info = append(slices.Clone(s.Info), Return, Length)
	return &Statistics{Env: e, spec: s}
}

// Unwrap returns the environment inside.
func (w *Statistics) Unwrap() envs.Env { return w.Env }

// Spec implements envs.Env.
func (w *Statistics) Spec() envs.Spec { return w.spec }

// Reset implements envs.Env.
func (w *Statistics) Reset(key rng.Key, ts *envs.TimeStep) error {
	if err := w.inner(ts, func() error { return w.Env.Reset(key, ts) }); err != nil {
		return err
	}
	w.ret, w.length = 0, 0
	w.write(ts)
	return nil
}

// Step implements envs.Env.
func (w *Statistics) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	if err := w.inner(ts, func() error { return w.Env.Step(action, ts) }); err != nil {
		return err
	}
	w.ret += ts.Reward
	w.length++
	w.write(ts)
	return nil
}

// inner calls the environment with only its own diagnostics in sight.
func (w *Statistics) inner(ts *envs.TimeStep, call func() error) error {
	all := ts.Info
	ts.Info = all[:len(w.spec.Info)-2]
	err := call()
	ts.Info = all
	return err
}

func (w *Statistics) write(ts *envs.TimeStep) {
	own := ts.Info[len(ts.Info)-2:]
	own[0], own[1] = w.ret, float64(w.length)
}

type statisticsState struct {
	Return float64 `json:"return"`
	Length int     `json:"length"`
	Env    []byte  `json:"env"`
}

// SaveState implements envs.Saver.
func (w *Statistics) SaveState() ([]byte, error) {
	inner, err := envs.SaveState(w.Env)
	if err != nil {
		return nil, err
	}
	return json.Marshal(statisticsState{w.ret, w.length, inner})
}

// LoadState implements envs.Saver.
func (w *Statistics) LoadState(data []byte, ts *envs.TimeStep) error {
	var s statisticsState
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load statistics: %w", err)
	}
	if err := w.inner(ts, func() error { return envs.LoadState(w.Env, s.Env, ts) }); err != nil {
		return err
	}
	w.ret, w.length = s.Return, s.Length
	w.write(ts)
	return nil
}
