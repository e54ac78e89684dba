package report

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/parquet"

	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/columnar/parquetfile"
)

// column is one of the three slices. NaN is an empty field in CSV and null in Parquet.
type column struct {
	name    string
	times   []time.Time
	text    []string
	numbers []float64
}

// table is written in both formats.
type table struct {
	name    string
	rows    int
	columns []column
}

// tables lists what a report leaves for other programs.
func (d *Document) tables() []table {
	all := []table{d.equityTable(), d.tradeTable()}
	if d.Strategies[0].Weights != nil {
		all = append(all, d.positionTable())
	}
	return all
}

// equityTable has a row for each date and strategy, strategy by strategy.
func (d *Document) equityTable() table {
	n := len(d.Dates)
	names := []string{"value", "return", "drawdown", "cash", "turnover", "fees"}
	t := table{name: "equity", rows: n * len(d.Strategies), columns: []column{{name: "date"}, {name: "strategy"}}}
	for _, name := range names {
		t.columns = append(t.columns, column{name: name, numbers: make([]float64, 0, t.rows)})
	}
	for i := range d.Strategies {
		s := &d.Strategies[i]
		t.columns[0].times = append(t.columns[0].times, d.Dates...)
		for range d.Dates {
			t.columns[1].text = append(t.columns[1].text, s.Name)
		}
		// A decision's numbers stand at the date of the value that it led to.
		for k, x := range [][]float64{s.Value, performance.Returns(s.Value), performance.Underwater(s.Value), s.Cash, s.Turnover, s.Fees} {
			c := &t.columns[2+k]
			for pad := n - len(x); pad > 0; pad-- {
				c.numbers = append(c.numbers, math.NaN())
			}
			c.numbers = append(c.numbers, x...)
		}
	}
	return t
}

// tradeTable has a row for each trade of every strategy.
func (d *Document) tradeTable() table {
	t := table{name: "trades", columns: []column{{name: "date"}, {name: "strategy"}, {name: "asset"}, {name: "side"}, {name: "shares"}, {name: "price"}, {name: "amount"}, {name: "fee"}}}
	c := t.columns
	for i := range d.Strategies {
		for _, x := range d.Strategies[i].Trades {
			c[0].times = append(c[0].times, x.Date)
			for k, v := range []string{d.Strategies[i].Name, d.Assets[x.Asset], string(x.Side)} {
				c[1+k].text = append(c[1+k].text, v)
			}
			for k, v := range []float64{x.Shares, x.Price, x.Shares * x.Price, x.Fee} {
				c[4+k].numbers = append(c[4+k].numbers, v)
			}
			t.rows++
		}
	}
	if t.rows == 0 {
		c[0].times = []time.Time{}
		for k := 1; k < 4; k++ {
			c[k].text = []string{}
		}
	}
	return t
}

// positionTable has the agent's weights: a row for each date and a column for cash and for each
// asset.
func (d *Document) positionTable() table {
	t := table{name: "positions", rows: len(d.Dates), columns: []column{{name: "date", times: d.Dates}}}
	layers := d.weights(&d.Strategies[0])
	cash := layers[len(layers)-1]
	t.columns = append(t.columns, column{name: cash.Name, numbers: cash.Y})
	for _, l := range layers[:len(layers)-1] {
		t.columns = append(t.columns, column{name: l.Name, numbers: l.Y})
	}
	return t
}

// csv writes numbers with all their digits and times as dates where they are midnights.
func (t *table) csv(w io.Writer) error {
	out := csv.NewWriter(w)
	row := make([]string, len(t.columns))
	for k, c := range t.columns {
		row[k] = c.name
	}
	for i := -1; i < t.rows; i++ {
		for k, c := range t.columns {
			switch {
			case i < 0:
			case c.times != nil:
				row[k] = moment(c.times[i])
			case c.text != nil:
				row[k] = c.text[i]
			case math.IsNaN(c.numbers[i]):
				row[k] = ""
			default:
				row[k] = strconv.FormatFloat(c.numbers[i], 'g', -1, 64)
			}
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

func moment(t time.Time) string {
	if h, m, s := t.Clock(); h == 0 && m == 0 && s == 0 && t.Nanosecond() == 0 {
		return day(t)
	}
	return t.Format(time.RFC3339Nano)
}

// parquet encodes times as microseconds in UTC; a date without a time of day is the midnight of
// that date.
func (t *table) parquet() ([]byte, error) {
	fields := make([]arrow.Field, len(t.columns))
	options := []parquet.WriterProperty{parquet.WithDictionaryDefault(false)}
	for k, c := range t.columns {
		fields[k] = arrow.Field{Name: c.name, Type: arrow.PrimitiveTypes.Float64, Nullable: true}
		switch {
		case c.times != nil:
			fields[k] = arrow.Field{Name: c.name, Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}}
		case c.text != nil:
			fields[k] = arrow.Field{Name: c.name, Type: arrow.BinaryTypes.String}
			options = append(options, parquet.WithDictionaryFor(c.name, true))
		}
	}
	var out bytes.Buffer
	w, err := parquetfile.Create(&out, arrow.NewSchema(fields, nil), options...)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", t.name, err)
	}
	for k, c := range t.columns {
		switch f := w.Field(k).(type) {
		case *array.TimestampBuilder:
			for _, v := range c.times {
				if len(moment(v)) == len(time.DateOnly) {
					v = time.Date(v.Year(), v.Month(), v.Day(), 0, 0, 0, 0, time.UTC)
				}
				f.Append(arrow.Timestamp(v.UnixMicro()))
			}
		case *array.StringBuilder:
			f.AppendValues(c.text, nil)
		case *array.Float64Builder:
			for _, v := range c.numbers {
				if math.IsNaN(v) {
					f.AppendNull()
				} else {
					f.Append(v)
				}
			}
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encode %s: %w", t.name, err)
	}
	return out.Bytes(), nil
}
