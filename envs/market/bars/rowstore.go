package bars

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"
)

// rowStore keeps rows by symbol, in the order in which they are added. One that spools holds no more
// than a number of them in memory and the others in a temporary file, which nobody else sees. It is
// not safe for concurrent use.
type rowStore struct {
	// most is how many rows are held at once; 0: all.
	most, held int
	// peak is the most rows that were held at once, those of a series that was loaded included.
	peak int
	of   map[string]*storedRows
	file *os.File // nil: nothing was written away
	size int64
	// names are those of files, and zones those of times, which rows name by their place.
	names []string
	zones []*time.Location
	err   error // the first of the file
}

// storedRows are those of a symbol: the ones written away, in parts, and then those in memory.
type storedRows struct {
	rows  []Record
	parts []storedPart
	away  int
}

type storedPart struct {
	at   int64
	size int
}

func newRowStore(most int) *rowStore { return &rowStore{most: most, of: map[string]*storedRows{}} }

// has says whether a symbol was seen, and sees it from now on.
func (s *rowStore) has(symbol string) bool {
	_, ok := s.of[symbol]
	if !ok {
		s.of[symbol] = &storedRows{}
	}
	return ok
}

func (s *rowStore) add(symbol string, r Record) {
	o := s.of[symbol]
	if o == nil {
		o = &storedRows{}
		s.of[symbol] = o
	}
	o.rows = append(o.rows, r)
	s.held++
	s.peak = max(s.peak, s.held)
	if s.most > 0 && s.held >= s.most {
		s.spill()
	}
}

// count is how many rows a symbol has.
func (s *rowStore) count(symbol string) int {
	if o := s.of[symbol]; o != nil {
		return o.away + len(o.rows)
	}
	return 0
}

// spill writes the rows in memory away.
func (s *rowStore) spill() {
	if s.err != nil {
		return // The loss is reported at the end.
	}
	if s.file == nil {
		if s.file, s.err = os.CreateTemp("", "onnxrl-rows-"); s.err != nil {
			s.err = fmt.Errorf("rows do not fit into memory at once, and there is no room for them: %w", s.err)
			return
		}
		_ = os.Remove(s.file.Name()) // Where the system lets open files go; close does it elsewhere.
	}
	for _, o := range s.of {
		if len(o.rows) == 0 {
			continue
		}
		var b []byte
		for i := range o.rows {
			b = s.encode(b, &o.rows[i])
		}
		if _, err := s.file.WriteAt(b, s.size); err != nil {
			s.err = fmt.Errorf("write rows away: %w", err)
			return
		}
		o.parts = append(o.parts, storedPart{s.size, len(b)})
		s.size += int64(len(b))
		s.held -= len(o.rows)
		o.away, o.rows = o.away+len(o.rows), nil
	}
}

// load gives the rows of a symbol: those of a store that spools are the caller's, and others its own.
func (s *rowStore) load(symbol string) []Record {
	o := s.of[symbol]
	if o == nil || s.err != nil {
		return nil
	}
	if s.most == 0 {
		return o.rows
	}
	rows := make([]Record, 0, o.away+len(o.rows))
	s.peak = max(s.peak, s.held+o.away)
	for _, p := range o.parts {
		b := make([]byte, p.size)
		if _, err := s.file.ReadAt(b, p.at); err != nil && !errors.Is(err, io.EOF) {
			s.err = fmt.Errorf("read rows that were written away: %w", err)
			return nil
		}
		for len(b) > 0 {
			var r Record
			b = s.decode(b, &r)
			rows = append(rows, r)
		}
	}
	return append(rows, o.rows...)
}

// close removes the file.
func (s *rowStore) close() error {
	if s == nil || s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	_ = os.Remove(f.Name()) // It is gone already where the system lets open files go.
	return f.Close()
}

// place is the position of a value in a list, which it joins.
func place[T comparable](list *[]T, v T) int {
	// Rows that follow one another have the same.
	if n := len(*list); n > 0 && (*list)[n-1] == v {
		return n - 1
	}
	i := slices.Index(*list, v)
	if i < 0 {
		i = len(*list)
		*list = append(*list, v)
	}
	return i
}

