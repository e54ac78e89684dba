package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// WriterOptions say what of a decision is recorded.
type WriterOptions struct {
	// Action returns the action, [B, …] in the form of the layout's column; nil is
	// Decision.Actions.
	Action func(*agents.Decision) *tensor.Tensor
	// Logits returns the behaviour's logits, [B, SharedConfig.Logits]; it is needed where the store
	// keeps them.
	Logits func(*agents.Decision) []float32
}

// Writer records what one policy does in a batch of environments. It is an agents.Recorder. After
// an error of Begin, which a full disk may cause, nothing is recorded and nothing lost, and the
// round may be begun again.
type Writer struct {
	s      *Shared
	policy int32
	o      WriterOptions
	at     []place
	open   bool
}

// place is where an environment's next transition goes: the row that shows the present, of a chunk;
// −1 when it has none.
type place struct {
	chunk, row int
	// transitions counts those of the chunk.
	transitions int
}

var _ agents.Recorder = (*Writer)(nil)

// Writer returns a writer for a policy that acts in a number of environments. Each of these has a
// chunk, so a store needs at least twice as many. After a checkpoint was restored, writers are
// asked for in the order in which they were when it was saved.
func (s *Shared) Writer(policy int32, envs int, o WriterOptions) (*Writer, error) {
	if o.Action == nil {
		o.Action = func(d *agents.Decision) *tensor.Tensor { return d.Actions }
	}
	if envs < 1 || (s.c.Logits > 0) != (o.Logits != nil) {
		return nil, fmt.Errorf("replay: a writer for %d environments with logits %t; the store keeps %d of them", envs, o.Logits != nil, s.c.Logits)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.streams+envs > len(s.chunks)/2 {
		return nil, fmt.Errorf("replay: a writer for %d environments beside %d in a store of %d chunks; each needs two: raise the capacity, or make chunks smaller than %d rows", envs, s.streams, len(s.chunks), s.c.ChunkRows)
	}
	w := &Writer{s: s, policy: policy, o: o, at: slices.Repeat([]place{{chunk: -1}}, envs)}
	if len(s.restored) > 0 {
		if err := w.resume(s.restored[0]); err != nil {
			return nil, err
		}
		s.restored = s.restored[1:]
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
	if i := slices.Index(s.writers, w); i >= 0 {
		s.writers = slices.Delete(s.writers, i, i+1)
		s.streams -= len(w.at)
	}
	for e := range w.at {
		if k := w.at[e].chunk; k >= 0 {
			s.sealLocked(k)
			w.at[e].chunk = -1
		}
	}
	return nil
}

// Begin implements agents.Recorder.
func (w *Writer) Begin(b *vector.Batch, d *agents.Decision) error {
	s, n := w.s, len(w.at)
	a := w.o.Action(d)
	p := s.rows.action
	switch {
	case w.open:
		return errors.New("replay: record: begun twice without an end")
	case len(b.Type) != n:
		return fmt.Errorf("replay: record: a batch of %d environments, expected %d", len(b.Type), n)
	case a == nil || a.DType() != p.col.DType || len(a.Bytes()) != n*p.size:
		return fmt.Errorf("replay: record: actions %v, expected %v[%d %v]", a, p.col.DType, n, p.col.Shape)
	case s.logProb.size > 0 && len(d.LogProb) != n:
		return fmt.Errorf("replay: record: %d log-probabilities of %d actions; they are to be recorded", len(d.LogProb), n)
	}
	if err := s.has(b, n); err != nil {
		return fmt.Errorf("replay: record: %w", err)
	}
	var logits []float32
	if s.c.Logits > 0 {
		if logits = w.o.Logits(d); len(logits) != n*s.c.Logits {
			return fmt.Errorf("replay: record: %d logits of %d actions, expected %d of each", len(logits), n, s.c.Logits)
		}
	}
	for e := range w.at {
		if err := w.present(e, b); err != nil {
			return fmt.Errorf("replay: record: %w", err)
		}
	}
	for e := range w.at {
		row := w.at[e].row
		copy(s.row(row)[p.off:p.off+p.size], a.Bytes()[e*p.size:])
		if s.logProb.size > 0 {
			s.setFloat(row, s.logProb, d.LogProb[e])
		}
		for i := range s.c.Logits {
			putFloat32(s.row(row)[s.logits.off+4*i:], logits[e*s.c.Logits+i])
		}
	}
	w.open = true
	return nil
}

// present makes sure that there is a row that shows environment e.
func (w *Writer) present(e int, b *vector.Batch) error {
	s, p := w.s, &w.at[e]
	if p.chunk >= 0 {
		if s.shows(p.row, e, b.Obs, b.Rows) {
			return nil
		}
		// The environment was reset in the middle of an episode, which counts as cut off.
		s.setFinal(p.row)
		w.advance(p, 1, 0)
	}
	if p.chunk < 0 {
		k, err := s.take(w.policy)
		if err != nil {
			return err
		}
		*p = place{chunk: k, row: k << s.shift}
	}
	s.putObs(p.row, e, b.Obs, b.Rows)
	s.putMask(p.row, e, b.Mask)
	return nil
}

// advance publishes rows up to the next place, some of them transitions, and leaves the chunk when
// it has no room for another transition and its following observation.
func (w *Writer) advance(p *place, rows, transitions int) {
	s := w.s
	p.row += rows
	p.transitions += transitions
	in := p.row - p.chunk<<s.shift
	s.chunks[p.chunk].publish(in, p.transitions)
	if in > s.c.ChunkRows-2 {
		s.seal(p.chunk)
		p.chunk = -1
	}
}

// End implements agents.Recorder.
func (w *Writer) End(b *vector.Batch) error {
	if !w.open {
		return errors.New("replay: record: ended without a beginning")
	}
	s := w.s
	now := s.clock.Add(int64(len(w.at))) - int64(len(w.at))
	for e, t := range b.Type {
		p := &w.at[e]
		row := p.row
		s.setFloat(row, s.reward, float32(b.Reward[e]))
		s.setFloat(row, s.discount, float32(b.Discount[e]))
		binary.LittleEndian.PutUint64(s.row(row)[s.time.off:], uint64(now)+uint64(e))
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
