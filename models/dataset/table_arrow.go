package dataset

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/onnxrl/onnxrl/runtime/columnar"
	"github.com/onnxrl/onnxrl/runtime/columnar/parquetfile"
)

// columnOf describes an Arrow field.
func columnOf(f arrow.Field) Column {
	c := Column{Name: f.Name, Width: 1}
	t := f.Type
	switch l := t.(type) {
	case *arrow.FixedSizeListType:
		c.Width, t = int(l.Len()), l.Elem()
	case *arrow.ListType:
		// Parquet stores every list as one of variable length; the first row tells the width and
		// every other must agree.
		c.Width, t = listWidthUnknown, l.Elem()
	}
	switch t.ID() {
	case arrow.BOOL, arrow.INT8, arrow.INT16, arrow.INT32, arrow.INT64, arrow.UINT8, arrow.UINT16, arrow.UINT32, arrow.UINT64, arrow.FLOAT16, arrow.FLOAT32, arrow.FLOAT64:
	default:
		c.Err = fmt.Errorf("its type is %v, expected numbers or fixed-size lists of numbers", f.Type)
	}
	return c
}

// listWidthUnknown marks a list column whose width has not been read yet.
const listWidthUnknown = -1

// resolveLists reads the width of list columns from the first row of the table.
func resolveLists(cols []Column, read func(column int) (arrow.Array, error)) error {
	for i := range cols {
		if cols[i].Width != listWidthUnknown {
			continue
		}
		cols[i].Width = 1
		if cols[i].Err != nil {
			continue
		}
		a, err := read(i)
		if err != nil {
			return err
		}
		if l, ok := a.(*array.List); ok && l.Len() > 0 {
			from, to := l.ValueOffsets(0)
			cols[i].Width = int(to - from)
		}
		a.Release()
	}
	return nil
}

// appendValues appends a numeric array, nulls as NaN. Lists must have exactly width elements.
func appendValues(dst []float64, a arrow.Array, width int) ([]float64, error) {
	at := func(get func(i int) float64) []float64 {
		for i := range a.Len() {
			if a.IsNull(i) {
				dst = append(dst, math.NaN())
			} else {
				dst = append(dst, get(i))
			}
		}
		return dst
	}
	switch x := a.(type) {
	case *array.Float32:
		return at(func(i int) float64 { return float64(x.Value(i)) }), nil
	case *array.Float64:
		return at(x.Value), nil
	case *array.Float16:
		return at(func(i int) float64 { return float64(x.Value(i).Float32()) }), nil
	case *array.Int8:
		return at(func(i int) float64 { return float64(x.Value(i)) }), nil
	case *array.Int16:
		return at(func(i int) float64 { return float64(x.Value(i)) }), nil
	case *array.Int32:
		return at(func(i int) float64 { return float64(x.Value(i)) }), nil
	case *array.Int64:
		return at(func(i int) float64 { return float64(x.Value(i)) }), nil
	case *array.Uint8:
		return at(func(i int) float64 { return float64(x.Value(i)) }), nil
	case *array.Uint16:
		return at(func(i int) float64 { return float64(x.Value(i)) }), nil
	case *array.Uint32:
		return at(func(i int) float64 { return float64(x.Value(i)) }), nil
	case *array.Uint64:
		return at(func(i int) float64 { return float64(x.Value(i)) }), nil
	case *array.Boolean:
		return at(func(i int) float64 {
			if x.Value(i) {
				return 1
			}
			return 0
		}), nil
	case *array.List:
		mark := len(dst)
		for i := range x.Len() {
			from, to := x.ValueOffsets(i)
			if x.IsNull(i) {
				for range width {
					dst = append(dst, math.NaN())
				}
				continue
			}
			if int(to-from) != width {
				return nil, fmt.Errorf("row %d of the block has %d elements, the table's first row %d", i+1, to-from, width)
			}
			sub := array.NewSlice(x.ListValues(), from, to)
			var err error
			dst, err = appendValues(dst, sub, 1)
			sub.Release()
			if err != nil {
				return nil, err
			}
		}
		if len(dst)-mark != x.Len()*width {
			return nil, fmt.Errorf("%d values, expected %d rows of %d", len(dst)-mark, x.Len(), width)
		}
		return dst, nil
	case *array.FixedSizeList:
		n := int(x.DataType().(*arrow.FixedSizeListType).Len())
		off := x.Data().Offset()
		sub := array.NewSlice(x.ListValues(), int64(off*n), int64((off+x.Len())*n))
		defer sub.Release()
		mark := len(dst)
		dst, err := appendValues(dst, sub, 1)
		for i := range x.Len() {
			if x.IsNull(i) {
				for k := range n {
					dst[mark+i*n+k] = math.NaN()
				}
			}
		}
		return dst, err
	}
	return nil, fmt.Errorf("type %v is not numeric", a.DataType())
}

