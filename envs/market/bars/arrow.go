package bars

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/onnxrl/onnxrl/runtime/columnar"
	"github.com/onnxrl/onnxrl/runtime/columnar/parquetfile"
)

// arrowTable walks over blocks of columns: row groups of Parquet, record batches of Arrow.
type arrowTable struct {
	header   []string
	selected []int
	// load reads a block, io.EOF after the last one; a block without rows may be given as no
	// columns.
	load  func(block int, columns []int) ([]arrow.Array, error)
	close func() error

	block  int
	cols   []arrow.Array // by position in header; nil where not selected
	row, n int
	line   int
}

func (t *arrowTable) Header() []string     { return t.header }
func (t *arrowTable) Select(columns []int) { t.selected = columns }
func (t *arrowTable) Line() int            { return t.line }

func (t *arrowTable) Close() error {
	t.release()
	return t.close()
}

func (t *arrowTable) release() {
	for i, c := range t.cols {
		if c != nil {
			c.Release()
			t.cols[i] = nil
		}
	}
}

func (t *arrowTable) Next() error {
	for t.row++; t.row >= t.n; {
		t.release()
		cols, err := t.loadBlock()
		if err != nil {
			return err
		}
		t.cols = make([]arrow.Array, len(t.header))
		t.row, t.n = 0, 0
		t.block++
		if len(cols) == 0 {
			continue
		}
		t.n = cols[0].Len()
		for i, c := range cols {
			t.cols[t.selected[i]] = c
			if c.Len() != t.n {
				return fmt.Errorf("column %q has %d rows, column %q %d", t.header[t.selected[i]], c.Len(), t.header[t.selected[0]], t.n)
			}
		}
	}
	t.line++
	return nil
}

// loadBlock reads the next block. The Arrow reader panics on some damaged files.
func (t *arrowTable) loadBlock() (cols []arrow.Array, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("block %d is damaged: %v", t.block, r)
		}
	}()
	return t.load(t.block, t.selected)
}

func (t *arrowTable) Text(column int) (string, error) { return textAt(t.cols[column], t.row) }

// clockLayout is how times of the day are written.
const clockLayout = "15:04:05.999999999"

// textAt reads a text. The offsets and indices that damaged texts have point anywhere.
func textAt(a arrow.Array, i int) (s string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the text is damaged: %v", r)
		}
	}()
	if a.IsNull(i) {
		return "", nil
	}
	switch x := a.(type) {
	case *array.String:
		return x.Value(i), nil
	case *array.LargeString:
		return x.Value(i), nil
	case *array.Dictionary:
		return textAt(x.Dictionary(), x.GetValueIndex(i))
	case *array.Int64:
		return strconv.FormatInt(x.Value(i), 10), nil
	case *array.Int32:
		return strconv.FormatInt(int64(x.Value(i)), 10), nil
	case *array.Time32:
		return x.Value(i).ToTime(x.DataType().(*arrow.Time32Type).Unit).Format(clockLayout), nil
	case *array.Time64:
		return x.Value(i).ToTime(x.DataType().(*arrow.Time64Type).Unit).Format(clockLayout), nil
	}
	return "", fmt.Errorf("type %v is not a text", a.DataType())
}

func (t *arrowTable) Number(column int) (float64, error) {
	a, i := t.cols[column], t.row
	if a.IsNull(i) {
		return math.NaN(), nil
	}
	switch x := a.(type) {
	case *array.Float64:
		return x.Value(i), nil
	case *array.Float32:
		return float64(x.Value(i)), nil
	case *array.Int64:
		return float64(x.Value(i)), nil
	case *array.Int32:
		return float64(x.Value(i)), nil
	case *array.Int16:
		return float64(x.Value(i)), nil
	case *array.Int8:
		return float64(x.Value(i)), nil
	case *array.Uint64:
		return float64(x.Value(i)), nil
	case *array.Uint32:
		return float64(x.Value(i)), nil
	case *array.Uint16:
		return float64(x.Value(i)), nil
	case *array.Uint8:
		return float64(x.Value(i)), nil
	case *array.Boolean:
		if x.Value(i) {
			return 1, nil
		}
		return 0, nil
	case *array.Decimal128:
		return x.Value(i).ToFloat64(x.DataType().(*arrow.Decimal128Type).Scale), nil
	case *array.String:
		s, err := textAt(x, i)
		if err != nil {
			return 0, err
		}
		return parseNumber(s)
	case *array.Null:
		return math.NaN(), nil
	}
	return 0, fmt.Errorf("type %v is not a number", a.DataType())
}