// encode appends a row. Numbers are kept to the bit, and of the quote those that are not 0.
func (s *rowStore) encode(b []byte, r *Record) []byte {
	le := binary.LittleEndian
	number := func(v float64) { b = le.AppendUint64(b, math.Float64bits(v)) }
	flags := byte(0)
	if r.Suspended {
		flags |= 1
	}
	if r.stamped {
		flags |= 2
	}
	b = append(b, flags, byte(place(&s.zones, r.Time.Location())))
	b = le.AppendUint64(b, uint64(r.Time.Unix()))
	for _, v := range []int{r.Time.Nanosecond(), r.offset, r.average, place(&s.names, r.File), r.Line, len(r.Extra)} {
		b = le.AppendUint32(b, uint32(int32(v)))
	}
	for _, v := range [...]float64{r.Open, r.High, r.Low, r.Close, r.Volume, r.Factor} {
		number(v)
	}
	for _, v := range r.Extra {
		number(v)
	}
	mask := uint32(0)
	for i, v := range r.Quote {
		if math.Float64bits(v) != 0 {
			mask |= 1 << i
		}
	}
	b = le.AppendUint32(b, mask)
	for _, v := range r.Quote {
		if math.Float64bits(v) != 0 {
			number(v)
		}
	}
	return b
}

// decode reads a row and returns what follows it.
func (s *rowStore) decode(b []byte, r *Record) []byte {
	le := binary.LittleEndian
	number := func() float64 {
		v := math.Float64frombits(le.Uint64(b))
		b = b[8:]
		return v
	}
	r.Suspended, r.stamped = b[0]&1 != 0, b[0]&2 != 0
	zone, second := s.zones[b[1]], int64(le.Uint64(b[2:]))
	b = b[10:]
	var v [6]int
	for i := range v {
		v[i] = int(int32(le.Uint32(b)))
		b = b[4:]
	}
	r.Time = time.Unix(second, int64(v[0])).In(zone)
	r.offset, r.average, r.File, r.Line = v[1], v[2], s.names[v[3]], v[4]
	for _, to := range [...]*float64{&r.Open, &r.High, &r.Low, &r.Close, &r.Volume, &r.Factor} {
		*to = number()
	}
	if v[5] > 0 {
		r.Extra = make([]float64, v[5])
		for i := range r.Extra {
			r.Extra[i] = number()
		}
	}
	mask := le.Uint32(b)
	b = b[4:]
	for i := range r.Quote {
		if mask&(1<<i) != 0 {
			r.Quote[i] = number()
		}
	}
	return b
}

// Kept keeps series, with no more rows in memory than some: others are in a temporary file, until
// Close. It is not safe for concurrent use.
type Kept struct {
	rows   *rowStore
	series []Series
}

// NewKept returns what keeps nothing, and will hold at most so many rows in memory.
func NewKept(most int) *Kept { return &Kept{rows: newRowStore(most)} }

// Held is the most rows that were in memory at once, those of a series that was read again included.
func (k *Kept) Held() int { return k.rows.peak }

// Keep takes a series; its rows may be used elsewhere.
func (k *Kept) Keep(s Series) {
	k.rows.has(s.Symbol)
	for i := range s.Records {
		k.rows.add(s.Symbol, s.Records[i])
	}
	s.Records = nil
	k.series = append(k.series, s)
}

// Series gives the i-th series that was kept, without rows where Err says why.
func (k *Kept) Series(i int) Series {
	s := k.series[i]
	s.Records = k.rows.load(s.Symbol)
	return s
}

// Replace keeps what another keeps, which is then empty, in place of its own.
func (k *Kept) Replace(other *Kept) {
	k.rows.err = errors.Join(k.rows.err, k.rows.close(), other.rows.err)
	err, peak := k.rows.err, max(k.rows.peak, other.rows.peak)
	*k, *other = *other, *NewKept(k.rows.most)
	k.rows.err, k.rows.peak = err, peak
}

// Err says what rows could not be kept or read for.
func (k *Kept) Err() error { return k.rows.err }

// Close removes what is kept outside of memory.
func (k *Kept) Close() error { return k.rows.close() }
