package replay

import (
	"encoding/binary"
	"fmt"
)

// The kinds of rows of a [Strip].
const (
	// RowTransition is an observation, what was decided there and what that led to, except for the
	// observation that followed, which the next row of the environment has.
	RowTransition = kindTransition
	// RowFinal is the observation that an episode ends with.
	RowFinal = kindFinal
	// RowNext is what an environment shows after its last transition, from which it goes on.
	RowNext = kindNext
)

// Strip is a number of rows of several environments, as they come from elsewhere: what a [Writer]
// records by [Writer.Append]. Rows of one environment follow each other; how those of several are
// mixed does not matter.
type Strip struct {
	// Env is each row's environment, and Kind what it is.
	Env  []int32
	Kind []byte
	// Columns are the bytes of each of [Shared.Columns], row by row, little-endian.
	Columns [][]byte
}

// Columns describes the columns of a [Strip], as files have them, without the times.
func (s *Shared) Columns() []FileColumn { return fileColumns(s.strip()) }

// strip lists the parts of a row that a Strip has.
func (s *Shared) strip() []filed {
	list := s.parts()
	for i, p := range list {
		if p.part == &s.time {
			return append(list[:i:i], list[i+1:]...)
		}
	}
	return list
}

// Check reports what is wrong with rows for a number of environments, and returns the number of
// transitions. The last row of an environment shows what follows its transitions: it is final, or
// next.
func (s *Shared) Check(p *Strip, envs int) (transitions int, err error) {
	parts, n := s.strip(), len(p.Kind)
	if len(p.Env) != n || len(p.Columns) != len(parts) {
		return 0, fmt.Errorf("replay: append: %d environments for %d rows, in %d columns, expected %d columns", len(p.Env), n, len(p.Columns), len(parts))
	}
	for i, c := range parts {
		if len(p.Columns[i]) != n*c.size {
			return 0, fmt.Errorf("replay: append: column %q has %d bytes, expected %d for %d rows", c.name, len(p.Columns[i]), n*c.size, n)
		}
	}
	// waits are the environments whose last row so far is a transition.
	waits := make([]bool, envs)
	for r, kind := range p.Kind {
		e := p.Env[r]
		if e < 0 || int(e) >= envs || kind > kindNext || kind == kindFinal && !waits[e] {
			return 0, fmt.Errorf("replay: append: row %d is of kind %d in environment %d of %d; expected kinds 0 to 2, and one that ends an episode after a transition", r, kind, e, envs)
		}
		waits[e] = kind == kindTransition
		if waits[e] {
			transitions++
		}
		for i, c := range parts {
			if err := s.soundRow(c, p.Columns[i][r*c.size:(r+1)*c.size], waits[e]); err != nil {
				return 0, fmt.Errorf("replay: append: row %d: column %q: %w", r, c.name, err)
			}
		}
	}
	for e, w := range waits {
		if w {
			return 0, fmt.Errorf("replay: append: the rows of environment %d end with a transition, expected the observation after it", e)
		}
	}
	return transitions, nil
}

// Reserve makes sure that rows, which have been checked, have room, while nobody else appends: the
// oldest transitions make it.
func (w *Writer) Reserve(p *Strip) error {
	s := w.s
	// A chunk may be left with one row that nobody uses.
	need := len(p.Kind)/(s.c.ChunkRows-1) + min(len(w.at), len(p.Kind)) + 1
	if need > len(s.chunks)/2 {
		return fmt.Errorf("replay: append: %d rows at once need up to %d chunks of %d rows, of a store that has %d; expected half of them at most", len(p.Kind), need, s.c.ChunkRows, len(s.chunks))
	}
	return s.makeRoom(need)
}

// Append records rows that [Shared.Check] has found nothing wrong with and for which there is room
// ([Writer.Reserve]). An environment whose first row does not show what its last one did was reset
// in between, which counts as cut off.
func (w *Writer) Append(p *Strip) error {
	s, parts := w.s, w.s.strip()
	heads := len(s.obs)
	if s.mask.size > 0 {
		heads++
	}
	put := func(row, r int, list []filed, columns [][]byte) {
		b := s.row(row)
		for i := range list {
			c := &list[i]
			copy(b[c.off:c.off+c.size], columns[i][r*c.size:])
		}
	}
	waits := make([]bool, len(w.at))
	for r, kind := range p.Kind {
		e := p.Env[r]
		at := &w.at[e]
		if waits[e] {
			waits[e] = false
			put(at.row+1, r, parts[:heads], p.Columns)
			if kind == kindFinal {
				s.setFinal(at.row + 1)
				w.advance(at, 2, 1)
				continue
			}
			w.advance(at, 1, 1)
		} else if at.chunk >= 0 && w.leads(at) && !s.showsStrip(at.row, r, parts[:heads], p.Columns) {
			s.setFinal(at.row)
			w.advance(at, 1, 0)
		}
		if kind == kindNext {
			continue
		}
		if at.chunk < 0 {
			k, err := w.take()
			if err != nil {
				return err
			}
			*at = place{chunk: k, row: k << s.shift}
		}
		put(at.row, r, parts, p.Columns)
		binary.LittleEndian.PutUint64(s.row(at.row)[s.time.off:], uint64(w.clock().Add(1)-1))
		waits[e] = true
	}
	return nil
}

// showsStrip reports whether a row holds the observation of row r of a strip.
func (s *Shared) showsStrip(row, r int, heads []filed, columns [][]byte) bool {
	b := s.row(row)
	for i := range heads {
		c := &heads[i]
		if string(b[c.off:c.off+c.size]) != string(columns[i][r*c.size:(r+1)*c.size]) {
			return false
		}
	}
	return true
}

// AppendTo appends the rows as bytes, which [ReadStrip] reads.
func (p *Strip) AppendTo(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, uint32(len(p.Kind)))
	for _, e := range p.Env {
		b = binary.LittleEndian.AppendUint32(b, uint32(e))
	}
	b = append(b, p.Kind...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(p.Columns)))
	for _, c := range p.Columns {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(c)))
		b = append(b, c...)
	}
	return b
}

// ReadStrip reads what [Strip.AppendTo] has appended, and shares its memory.
func ReadStrip(b []byte) (*Strip, error) {
	cut := func(n int) []byte {
		if n > len(b) {
			b = nil
			return nil
		}
		x := b[:n:n]
		b = b[n:]
		return x
	}
	number := func() int {
		if x := cut(4); x != nil {
			return int(binary.LittleEndian.Uint32(x))
		}
		return 0
	}
	n := number()
	env := cut(4 * n)
	p := &Strip{Env: make([]int32, len(env)/4), Kind: cut(n)}
	for r := range p.Env {
		p.Env[r] = int32(binary.LittleEndian.Uint32(env[4*r:]))
	}
	columns := number()
	for range columns {
		if b == nil {
			break
		}
		p.Columns = append(p.Columns, cut(number()))
	}
	if b == nil || len(b) > 0 {
		return nil, fmt.Errorf("replay: %d bytes behind the rows, or rows that are cut off", len(b))
	}
	return p, nil
}
