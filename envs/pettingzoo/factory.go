package pettingzoo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/gymnasium"
	"github.com/onnxrl/onnxrl/envs/vector"
)

//go:embed worlds.py
var worldsSource []byte

// Kind makes worlds of Python from a configuration.
var Kind = envs.Kind{Name: "pettingzoo", Summary: "any world of several agents of Python's PettingZoo, by its module", Needs: "Python with gymnasium and the module", OfMachine: true, Defaults: func() any { return Defaults() }, Open: func(ctx context.Context, params configs.Section) (envs.Factory, error) {
	c := Defaults()
	if err := params.Decode(&c); err != nil {
		return nil, err
	}
	f, err := Open(ctx, c)
	if err != nil {
		return nil, gymnasium.Placed(params, c.Python, err)
	}
	return f, nil
}}

// Factory makes worlds of one configuration. It is safe for concurrent use.
type Factory struct {
	c Config
	// inner makes environments each of which is a whole world, see worlds.py.
	inner *gymnasium.Factory
	s     *split
}

var (
	_ envs.MultiFactory = (*Factory)(nil)
	_ vector.Maker      = (*Factory)(nil)
)

// Open starts a first process, which makes one world and describes it. The caller closes the
// factory.
func Open(ctx context.Context, c Config) (*Factory, error) {
	if err := configs.Validate(c); err != nil {
		return nil, fmt.Errorf("pettingzoo: %w", err)
	}
	f := &Factory{c: c}
	inner := c.Config
	inner.MaskInfo, inner.Info, inner.Costs = "", nil, nil
	// The names are not known before the world is.
	a := gymnasium.Adapter{Source: worldsSource, Args: map[string]any{"api": c.API, "state": c.Central == State, "pad": c.Pad, "agent_mask": c.MaskInfo, "agent_info": append(append([]string{}, c.Info...), c.Costs...)}}
	var err error
	if f.inner, err = gymnasium.OpenAdapted(ctx, inner, a); err != nil {
		return nil, fmt.Errorf("pettingzoo: %w", err)
	}
	if f.s, err = newSplit(c, f.inner.Spec()); err != nil {
		return nil, errors.Join(fmt.Errorf("pettingzoo: open %s: %w", c.ID, err), f.inner.Close())
	}
	return f, nil
}

// Config implements envs.Factory.
func (f *Factory) Config() any { return f.c }

// Agents implements envs.MultiFactory.
func (f *Factory) Agents() []string { return f.s.agents }

// New implements envs.Factory.
func (f *Factory) New(split envs.Split, i int) (envs.Env, error) {
	w, err := f.NewMulti(split, i)
	if err != nil {
		return nil, err
	}
	return envs.AgentOf(w), nil
}

// NewMulti implements envs.MultiFactory: a process with one world. It is started by the first
// Reset.
func (f *Factory) NewMulti(split envs.Split, _ int) (envs.Multi, error) {
	inner, err := f.inner.NewVector(split, 1, vector.Options{Workers: 1})
	if err != nil {
		return nil, err
	}
	return &lone{part: newPart(f.s, inner, 0)}, nil
}

// NewVector implements vector.Maker. n counts agents.
func (f *Factory) NewVector(split envs.Split, n int, o vector.Options) (vector.Env, error) {
	return newVector(f, split, n, o)
}

// Close implements envs.Factory.
func (f *Factory) Close() error { return f.inner.Close() }
