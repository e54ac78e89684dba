package main

import (
	"context"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// thermostat is the kind that documents name.
var thermostat = envs.Kind{
	Name:     "thermostat",
	Summary:  "a room that loses heat: off or on, best at a target temperature",
	Defaults: func() any { return defaults },
	Open: func(_ context.Context, params configs.Section) (envs.Factory, error) {
		c := defaults
		return factory{&c}, params.Decode(&c)
	},
}

type config struct {
	// Target is the best temperature in degrees.
	Target float64 `yaml:"target"`
}

var defaults = config{Target: 20}

type factory struct{ config *config }

func (f factory) Config() any { return *f.config }
func (factory) Close() error  { return nil }

func (f factory) New(envs.Split, int) (envs.Env, error) {
	return wrap.NewTimeLimit(&room{target: f.config.Target}, 50)
}

// room is an environment: the heater is off or on.
type room struct {
	target, degrees float64
	random          rng.Stream
}

var spec = envs.Spec{
	Name:        "thermostat",
	Observation: envs.Dict{{Name: "degrees", Space: envs.NewBox(-1, 1, 1)}},
	Action:      envs.Discrete{N: 2},
	Reward:      envs.Range{Low: -4, High: 0},
	Random:      true,
}

func (*room) Spec() envs.Spec { return spec }
func (*room) Close() error    { return nil }

func (r *room) Reset(key rng.Key, ts *envs.TimeStep) error {
	r.random.Seed(key)
	r.degrees = 10 + 20*r.random.Float64()
	r.observe(ts)
	ts.Restart()
	return nil
}

func (r *room) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	if err := envs.CheckAction(&spec, action); err != nil {
		return err
	}
	r.degrees = max(0, min(r.degrees+2*float64(action.Int64s()[0])-1+0.2*r.random.Normal(), 40))
	r.observe(ts)
	off := (r.degrees - r.target) / 20
	ts.Continue(-off * off)
	return nil
}

func (r *room) observe(ts *envs.TimeStep) { ts.Obs[0].Float32s()[0] = float32(r.degrees/20 - 1) }
