package wrap

import (
	"fmt"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// RescaleAction lets the agent act in [-1, 1], which is stretched to the bounds of the
// environment's actions, component by component, as Gymnasium's RescaleAction does.
type RescaleAction struct {
	envs.Env
	action
}

// ClipAction lets the agent choose any numbers and clips them to the bounds of the environment's
// actions, component by component, as Gymnasium's ClipAction does.
type ClipAction struct {
	envs.Env
	action
}

var (
	_ envs.Env   = (*RescaleAction)(nil)
	_ envs.Saver = (*RescaleAction)(nil)
	_ envs.Env   = (*ClipAction)(nil)
	_ envs.Saver = (*ClipAction)(nil)
)

// action is an action space in front of another one of the same form.
type action struct {
	spec  envs.Spec
	inner envs.Box
	to    *tensor.Tensor
}

func newAction(e envs.Env, low, high float64) (action, error) {
	a := action{spec: e.Spec()}
	box, ok := a.spec.Action.(envs.Box)
	if !ok || !box.Bounded() || box.Of == tensor.Uint8 {
		return a, fmt.Errorf("the actions of %s are %v, expected a box of floating-point numbers with finite bounds", a.spec.Name, a.spec.Action)
	}
	a.inner, a.to = box, tensor.New(box.Of, box.Dims...)
	a.spec.Action = envs.Box{Of: box.Of, Dims: box.Dims, Low: []float64{low}, High: []float64{high}}
	return a, nil
}

// NewRescaleAction returns e with actions in [-1, 1]. An error says that its actions have no
// bounds.
func NewRescaleAction(e envs.Env) (*RescaleAction, error) {
	a, err := newAction(e, -1, 1)
	if err != nil {
		return nil, fmt.Errorf("rescale actions: %w", err)
	}
	return &RescaleAction{e, a}, nil
}

// NewClipAction returns e with actions without bounds. An error says that its own have none to clip
// to.
func NewClipAction(e envs.Env) (*ClipAction, error) {
	a, err := newAction(e, unbounded.Low, unbounded.High)
	if err != nil {
		return nil, fmt.Errorf("clip actions: %w", err)
	}
	return &ClipAction{e, a}, nil
}

// Unwrap returns the environment inside.
func (w *RescaleAction) Unwrap() envs.Env { return w.Env }

// Unwrap returns the environment inside.
func (w *ClipAction) Unwrap() envs.Env { return w.Env }

// Spec implements envs.Env.
func (w *RescaleAction) Spec() envs.Spec { return w.spec }

// Spec implements envs.Env.
func (w *ClipAction) Spec() envs.Spec { return w.spec }

// Step implements envs.Env.
func (w *RescaleAction) Step(a *tensor.Tensor, ts *envs.TimeStep) error {
	to, err := w.inward(a)
	if err != nil {
		return err
	}
	return w.Env.Step(to, ts)
}

// Step implements envs.Env.
func (w *ClipAction) Step(a *tensor.Tensor, ts *envs.TimeStep) error {
	to, err := w.inward(a)
	if err != nil {
		return err
	}
	return w.Env.Step(to, ts)
}

// inward returns the action for the inside.
func (w *RescaleAction) inward(a *tensor.Tensor) (*tensor.Tensor, error) {
	return w.convert(a, func(x float64, r envs.Range) float64 { return r.Low + (x+1)/2*(r.High-r.Low) })
}

// inward returns the action for the inside.
func (w *ClipAction) inward(a *tensor.Tensor) (*tensor.Tensor, error) {
	return w.convert(a, func(x float64, _ envs.Range) float64 { return x })
}

// convert returns the environment's action for one of the outer space. Rounding never leaves the
// bounds.
func (w *action) convert(a *tensor.Tensor, f func(x float64, r envs.Range) float64) (*tensor.Tensor, error) {
	if err := envs.CheckAction(&w.spec, a); err != nil {
		return nil, err
	}
	if w.inner.Of == tensor.Float32 {
		convertAll(w.to.Float32s(), a.Float32s(), w.inner, f)
	} else {
		convertAll(w.to.Float64s(), a.Float64s(), w.inner, f)
	}
	return w.to, nil
}

func convertAll[T float32 | float64](to, from []T, b envs.Box, f func(x float64, r envs.Range) float64) {
	for i, x := range from {
		r := b.Bounds(i)
		to[i] = T(min(max(f(float64(x), r), r.Low), r.High))
	}
}

// SaveState implements envs.Saver.
func (w *RescaleAction) SaveState() ([]byte, error) { return envs.SaveState(w.Env) }

// SaveState implements envs.Saver.
func (w *ClipAction) SaveState() ([]byte, error) { return envs.SaveState(w.Env) }

// LoadState implements envs.Saver.
func (w *RescaleAction) LoadState(data []byte, ts *envs.TimeStep) error {
	return envs.LoadState(w.Env, data, ts)
}

// LoadState implements envs.Saver.
func (w *ClipAction) LoadState(data []byte, ts *envs.TimeStep) error {
	return envs.LoadState(w.Env, data, ts)
}
