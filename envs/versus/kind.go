package versus

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine"
)

// Kind returns the kind "versus", over worlds of the given kinds, whose opponents are opened by
// open.
func Kind(worlds []envs.Kind, open Opener) envs.Kind {
	return envs.Kind{Name: "versus", Summary: "play one agent of a world, against a pool of scripted players and models", Needs: "a world and opponents", Defaults: func() any { return Config{} }, Open: func(ctx context.Context, params configs.Section) (_ envs.Factory, err error) {
		var c Config
		if err := params.Decode(&c); err != nil {
			return nil, err
		}
		inside, err := envs.Open(ctx, worlds, c.World)
		if err != nil {
			return nil, err
		}
		f := &factory{c: c, open: open}
		if err := f.take(inside, c); err != nil {
			return nil, errors.Join(err, inside.Close())
		}
		return f, nil
	}}
}

// take takes over a world.
func (f *factory) take(inside envs.Factory, c Config) (err error) {
	var ok bool
	if f.worlds, ok = inside.(envs.MultiFactory); !ok {
		return fmt.Errorf("world.kind: %q has one agent, and nobody to play against; expected a world of several", c.World.Kind)
	}
	if f.c.World, err = configs.NewKinded(c.World.Kind, inside.Config()); err != nil {
		return err
	}
	names := f.worlds.Agents()
	if len(names) < 2 {
		return fmt.Errorf("world: its only agent is %q, and a team of size zero would play against it; expected a world of at least two", names)
	}
	for i := range names {
		f.seats = append(f.seats, i)
	}
	if len(c.Seats) > 0 {
		f.seats = nil
	}
	for i, name := range c.Seats {
		at := slices.Index(names, name)
		if at < 0 || slices.Contains(f.seats, at) {
			return fmt.Errorf("seats[%d]: %q is no agent of the world, or there twice; its agents are %q", i, name, names)
		}
		f.seats = append(f.seats, at)
	}
	for i, o := range c.Opponents {
		if o.Path != "" {
			continue
		}
		if _, err := envs.NewPlayer(f.worlds, o.Player); err != nil {
			return fmt.Errorf("opponents[%d].player: %w", i, err)
		}
	}
	return nil
}

type factory struct {
	c      Config
	worlds envs.MultiFactory
	seats  []int
	open   Opener
	engine func(context.Context) (engine.Compiler, error)
}

var _ vector.Maker = (*factory)(nil)

// Config implements envs.Factory.
func (f *factory) Config() any { return f.c }

// Worlds returns what makes the worlds that are played in.
func (f *factory) Worlds() envs.MultiFactory { return f.worlds }

// UseEngine says what opens the engine that runs the opponents of environments that are made from
// now on, which it outlives.
func (f *factory) UseEngine(open func(context.Context) (engine.Compiler, error)) { f.engine = open }

func (f *factory) pool(split envs.Split) (*Pool, error) {
	p, err := OpenPool(context.Background(), f.worlds, split, f.c.Opponents, f.open, f.engine)
	if err != nil {
		return nil, fmt.Errorf("versus: %w", err)
	}
	return p, nil
}

// New implements envs.Factory.
func (f *factory) New(split envs.Split, index int) (envs.Env, error) {
	p, err := f.pool(split)
	if err != nil {
		return nil, err
	}
	w, err := f.worlds.NewMulti(split, index)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	e := newEnv(w, p, f.seats)
	e.owned = true
	return e, nil
}

// NewVector implements vector.Maker.
func (f *factory) NewVector(split envs.Split, n int, o vector.Options) (_ vector.Env, err error) {
	p, err := f.pool(split)
	if err != nil {
		return nil, err
	}
	v := &Vector{pool: p}
	var list []envs.Env
	defer func() {
		if err != nil {
			for _, e := range list {
				err = errors.Join(err, e.Close())
			}
			err = errors.Join(err, p.Close())
		}
	}()
	for i := range n {
		w, err := f.worlds.NewMulti(split, i)
		if err != nil {
			return nil, fmt.Errorf("make world %d of %d for %s: %w", i, n, split, err)
		}
		e := newEnv(w, p, f.seats)
		v.envs, list = append(v.envs, e), append(list, e)
	}
	// All rows have one pool.
	o.Workers = 1
	if v.Local, err = vector.New(list, o); err != nil {
		return nil, err
	}
	all := v.Local.Batch().Actions
	for i := range n {
		v.actions = append(v.actions, all.Rows(i, i+1).Reshape(all.Shape()[1:]...))
	}
	return v, nil
}

// Close implements envs.Factory.
func (f *factory) Close() error { return f.worlds.Close() }
