package envs

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// AgentOf returns a world, which it owns, as one of its agents finds it while all others act at
// random. It is for code that steps single environments, such as the recording of observations for
// a parity check. Each episode is that of another agent, drawn from those that the world begins
// with, and ends with that agent's last step.
func AgentOf(m Multi) Env {
	k := len(m.Agents())
	e := &agentOf{world: m, spec: m.Spec(), own: make([]*TimeStep, k), steps: make([]*TimeStep, k), actions: make([]*tensor.Tensor, k), drawn: make([]*tensor.Tensor, k), present: make([]bool, k), acts: make([]bool, k)}
	e.spec.Random = e.spec.Random || k > 1
	for i := range k {
		e.own[i], e.drawn[i] = NewTimeStep(e.spec), tensor.New(e.spec.Action.DType(), e.spec.Action.Shape()...)
	}
	copy(e.actions, e.drawn)
	return e
}

// agentOf implements Env.
type agentOf struct {
	world Multi
	spec  Spec
	// own are the steps of the agents, steps the same with the caller's; drawn are their random
	// actions, actions the same with the caller's.
	own, steps     []*TimeStep
	drawn, actions []*tensor.Tensor
	// acts says which agents act next, present which of them have a step.
	acts, present []bool
	random        rng.Stream
	// agent is the one of the episode.
	agent           int
	running, closed bool
}

// Spec implements Env.
func (e *agentOf) Spec() Spec { return e.spec }

// Reset implements Env.
func (e *agentOf) Reset(key rng.Key, ts *TimeStep) error {
	e.running = false
	if err := e.world.Reset(key.Split("world"), e.own, e.present); err != nil {
		return err
	}
	n := 0
	for _, here := range e.present {
		if here {
			n++
		}
	}
	if n == 0 {
		return fmt.Errorf("reset %s: no agent is present", e.spec.Name)
	}
	e.random.Seed(key.Split("others"))
	pick := e.random.IntN(n)
	for i, here := range e.present {
		if e.acts[i] = here; here {
			if pick == 0 {
				e.agent = i
			}
			pick--
		}
	}
	from := e.own[e.agent]
	for i, o := range from.Obs {
		if w := e.spec.Observation[i].Window; w != nil {
			ts.SetWindow(i, w, int(from.Rows[i]))
		} else {
			copy(ts.Obs[i].Bytes(), o.Bytes())
		}
	}
	if ts.Mask != nil {
		copy(ts.Mask.Bytes(), from.Mask.Bytes())
	}
	copy(ts.Info, from.Info)
	ts.Restart()
	e.running = true
	return nil
}

// Step implements Env.
func (e *agentOf) Step(action *tensor.Tensor, ts *TimeStep) error {
	switch {
	case e.closed:
		return fmt.Errorf("step %s: %w", e.spec.Name, ErrClosed)
	case !e.running:
		return fmt.Errorf("step %s: %w", e.spec.Name, ErrNoEpisode)
	}
	if err := CheckAction(&e.spec, action); err != nil {
		return err
	}
	for i, acts := range e.acts {
		if acts && i != e.agent {
			var mask []bool
			if m := e.own[i].Mask; m != nil {
				mask = m.Bools()
			}
			e.spec.Action.Sample(&e.random, mask, e.drawn[i])
		}
	}
	copy(e.steps, e.own)
	e.steps[e.agent], e.actions[e.agent] = ts, action
	err := e.world.Step(e.actions, e.steps, e.present)
	e.steps[e.agent], e.actions[e.agent] = nil, e.drawn[e.agent]
	if err == nil && !e.present[e.agent] {
		err = fmt.Errorf("step %s: agent %q was present and has no step", e.spec.Name, e.world.Agents()[e.agent])
	}
	if err != nil {
		e.running = false
		return err
	}
	for i, here := range e.present {
		e.acts[i] = here && e.own[i].Type != Last
	}
	e.running = ts.Type != Last
	return nil
}

// Close implements Env.
func (e *agentOf) Close() error {
	e.closed, e.running = true, false
	return e.world.Close()
}
