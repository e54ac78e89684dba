package classic

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// system is what one environment has for its own: the dynamics.
type system interface {
	// reset draws a first state.
	reset(r *rng.Stream)
	// step takes an action, which lies in the space.
	step(action *tensor.Tensor, r *rng.Stream) (reward float64, terminated bool)
	// observe writes the observation, and the mask where there is one.
	observe(ts *envs.TimeStep)
	// state returns all numbers that the following steps depend on; the slice is the system's own,
	// and a saved state is copied into it.
	state() []float64
	// check returns an error when an episode that goes on cannot be in the present state.
	check() error
}

// Env is any environment of this package: a system, and the contract of package envs around it.
type Env struct {
	sys     system
	spec    envs.Spec
	steps   int
	running bool
	closed  bool
	random  rng.Stream
}

var (
	_ envs.Env   = (*Env)(nil)
	_ envs.Saver = (*Env)(nil)
)

// ObservationField is the name of the one field of an observation.
const ObservationField = "observation"

// newEnv completes a description that has a name, an action space and rewards. maxSteps is the time
// limit, 0 for none.
func newEnv(sys system, spec envs.Spec, observation envs.Space, maxSteps int) *Env {
	spec.Observation = envs.Dict{{Name: ObservationField, Space: observation}}
	spec.MaxSteps = maxSteps
	spec.Random = true
	return &Env{sys: sys, spec: spec}
}

// Spec implements envs.Env.
func (e *Env) Spec() envs.Spec { return e.spec }

// Reset implements envs.Env.
func (e *Env) Reset(key rng.Key, ts *envs.TimeStep) error {
	if e.closed {
		return fmt.Errorf("reset %s: %w", e.spec.Name, envs.ErrClosed)
	}
	e.random.Seed(key)
	e.sys.reset(&e.random)
	e.steps, e.running = 0, true
	e.sys.observe(ts)
	ts.Restart()
	return nil
}

// Step implements envs.Env.
func (e *Env) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	if !e.running {
		return e.idle()
	}
	if err := envs.CheckAction(&e.spec, action); err != nil {
		return err
	}
	reward, terminated := e.sys.step(action, &e.random)
	e.steps++
	e.sys.observe(ts)
	switch {
	case terminated:
		e.running = false
		ts.Terminate(reward)
	case e.steps == e.spec.MaxSteps:
		e.running = false
		ts.Truncate(reward)
	default:
		ts.Continue(reward)
	}
	return nil
}

// idle says why no step can be taken.
func (e *Env) idle() error {
	if e.closed {
		return fmt.Errorf("step %s: %w", e.spec.Name, envs.ErrClosed)
	}
	return fmt.Errorf("step %s: %w", e.spec.Name, envs.ErrNoEpisode)
}

// Close implements envs.Env.
func (e *Env) Close() error {
	e.closed, e.running = true, false
	return nil
}

// saved is the form of a saved environment.
type saved struct {
	Name   string      `json:"name"`
	Steps  int         `json:"steps"`
	State  []float64   `json:"state"`
	Random *rng.Stream `json:"random"`
}

// SaveState implements envs.Saver.
func (e *Env) SaveState() ([]byte, error) {
	if !e.running {
		return nil, fmt.Errorf("save %s: %w", e.spec.Name, envs.ErrNoEpisode)
	}
	return json.Marshal(saved{Name: e.spec.Name, Steps: e.steps, State: e.sys.state(), Random: &e.random})
}

// LoadState implements envs.Saver.
func (e *Env) LoadState(data []byte, ts *envs.TimeStep) error {
	e.running = false
	if e.closed {
		return fmt.Errorf("load %s: %w", e.spec.Name, envs.ErrClosed)
	}
	s := saved{Random: &e.random}
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load %s: %w", e.spec.Name, err)
	}
	state := e.sys.state()
	switch {
	case s.Name != e.spec.Name:
		return fmt.Errorf("load %s: the state is of %q", e.spec.Name, s.Name)
	case s.Steps < 0 || e.spec.MaxSteps > 0 && s.Steps >= e.spec.MaxSteps:
		return fmt.Errorf("load %s: %d steps of %d", e.spec.Name, s.Steps, e.spec.MaxSteps)
	case len(s.State) != len(state) || s.Random == nil:
		return fmt.Errorf("load %s: a state of %d numbers, expected %d and a random stream", e.spec.Name, len(s.State), len(state))
	}
	copy(state, s.State)
	if err := e.sys.check(); err != nil {
		return fmt.Errorf("load %s: %w", e.spec.Name, err)
	}
	e.steps, e.running = s.Steps, true
	e.sys.observe(ts)
	if ts.Restart(); e.steps > 0 {
		ts.Continue(0)
	}
	return nil
}

// uniform draws from [low, high).
func uniform(r *rng.Stream, low, high float64) float64 { return low + r.Float64()*(high-low) }

// within returns an error unless every number lies within ±limit of its own; NaN does not.
func within(state, limit []float64) error {
	for i, v := range state {
		if !(math.Abs(v) <= limit[i]) {
			return fmt.Errorf("element %d of the state is %g, expected at most %g in magnitude", i, v, limit[i])
		}
	}
	return nil
}

// symmetric is a box of float32 with a bound for each element.
func symmetric(high ...float64) envs.Box {
	low := slices.Clone(high)
	for i := range low {
		low[i] = -low[i]
	}
	return envs.Box{Of: tensor.Float32, Dims: []int{len(high)}, Low: low, High: high}
}
