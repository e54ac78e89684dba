package envtest

import (
	"encoding/json"
	"fmt"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Shifts is a small world of several agents that come and go, for tests. Workers stand shifts of 1
// to 8 steps, with pauses of 1 to 3 between them. A worker sees which of three lights is on, and
// who it is; [Button] is the right one to press. That earns 1; a wrong press earns −1, costs 1, and
// ends the shift for good: the worker has died, and another one of the name comes after a pause. A
// shift that is over is cut off, as all of them are after 24 steps of the world. So the best return
// of an episode is its length.
//
// Buttons are masked, and one of the two wrong ones may be out of order. With Dials there is no
// mask, and the worker turns a dial in [−1, 1] to −0.6, 0 or 0.6 instead: it earns 1 − 4·error²,
// and dies where that is below −1.
type Shifts struct {
	// Workers is the number of agents, at least one.
	Workers int
	Dials   bool

	s       shifts
	spec    envs.Spec
	running bool
	closed  bool
}

// shifts is where a world is.
type shifts struct {
	Steps   int         `json:"steps"`
	Random  *rng.Stream `json:"random"`
	Workers []worker    `json:"workers"`
}

type worker struct {
	// Left are the steps of the shift, 0 in a pause of so many.
	Left  int  `json:"left"`
	Pause int  `json:"pause"`
	Begun bool `json:"begun"`
	Light int  `json:"light"`
	// Broken is the button out of order, or the right one where none is.
	Broken int `json:"broken"`
}

// ShiftSteps is the length of an episode of [Shifts].
const ShiftSteps = 24

var (
	_ envs.Multi      = (*Shifts)(nil)
	_ envs.MultiSaver = (*Shifts)(nil)
)

// Spec implements envs.Multi.
func (e *Shifts) Spec() envs.Spec {
	s := envs.Spec{
		Name: "shifts", Observation: envs.Dict{{Name: "light", Space: envs.NewBox(0, 1, 3)}, {Name: "worker", Space: envs.Discrete{N: max(2, e.Workers)}}},
		Action: envs.Discrete{N: 3}, Masked: true, Reward: envs.Range{Low: -10, High: 1}, Costs: []string{"wrong"}, Info: []string{"left"}, MaxSteps: ShiftSteps, Random: true,
	}
	if e.Dials {
		s.Action, s.Masked = envs.NewBox(-1, 1, 1), false
	}
	return s
}

// Agents implements envs.Multi.
func (e *Shifts) Agents() []string {
	list := make([]string, e.Workers)
	for i := range list {
		list[i] = fmt.Sprintf("worker_%d", i)
	}
	return list
}

// Reset implements envs.Multi. The first worker is there; the others may be in a pause.
func (e *Shifts) Reset(key rng.Key, steps []*envs.TimeStep, present []bool) error {
	if e.closed {
		return fmt.Errorf("reset shifts: %w", envs.ErrClosed)
	}
	if e.s.Workers == nil {
		e.s, e.spec = shifts{Random: &rng.Stream{}, Workers: make([]worker, e.Workers)}, e.Spec()
	}
	e.s.Random.Seed(key)
	e.s.Steps, e.running = 0, true
	for k := range e.s.Workers {
		e.s.Workers[k] = worker{Pause: 1}
		if k == 0 || e.s.Random.IntN(3) > 0 {
			e.begin(k)
		}
		if present[k] = e.s.Workers[k].Left > 0; present[k] {
			e.observe(k, steps[k])
			steps[k].Restart()
		}
	}
	return nil
}

// Step implements envs.Multi.
func (e *Shifts) Step(actions []*tensor.Tensor, steps []*envs.TimeStep, present []bool) error {
	switch {
	case e.closed:
		return fmt.Errorf("step shifts: %w", envs.ErrClosed)
	case !e.running:
		return fmt.Errorf("step shifts: %w", envs.ErrNoEpisode)
	}
	for k := range e.s.Workers {
		if e.s.Workers[k].Left > 0 {
			if err := envs.CheckAction(&e.spec, actions[k]); err != nil {
				return err
			}
		}
	}
	e.s.Steps++
	left := 0
	for k := range e.s.Workers {
		w, ts := &e.s.Workers[k], steps[k]
		if present[k] = true; w.Left == 0 {
			if w.Pause--; w.Pause > 0 || e.s.Steps == ShiftSteps {
				present[k] = false
				continue
			}
			e.begin(k)
			e.observe(k, ts)
			ts.Restart()
			left++
			continue
		}
		reward, died := e.press(k, actions[k])
		w.Left--
		w.Begun = true
		e.light(k)
		e.observe(k, ts)
		ts.Costs[0] = 0
		switch {
		case died:
			ts.Terminate(reward)
			ts.Costs[0] = 1
		case w.Left == 0 || e.s.Steps == ShiftSteps:
			ts.Truncate(reward)
		default:
			ts.Continue(reward)
			left++
			continue
		}
		*w = worker{Pause: 1 + e.s.Random.IntN(3)}
	}
	e.running = left > 0
	return nil
}

// press returns what an action of worker k earns, and whether it was the last one.
func (e *Shifts) press(k int, action *tensor.Tensor) (reward float64, died bool) {
	button := Button(k, e.s.Workers[k].Light)
	if e.Dials {
		d := float64(action.Float32s()[0]) - 0.6*float64(button-1)
		reward = 1 - 4*d*d
		return reward, reward < -1
	}
	if action.Int64s()[0] == int64(button) {
		return 1, false
	}
	return -1, true
}

// Button is the right one for worker k when a light is on.
func Button(k, light int) int { return (light + k) % 3 }

// begin begins a shift.
func (e *Shifts) begin(k int) {
	e.s.Workers[k] = worker{Left: 1 + e.s.Random.IntN(8)}
	e.light(k)
}

// light chooses what worker k sees next.
func (e *Shifts) light(k int) {
	w := &e.s.Workers[k]
	w.Light = e.s.Random.IntN(3)
	w.Broken = e.s.Random.IntN(3)
}

func (e *Shifts) observe(k int, ts *envs.TimeStep) {
	w := &e.s.Workers[k]
	light := ts.Obs[0].Float32s()
	clear(light)
	light[w.Light] = 1
	ts.Obs[1].Int64s()[0] = int64(k)
	if ts.Mask != nil {
		for i, mask := 0, ts.Mask.Bools(); i < 3; i++ {
			mask[i] = i != w.Broken || i == Button(k, w.Light)
		}
	}
	ts.Info[0] = float64(w.Left)
}

// Close implements envs.Multi.
func (e *Shifts) Close() error {
	e.closed, e.running = true, false
	return nil
}

// SaveState implements envs.MultiSaver.
func (e *Shifts) SaveState() ([]byte, error) {
	if !e.running {
		return nil, fmt.Errorf("save shifts: %w", envs.ErrNoEpisode)
	}
	return json.Marshal(e.s)
}

// LoadState implements envs.MultiSaver.
func (e *Shifts) LoadState(data []byte, steps []*envs.TimeStep, present []bool) error {
	s := shifts{Random: &rng.Stream{}}
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load shifts: %w", err)
	}
	if e.closed {
		return fmt.Errorf("load shifts: %w", envs.ErrClosed)
	}
	if len(s.Workers) != e.Workers {
		return fmt.Errorf("load shifts: of %d workers, expected %d", len(s.Workers), e.Workers)
	}
	e.s, e.spec, e.running = s, e.Spec(), true
	for k, w := range s.Workers {
		if present[k] = w.Left > 0; !present[k] {
			continue
		}
		e.observe(k, steps[k])
		clear(steps[k].Costs)
		if steps[k].Restart(); w.Begun {
			steps[k].Continue(0)
		}
	}
	return nil
}

