package bars

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"slices"
	"strings"
	"time"
)

// qlibTable walks over the ranges of a Qlib folder. Rows are times at which there is a close: Qlib
// has no values on days without trading. A symbol's files are read when a number is asked for.
type qlibTable struct {
	folder *qlibFolder
	header []string // datetime, instrument and the fields of all symbols
	sum    hash.Hash

	r      int // range
	row    int // position in the calendar
	line   int
	symbol string // whose fields are read
	fields []field
}

type field struct {
	start  int
	values []float32
}

func (f field) at(row int) float64 {
	if row < f.start || row-f.start >= len(f.values) {
		return math.NaN()
	}
	return float64(f.values[row-f.start])
}

// qlibKeys are the columns that are no fields.
var qlibKeys = []string{"datetime", "instrument"}

func openQlib(s Source) (*qlibTable, error) {
	if s.Adjust == "factor" || s.Adjust == "adj_close" {
		return nil, fmt.Errorf("source.adjust: %s: the prices of a Qlib folder are adjusted already", s.Adjust)
	}
	folder, err := openQlibFolder(s.Path, s.Frequency, s.Instruments)
	if err != nil {
		return nil, err
	}
	t := &qlibTable{folder: folder, row: -1, sum: sha256.New()}
	seen := map[string]bool{}
	for _, r := range folder.Ranges {
		if seen[r.Symbol] {
			continue
		}
		seen[r.Symbol] = true
		names, err := folder.Fields(r.Symbol)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(names, "close") {
			return nil, fmt.Errorf("%s: %s has no field close; it has %v", s.Path, r.Symbol, names)
		}
		for _, name := range names {
			if !slices.Contains(t.header, name) {
				t.header = append(t.header, name)
			}
		}
	}
	slices.Sort(t.header)
	t.header = append(slices.Clone(qlibKeys), t.header...)
	fmt.Fprintln(t.sum, folder.Calendar, folder.Ranges)
	return t, nil
}

func (t *qlibTable) Header() []string { return t.header }
func (t *qlibTable) Select([]int)     {}
func (t *qlibTable) Line() int        { return t.line }
func (t *qlibTable) Close() error     { return nil }

// digest is the checksum of what was read.
func (t *qlibTable) digest() string { return hex.EncodeToString(t.sum.Sum(nil)) }

// Next goes to the next time of the range.
func (t *qlibTable) Next() error {
	for t.r < len(t.folder.Ranges) {
		in := t.folder.Ranges[t.r]
		for t.row++; t.row < len(t.folder.Calendar); t.row++ {
			// A range of days holds all times of its last day.
			at := t.folder.Calendar[t.row]
			if at >= in.From && at[:min(len(at), len(in.To))] <= in.To {
				t.line++
				return nil
			}
		}
		t.r, t.row = t.r+1, -1
	}
	return io.EOF
}

func (t *qlibTable) Text(column int) (string, error) {
	if t.header[column] != "instrument" {
		return "", errors.New("expected the column instrument")
	}
	return t.folder.Ranges[t.r].Symbol, nil
}

func (t *qlibTable) Time(column int, c *clock) (time.Time, error) {
	if t.header[column] != "datetime" {
		return time.Time{}, errors.New("expected the column datetime")
	}
	return c.parse(t.folder.Calendar[t.row])
}

// absent says that the symbol has no bar at the current time.
func (t *qlibTable) absent() (bool, error) {
	if err := t.load(); err != nil {
		return false, err
	}
	v := t.fields[slices.Index(t.header, "close")-len(qlibKeys)].at(t.row)
	return v != v, nil
}

func (t *qlibTable) Number(column int) (float64, error) {
	if column < len(qlibKeys) {
		return 0, fmt.Errorf("the column %s holds no numbers", t.header[column])
	}
	if err := t.load(); err != nil {
		return 0, err
	}
	return t.fields[column-len(qlibKeys)].at(t.row), nil
}

