package replay

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Writer records what one policy does in a batch of environments. It is an agents.Recorder. After
// an error of Begin, which a full disk may cause, nothing is recorded and nothing lost, and the
// round may be begun again.
type Writer struct {
	s      *Shared
	own    *Section // nil where the store is whole
	name   string
	policy int32
	action func(*vector.Decision) *tensor.Tensor
	at     []place
	open   bool
	// took are the rows of the round that has begun.
	took attendance
}

// place is where an environment's next transition goes: the row that shows the present, of a chunk;
// −1 when it has none.
type place struct {
	chunk, row int
	// transitions counts those of the chunk.
	transitions int
}

var _ agents.Recorder = (*Writer)(nil)

// Writer returns the writer of a name, which no other that is open has, for a policy that acts in a
// number of environments. Each of these has a chunk, so a store needs at least twice as many. A
// writer that a restored checkpoint has goes on where it was, whichever order writers are opened
// in; see [Shared.Missing] for those that are not. action returns what is recorded of a decision as
// its action, [B, …] in the form of the layout's column; nil is Decision.Actions.
func (s *Shared) Writer(name string, policy int32, envs int, action func(*vector.Decision) *tensor.Tensor) (*Writer, error) {
	if envs < 1 || name == "" {
		return nil, fmt.Errorf("replay: a writer %q for %d environments; expected a name and at least one", name, envs)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.ContainsFunc(s.writers, func(w *Writer) bool { return w.name == name }) {
		return nil, fmt.Errorf("replay: a writer %q is open already", name)
	}
	if s.streams+envs > len(s.chunks)/2 {
		return nil, fmt.Errorf("replay: a writer for %d environments beside %d in a store of %d chunks; each needs two: raise the capacity, or make chunks smaller than %d rows", envs, s.streams, len(s.chunks), s.c.ChunkRows)
	}
	w := &Writer{s: s, name: name, policy: policy, action: action, at: slices.Repeat([]place{{chunk: -1}}, envs)}
	if err := w.resume(); err != nil {
		return nil, err
	}
	s.streams += envs
	s.writers = append(s.writers, w)
	return w, nil
}

// Close gives up the chunks, whose transitions stay. Nobody may use the writer any more.
func (w *Writer) Close() error {
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.writers, w)
	if i < 0 {
		return nil
	}
	s.writers = slices.Delete(s.writers, i, i+1)
	s.streams -= len(w.at)
	for e := range w.at {
		if k := w.at[e].chunk; k >= 0 {
			s.sealLocked(k)
			w.at[e].chunk = -1
		}
	}
	return nil
}

// Begin implements agents.Recorder.
func (w *Writer) Begin(b *vector.Batch, d *vector.Decision) error {
	s := w.s
	a, err := s.decided(b, d, w.open, len(w.at), w.action)
	if err != nil {
		return err
	}
	w.took.take(b)
	for e := range w.at {
		if !w.took.has(e) {
			continue
		}
		if err := w.present(e, b); err != nil {
			return fmt.Errorf("replay: record: %w", err)
		}
	}
	for e := range w.at {
		if w.took.has(e) {
			s.putDecision(w.at[e].row, e, d, a)
		}
	}
	w.open = true
	return nil
}

// present makes sure that there is a row that shows environment e.
func (w *Writer) present(e int, b *vector.Batch) error {
	s, p := w.s, &w.at[e]
	if p.chunk >= 0 && (w.took == nil || w.leads(p)) {
		if s.shows(p.row, e, b.Obs, b.Rows) {
			return nil
		}
		// The environment was reset in the middle of an episode, which counts as cut off.
		s.setFinal(p.row)
		w.advance(p, 1, 0)
	}
	if p.chunk < 0 {
		k, err := w.take()
		if err != nil {
			return err
		}
		*p = place{chunk: k, row: k << s.shift}
	}
	s.putObs(p.row, e, b.Obs, b.Rows)
	s.putMask(p.row, e, b.Mask)
	return nil
}

// take returns the next chunk to write to.
func (w *Writer) take() (int, error) {
	if w.own != nil {
		return w.own.take(w.policy)
	}
	return w.s.take(w.policy)
}

// clock counts the transitions that were ever recorded where the writer writes.
func (w *Writer) clock() *atomic.Int64 {
	if w.own != nil {
		return &w.own.clock
	}
	return &w.s.clock
}

// leads reports whether a transition leads to the row of a place. Where none does, nobody reads the
// row, which waits for its agent, and it may be written again.
func (w *Writer) leads(p *place) bool {
	return p.row > p.chunk<<w.s.shift && !w.s.isFinal(p.row-1)
}

// advance publishes rows up to the next place, some of them transitions, and leaves the chunk when
// it has no room for another transition and its following observation.
func (w *Writer) advance(p *place, rows, transitions int) {
	s := w.s
	p.row += rows
	p.transitions += transitions
	in := p.row - p.chunk<<s.shift
	s.chunks[p.chunk].publish(in, p.transitions)
	if transitions > 0 && s.ranked != nil {
		// A final observation may lie behind the transition.
		s.ranked.add(p.row - rows)
	}
	if in > s.c.ChunkRows-2 {
		s.seal(p.chunk)
		p.chunk = -1
	}
}

// End implements agents.Recorder.
func (w *Writer) End(b *vector.Batch) error {
	if !w.open {
		return errEnd
	}
	s := w.s
	n := int64(w.took.count(len(w.at)))
	now := w.clock().Add(n) - n
	for e, t := range b.Type {
		if !w.took.has(e) {
			continue
		}
		p := &w.at[e]
		row := p.row
		s.putStep(row, e, b)
		binary.LittleEndian.PutUint64(s.row(row)[s.time.off:], uint64(now))
		now++
		next := row + 1
		if t == envs.Last {
			s.putObs(next, e, b.Final, b.FinalRows)
			s.putMask(next, e, b.FinalMask)
			s.setFinal(next)
			if next++; next <= p.chunk<<s.shift+s.c.ChunkRows-2 {
				s.putObs(next, e, b.Obs, b.Rows)
				s.putMask(next, e, b.Mask)
			}
		} else {
			s.putObs(next, e, b.Obs, b.Rows)
			s.putMask(next, e, b.Mask)
		}
		w.advance(p, next-row, 1)
	}
	w.open = false
	return nil
}
