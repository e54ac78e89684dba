package replay

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Config describes a [Uniform] or [Prioritised] replay.
type Config struct {
	// Capacity is the number of transitions over all environments, each of which has its share,
	// rounded up. The final observation of an episode takes the place of one.
	Capacity int
	// Envs is the number of environments of the batches that are recorded.
	Envs int
	// NSteps is the number of rewards in a sample; 0 means 1. Near the end of an episode, or of
	// what is recorded, there are fewer.
	NSteps int
	// Gamma multiplies the environment's discounts.
	Gamma float64
	// Action returns what is recorded of a decision as its action, [B, …] in the form of the
	// layout's column; nil is Decision.Actions.
	Action func(*vector.Decision) *tensor.Tensor
}

// Uniform keeps the newest transitions and samples them uniformly. It is not safe for concurrent
// use.
type Uniform struct {
	c Config
	l Layout
	*rows
	// size is the number of rows of each environment, whose stream is a ring.
	size    int
	streams []stream
	// finals has a bit for each row: it is a final observation, from which no action was taken.
	finals rowSet
	// shown has the rows that show what environments show now, and so are no transitions yet.
	shown rowSet
	// lasts has the last row of each environment's ring.
	lasts rowSet
	len   int
	// rounds counts those that were recorded; open says that one has begun.
	rounds int64
	open   bool
	// took are the rows of the round that has begun.
	took attendance

	// at and next are the rows of a sample, as offsets in bytes.
	at, next []int
	// touched is where gather leaves its result.
	touched byte
	// added and dropped, unless nil, receive transitions that become complete, and rows that are
	// overwritten.
	added, dropped func(row int)
}

// stream are the rows of one environment: n of them, oldest first, beginning at begin. The newest
// one is the observation that is shown now; while the row of the batch is absent it waits for the
// next one.
type stream struct{ begin, n int }

var _ Buffer = (*Uniform)(nil)

// ErrEmpty is returned when nothing has been recorded.
var ErrEmpty = errors.New("no transition is recorded")

// Bytes is the memory that a replay of one learner takes when it is full.
func (c Config) Bytes(l Layout) (int, error) {
	r, err := placed(l, false)
	if err != nil {
		return 0, err
	}
	return c.size() * c.Envs * r.stride, nil
}

// size is the number of rows of each environment. One row more shows the present, and a stream
// needs room for an episode of one step: its beginning, its end and the present.
func (c Config) size() int { return max((c.Capacity+c.Envs-1)/c.Envs+1, 3) }

// NewUniform returns an empty replay. Memory is mapped at once and used as it is filled.
func NewUniform(l Layout, c Config) (*Uniform, error) {
	if c.NSteps == 0 {
		c.NSteps = 1
	}
	if c.Capacity < 1 || c.Envs < 1 || c.NSteps < 1 || !(c.Gamma >= 0 && c.Gamma <= 1) {
		return nil, fmt.Errorf("new replay: capacity %d, %d environments, %d steps and gamma %g; expected at least 1 of each, and gamma between 0 and 1", c.Capacity, c.Envs, c.NSteps, c.Gamma)
	}
	u := &Uniform{c: c, l: l, size: c.size(), streams: make([]stream, c.Envs)}
	var err error
	if u.rows, err = newRows(l, u.size*c.Envs, false); err != nil {
		return nil, fmt.Errorf("new replay: %w", err)
	}
	u.finals, u.shown, u.lasts = newRowSet(u.rows.n), newRowSet(u.rows.n), newRowSet(u.rows.n)
	for e := range c.Envs {
		u.lasts.set((e+1)*u.size - 1)
	}
	return u, nil
}

// SetReturns implements Buffer.
func (u *Uniform) SetReturns(nSteps int, gamma float64) error {
	if err := checkReturns(nSteps, gamma); err != nil {
		return err
	}
	u.c.NSteps, u.c.Gamma = nSteps, gamma
	return nil
}

func checkReturns(nSteps int, gamma float64) error {
	if nSteps < 1 || !(gamma >= 0 && gamma <= 1) {
		return fmt.Errorf("replay: returns of %d steps and gamma %g; expected at least 1, and gamma between 0 and 1", nSteps, gamma)
	}
	return nil
}

// Len implements Buffer.
func (u *Uniform) Len() int { return u.len }

// Full reports whether new transitions replace old ones.
func (u *Uniform) Full() bool {
	for _, s := range u.streams {
		if s.n < u.size {
			return false
		}
	}
	return true
}

// Close implements Buffer.
func (u *Uniform) Close() error { return u.rows.close() }

// newest returns the row that shows environment e now; it exists.
func (u *Uniform) newest(e int) int { return u.at1(e, u.streams[e].n-1) }

// at1 returns row k of environment e, counted from the oldest.
func (u *Uniform) at1(e, k int) int {
	k += u.streams[e].begin
	if k >= u.size {
		k -= u.size
	}
	return e*u.size + k
}