// load reads the fields of the current symbol.
func (t *qlibTable) load() error {
	symbol := t.folder.Ranges[t.r].Symbol
	if symbol == t.symbol {
		return nil
	}
	names, err := t.folder.Fields(symbol)
	if err != nil {
		return err
	}
	t.fields = make([]field, len(t.header)-len(qlibKeys))
	for _, name := range names {
		raw, file, err := t.folder.Bytes(symbol, name)
		if err != nil {
			return err
		}
		io.WriteString(t.sum, file) // a hash takes everything
		t.sum.Write(raw)
		f := &t.fields[slices.Index(t.header, name)-len(qlibKeys)]
		if f.start, f.values, err = t.folder.Decode(raw, file); err != nil {
			return err
		}
	}
	t.symbol = symbol
	return nil
}

// WriteQlib writes rows as a Qlib folder, which must not exist: adjusted prices, volumes divided by
// the factor, $factor, and the extra columns by their names in lower case. A row without a factor has
// that of the row before, as [Clean] takes it, which d.Notes then tells; a first row without one is an
// error. Rows that are suspended or have no close have no values, as in Qlib's own data. freq is the
// calendar's name, such as day or 1min.
func WriteQlib(root, freq string, d *Data) error {
	layout, times := time.DateOnly, map[time.Time]bool{}
	for _, s := range d.Series {
		for _, r := range s.Records {
			wall := time.Date(r.Time.Year(), r.Time.Month(), r.Time.Day(), r.Time.Hour(), r.Time.Minute(), r.Time.Second(), 0, time.UTC)
			times[wall] = true
			if wall.Truncate(24*time.Hour) != wall {
				layout = time.DateTime
			}
		}
	}
	var calendar []string
	for at := range times {
		calendar = append(calendar, at.Format(layout))
	}
	slices.Sort(calendar)
	var list []qlibInstrument
	for _, s := range d.Series {
		if len(s.Records) == 0 {
			return fmt.Errorf("write %s: %s has no rows", root, s.Symbol)
		}
		position := func(r *Record) int {
			i, _ := slices.BinarySearch(calendar, r.Time.Format(layout))
			return i
		}
		first, last := position(&s.Records[0]), position(&s.Records[0])
		for i := range s.Records {
			first, last = min(first, position(&s.Records[i])), max(last, position(&s.Records[i]))
		}
		in := qlibInstrument{Symbol: strings.ToUpper(s.Symbol), Start: first, Fields: map[string][]float32{}}
		blank := func(name string) []float32 {
			v := make([]float32, last-first+1)
			for i := range v {
				v[i] = float32(math.NaN())
			}
			in.Fields[name] = v
			return v
		}
		open, high, low, cl, factor := blank("open"), blank("high"), blank("low"), blank("close"), blank("factor")
		var volume []float32
		if d.HasVolume {
			volume = blank("volume")
		}
		extra := make([][]float32, len(d.Extra))
		for i, name := range d.Extra {
			extra[i] = blank(strings.ToLower(name))
		}
		rows, before, without := make([]*Record, len(s.Records)), 0.0, 0
		for i := range s.Records {
			rows[i] = &s.Records[i]
		}
		slices.SortStableFunc(rows, func(a, b *Record) int { return a.Time.Compare(b.Time) })
		for _, r := range rows {
			f, own, err := rowFactor(r, before)
			if err != nil {
				return fmt.Errorf("write %s: symbol %s: %w", root, s.Symbol, err)
			}
			if before = f; r.Suspended || math.IsNaN(r.Close) {
				continue
			}
			if !own {
				without++
			}
			at := position(r) - first
			if cl[at] == cl[at] {
				return fmt.Errorf("write %s: %s line %d: a second row of %s at %s", root, r.File, r.Line, s.Symbol, r.Time.Format(layout))
			}
			open[at], high[at], low[at], cl[at], factor[at] = float32(r.Open*f), float32(r.High*f), float32(r.Low*f), float32(r.Close*f), float32(f)
			if volume != nil {
				volume[at] = float32(r.Volume / f)
			}
			for k := range extra {
				v := r.Extra[k]
				if k == r.Average() {
					v *= f
				}
				extra[k][at] = float32(v)
			}
		}
		if without > 0 {
			d.Notes = append(d.Notes, fmt.Sprintf("%s: rows without an adjustment, which have that of the row before: %d", s.Symbol, without))
		}
		list = append(list, in)
	}
	return writeQlibFolder(root, freq, calendar, list)
}
