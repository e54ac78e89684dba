package replay

import (
	"fmt"
	"sync/atomic"
)

// Section is the part of a [Shared] store that one member records into, from [Shared.Divide] to
// [Shared.Unite]. Its members read what there was before and what they have recorded themselves,
// so that what they draw does not depend on who trains at the same time, or when.
type Section struct {
	s *Shared
	// free are chunks that nobody has written to yet, and sealed those that were, in this order.
	// Both, and version, which counts chunks that were taken away, are protected by Shared.mu.
	free, sealed []int
	version      int64
	// clock is what the store's was at the beginning, and the transitions recorded since.
	clock atomic.Int64
}

// Divide begins a stretch in which so many members record at once, each in a number of environments
// for a number of rounds, and returns their sections, in their order. Each has its chunks from now
// on, enough for episodes of any length, for which the oldest are taken away. A section whose
// rounds take longer writes over its own oldest chunk. Nobody may write while the store is divided
// but through a section, or save it.
func (s *Shared) Divide(members, envs, rounds int) ([]*Section, error) {
	if err := s.c.Divides(members, envs, rounds); err != nil {
		return nil, fmt.Errorf("replay: capacity %w", err)
	}
	each := s.c.each(envs, rounds)
	if err := s.makeRoom(members * each); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sections = nil
	for range members {
		own := &Section{s: s}
		own.clock.Store(s.clock.Load())
		at := len(s.free) - each
		own.free = append(own.free, s.free[at:]...)
		s.free = s.free[:at]
		for _, k := range own.free {
			s.section[k] = own
		}
		s.sections = append(s.sections, own)
	}
	return s.sections, nil
}

// Unite ends what Divide has begun: all read everything, which counts as recorded by one member
// after the other.
func (s *Shared) Unite() {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.clock.Load()
	for _, own := range s.sections {
		s.queue = append(s.queue, own.sealed...)
		s.free = append(s.free, own.free...)
		s.clock.Add(own.clock.Load() - before)
	}
	clear(s.section)
	s.sections = nil
	s.version++
}

// Member is [Shared.Member] in a section.
func (p *Section) Member(name string, policy int32, c SamplerConfig) Store {
	return &seat{p.s, p, name, policy, c}
}

// reads reports whether a chunk is one that the section's members read. Chunks change sections only
// while nobody reads.
func (p *Section) reads(k int) bool { return p.s.section[k] == nil || p.s.section[k] == p }

// take gives a chunk of the section to a writer.
func (p *Section) take(policy int32) (int, error) {
	s := p.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(p.free) == 0 {
		if len(p.sealed) == 0 {
			return 0, fmt.Errorf("replay: %w", ErrNoChunk)
		}
		k := p.sealed[0]
		p.sealed = p.sealed[1:]
		s.empty(k)
		p.free = append(p.free, k)
		p.version++
	}
	k := p.free[len(p.free)-1]
	p.free = p.free[:len(p.free)-1]
	s.chunks[k].policy, s.chunks[k].used = policy, true
	return k, nil
}
