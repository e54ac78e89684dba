package meta

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine"
)

// Params is the configuration of the kind.
type Params struct {
	Config `yaml:",inline"`
	// Env is the environment inside.
	Env configs.Kinded `yaml:"env" kinds:"env"`
	// Experts are models that act in it: exported agents, or anything with the same inputs and
	// outputs.
	Experts []ExpertFile `yaml:"experts"`
}

// ExpertFile names a model.
type ExpertFile struct {
	// Path is that of an ONNX file.
	Path string `yaml:"path"`
}

// Validate reports all problems of a configuration.
func (p Params) Validate() error {
	var l configs.Problems
	p.check(&l)
	l.Check(p.Env.Kind != "", "env.kind", "required: the name of the environment that the experts act in, such as trading")
	l.Check(len(p.Experts) >= p.least(), "experts", "%d, expected at least %d", len(p.Experts), p.least())
	if len(p.Experts) == 1 {
		p.alone(&l)
	}
	for i, x := range p.Experts {
		l.Check(x.Path != "", fmt.Sprintf("experts[%d].path", i), "required: an ONNX file")
	}
	return l.Err()
}

// Opener makes a policy of one row of a model for one environment of a factory. Compiler and factory outlive
// the policy.
type Opener func(ctx context.Context, path string, inside envs.Factory, split envs.Split, c engine.Compiler) (vector.Policy, error)

// Kind returns the kind "meta", over environments of the given kinds. openers returns what makes
// the experts of a factory, and frees what they share when the factory is closed.
func Kind(inside []envs.Kind, openers func() (open Opener, free func() error)) envs.Kind {
	return envs.Kind{Name: "meta", Summary: "choose which of several experts acts in another environment, for a number of its steps", Needs: "an environment and experts", Defaults: func() any { return Params{Config: Defaults()} }, Open: func(ctx context.Context, params configs.Section) (_ envs.Factory, err error) {
		p := Params{Config: Defaults()}
		if err := params.Decode(&p); err != nil {
			return nil, err
		}
		f := &factory{params: p}
		f.open, f.free = openers()
		if f.inside, err = envs.Open(ctx, inside, p.Env); err != nil {
			return nil, err
		}
		if f.params.Env, err = configs.NewKinded(p.Env.Kind, f.inside.Config()); err != nil {
			return nil, errors.Join(err, f.inside.Close())
		}
		return f, nil
	}}
}

type factory struct {
	params Params
	inside envs.Factory
	open   Opener
	free   func() error
	engine func(context.Context) (engine.Compiler, error)
}

// Config implements envs.Factory.
func (f *factory) Config() any { return f.params }

// Inside returns what makes the environments that the experts act in.
func (f *factory) Inside() envs.Factory { return f.inside }

// UseEngine says what opens the engine that runs the experts of environments that are made from now
// on, which it outlives.
func (f *factory) UseEngine(open func(context.Context) (engine.Compiler, error)) { f.engine = open }

// New implements envs.Factory.
func (f *factory) New(split envs.Split, index int) (_ envs.Env, err error) {
	var experts []vector.Policy
	ctx := context.Background()
	if f.engine == nil {
		return nil, errors.New("meta: experts are models, and nobody has said which engine runs them")
	}
	compile, err := f.engine(ctx)
	if err != nil {
		return nil, fmt.Errorf("meta: the experts' engine: %w", err)
	}
	inside, err := f.inside.New(split, index)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, inside.Close())
			for _, p := range experts {
				err = errors.Join(err, p.Close())
			}
		}
	}()
	for i, x := range f.params.Experts {
		p, err := f.open(ctx, x.Path, f.inside, split, compile)
		if err != nil {
			return nil, fmt.Errorf("meta: expert %d: %w", i, err)
		}
		experts = append(experts, p)
	}
	return New(inside, experts, f.params.Config)
}

// Close implements envs.Factory.
func (f *factory) Close() error { return errors.Join(f.free(), f.inside.Close()) }
