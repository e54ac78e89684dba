package bars

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	names, values := make([]string, len(columns)), make([]float64, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	w, err := newTableWriter(f, filepath.Ext(path), names)
	if err != nil {
		return err
	}
	for _, s := range d.Series {
		for i := range s.Records {
			r := &s.Records[i]
			for k, c := range columns {
				values[k] = c.of(r)
			}
			if err := w.add(r.Time, s.Symbol, values); err != nil {
				return errors.Join(err, w.close())
			}
		}
	}
	return w.close()
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