func (t *arrowTable) Time(column int, c *clock) (time.Time, error) {
	a, i := t.cols[column], t.row
	if a.IsNull(i) {
		return time.Time{}, errors.New("the time is missing")
	}
	switch x := a.(type) {
	case *array.Date32:
		return c.wall(x.Value(i).ToTime()), nil
	case *array.Date64:
		return c.wall(x.Value(i).ToTime()), nil
	case *array.Timestamp:
		ty := x.DataType().(*arrow.TimestampType)
		at := x.Value(i).ToTime(ty.Unit)
		if ty.TimeZone == "" {
			return c.wall(at), nil
		}
		if loc, err := time.LoadLocation(ty.TimeZone); err == nil && c.loc == nil {
			at = at.In(loc)
		}
		return c.instant(at), nil
	}
	s, err := textAt(a, i)
	if err != nil && c.serial {
		var v float64
		v, err = t.Number(column)
		s = strconv.FormatFloat(v, 'f', -1, 64)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("type %v is not a time", a.DataType())
	}
	return c.parse(s)
}

func openParquet(path string) (table, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	p, err := parquetfile.Open(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	t := &arrowTable{header: p.Names(), close: p.Close}
	t.load = func(block int, columns []int) ([]arrow.Array, error) {
		if block == p.Groups() {
			return nil, io.EOF
		}
		if p.Rows(block) == 0 {
			return nil, nil
		}
		cols := make([]arrow.Array, len(columns))
		for i, c := range columns {
			var err error
			if cols[i], err = p.Column(block, c); err != nil {
				return nil, err
			}
		}
		return cols, nil
	}
	return t, nil
}

// openArrow opens an IPC file (Feather version 2) or, where the file does not begin like one, an
// IPC stream.
func openArrow(path string) (_ table, err error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	magic := make([]byte, 6)
	if _, err := f.ReadAt(magic, 0); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	t := &arrowTable{}
	pick := func(rec arrow.Record, columns []int) []arrow.Array {
		cols := make([]arrow.Array, len(columns))
		for i, c := range columns {
			cols[i] = rec.Column(c)
			cols[i].Retain()
		}
		return cols
	}
	var fields []arrow.Field
	if string(magic) == "ARROW1" {
		a, err := columnar.OpenArrow(f, info.Size())
		if err != nil {
			return nil, err
		}
		fields = a.Fields()
		t.close = func() error { return errors.Join(a.Close(), f.Close()) }
		t.load = func(block int, columns []int) ([]arrow.Array, error) {
			if block == a.Batches() {
				return nil, io.EOF
			}
			rec, err := a.Batch(block)
			if err != nil {
				return nil, err
			}
			defer rec.Release()
			return pick(rec, columns), nil
		}
	} else {
		a, err := columnar.OpenArrowStream(f, info.Size())
		if err != nil {
			return nil, err
		}
		fields = a.Fields()
		t.close = func() error { a.Close(); return f.Close() }
		t.load = func(_ int, columns []int) ([]arrow.Array, error) {
			rec, err := a.Next()
			if err != nil {
				return nil, err
			}
			return pick(rec, columns), nil
		}
	}
	for _, field := range fields {
		t.header = append(t.header, field.Name)
	}
	return t, nil
}
