package agenttest

import (
	"errors"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// PointSteps is the length of a [Point]'s episodes.
const PointSteps = 10

// Point is a point in the square [-1, 1]² that each step moves by a quarter of the action, from the
// middle on. Nothing that it does is rewarded. It observes its position, and a clock that episodes
// begin anywhere.
type Point struct {
	at    [2]float32
	clock float32
	steps int
}

// Spec implements envs.Env.
func (e *Point) Spec() envs.Spec {
	return envs.Spec{
		Name: "point", Observation: envs.Dict{{Name: "position", Space: envs.NewBox(-1, 1, 2)}, {Name: "clock", Space: envs.NewBox(0, 1, 1)}},
		Action: envs.NewBox(-1, 1, 2), MaxSteps: PointSteps, Random: true,
	}
}

// Close implements envs.Env.
func (e *Point) Close() error { return nil }

// Reset implements envs.Env.
func (e *Point) Reset(key rng.Key, ts *envs.TimeStep) error {
	e.at, e.steps, e.clock = [2]float32{}, 0, key.Stream().Float32()
	e.observe(ts)
	ts.Restart()
	return nil
}

// Step implements envs.Env.
func (e *Point) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	if action.Len() != 2 {
		return errors.New("an action of a point has two components")
	}
	for i, a := range action.Float32s() {
		e.at[i] = min(max(e.at[i]+a/4, -1), 1)
	}
	e.steps++
	e.observe(ts)
	if ts.Continue(0); e.steps == PointSteps {
		ts.Truncate(0)
	}
	return nil
}

func (e *Point) observe(ts *envs.TimeStep) {
	copy(ts.Obs[0].Float32s(), e.at[:])
	ts.Obs[1].Float32s()[0] = e.clock
}