// after returns the row that follows a row of environment e.
func (u *Uniform) after(e, row int) int {
	if row++; row == (e+1)*u.size {
		row -= u.size
	}
	return row
}

// add makes room for another row of environment e and returns it.
func (u *Uniform) add(e int) int {
	s := &u.streams[e]
	if s.n > 0 {
		u.shown.clear(u.newest(e))
	}
	if s.n == u.size {
		old := e*u.size + s.begin
		if u.finals.has(old) {
			u.finals.clear(old)
		} else {
			u.len--
		}
		if u.dropped != nil {
			u.dropped(old)
		}
		if s.begin++; s.begin == u.size {
			s.begin = 0
		}
		s.n--
	}
	s.n++
	row := u.newest(e)
	u.shown.set(row)
	return row
}

// finish makes a transition of the newest row of environment e. The row that the next observation
// goes into is added by the caller.
func (u *Uniform) finish(e int, b *vector.Batch) {
	i := u.newest(e)
	u.putStep(i, e, b)
	u.len++
	if u.added != nil {
		u.added(i)
	}
}

// Sample implements Buffer.
func (u *Uniform) Sample(s *rng.Stream, b *Batch) error {
	if _, err := u.prepare(b); err != nil {
		return fmt.Errorf("replay: sample: %w", err)
	}
	u.draw(s)
	u.fill(b)
	for i := range b.Weight {
		b.Weight[i] = 1
	}
	return nil
}

// draw draws transitions, all alike.
func (u *Uniform) draw(s *rng.Stream) {
	if u.Full() {
		u.drawFull(s)
		return
	}
	span := 0
	for _, st := range u.streams {
		span = max(span, st.n-1)
	}
	for i := 0; i < len(u.at); {
		e := 0
		if len(u.streams) > 1 {
			e = s.IntN(len(u.streams))
		}
		k := s.IntN(span)
		if k >= u.streams[e].n-1 {
			continue
		}
		if row := u.at1(e, k); !u.finals.has(row) {
			u.at[i] = row
			i++
		}
	}
}

// drawFull is draw where every row has something.
func (u *Uniform) drawFull(s *rng.Stream) {
	n, low := uint64(u.rows.n), biased(u.rows.n)
	for i := 0; i < len(u.at); {
		for x, half := s.Uint64(), 0; half < 2 && i < len(u.at); x, half = x>>32, half+1 {
			p := uint64(uint32(x)) * n
			row := int(p >> 32)
			if uint32(p) >= low && !u.shown.has(row) && !u.finals.has(row) {
				u.at[i] = row
				i++
			}
		}
	}
}

// prepare checks a batch and makes room for its rows.
func (u *Uniform) prepare(b *Batch) (int, error) {
	n, err := u.accepts(b)
	if err != nil {
		return 0, err
	}
	if n > u.c.Capacity {
		return 0, fmt.Errorf("a batch of %d transitions out of a replay of %d", n, u.c.Capacity)
	}
	if u.len == 0 {
		return 0, ErrEmpty
	}
	if cap(u.at) < n {
		u.at, u.next = make([]int, n), make([]int, n)
	}
	u.at, u.next = u.at[:n], u.next[:n]
	return n, nil
}

// fill writes the transitions at the rows of u.at into a batch.
func (u *Uniform) fill(b *Batch) {
	if b.Index != nil {
		for i, row := range u.at {
			b.Index[i] = int64(row)
		}
	}
	gamma := float32(u.c.Gamma)
	if u.c.NSteps == 1 {
		for i, row := range u.at {
			next := row + 1
			if u.lasts.has(row) {
				next -= u.size
			}
			u.at[i], u.next[i] = row*u.stride, next*u.stride
		}
	} else {
		if b.Cost != nil {
			clear(b.Cost.Float32s())
		}
		for i, row := range u.at {
			var end int
			end, b.Reward[i], b.Discount[i] = u.returns(row, b.Cost, i)
			u.at[i], u.next[i] = row*u.stride, end*u.stride
		}
		gamma = -1
	}
	for i := range b.Ended {
		b.Ended[i] = u.finals.has(u.next[i] / u.stride)
	}
	u.touched += u.gather(b, u.at, u.next, gamma)
}

// returns adds up the rewards of up to NSteps transitions from a row on, and their costs into row
// at of a batch's. It returns the row of the observation after them and the product of their
// discounts.
func (u *Uniform) returns(row int, cost *tensor.Tensor, at int) (end int, reward, discount float32) {
	e := row / u.size
	last := u.newest(e)
	sum, product := 0.0, 1.0
	for range u.c.NSteps {
		sum += float64(product * float64(u.float(row, u.reward)))
		u.addCosts(cost, at, row, product)
		product *= u.c.Gamma * float64(u.float(row, u.discount))
		row = u.after(e, row)
		if row == last || u.finals.has(row) {
			break
		}
	}
	return row, float32(sum), float32(product)
}
