package offline

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The columns of a file beside those of the observations, which are called obs.<field>.
const (
	episodeColumn    = "episode"
	stepColumn       = "step"
	kindColumn       = "kind"
	obsPrefix        = "obs."
	maskColumn       = "mask"
	actionColumn     = "action"
	rewardColumn     = "reward"
	discountColumn   = "discount"
	terminatedColumn = "terminated"
	truncatedColumn  = "truncated"
	logProbColumn    = "log_prob"
	costColumn       = "cost"
)

// The kinds of rows: a transition, or the observation after the last one, whose other columns are
// zeros.
const (
	kindTransition = 0
	kindFinal      = 1
)

// groupBytes is about how much a row group has before compression, and groupRows the most rows of
// one: what is in memory at a time.
const (
	groupBytes = 8 << 20
	groupRows  = 16384
)

// arrowTypes are the element types of columns.
var arrowTypes = map[tensor.DType]arrow.DataType{
	tensor.Float32: arrow.PrimitiveTypes.Float32, tensor.Float64: arrow.PrimitiveTypes.Float64, tensor.Bool: arrow.PrimitiveTypes.Uint8,
	tensor.Uint8: arrow.PrimitiveTypes.Uint8, tensor.Int64: arrow.PrimitiveTypes.Int64, tensor.Int32: arrow.PrimitiveTypes.Int32,
}

// fields lists the columns of a file in their order.
func (m *Manifest) fields() []column {
	obs, action := m.columns()
	number := func(name string, d tensor.DType) column { return column{name: name, dtype: d, n: 1, single: true} }
	list := append([]column{number(episodeColumn, tensor.Int64), number(stepColumn, tensor.Int32), number(kindColumn, tensor.Uint8)}, obs...)
	if m.Mask > 0 {
		list = append(list, column{name: maskColumn, dtype: tensor.Bool, n: m.Mask})
	}
	list = append(list, action, number(rewardColumn, tensor.Float64), number(discountColumn, tensor.Float64), number(terminatedColumn, tensor.Uint8), number(truncatedColumn, tensor.Uint8), number(logProbColumn, tensor.Float64))
	if n := len(m.Costs); n > 0 {
		list = append(list, column{name: costColumn, dtype: tensor.Float64, n: n})
	}
	return list
}

// schema is that of the files.
func (m *Manifest) schema() *arrow.Schema {
	var list []arrow.Field
	for _, c := range m.fields() {
		t := arrowTypes[c.dtype]
		if !c.single {
			t = arrow.ListOfNonNullable(t)
		}
		list = append(list, arrow.Field{Name: c.name, Type: t})
	}
	return arrow.NewSchema(list, nil)
}

// table collects rows and writes them as row groups.
type table struct {
	m      *Manifest
	fields []column
	schema *arrow.Schema
	// data has the bytes of the rows of each column.
	data [][]byte
	rows int
	// size is the number of bytes of a row.
	size int
	out  *pqarrow.FileWriter
	sink *sticky
}

func newTable(m *Manifest, w io.Writer) (*table, error) {
	t := &table{m: m, fields: m.fields(), schema: m.schema(), sink: &sticky{w: w}}
	t.data = make([][]byte, len(t.fields))
	for _, c := range t.fields {
		t.size += c.size()
	}
	// In pages of version 1 the library moves all levels of a list's page whenever some are added.
	props := parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCompressionLevel(1), parquet.WithDictionaryDefault(false), parquet.WithDataPageVersion(parquet.DataPageV2), parquet.WithCreatedBy("onnxrl"))
	var err error
	t.out, err = pqarrow.NewFileWriter(t.schema, t.sink, props, pqarrow.NewArrowWriterProperties())
	return t, errors.Join(err, t.sink.err)
}

// add adds an episode of a number.
func (t *table) add(number int64, e *Episode) error {
	n := e.Len()
	for s := range n + 1 {
		k := 0
		put := func(b []byte) {
			t.data[k] = append(t.data[k], b...)
			k++
		}
		number64 := func(x uint64) {
			t.data[k] = binary.LittleEndian.AppendUint64(t.data[k], x)
			k++
		}
		flag := func(on bool) {
			b := byte(0)
			if on {
				b = 1
			}
			t.data[k] = append(t.data[k], b)
			k++
		}
		last := s == n
		number64(uint64(number))
		t.data[k] = binary.LittleEndian.AppendUint32(t.data[k], uint32(s))
		k++
		flag(last) // kindFinal is 1.
		for f := range e.Obs {
			if t.m.Observation[f].Window != nil {
				number64(uint64(e.Rows[f][s]))
			} else {
				size := t.fields[k].size()
				put(t.fields[k].outside(e.Obs[f][s*size : (s+1)*size]))
			}
		}
		if t.m.Mask > 0 {
			put(e.Mask[s*t.m.Mask : (s+1)*t.m.Mask])
		}
		size := t.fields[k].size()
		if last {
			t.data[k] = append(t.data[k], make([]byte, size)...)
			k++
			for range 2 {
				number64(0)
			}
			flag(false)
			flag(false)
			number64(math.Float64bits(0))
			if c := len(t.m.Costs); c > 0 {
				put(make([]byte, 8*c))
			}
		} else {
			put(t.fields[k].outside(e.Action[s*size : (s+1)*size]))
			number64(math.Float64bits(e.Reward[s]))
			number64(math.Float64bits(e.Discount[s]))
			flag(s == n-1 && e.Terminated)
			flag(s == n-1 && e.Truncated)
			number64(math.Float64bits(e.LogProb[s]))
			if c := len(t.m.Costs); c > 0 {
				for _, x := range e.Cost[s*c : (s+1)*c] {
					t.data[k] = binary.LittleEndian.AppendUint64(t.data[k], math.Float64bits(x))
				}
			}
		}
		t.rows++
		if err := t.full(); err != nil {
			return err
		}
	}
	return nil
}

