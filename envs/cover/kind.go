package cover

import (
	"context"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
)

// Kind makes worlds from a configuration.
var Kind = envs.Kind{Name: "cover", Summary: "agents that share out landmarks among them: a cooperative world with a known optimum", Defaults: func() any { return Defaults() }, Open: func(_ context.Context, params configs.Section) (envs.Factory, error) {
	c := Defaults()
	if err := params.Decode(&c); err != nil {
		return nil, err
	}
	w, err := New(c)
	if err != nil {
		return nil, err
	}
	return factory{c, w.Agents()}, nil
}}

type factory struct {
	c      Config
	agents []string
}

var _ envs.MultiFactory = factory{}

// Config implements envs.Factory.
func (f factory) Config() any { return f.c }

// Agents implements envs.MultiFactory.
func (f factory) Agents() []string { return f.agents }

// New implements envs.Factory.
func (f factory) New(split envs.Split, i int) (envs.Env, error) {
	w, err := f.NewMulti(split, i)
	if err != nil {
		return nil, err
	}
	return envs.AgentOf(w), nil
}

// NewMulti implements envs.MultiFactory.
func (f factory) NewMulti(envs.Split, int) (envs.Multi, error) { return New(f.c) }

// Close implements envs.Factory.
func (f factory) Close() error { return nil }
