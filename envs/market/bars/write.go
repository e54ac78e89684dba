package bars

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
)

// WriteTable writes rows, as they were read, as one table with a header that preset auto
// recognises: CSV, or Parquet where the name ends in .parquet. The file must not exist. Times are
// those of the clock, without a zone.
func WriteTable(path string, d *Data) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(path))
		}
	}()
	columns := d.table()
	if strings.HasSuffix(path, ".parquet") {
		return writeParquet(f, d, columns)
	}
	w := csv.NewWriter(f)
	row := []string{"datetime", "symbol"}
	for _, c := range columns {
		row = append(row, c.name)
	}
	_ = w.Write(row) // The error stays, and Error gives it.
	for _, s := range d.Series {
		for i := range s.Records {
			r := &s.Records[i]
			row = append(row[:0], formatTick(r.Time), s.Symbol)
			for _, c := range columns {
				text := ""
				if v := c.of(r); !math.IsNaN(v) {
					text = strconv.FormatFloat(v, 'f', -1, 64)
				}
				row = append(row, text)
			}
			_ = w.Write(row)
		}
	}
	w.Flush()
	return w.Error()
}

// column is one of the numbers of a table.
type column struct {
	name string
	of   func(*Record) float64
}

// table lists the columns that the rows have.
func (d *Data) table() []column {
	list := []column{
		{"open", func(r *Record) float64 { return r.Open }}, {"high", func(r *Record) float64 { return r.High }}, {"low", func(r *Record) float64 { return r.Low }},
		{"close", func(r *Record) float64 { return r.Close }},
	}
	if d.HasVolume {
		list = append(list, column{"volume", func(r *Record) float64 { return r.Volume }})
	}
	if d.Adjustment.By != "none" {
		list = append(list, column{"adj_factor", func(r *Record) float64 { return r.Factor }})
	}
	for _, c := range []QuoteColumn{Amount, PrevClose, LimitUp, LimitDown, ST, Dividend, Bonus, Spread, Depth} {
		if !slices.Contains(d.Extra, c.String()) && slices.ContainsFunc(d.Series, func(s Series) bool { return slices.Contains(s.Quoted, c) }) {
			name := c.String()
			if c == ST {
				name = "is_st"
			}
			list = append(list, column{name, func(r *Record) float64 { return r.Quote[c] }})
		}
	}
	if slices.ContainsFunc(d.Series, func(s Series) bool {
		return slices.ContainsFunc(s.Records, func(r Record) bool { return r.Suspended })
	}) {
		list = append(list, column{"suspended", func(r *Record) float64 {
			if r.Suspended {
				return 1
			}
			return 0
		}})
	}
	for i, name := range d.Extra {
		if slices.ContainsFunc(d.Series, func(s Series) bool {
			return slices.ContainsFunc(s.Records, func(r Record) bool { return r.average == i+1 })
		}) {
			continue // amount and volume are there
		}
		list = append(list, column{name, func(r *Record) float64 { return r.Extra[i] }})
	}
	return list
}

func writeParquet(out io.Writer, d *Data, columns []column) error {
	fields := []arrow.Field{{Name: "datetime", Type: &arrow.TimestampType{Unit: arrow.Microsecond}}, {Name: "symbol", Type: arrow.BinaryTypes.String}}
	for _, c := range columns {
		fields = append(fields, arrow.Field{Name: c.name, Type: arrow.PrimitiveTypes.Float64, Nullable: true})
	}
	schema := arrow.NewSchema(fields, nil)
	w, err := pqarrow.NewFileWriter(schema, struct{ io.Writer }{out}, parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Snappy)), pqarrow.DefaultWriterProps())
	if err != nil {
		return err
	}
	for _, s := range d.Series {
		b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
		for i := range s.Records {
			r := &s.Records[i]
			t := r.Time
			wall := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
			b.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(wall.UnixMicro()))
			b.Field(1).(*array.StringBuilder).Append(s.Symbol)
			for c := range columns {
				if v := columns[c].of(r); math.IsNaN(v) {
					b.Field(2 + c).AppendNull()
				} else {
					b.Field(2 + c).(*array.Float64Builder).Append(v)
				}
			}
		}
		rec := b.NewRecord()
		err := w.Write(rec)
		rec.Release()
		b.Release()
		if err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return w.Close()
}