// Littering is a world that leaves garbage, not numbers among it, in the steps of agents that have
// none.
type Littering struct{ envs.Multi }

// Reset implements envs.Multi.
func (e Littering) Reset(key rng.Key, steps []*envs.TimeStep, present []bool) error {
	err := e.Multi.Reset(key, steps, present)
	litter(steps, present)
	return err
}

// Step implements envs.Multi.
func (e Littering) Step(actions []*tensor.Tensor, steps []*envs.TimeStep, present []bool) error {
	err := e.Multi.Step(actions, steps, present)
	litter(steps, present)
	return err
}

// SaveState implements envs.MultiSaver.
func (e Littering) SaveState() ([]byte, error) { return e.Multi.(envs.MultiSaver).SaveState() }

// LoadState implements envs.MultiSaver.
func (e Littering) LoadState(data []byte, steps []*envs.TimeStep, present []bool) error {
	err := e.Multi.(envs.MultiSaver).LoadState(data, steps, present)
	litter(steps, present)
	return err
}

func litter(steps []*envs.TimeStep, present []bool) {
	for k, ts := range steps {
		if present[k] {
			continue
		}
		for _, o := range ts.Obs {
			// NaN in floats, and −1 in integers.
			fill(o.Bytes(), 0xff)
		}
		garble(ts)
	}
}

// ShiftsFactory makes worlds of [Shifts].
type ShiftsFactory struct{ Shifts Shifts }

var _ envs.MultiFactory = ShiftsFactory{}

// Config implements envs.Factory.
func (f ShiftsFactory) Config() any { return struct{}{} }

// New implements envs.Factory.
func (f ShiftsFactory) New(split envs.Split, i int) (envs.Env, error) {
	m, err := f.NewMulti(split, i)
	return envs.AgentOf(m), err
}

// Agents implements envs.MultiFactory.
func (f ShiftsFactory) Agents() []string { return f.Shifts.Agents() }

// NewMulti implements envs.MultiFactory.
func (f ShiftsFactory) NewMulti(envs.Split, int) (envs.Multi, error) {
	return &Shifts{Workers: f.Shifts.Workers, Dials: f.Shifts.Dials}, nil
}

// Close implements envs.Factory.
func (f ShiftsFactory) Close() error { return nil }
