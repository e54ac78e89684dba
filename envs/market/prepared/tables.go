package prepared

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/parquet"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/universe"
	"github.com/onnxrl/onnxrl/runtime/columnar/parquetfile"
)

// Names of the columns that tables share, and of those of the price table.
const (
	timeColumn   = "time"
	symbolColumn = "symbol"
	memberColumn = "member"
)

var timeType = &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}

// dictionaries says that only the symbols of a table are encoded by a dictionary.
var dictionaries = []parquet.WriterProperty{parquet.WithDictionaryDefault(false), parquet.WithDictionaryFor(symbolColumn, true)}

// rowGroup is the number of rows that are compressed together.
const rowGroup = 1 << 16

// featureTable has a row for each time and symbol, time by time: time, symbol and the features.
func (s *Set) featureTable(out io.Writer) error {
	m := &s.Manifest
	fields := []arrow.Field{{Name: timeColumn, Type: timeType}, {Name: symbolColumn, Type: arrow.BinaryTypes.String}}
	for _, f := range m.Features {
		fields = append(fields, arrow.Field{Name: f.Name, Type: arrow.PrimitiveTypes.Float32})
	}
	return s.table(out, fields, func(w *parquetfile.Writer, lo, hi int) error {
		part, shift, err := s.part(lo, hi)
		if err != nil {
			return err
		}
		for c := range m.F {
			column := w.Field(2 + c).(*array.Float32Builder)
			column.Reserve(hi - lo)
			for i := lo - shift; i < hi-shift; i++ {
				column.UnsafeAppend(part.x[i*m.F+c])
			}
		}
		return nil
	})
}

// priceTable has the same rows: prices, volume, status, defined, the extra columns and the quotes.
func (s *Set) priceTable(out io.Writer) error {
	fields := []arrow.Field{{Name: timeColumn, Type: timeType}, {Name: symbolColumn, Type: arrow.BinaryTypes.String}}
	for _, name := range []string{"open", "high", "low", "close", "volume"} {
		fields = append(fields, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Float64})
	}
	fields = append(fields, arrow.Field{Name: "status", Type: arrow.PrimitiveTypes.Uint8}, arrow.Field{Name: "defined", Type: arrow.FixedWidthTypes.Boolean})
	for _, name := range s.Manifest.Extra {
		fields = append(fields, arrow.Field{Name: "extra." + name, Type: arrow.PrimitiveTypes.Float64})
	}
	var quotes []bars.QuoteColumn
	for c := range bars.QuoteColumns {
		if slices.Contains(s.Manifest.Quotes, c.String()) {
			fields = append(fields, arrow.Field{Name: "quote." + c.String(), Type: arrow.PrimitiveTypes.Float64})
			quotes = append(quotes, c)
		}
	}
	if s.Members != nil {
		fields = append(fields, arrow.Field{Name: memberColumn, Type: arrow.PrimitiveTypes.Uint8})
	}
	return s.table(out, fields, func(w *parquetfile.Writer, lo, hi int) error {
		part, shift, err := s.part(lo, hi)
		if err != nil {
			return err
		}
		for c, column := range [][]float64{part.Open, part.High, part.Low, part.Close, part.Volume} {
			w.Field(2+c).(*array.Float64Builder).AppendValues(column[lo-shift:hi-shift], nil)
		}
		for _, st := range s.Status[lo:hi] {
			w.Field(7).(*array.Uint8Builder).Append(uint8(st))
		}
		w.Field(8).(*array.BooleanBuilder).AppendValues(s.Defined[lo:hi], nil)
		e := len(s.Manifest.Extra)
		for c := range e {
			for i := lo - shift; i < hi-shift; i++ {
				w.Field(9 + c).(*array.Float64Builder).Append(part.Extra[i*e+c])
			}
		}
		for c, q := range quotes {
			w.Field(9+e+c).(*array.Float64Builder).AppendValues(part.Quotes[q][lo-shift:hi-shift], nil)
		}
		if s.Members != nil {
			for _, m := range s.Members[lo:hi] {
				w.Field(9 + e + len(quotes)).(*array.Uint8Builder).Append(uint8(m))
			}
		}
		return nil
	})
}

