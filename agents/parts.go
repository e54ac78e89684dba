package agents

import "fmt"

// Parts make up an agent: they implement [Agent] for algorithms.
type Parts struct {
	// Name stands in front of errors.
	Name string
	// Learning is closed with the agent.
	Learning interface {
		Learner
		Close() error
	}
	Recording Recorder
	// Acting returns an actor for n environments, at least 1.
	Acting func(m Mode, n int) (Actor, error)
}

// NewActor implements Agent.
func (p *Parts) NewActor(m Mode, n int) (Actor, error) {
	if n < 1 {
		return nil, fmt.Errorf("%s: an actor for %d environments", p.Name, n)
	}
	x, err := p.Acting(m, n)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	return x, nil
}

// Recorder implements Agent.
func (p *Parts) Recorder() Recorder { return p.Recording }

// Learner implements Agent.
func (p *Parts) Learner() Learner { return p.Learning }

// Close implements Agent.
func (p *Parts) Close() error { return p.Learning.Close() }
