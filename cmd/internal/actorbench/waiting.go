package actorbench

import (
	"context"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// waiting describes CartPoles that take their time.
type waiting struct {
	// Wait is how long each step waits.
	Wait time.Duration `yaml:"wait"`
}

// Kind makes CartPoles of which each step waits, as one does that asks a simulator in another
// process or a device.
var Kind = envs.Kind{Name: "waiting_cartpole", Summary: "CartPole-v1 whose steps take their time", Defaults: func() any { return waiting{5 * time.Millisecond} }, Open: func(_ context.Context, params configs.Section) (envs.Factory, error) {
	c := waiting{5 * time.Millisecond}
	err := params.Decode(&c)
	return factory{c}, err
}}

type factory struct{ c waiting }

// Config implements envs.Factory.
func (f factory) Config() any { return f.c }

// New implements envs.Factory.
func (f factory) New(envs.Split, int) (envs.Env, error) {
	e, err := classic.NewCartPole(classic.CartPoleDefaults())
	return &slow{e, f.c.Wait}, err
}

// Close implements envs.Factory.
func (f factory) Close() error { return nil }

// slow waits before each step.
type slow struct {
	*classic.Env
	wait time.Duration
}

// Step implements envs.Env.
func (e *slow) Step(a *tensor.Tensor, ts *envs.TimeStep) error {
	time.Sleep(e.wait)
	return e.Env.Step(a, ts)
}
