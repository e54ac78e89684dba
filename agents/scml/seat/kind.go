package seat

import (
	"context"
	"errors"

	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/engine"
)

// GoalsKind makes environments of the manager.
var GoalsKind = envs.Kind{Name: "scml_goals", Summary: "set the goals of a factory of SCML's Standard league, day by day", Defaults: func() any { return DefaultGoals() }, Open: func(_ context.Context, params configs.Section) (envs.Factory, error) {
	c := DefaultGoals()
	if err := params.Decode(&c); err != nil {
		return nil, err
	}
	f := &goalsFactory{c: c}
	f.roster = scml.NewRoster(f.compiler)
	return f, nil
}}

// ThreadsKind makes environments of the executor and of the coordinator.
var ThreadsKind = envs.Kind{Name: "scml_threads", Summary: "answer the negotiations of a factory of SCML's Standard league, an agent for each partner", Defaults: func() any { return DefaultThreads() }, Open: func(_ context.Context, params configs.Section) (envs.Factory, error) {
	c := DefaultThreads()
	if err := params.Decode(&c); err != nil {
		return nil, err
	}
	f := &threadsFactory{c: c}
	f.roster = scml.NewRoster(f.compiler)
	return f, nil
}}

// networks runs the networks of a factory's agents.
type networks struct {
	engine func(context.Context) (engine.Compiler, error)
	roster *scml.Roster
}

// UseEngine says what opens the engine that runs the networks of environments that are made from
// now on, which it outlives.
func (n *networks) UseEngine(open func(context.Context) (engine.Compiler, error)) { n.engine = open }

func (n *networks) compiler(ctx context.Context) (engine.Compiler, error) {
	if n.engine == nil {
		return nil, errors.New("there is no engine to run an agent's networks")
	}
	return n.engine(ctx)
}

// Close implements envs.Factory.
func (n *networks) Close() error { return n.roster.Close() }

type goalsFactory struct {
	networks
	c GoalsConfig
}

// Config implements envs.Factory.
func (f *goalsFactory) Config() any { return f.c }

// New implements envs.Factory.
func (f *goalsFactory) New(envs.Split, int) (envs.Env, error) { return NewGoals(f.c, f.roster) }

type threadsFactory struct {
	networks
	c ThreadsConfig
}

var _ envs.MultiFactory = (*threadsFactory)(nil)

// Config implements envs.Factory.
func (f *threadsFactory) Config() any { return f.c }

// Agents implements envs.MultiFactory.
func (f *threadsFactory) Agents() []string { return positions }

// New implements envs.Factory.
func (f *threadsFactory) New(split envs.Split, i int) (envs.Env, error) {
	w, err := f.NewMulti(split, i)
	if err != nil {
		return nil, err
	}
	return envs.AgentOf(w), nil
}

// NewMulti implements envs.MultiFactory.
func (f *threadsFactory) NewMulti(envs.Split, int) (envs.Multi, error) {
	return NewThreads(f.c, f.roster)
}
