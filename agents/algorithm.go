package agents

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/configs"
)

// Algorithm makes agents of configurations of type C: what kinds and makers of all algorithms have
// in common.
type Algorithm[C any] struct {
	// Name stands in front of errors.
	Name string
	// Replay says that its learners can be given a replay.
	Replay bool
	// New makes an agent for a setup that is complete. An agent beside an error is closed.
	New func(c C, s Setup) (Agent, error)
}

// Kind returns a row of a list of algorithms, whose parameters are decoded over the defaults. One
// algorithm may have several, which differ in name and defaults.
func (a Algorithm[C]) Kind(name, summary string, defaults func() C) Kind {
	return Kind{Name: name, Summary: summary, Defaults: func() any { return defaults() }, Parse: func(params configs.Section) (Maker, error) {
		c := defaults()
		if err := params.Decode(&c); err != nil {
			return nil, err
		}
		return maker[C]{a, c}, nil
	}}
}

// Maker returns what makes agents of a configuration that was made in code, or all of its problems.
func (a Algorithm[C]) Maker(c C) (Maker, error) {
	if err := configs.Validate(c); err != nil {
		return nil, fmt.Errorf("%s: %w", a.Name, err)
	}
	return maker[C]{a, c}, nil
}

type maker[C any] struct {
	a Algorithm[C]
	c C
}

// Config implements Maker.
func (m maker[C]) Config() any { return m.c }

// New implements Maker.
func (m maker[C]) New(_ context.Context, s Setup) (Agent, error) {
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", m.a.Name, err)
	}
	if s.Replay != nil && !m.a.Replay {
		return nil, fmt.Errorf("%s: the algorithm is on-policy and takes no replay, but %q is given", m.a.Name, s.Replay.Identity())
	}
	a, err := m.a.New(m.c, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.a.Name, errors.Join(err, a.Close()))
	}
	return a, nil
}
