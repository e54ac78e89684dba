package replay

import (
	"errors"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs/vector"
)

// Member returns the place of one policy in the store, for agents.Setup: it records with the writer
// of a name, and draws from all policies as c says. Steps and discounts are the learner's. Closing
// the learner closes the writer, so a checkpoint that is to go on with it is saved before.
func (s *Shared) Member(name string, policy int32, c SamplerConfig) Store {
	return &seat{s, nil, name, policy, c}
}

// seat implements Store.
type seat struct {
	s      *Shared
	own    *Section // nil where the store is whole
	name   string
	policy int32
	c      SamplerConfig
}

// Identity implements agents.Replay: members of one store have the same, so that one of them can go
// on with what another has learnt.
func (p *seat) Identity() string { return p.s.c.Name }

// Open implements Store.
func (p *seat) Open(l Layout, c Config) (Buffer, error) {
	if p.s.c.Name == "" {
		return nil, errors.New("the store has no name, which checkpoints would know it by: SharedConfig.Name")
	}
	if err := p.s.l.covers(&l); err != nil {
		return nil, err
	}
	draws := p.c
	draws.NSteps, draws.Gamma = c.NSteps, c.Gamma
	x, err := p.s.NewSampler(draws)
	if err != nil {
		return nil, err
	}
	w, err := p.s.Writer(p.name, p.policy, c.Envs, c.Action)
	if err != nil {
		return nil, err
	}
	w.own, x.own = p.own, p.own
	return &member{Writer: w, Sampler: x, Reference: Reference{Store: p.Identity(), Clock: w.clock().Load}}, nil
}

// member is a learner's buffer of a shared store.
type member struct {
	*Writer
	*Sampler
	Reference
}

// End implements agents.Recorder.
func (m *member) End(b *vector.Batch) error {
	err := m.Writer.End(b)
	if err == nil {
		m.Recorded++
	}
	return err
}

// Policy implements Sharer.
func (m *member) Policy() int32 { return m.Writer.policy }

// Clock implements Sharer.
func (m *member) Clock() int64 { return m.Reference.Clock() }

// Len implements Buffer.
func (m *member) Len() int { return m.Sampler.s.lenOf(m.Sampler.own) }

var _ agents.Replay = (*seat)(nil)