// table writes the columns; fill appends rows lo..hi-1 of all but the first two.
func (s *Set) table(out io.Writer, fields []arrow.Field, fill func(w *parquetfile.Writer, lo, hi int) error) (err error) {
	w, err := parquetfile.Create(out, arrow.NewSchema(fields, nil), dictionaries...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	n := s.Manifest.N
	for lo := 0; lo < s.Manifest.T*n; lo += rowGroup {
		hi := min(lo+rowGroup, s.Manifest.T*n)
		for i := lo; i < hi; i++ {
			w.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(s.Times[i/n].UnixMicro()))
			w.Field(1).(*array.StringBuilder).Append(s.Manifest.Symbols[i%n])
		}
		if err := errors.Join(fill(w, lo, hi), w.Flush()); err != nil {
			return err
		}
	}
	return nil
}

// readTable opens a table of the given number of rows.
func readTable(data []byte, rows int) (*parquetfile.File, error) {
	f, err := parquetfile.Open(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	n := 0
	for g := range f.Groups() {
		n += f.Rows(g)
	}
	if n != rows {
		return nil, fmt.Errorf("it has %d rows, expected %d", n, rows)
	}
	return f, nil
}

// column calls use with every part of the column and the row it begins at.
func column[A arrow.Array](f *parquetfile.File, name string, use func(at int, part A)) error {
	c := slices.Index(f.Names(), name)
	if c < 0 {
		return fmt.Errorf("the column %q is missing", name)
	}
	at := 0
	for g := range f.Groups() {
		part, err := f.Column(g, c)
		if err != nil {
			return err
		}
		a, ok := part.(A)
		if !ok || part.NullN() > 0 {
			part.Release()
			return fmt.Errorf("the column %q has the type %v and %d missing values", name, part.DataType(), part.NullN())
		}
		use(at, a)
		at += a.Len()
		part.Release()
	}
	return nil
}

// load fills the set, whose arrays are allocated, from the two tables.
func (s *Set) load(features, prices []byte, loc *time.Location) error {
	m := &s.Manifest
	ft, err := readTable(features, m.T*m.N)
	if err != nil {
		return fmt.Errorf("%s: %w", m.Files.Features.Name, err)
	}
	defer ft.Close()
	for c, f := range m.Features {
		err := column(ft, f.Name, func(at int, a *array.Float32) {
			for i, v := range a.Float32Values() {
				s.x[(at+i)*m.F+c] = v
			}
		})
		if err != nil {
			return fmt.Errorf("%s: %w", m.Files.Features.Name, err)
		}
	}
	if err := s.loadPrices(prices, loc); err != nil {
		return fmt.Errorf("%s: %w", m.Files.Prices.Name, err)
	}
	return nil
}

func (s *Set) loadPrices(prices []byte, loc *time.Location) error {
	m := &s.Manifest
	pt, err := readTable(prices, m.T*m.N)
	if err != nil {
		return err
	}
	defer pt.Close()
	s.Times = make([]time.Time, m.T)
	err = column(pt, timeColumn, func(at int, a *array.Timestamp) {
		for i, v := range a.TimestampValues() {
			if (at+i)%m.N == 0 {
				s.Times[(at+i)/m.N] = time.UnixMicro(int64(v)).In(loc)
			}
		}
	})
	for c, dst := range [][]float64{s.Open, s.High, s.Low, s.Close, s.Volume} {
		if err == nil {
			err = column(pt, []string{"open", "high", "low", "close", "volume"}[c], func(at int, a *array.Float64) { copy(dst[at:], a.Float64Values()) })
		}
	}
	if err == nil {
		err = column(pt, "status", func(at int, a *array.Uint8) {
			for i, v := range a.Uint8Values() {
				s.Status[at+i] = bars.Status(v)
			}
		})
	}
	if err == nil {
		err = column(pt, "defined", func(at int, a *array.Boolean) {
			for i := range a.Len() {
				s.Defined[at+i] = a.Value(i)
			}
		})
	}
	for c, name := range m.Extra {
		if err == nil {
			err = column(pt, "extra."+name, func(at int, a *array.Float64) {
				for i, v := range a.Float64Values() {
					s.Extra[(at+i)*len(m.Extra)+c] = v
				}
			})
		}
	}
	if err == nil && m.Universe != nil {
		err = column(pt, memberColumn, func(at int, a *array.Uint8) {
			for i, v := range a.Uint8Values() {
				s.Members[at+i] = universe.Membership(v)
			}
		})
	}
	for c, dst := range s.Quotes {
		if err == nil && dst != nil {
			err = column(pt, "quote."+bars.QuoteColumn(c).String(), func(at int, a *array.Float64) { copy(dst[at:], a.Float64Values()) })
		}
	}
	return err
}
