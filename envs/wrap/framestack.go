package wrap

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// FrameStack shows the last observations at once, the oldest first. Fields that are windows over a
// table are left as they are, for a window is a stack already, and so are fields that are no Box.
type FrameStack struct {
	envs.Env
	spec  envs.Spec
	zero  bool
	inner *envs.TimeStep
	// stack has the bytes of the frames of each field, the oldest first; nil for fields that are
	// not stacked.
	stack [][]byte
	// frame is the number of bytes of one.
	frame   []int
	running bool
}

var (
	_ envs.Env   = (*FrameStack)(nil)
	_ envs.Saver = (*FrameStack)(nil)
)

// NewFrameStack returns e with a stack of at least two frames.
func NewFrameStack(e envs.Env, f Frames) (*FrameStack, error) {
	if err := f.Validate(); err != nil || !f.On() {
		return nil, fmt.Errorf("frame stack of %s: %d frames, initial %q: expected at least 2, and %s or %s", e.Spec().Name, f.Frames, f.Initial, InitialFirst, InitialZero)
	}
	spec := e.Spec()
	w := &FrameStack{Env: e, spec: spec, zero: f.Initial == InitialZero, inner: envs.NewTimeStep(spec), stack: make([][]byte, len(spec.Observation)), frame: make([]int, len(spec.Observation))}
	w.spec.Observation = slices.Clone(spec.Observation)
	stacked := 0
	for i, field := range spec.Observation {
		box, ok := field.Space.(envs.Box)
		if !ok || field.Window != nil {
			continue
		}
		stacked++
		w.spec.Observation[i].Space, w.spec.Observation[i].Series = stackedBox(box, f), !f.Flat
		w.frame[i] = len(w.inner.Obs[i].Bytes())
		w.stack[i] = make([]byte, f.Frames*w.frame[i])
	}
	if stacked == 0 {
		return nil, fmt.Errorf("frame stack of %s: none of its observations %s is a box that is no window over a table", spec.Name, names(spec.Observation))
	}
	return w, nil
}

// stackedBox is the space of a stack. Zeros in front may lie outside of the bounds of a frame.
func stackedBox(b envs.Box, f Frames) envs.Box {
	out := envs.Box{Of: b.Of, Dims: append([]int{f.Frames}, b.Dims...), Low: slices.Clone(b.Low), High: slices.Clone(b.High)}
	if f.Initial == InitialZero {
		for i := range out.Low {
			out.Low[i] = min(out.Low[i], 0)
		}
		for i := range out.High {
			out.High[i] = max(out.High[i], 0)
		}
	}
	n := 1
	for _, d := range b.Dims {
		n *= d
	}
	if len(out.Low) > 1 || len(out.High) > 1 {
		var low, high []float64
		for i := range n {
			r := out.Bounds(i)
			low, high = append(low, r.Low), append(high, r.High)
		}
		out.Low, out.High = slices.Repeat(low, f.Frames), slices.Repeat(high, f.Frames)
	}
	if f.Flat {
		out.Dims = []int{f.Frames * n}
	}
	return out
}

// names lists the fields of an observation for messages.
func names(d envs.Dict) string {
	list := make([]string, len(d))
	for i, f := range d {
		list[i] = fmt.Sprintf("%s (%v)", f.Name, f.Space)
	}
	return fmt.Sprint(list)
}

// Unwrap returns the environment inside.
func (w *FrameStack) Unwrap() envs.Env { return w.Env }

// Spec implements envs.Env.
func (w *FrameStack) Spec() envs.Spec { return w.spec }

// Reset implements envs.Env.
func (w *FrameStack) Reset(key rng.Key, ts *envs.TimeStep) error {
	w.running = false
	w.before(ts)
	if err := w.Env.Reset(key, w.inner); err != nil {
		return err
	}
	for i, s := range w.stack {
		if s == nil {
			continue
		}
		first := w.inner.Obs[i].Bytes()
		for at := 0; at < len(s); at += len(first) {
			if w.zero && at < len(s)-len(first) {
				clear(s[at : at+len(first)])
			} else {
				copy(s[at:], first)
			}
		}
	}
	w.running = true
	w.after(ts)
	return nil
}

// Step implements envs.Env.
func (w *FrameStack) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	w.before(ts)
	if err := w.Env.Step(action, w.inner); err != nil {
		return err
	}
	for i, s := range w.stack {
		if s != nil {
			copy(s, s[w.frame[i]:])
			copy(s[len(s)-w.frame[i]:], w.inner.Obs[i].Bytes())
		}
	}
	w.running = w.inner.Type != envs.Last
	w.after(ts)
	return nil
}

// before lets the environment write what is not stacked to where it belongs.
func (w *FrameStack) before(ts *envs.TimeStep) {
	for i, s := range w.stack {
		if s == nil {
			w.inner.Obs[i] = ts.Obs[i]
		}
	}
	w.inner.Mask, w.inner.Costs, w.inner.Info = ts.Mask, ts.Costs, ts.Info
}

// after takes over everything else.
func (w *FrameStack) after(ts *envs.TimeStep) {
	for i, s := range w.stack {
		if s != nil {
			copy(ts.Obs[i].Bytes(), s)
		} else {
			ts.Obs[i], ts.Rows[i] = w.inner.Obs[i], w.inner.Rows[i]
		}
	}
	ts.Type, ts.Reward, ts.Discount = w.inner.Type, w.inner.Reward, w.inner.Discount
}

type stackState struct {
	Stack [][]byte `json:"stack"`
	Env   []byte   `json:"env"`
}

// SaveState implements envs.Saver.
func (w *FrameStack) SaveState() ([]byte, error) {
	if !w.running {
		return nil, fmt.Errorf("save %s: %w", w.spec.Name, envs.ErrNoEpisode)
	}
	inner, err := envs.SaveState(w.Env)
	if err != nil {
		return nil, err
	}
	return json.Marshal(stackState{w.stack, inner})
}

// LoadState implements envs.Saver.
func (w *FrameStack) LoadState(data []byte, ts *envs.TimeStep) error {
	var s stackState
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load frame stack: %w", err)
	}
	if !slices.EqualFunc(s.Stack, w.stack, func(a, b []byte) bool { return len(a) == len(b) }) {
		return fmt.Errorf("load frame stack of %s: the saved frames are others", w.spec.Name)
	}
	w.before(ts)
	if err := envs.LoadState(w.Env, s.Env, w.inner); err != nil {
		return err
	}
	for i := range w.stack {
		copy(w.stack[i], s.Stack[i])
	}
	w.running = true
	w.after(ts)
	return nil
}

// unbounded is a range without bounds.
var unbounded = envs.Range{Low: math.Inf(-1), High: math.Inf(1)}