// full writes a row group where there are rows enough for one.
func (t *table) full() error {
	if t.rows < groupRows && t.rows*t.size < groupBytes {
		return nil
	}
	return t.flush()
}

// flush writes what there is as a row group.
func (t *table) flush() error {
	if t.rows == 0 {
		return nil
	}
	var cols []arrow.Array
	for i, c := range t.fields {
		cols = append(cols, arrayOf(t.schema.Field(i).Type, t.rows, c.n, t.data[i]))
	}
	rec := array.NewRecord(t.schema, cols, int64(t.rows))
	err := errors.Join(t.out.Write(rec), t.sink.err)
	rec.Release()
	for i, c := range cols {
		c.Release()
		t.data[i] = t.data[i][:0]
	}
	t.rows = 0
	return err
}

// close ends the file.
func (t *table) close() error { return errors.Join(t.flush(), t.out.Close(), t.sink.err) }

// arrayOf makes an array of rows over bytes, of lists with n elements each where the type is a
// list.
func arrayOf(t arrow.DataType, rows, n int, b []byte) arrow.Array {
	buf := memory.NewBufferBytes(b)
	l, ok := t.(*arrow.ListType)
	if !ok {
		return array.MakeFromData(array.NewData(t, rows, []*memory.Buffer{nil, buf}, nil, 0, 0))
	}
	offsets := make([]byte, 0, 4*(rows+1))
	for i := range rows + 1 {
		offsets = binary.LittleEndian.AppendUint32(offsets, uint32(i*n))
	}
	child := array.NewData(l.Elem(), rows*n, []*memory.Buffer{nil, buf}, nil, 0, 0)
	defer child.Release()
	return array.MakeFromData(array.NewData(t, rows, []*memory.Buffer{nil, memory.NewBufferBytes(offsets)}, []arrow.ArrayData{child}, 0, 0))
}

// bytesOf returns the bytes of an array of rows, of lists with as many elements as the column has.
func bytesOf(c column, a arrow.Array) ([]byte, error) {
	want := arrowTypes[c.dtype]
	if l, ok := a.(*array.List); ok && !c.single {
		if l.NullN() > 0 {
			return nil, fmt.Errorf("column %q: %d rows have no value", c.name, l.NullN())
		}
		for i := range l.Len() {
			if from, to := l.ValueOffsets(i); to-from != int64(c.n) {
				return nil, fmt.Errorf("column %q: row %d of the group has %d elements, expected %d", c.name, i, to-from, c.n)
			}
		}
		first := int64(0)
		if l.Len() > 0 {
			first, _ = l.ValueOffsets(0)
		}
		values := array.NewSlice(l.ListValues(), first, first+int64(l.Len()*c.n))
		defer values.Release()
		return plain(c, values, want)
	}
	if !c.single {
		return nil, fmt.Errorf("column %q is %v, expected lists of %v", c.name, a.DataType(), want)
	}
	return plain(c, a, want)
}

// plain returns a copy of the bytes of an array of numbers.
func plain(c column, a arrow.Array, want arrow.DataType) ([]byte, error) {
	if !arrow.TypeEqual(a.DataType(), want) {
		return nil, fmt.Errorf("column %q is of %v, expected %v", c.name, a.DataType(), want)
	}
	if a.NullN() > 0 {
		return nil, fmt.Errorf("column %q: %d values are missing", c.name, a.NullN())
	}
	size, d := c.dtype.Size(), a.Data()
	if a.Len() == 0 {
		return nil, nil
	}
	b := d.Buffers()[1].Bytes()
	if len(b) < (d.Offset()+a.Len())*size {
		return nil, fmt.Errorf("column %q: %d bytes, expected %d", c.name, len(b), (d.Offset()+a.Len())*size)
	}
	return slices.Clone(b[d.Offset()*size : (d.Offset()+a.Len())*size]), nil
}

// int64s and float64s decode numbers.
func int64s(b []byte) []int64 {
	out := make([]int64, len(b)/8)
	for i := range out {
		out[i] = int64(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return out
}

func float64s(b []byte) []float64 {
	out := make([]float64, len(b)/8)
	for i := range out {
		out[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
	}
	return out
}

// sticky keeps the first error of a writer and takes whatever comes after it: the Parquet writer
// panics when its first bytes cannot be written. It has no Close, so that the caller's file stays
// open.
type sticky struct {
	w   io.Writer
	err error
}

func (s *sticky) Write(b []byte) (int, error) {
	if s.err == nil {
		_, s.err = s.w.Write(b)
	}
	return len(b), nil
}