// parquetTable reads the row groups of a Parquet file.
type parquetTable struct {
	path   string
	file   *parquetfile.File
	cols   []Column
	blocks []int
	mu     sync.Mutex
}

func openParquet(path string) (Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	c, err := parquetfile.Open(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("read parquet: %w", err)
	}
	t := &parquetTable{path: path, file: c}
	for _, field := range c.Fields() {
		t.cols = append(t.cols, columnOf(field))
	}
	for g := range c.Groups() {
		t.blocks = append(t.blocks, c.Rows(g))
	}
	if len(t.blocks) > 0 {
		err := resolveLists(t.cols, func(i int) (arrow.Array, error) { return c.Column(0, i) })
		if err != nil {
			c.Close()
			return nil, fmt.Errorf("read parquet: %w", err)
		}
	}
	return t, nil
}

func (t *parquetTable) Columns() []Column { return t.cols }
func (t *parquetTable) Blocks() []int     { return t.blocks }
func (t *parquetTable) Name() string      { return t.path }
func (t *parquetTable) Close() error      { return t.file.Close() }

func (t *parquetTable) Read(block int, columns []int) ([][]float64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([][]float64, len(columns))
	for i, c := range columns {
		a, err := t.file.Column(block, c)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", t.path, err)
		}
		// The count that the file states is not believed before the array is there.
		out[i], err = appendValues(make([]float64, 0, a.Len()*t.cols[c].Width), a, t.cols[c].Width)
		a.Release()
		if err != nil {
			return nil, fmt.Errorf("read %s, column %q: %w", t.path, t.cols[c].Name, err)
		}
	}
	return out, nil
}

// arrowTable reads the record batches of an Arrow IPC file.
type arrowTable struct {
	path   string
	f      *os.File
	file   *columnar.ArrowFile
	cols   []Column
	blocks []int
	mu     sync.Mutex
}

func openArrow(path string) (_ Table, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("read arrow: %w", errors.Join(err, f.Close()))
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	a, err := columnar.OpenArrow(f, info.Size())
	if err != nil {
		return nil, err
	}
	t := &arrowTable{path: path, f: f, file: a}
	for _, fl := range a.Fields() {
		t.cols = append(t.cols, columnOf(fl))
	}
	for i := range a.Batches() {
		rec, err := a.Batch(i)
		if err != nil {
			return nil, errors.Join(err, a.Close())
		}
		t.blocks = append(t.blocks, int(rec.NumRows()))
		if i == 0 {
			err = resolveLists(t.cols, func(c int) (arrow.Array, error) {
				col := rec.Column(c)
				col.Retain()
				return col, nil
			})
		}
		rec.Release()
		if err != nil {
			return nil, errors.Join(err, a.Close())
		}
	}
	return t, nil
}

func (t *arrowTable) Columns() []Column { return t.cols }
func (t *arrowTable) Blocks() []int     { return t.blocks }
func (t *arrowTable) Name() string      { return t.path }
func (t *arrowTable) Close() error      { return errors.Join(t.file.Close(), t.f.Close()) }

func (t *arrowTable) Read(block int, columns []int) (_ [][]float64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("read %s, record batch %d: %v", t.path, block, r)
		}
	}()
	rec, err := t.file.Batch(block)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", t.path, err)
	}
	defer rec.Release()
	out := make([][]float64, len(columns))
	for i, c := range columns {
		if out[i], err = appendValues(make([]float64, 0, t.blocks[block]*t.cols[c].Width), rec.Column(c), t.cols[c].Width); err != nil {
			return nil, fmt.Errorf("read %s, column %q: %w", t.path, t.cols[c].Name, err)
		}
	}
	return out, nil
}
