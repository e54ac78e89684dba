package wrap

import (
	"fmt"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Action gives an environment another action space of the same form, and maps its actions to the
// environment's, component by component. [NewRescaleAction] and [NewClipAction] make it.
type Action struct {
	envs.Env
	spec     envs.Spec
	inner    envs.Box
	to       *tensor.Tensor
	rescales bool
	// f maps a component; what it gives is clipped to its bounds, which rounding may leave.
	f func(x float64, bounds envs.Range) float64
}

var (
	_ envs.Env   = (*Action)(nil)
	_ envs.Saver = (*Action)(nil)
)

// NewRescaleAction lets the agent act in [-1, 1], which is stretched to the bounds of e's actions,
// as Gymnasium's RescaleAction does. An error says that these have no bounds.
func NewRescaleAction(e envs.Env) (*Action, error) {
	return newAction("rescale actions", e, -1, 1, true, func(x float64, r envs.Range) float64 { return r.Low + (x+1)/2*(r.High-r.Low) })
}

// NewClipAction lets the agent choose any numbers and clips them to the bounds of e's actions, as
// Gymnasium's ClipAction does. An error says that these have none.
func NewClipAction(e envs.Env) (*Action, error) {
	return newAction("clip actions", e, unbounded.Low, unbounded.High, false, func(x float64, _ envs.Range) float64 { return x })
}

func newAction(what string, e envs.Env, low, high float64, rescales bool, f func(float64, envs.Range) float64) (*Action, error) {
	spec := e.Spec()
	box, ok := spec.Action.(envs.Box)
	if !ok || !box.Bounded() || box.Of == tensor.Uint8 {
		return nil, fmt.Errorf("%s: the actions of %s are %v, expected a box of floating-point numbers with finite bounds", what, spec.Name, spec.Action)
	}
	spec.Action = envs.Box{Of: box.Of, Dims: box.Dims, Low: []float64{low}, High: []float64{high}}
	return &Action{Env: e, spec: spec, inner: box, to: tensor.New(box.Of, box.Dims...), rescales: rescales, f: f}, nil
}

// Rescales reports whether actions are stretched, and not only clipped.
func (w *Action) Rescales() bool { return w.rescales }

// Unwrap returns the environment inside.
func (w *Action) Unwrap() envs.Env { return w.Env }

// Spec implements envs.Env.
func (w *Action) Spec() envs.Spec { return w.spec }

// Step implements envs.Env.
func (w *Action) Step(a *tensor.Tensor, ts *envs.TimeStep) error {
	to, err := w.inward(a)
	if err != nil {
		return err
	}
	return w.Env.Step(to, ts)
}

// inward returns the environment's action for one of the outer space.
func (w *Action) inward(a *tensor.Tensor) (*tensor.Tensor, error) {
	if err := envs.CheckAction(&w.spec, a); err != nil {
		return nil, err
	}
	if w.inner.Of == tensor.Float32 {
		convert(w, w.to.Float32s(), a.Float32s())
	} else {
		convert(w, w.to.Float64s(), a.Float64s())
	}
	return w.to, nil
}

func convert[T float32 | float64](w *Action, to, from []T) {
	for i, x := range from {
		r := w.inner.Bounds(i)
		to[i] = T(min(max(w.f(float64(x), r), r.Low), r.High))
	}
}

// SaveState implements envs.Saver.
func (w *Action) SaveState() ([]byte, error) { return envs.SaveState(w.Env) }

// LoadState implements envs.Saver.
func (w *Action) LoadState(data []byte, ts *envs.TimeStep) error {
	return envs.LoadState(w.Env, data, ts)
}
