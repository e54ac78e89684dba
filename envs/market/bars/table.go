package bars

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/onnxrl/onnxrl/runtime/columnar/parquetfile"
)

// tableWriter writes a table with a row for each time and symbol: datetime, on the clock of the
// time, symbol, and numbers, of which one that is not a number is blank. No row may follow on an
// error.
type tableWriter interface {
	// add writes the numbers, in the order of their names.
	add(at time.Time, symbol string, values []float64) error
	close() error
}

// newTableWriter writes Parquet where the extension is .parquet, and else CSV.
func newTableWriter(out io.Writer, ext string, names []string) (tableWriter, error) {
	if ext == ".parquet" {
		return newParquetTable(out, names)
	}
	w := &textTable{w: csv.NewWriter(out), row: append([]string{"datetime", "symbol"}, names...)}
	return w, w.w.Write(w.row)
}

type textTable struct {
	w   *csv.Writer
	row []string
}

func (t *textTable) add(at time.Time, symbol string, values []float64) error {
	t.row = append(t.row[:0], formatTick(at), symbol)
	for _, v := range values {
		text := ""
		if !math.IsNaN(v) {
			text = strconv.FormatFloat(v, 'f', -1, 64)
		}
		t.row = append(t.row, text)
	}
	return t.w.Write(t.row)
}

func (t *textTable) close() error {
	t.w.Flush()
	return t.w.Error()
}

// groupRows is how many rows a row group of a Parquet file has: so many are in memory.
const groupRows = 1 << 16

type parquetTable struct {
	w    *parquetfile.Writer
	rows int
}

func newParquetTable(out io.Writer, names []string) (*parquetTable, error) {
	fields := []arrow.Field{{Name: "datetime", Type: &arrow.TimestampType{Unit: arrow.Microsecond}}, {Name: "symbol", Type: arrow.BinaryTypes.String}}
	for _, name := range names {
		fields = append(fields, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Float64, Nullable: true})
	}
	w, err := parquetfile.Create(out, arrow.NewSchema(fields, nil))
	return &parquetTable{w: w}, err
}

func (t *parquetTable) add(at time.Time, symbol string, values []float64) error {
	wall := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
	t.w.Field(0).(*array.TimestampBuilder).Append(arrow.Timestamp(wall.UnixMicro()))
	t.w.Field(1).(*array.StringBuilder).Append(symbol)
	for i, v := range values {
		if math.IsNaN(v) {
			t.w.Field(2 + i).AppendNull()
		} else {
			t.w.Field(2 + i).(*array.Float64Builder).Append(v)
		}
	}
	if t.rows++; t.rows < groupRows {
		return nil
	}
	t.rows = 0
	return t.w.Flush()
}

func (t *parquetTable) close() error { return t.w.Close() }
