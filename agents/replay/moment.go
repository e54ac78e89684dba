package replay

import (
	"errors"
	"slices"
	"strconv"
	"sync"

	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/models/safetensors"
)

// Moment is a store as it was at a moment, to be saved while others go on to write to it and to
// draw from it. Rows are not copied, except of chunks that are taken away before they were saved:
// rows that have been published do not change before that. It is safe for concurrent use with the
// store. Save it once, and close it.
type Moment struct {
	s      *Shared
	saved  savedShared
	finals []uint64
	ranked *savedRanking
	// order lists the chunks that have rows, those first that will be taken away first.
	order []int

	// mu is taken after the store's.
	mu     sync.Mutex
	chunks []frozen
	buffer []byte
}

// frozen is a chunk of a moment.
type frozen struct {
	// rows is 0 of chunks without any, and of those that were saved.
	rows int
	// last is a copy of the last row where a writer may go on to write there.
	last []byte
	// kept is a copy of all rows, made when the chunk was taken away.
	kept []byte
}

var errFrozen = errors.New("replay: another moment is kept; a store has one at a time")

// Moment returns the store as it is now. The time that this takes, during which nobody records or
// draws, does not depend on the rows' bytes: it copies a bit, and with priorities eight bytes, for
// each. Rounds must have ended, and the store must be whole.
func (s *Shared) Moment() (*Moment, error) {
	s.evicting.Lock()
	defer s.evicting.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.frozen != nil {
		return nil, errFrozen
	}
	out, err := s.saved()
	if err != nil {
		return nil, err
	}
	n := &Moment{s: s, saved: out, finals: s.finalWords(), chunks: make([]frozen, len(s.chunks))}
	if s.ranked != nil {
		n.ranked = s.ranked.copied(true)
	}
	for k := range s.chunks {
		rows := s.rowsOf(k)
		n.chunks[k].rows = rows
		if rows > 0 && !s.chunks[k].sealed {
			n.chunks[k].last = slices.Clone(s.chunkBytes(k, rows)[(rows-1)*s.stride:])
		}
	}
	n.order = append(n.order, s.queue...)
	for k := range s.chunks {
		if n.chunks[k].rows > 0 && !s.chunks[k].sealed {
			n.order = append(n.order, k)
		}
	}
	s.frozen = n
	return n, nil
}

// Close lets go of the moment; the store goes on.
func (n *Moment) Close() {
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	n.s.frozen = nil
}

// SaveState saves what [Shared.SaveState] would have saved at the moment of the moment;
// [Shared.LoadState] restores it. Rows are read while the checkpoint is written, so the moment must
// stay open until it is.
func (n *Moment) SaveState(w *checkpoint.Writer) error {
	rows := w.Scope("rows")
	for _, k := range n.order {
		rows.PutTensor(strconv.Itoa(k), safetensors.Tensor{DType: safetensors.U8, Shape: []int{n.chunks[k].rows, n.s.stride}, Source: func() []byte { return n.read(k) }})
	}
	w.PutUint64s("finals", n.finals)
	if n.ranked != nil {
		n.ranked.save(w)
	}
	w.PutJSON("shared", n.saved)
	return nil
}

// read returns the rows of a chunk, until the next call.
func (n *Moment) read(k int) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := &n.chunks[k]
	if c.kept != nil {
		n.buffer = c.kept
	} else {
		n.buffer = c.copyTo(n.buffer[:0], n.s.chunkBytes(k, c.rows))
	}
	*c = frozen{}
	return n.buffer
}

// copyTo appends the rows of a chunk, whose bytes are in the store still.
func (c *frozen) copyTo(b, rows []byte) []byte {
	b = append(b, rows[:len(rows)-len(c.last)]...)
	return append(b, c.last...)
}

// keep copies a chunk that is taken away, unless it was saved. The caller has locked the store's
// mu.
func (n *Moment) keep(k int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if c := &n.chunks[k]; c.rows > 0 && c.kept == nil {
		c.kept = c.copyTo(nil, n.s.chunkBytes(k, c.rows))
	}
}
