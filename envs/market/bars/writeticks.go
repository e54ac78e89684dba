package bars

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
)

// tickRows is how many ticks a row group of a Parquet file has.
const tickRows = 1 << 16

// WrittenTicks is what [WriteTicks] has written.
type WrittenTicks struct {
	Rows, Symbols int
	Files         []File
}

// WriteTicks writes the ticks of a source, in the order of its rows, as a table in a file whose name
// ends in .parquet or .csv, which must not exist: datetime, symbol, price, volume in shares and
// amount in money, both of the tick alone, bid, ask, bid_size1, ask_size1 and so on as far as the
// source has them, and its extra columns. Rows that say nothing, such as snapshots before a first
// trade, are left out. Bars of what is written are those of the source. No more than a row group is
// in memory. A file that cannot be written whole is removed.
func WriteTicks(path string, s Source, symbols []string) (w WrittenTicks, err error) {
	ext := filepath.Ext(path)
	if ext != ".parquet" && ext != ".csv" {
		return w, fmt.Errorf("write ticks: %s: expected a name that ends in .parquet or .csv", path)
	}
	// Bars are not made; their size only says that the rows are ticks.
	s.Bars = "ticks=1"
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return w, err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(path))
		}
	}()
	var to tickTable
	var columns, list []tickColumn // of the table, and of the file that is being read
	var of *tickColumns
	seen := map[string]bool{}
	d, err := read(s, symbols, func(symbol string, t *Tick, c *tickColumns) error {
		if of != c {
			of, list = c, c.table(s.Extra)
			if to == nil {
				columns = list
				if to, err = newTickTable(f, ext, columns); err != nil {
					return err
				}
			}
			if name := difference(columns, list); name != "" {
				return fmt.Errorf("only some of the files have the column %s", name)
			}
		}
		seen[symbol] = true
		w.Rows++
		return to.add(symbol, t, list)
	}, 0)
	if err != nil {
		return w, err
	}
	if to == nil {
		return w, errors.New("the source has no ticks")
	}
	w.Symbols, w.Files = len(seen), d.Files
	return w, to.close()
}

// tickColumn is one of the numbers of a table of ticks.
type tickColumn struct {
	name string
	of   func(*Tick) float64
}

// table lists the numbers that files with these columns have.
func (c *tickColumns) table(extra []string) []tickColumn {
	list := []tickColumn{{"price", func(t *Tick) float64 { return t.Price }}}
	if c.volume >= 0 {
		list = append(list, tickColumn{"volume", func(t *Tick) float64 { return t.Volume }})
	}
	if c.amount >= 0 {
		list = append(list, tickColumn{"amount", func(t *Tick) float64 { return t.Amount }})
	}
	if c.bid >= 0 {
		list = append(list, tickColumn{"bid", func(t *Tick) float64 { return t.Bid }})
	}
	if c.ask >= 0 {
		list = append(list, tickColumn{"ask", func(t *Tick) float64 { return t.Ask }})
	}
	for i := range c.sizes {
		name := fmt.Sprintf("bid_size%d", i+1)
		if i >= c.bids {
			name = fmt.Sprintf("ask_size%d", i-c.bids+1)
		}
		list = append(list, tickColumn{name, func(t *Tick) float64 { return t.Sizes[i] }})
	}
	for i, name := range extra {
		list = append(list, tickColumn{name, func(t *Tick) float64 { return t.Extra[len(t.Extra)-len(extra)+i] }})
	}
	return list
}

// difference is the name of a column that one of two tables lacks, empty where there is none.
func difference(a, b []tickColumn) string {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return b[i].name
		case i >= len(b) || a[i].name != b[i].name:
			return a[i].name
		}
	}
	return ""
}

// tickTable writes ticks.
type tickTable interface {
	add(symbol string, t *Tick, columns []tickColumn) error
	close() error
}

func newTickTable(out io.Writer, ext string, columns []tickColumn) (tickTable, error) {
	if ext == ".csv" {
		return newTickText(out, columns), nil
	}
	return newTickParquet(out, columns)
}

// tickText writes ticks as CSV.
type tickText struct {
	w   *csv.Writer
	row []string
}

func newTickText(out io.Writer, columns []tickColumn) *tickText {
	t := &tickText{w: csv.NewWriter(out), row: []string{"datetime", "symbol"}}
	for _, c := range columns {
		t.row = append(t.row, c.name)
	}
	_ = t.w.Write(t.row) // The error stays, and Error gives it.
	return t
}

func (w *tickText) add(symbol string, t *Tick, columns []tickColumn) error {
	w.row = append(w.row[:0], formatTick(t.Time), symbol)
	for _, c := range columns {
		text := ""
		if v := c.of(t); !math.IsNaN(v) {
			text = strconv.FormatFloat(v, 'f', -1, 64)
		}
		w.row = append(w.row, text)
	}
	return w.w.Write(w.row)
}

func (w *tickText) close() error {
	w.w.Flush()
	return w.w.Error()
}

// tickParquet writes ticks as Parquet, row group after row group.
type tickParquet struct {
	w    *pqarrow.FileWriter
	b    *array.RecordBuilder
	rows int
}

func newTickParquet(out io.Writer, columns []tickColumn) (*tickParquet, error) {
	fields := []arrow.Field{{Name: "datetime", Type: &arrow.TimestampType{Unit: arrow.Microsecond}}, {Name: "symbol", Type: arrow.BinaryTypes.String}}
	for _, c := range columns {
		fields = append(fields, arrow.Field{Name: c.name, Type: arrow.PrimitiveTypes.Float64, Nullable: true})
	}
	schema := arrow.NewSchema(fields, nil)
	w, err := pqarrow.NewFileWriter(schema, struct{ io.Writer }{out}, parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCreatedBy("onnxrl")), pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, err
	}
	return &tickParquet{w: w, b: array.NewRecordBuilder(memory.DefaultAllocator, schema)}, nil
}

func (w *tickParquet) add(symbol string, t *Tick, columns []tickColumn) error {
	at := t.Time
	wall := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
	w.b.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(wall.UnixMicro()))
	w.b.Field(1).(*array.StringBuilder).Append(symbol)
	for i, c := range columns {
		if v := c.of(t); math.IsNaN(v) {
			w.b.Field(2 + i).AppendNull()
		} else {
			w.b.Field(2 + i).(*array.Float64Builder).Append(v)
		}
	}
	if w.rows++; w.rows < tickRows {
		return nil
	}
	return w.flush()
}

func (w *tickParquet) flush() error {
	if w.rows == 0 {
		return nil
	}
	rec := w.b.NewRecord()
	defer rec.Release()
	w.rows = 0
	return w.w.Write(rec)
}

func (w *tickParquet) close() error {
	defer w.b.Release()
	return errors.Join(w.flush(), w.w.Close())
}
