package dataset

import (
	"fmt"
	"io"

	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// DefaultWindow is the number of rows that are shuffled together.
const DefaultWindow = 1 << 18

// Part selects rows of a table: all of them, or one side of a split.
type Part int

// The parts of a split.
const (
	All Part = iota
	Train
	Validation
)

// Split divides rows into a training and a validation part.
type Split struct {
	// Fraction of the rows that belong to the validation part, in [0, 1).
	Fraction float64
	// Tail takes the last rows; otherwise rows are drawn by a hash of seed and row number, which is
	// the same in every epoch and needs no memory.
	Tail bool
	Seed uint64
}

// has reports whether a row belongs to the part.
func (s Split) has(p Part, row, total int) bool {
	if p == All {
		return true
	}
	var val bool
	if s.Tail {
		val = row >= total-int(float64(total)*s.Fraction)
	} else {
		x := s.Seed ^ (uint64(row)+1)*0x9e3779b97f4a7c15
		x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
		x = (x ^ x>>27) * 0x94d049bb133111eb
		x ^= x >> 31
		val = float64(x>>11)*0x1p-53 < s.Fraction
	}
	return val == (p == Validation)
}

// LoaderOptions select rows and their order.
type LoaderOptions struct {
	Part  Part
	Split Split
	// Shuffle permutes the rows in every epoch, from Seed.
	Shuffle bool
	Seed    uint64
	// Window is the number of rows that are in memory and shuffled together; a block that is larger
	// counts as one window. 0 means DefaultWindow. A table that fits into the window is read once
	// and kept.
	Window int
}

// State is the position of a loader: the epoch, counted from 0, and the rows already taken of it.
type State struct {
	Epoch int `json:"epoch"`
	Row   int `json:"row"`
}

// Loader hands out rows epoch by epoch. It is not safe for concurrent use.
type Loader struct {
	m    *Mapping
	o    LoaderOptions
	rows int
	// keep says that the table fits into the window.
	keep bool

	epoch int
	taken int
	// order lists the blocks of the epoch, of which the first next have been read.
	order []int
	next  int
	// window holds the blocks being handed out and queue the rows of them in the order in which
	// they are taken, the first at of them taken.
	window []*block
	queue  []rowRef
	at     int
	// dst and src are the memory of the tensors being filled and, per field, of every block of the
	// window.
	dst [][]byte
	src [][][]byte
}

// rowRef is a row of a block of the window.
type rowRef struct{ block, row int32 }

// NewLoader counts the rows of its part, which reads the whole table once when rows may be dropped.
func NewLoader(m *Mapping, o LoaderOptions) (*Loader, error) {
	if o.Window <= 0 {
		o.Window = DefaultWindow
	}
	if o.Split.Fraction < 0 || o.Split.Fraction >= 1 {
		return nil, fmt.Errorf("split: fraction %g, expected a number in [0, 1)", o.Split.Fraction)
	}
	l := &Loader{m: m, o: o, keep: m.Rows() <= o.Window, dst: make([][]byte, len(m.fields)), src: make([][][]byte, len(m.fields))}
	for b, n := range m.table.Blocks() {
		var valid []bool
		if m.missing == Drop {
			blk, err := m.read(b, l.keep)
			if err != nil {
				return nil, err
			}
			valid = blk.valid
		}
		for r := range n {
			if (valid == nil || valid[r]) && l.selects(b, r) {
				l.rows++
			}
		}
	}
	if l.rows == 0 {
		return nil, fmt.Errorf("%s: the selected part of the data has no rows (of %d)", m.table.Name(), m.Rows())
	}
	l.start()
	return l, nil
}

// selects reports whether row r of block b belongs to the loader's part.
func (l *Loader) selects(b, r int) bool { return l.o.Split.has(l.o.Part, l.m.first[b]+r, l.m.Rows()) }

// Rows returns the rows of one epoch.
func (l *Loader) Rows() int { return l.rows }

// State returns the position; [Loader.Seek] returns to it.
func (l *Loader) State() State { return State{Epoch: l.epoch, Row: l.taken} }

// Left returns the rows that are left in the epoch.
func (l *Loader) Left() int { return l.rows - l.taken }

// start begins the current epoch.
func (l *Loader) start() {
	n := len(l.m.table.Blocks())
	l.order = l.order[:0]
	for i := range n {
		l.order = append(l.order, i)
	}
	if l.o.Shuffle {
		l.stream("blocks", 0).Shuffle(n, func(i, j int) { l.order[i], l.order[j] = l.order[j], l.order[i] })
	}
	l.taken, l.next = 0, 0
	l.drop()
}

// drop lets go of the window, so that no more than one is ever in memory.
func (l *Loader) drop() {
	clear(l.window)
	for f := range l.src {
		clear(l.src[f])
		l.src[f] = l.src[f][:0]
	}
	l.window, l.queue, l.at = l.window[:0], l.queue[:0], 0
}

// stream derives the randomness of one decision from seed, epoch and name, so that a position can
// be reached without its past.
func (l *Loader) stream(name string, i int) *rng.Stream {
	return rng.New(l.o.Seed).Split("epoch", l.epoch).Split(name, i).Stream()
}

// NextEpoch moves to the start of the next epoch.
func (l *Loader) NextEpoch() {
	l.epoch++
	l.start()
}

// Seek moves to a position as [Loader.State] returned it. The table and options must be the same.
func (l *Loader) Seek(s State) error {
	if s.Epoch < 0 || s.Row < 0 || s.Row > l.rows {
		return fmt.Errorf("seek data: epoch %d, row %d of %d", s.Epoch, s.Row, l.rows)
	}
	l.epoch = s.Epoch
	l.start()
	for l.taken < s.Row {
		if l.at == len(l.queue) {
			if err := l.fill(); err != nil {
				return err
			}
		}
		n := min(len(l.queue)-l.at, s.Row-l.taken)
		l.at += n
		l.taken += n
	}
	return nil
}

// fill reads the next window and orders its rows. Rows that are not shuffled need one block at a
// time.
func (l *Loader) fill() error {
	if l.next == len(l.order) {
		return io.EOF
	}
	begin := l.next
	l.drop()
	for rows := 0; l.next < len(l.order); l.next++ {
		b := l.order[l.next]
		n := l.m.table.Blocks()[b]
		if rows > 0 && (!l.o.Shuffle || rows+n > l.o.Window) {
			break
		}
		blk, err := l.m.read(b, l.keep)
		if err != nil {
			return err
		}
		for r, ok := range blk.valid {
			if ok && l.selects(b, r) {
				l.queue = append(l.queue, rowRef{int32(len(l.window)), int32(r)})
			}
		}
		for f, t := range blk.fields {
			l.src[f] = append(l.src[f], t.Bytes())
		}
		l.window = append(l.window, blk)
		rows += n
	}
	if l.o.Shuffle {
		l.stream("rows", begin).Shuffle(len(l.queue), func(i, j int) { l.queue[i], l.queue[j] = l.queue[j], l.queue[i] })
	}
	return nil
}

// Next fills the first rows of the given tensors, one per field of the mapping, of the field's type
// and each with at least n rows, and returns how many rows were filled: n, or fewer at the end of
// the epoch, where it returns 0 and io.EOF. It allocates only where it reads a window.
func (l *Loader) Next(n int, dst []*tensor.Tensor) (int, error) {
	if len(dst) != len(l.m.fields) {
		return 0, fmt.Errorf("next rows: %d tensors for %d fields", len(dst), len(l.m.fields))
	}
	for f, t := range dst {
		p := &l.m.fields[f]
		if t.DType() != p.DType || t.Rank() == 0 || t.Shape()[0] < n || t.Len() != t.Shape()[0]*p.width {
			return 0, fmt.Errorf("next rows: %q has %d values of type %v per row, which do not fit %d rows of %v", p.Name, p.width, p.DType, n, t)
		}
		l.dst[f] = t.Bytes()
	}
	filled := 0
	for filled < n && l.taken < l.rows {
		if l.at == len(l.queue) {
			if err := l.fill(); err != nil {
				return filled, err
			}
			continue
		}
		refs := l.queue[l.at:min(len(l.queue), l.at+n-filled)]
		for f, out := range l.dst {
			src, size := l.src[f], l.m.fields[f].rowBytes()
			out = out[filled*size:]
			for i, ref := range refs {
				copy(out[i*size:(i+1)*size], src[ref.block][int(ref.row)*size:])
			}
		}
		l.at += len(refs)
		l.taken += len(refs)
		filled += len(refs)
	}
	if filled == 0 {
		return 0, io.EOF
	}
	return filled, nil
}

// Fields returns the names of the tensors that Next fills, in order.
func (l *Loader) Fields() []string {
	names := make([]string, len(l.m.fields))
	for i, f := range l.m.fields {
		names[i] = f.Name
	}
	return names
}
