package envtest

import (
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Priced is an environment with two costs: each step costs 1, and twice its reward and a half.
type Priced struct{ envs.Env }

// The costs of a [Priced] environment.
const (
	StepCost   = "step"
	RewardCost = "reward"
)

// Spec implements envs.Env.
func (e Priced) Spec() envs.Spec {
	s := e.Env.Spec()
	s.Costs = []string{StepCost, RewardCost}
	return s
}

// Reset implements envs.Env.
func (e Priced) Reset(key rng.Key, ts *envs.TimeStep) error {
	clear(ts.Costs)
	return e.Env.Reset(key, ts)
}

// Step implements envs.Env.
func (e Priced) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	if err := e.Env.Step(action, ts); err != nil {
		return err
	}
	ts.Costs[0], ts.Costs[1] = 1, 2*ts.Reward+0.5
	return nil
}

// SaveState implements envs.Saver.
func (e Priced) SaveState() ([]byte, error) { return envs.SaveState(e.Env) }

// LoadState implements envs.Saver.
func (e Priced) LoadState(state []byte, ts *envs.TimeStep) error {
	clear(ts.Costs)
	return envs.LoadState(e.Env, state, ts)
}
