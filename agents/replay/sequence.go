package replay

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/rng"
)

// SampleSequences draws sequences of length transitions that follow each other in one environment,
// for learners that correct for the policies that acted (V-trace). Row t·w + i of the batch is
// transition t of sequence i, where w is the number of sequences: the batch's rows divided by the
// length. A sequence may begin anywhere and runs on from one episode into the next; where an
// episode ended NextObs is its final observation. The replay must be of one step (Config.NSteps).
// It allocates nothing once it has been called with a batch of that size.
func (u *Uniform) SampleSequences(s *rng.Stream, b *Batch, length int) error {
	n, err := u.prepare(b)
	switch {
	case err != nil:
	case length < 1 || n%length != 0:
		err = fmt.Errorf("sequences of %d transitions in a batch of %d", length, n)
	case u.c.NSteps != 1:
		err = fmt.Errorf("sequences of a replay of %d steps", u.c.NSteps)
	case !u.holds(length):
		err = fmt.Errorf("%w: no environment has %d transitions", ErrEmpty, length)
	}
	if err != nil {
		return fmt.Errorf("replay: sample sequences: %w", err)
	}
	width, span := n/length, 0
	for _, st := range u.streams {
		span = max(span, st.n-1)
	}
	for i := 0; i < width; {
		e := 0
		if len(u.streams) > 1 {
			e = s.IntN(len(u.streams))
		}
		if k := s.IntN(span); k < u.streams[e].n-1 && !u.finals.has(u.at1(e, k)) && u.walk(e, u.at1(e, k), length, width, i) {
			i++
		}
	}
	u.fill(b)
	for i := range b.Weight {
		b.Weight[i] = 1
	}
	return nil
}

// holds reports whether some environment has so many transitions.
func (u *Uniform) holds(length int) bool {
	for e, st := range u.streams {
		if st.n > length && u.walk(e, u.skip(e, u.at1(e, 0)), length, 0, 0) {
			return true
		}
	}
	return false
}

// skip returns the first row from the given one on that is no final observation; the newest one
// never is.
func (u *Uniform) skip(e, row int) int {
	for u.finals.has(row) {
		row = u.after(e, row)
	}
	return row
}

// walk puts the rows of the sequence that begins at a row, which is no final one, into the sample
// at places i, i + width and so on, and reports whether there are enough. With a width of 0 it puts
// them all into one place.
func (u *Uniform) walk(e, row, length, width, i int) bool {
	last := u.newest(e)
	for t := range length {
		if row == last {
			return false
		}
		u.at[t*width+i] = row
		row = u.skip(e, u.after(e, row))
	}
	return true
}
