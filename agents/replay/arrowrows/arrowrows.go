// Package arrowrows has the rows of a replay store as Arrow: in IPC files, a record batch for every
// chunk, and in record batches that come from elsewhere.
//
// A column of rows is a column of the batch, a fixed-size list where a row has several elements; a
// window is the number of its last row. Beside them are the policy and the kind of the row. The
// observation that follows a transition is in the next row.
package arrowrows

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/runtime/columnar"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

const (
	envColumn    = "env"
	policyColumn = "policy"
	kindColumn   = "kind"
)

// arrowTypes are the element types of columns.
var arrowTypes = map[tensor.DType]arrow.DataType{
	tensor.Float32: arrow.PrimitiveTypes.Float32, tensor.Float64: arrow.PrimitiveTypes.Float64, tensor.Bool: arrow.PrimitiveTypes.Uint8,
	tensor.Int8: arrow.PrimitiveTypes.Int8, tensor.Int16: arrow.PrimitiveTypes.Int16, tensor.Int32: arrow.PrimitiveTypes.Int32, tensor.Int64: arrow.PrimitiveTypes.Int64,
	tensor.Uint8: arrow.PrimitiveTypes.Uint8, tensor.Uint16: arrow.PrimitiveTypes.Uint16, tensor.Uint32: arrow.PrimitiveTypes.Uint32, tensor.Uint64: arrow.PrimitiveTypes.Uint64,
}

// field describes a column.
func field(c replay.FileColumn) (arrow.Field, error) {
	f := arrow.Field{Name: c.Name, Metadata: arrow.MetadataFrom(map[string]string{"shape": fmt.Sprint(c.Shape)})}
	if c.WindowRows > 0 {
		f.Type = arrow.PrimitiveTypes.Int32
		f.Metadata = arrow.MetadataFrom(map[string]string{"shape": fmt.Sprint(c.Shape), "window_rows": fmt.Sprint(c.WindowRows)})
		return f, nil
	}
	t, ok := arrowTypes[c.DType]
	if !ok {
		return f, fmt.Errorf("column %q: files cannot have elements of type %v", c.Name, c.DType)
	}
	if f.Type = t; len(c.Shape) > 0 {
		n := 1
		for _, d := range c.Shape {
			n *= d
		}
		f.Type = arrow.FixedSizeListOfNonNullable(int32(n), t)
	}
	return f, nil
}

// fields describes all columns of a file.
func fields(columns []replay.FileColumn) ([]arrow.Field, error) {
	var list []arrow.Field
	for _, c := range columns {
		f, err := field(c)
		if err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return append(list, arrow.Field{Name: policyColumn, Type: arrow.PrimitiveTypes.Int32}, arrow.Field{Name: kindColumn, Type: arrow.PrimitiveTypes.Uint8}), nil
}

// File is the Arrow IPC file as a form of files of a replay store.
type File struct{}

// Suffix implements [replay.Format].
func (File) Suffix() string { return ".arrow" }

// positioned is a writer that knows how much was written, which is all that Arrow asks of a seeker.
type positioned struct {
	w   io.Writer
	pos int64
}

func (p *positioned) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	p.pos += int64(n)
	return n, err
}

func (p *positioned) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekCurrent {
		return 0, errors.ErrUnsupported
	}
	return p.pos, nil
}

// Write implements [replay.Format].
func (File) Write(w io.Writer, columns []replay.FileColumn, chunks iter.Seq[replay.Chunk]) error {
	list, err := fields(columns)
	if err != nil {
		return err
	}
	schema := arrow.NewSchema(list, nil)
	out, err := ipc.NewFileWriter(&positioned{w: w}, ipc.WithSchema(schema))
	if err != nil {
		return err
	}
	for c := range chunks {
		rec := record(schema, c)
		err := out.Write(rec)
		rec.Release()
		if err != nil {
			return errors.Join(err, out.Close())
		}
	}
	return out.Close()
}

// record makes a chunk a record batch, which shares its memory.
func record(schema *arrow.Schema, c replay.Chunk) arrow.Record {
	n := len(c.Kind)
	var cols []arrow.Array
	for i, b := range c.Columns {
		cols = append(cols, columnArray(schema.Field(i).Type, n, b))
	}
	cols = append(cols, columnArray(arrow.PrimitiveTypes.Int32, n, c.Policy), columnArray(arrow.PrimitiveTypes.Uint8, n, c.Kind))
	rec := array.NewRecord(schema, cols, int64(n))
	for _, c := range cols {
		c.Release()
	}
	return rec
}

// columnArray makes an array of n rows over bytes.
func columnArray(t arrow.DataType, n int, b []byte) arrow.Array {
	buf := memory.NewBufferBytes(b)
	if l, ok := t.(*arrow.FixedSizeListType); ok {
		child := array.NewData(l.Elem(), n*int(l.Len()), []*memory.Buffer{nil, buf}, nil, 0, 0)
		defer child.Release()
		return array.MakeFromData(array.NewData(t, n, []*memory.Buffer{nil}, []arrow.ArrayData{child}, 0, 0))
	}
	return array.MakeFromData(array.NewData(t, n, []*memory.Buffer{nil, buf}, nil, 0, 0))
}

// Read implements [replay.Format].
func (File) Read(f replay.File, size int64, columns []replay.FileColumn, each func(replay.Chunk) error) error {
	file, err := columnar.OpenArrow(f, size)
	if err != nil {
		return err
	}
	defer file.Close()
	want, err := fields(columns)
	if err != nil {
		return err
	}
	if !slices.EqualFunc(file.Fields(), want, func(a, b arrow.Field) bool { return a.Equal(b) }) {
		return fmt.Errorf("the file has columns %v, expected %v", file.Fields(), want)
	}
	for i := range file.Batches() {
		rec, err := file.Batch(i)
		if err != nil {
			return err
		}
		c, err := chunk(columns, rec)
		if err == nil {
			err = each(c)
		}
		rec.Release()
		if err != nil {
			return fmt.Errorf("record batch %d: %w", i, err)
		}
	}
	return nil
}

// chunk is a record batch as a chunk, which shares its memory.
func chunk(columns []replay.FileColumn, rec arrow.Record) (c replay.Chunk, err error) {
	list := make([][]byte, len(columns)+2)
	for i := range list {
		size := map[int]int{len(columns): 4, len(columns) + 1: 1}[i]
		if i < len(columns) {
			size = columns[i].Size
		}
		// A damaged batch says another number of rows than its columns have.
		if n := int64(rec.Column(i).Len()); n != rec.NumRows() {
			return c, fmt.Errorf("column %q: %d rows, expected %d", rec.ColumnName(i), n, rec.NumRows())
		}
		if list[i], err = bytesOf(rec.Column(i), size); err != nil {
			return c, fmt.Errorf("column %q: %w", rec.ColumnName(i), err)
		}
	}
	return replay.Chunk{Columns: list[:len(columns)], Policy: list[len(columns)], Kind: list[len(columns)+1]}, nil
}

// bytesOf returns the bytes of an array whose rows have size bytes.
func bytesOf(a arrow.Array, size int) ([]byte, error) {
	d := a.Data()
	off := d.Offset()
	if l, ok := a.(*array.FixedSizeList); ok {
		d = l.ListValues().Data()
		if d.Offset() != 0 {
			return nil, errors.New("a list that begins within its values")
		}
	}
	// NullN of the array itself would count, in a bitmap that a damaged file does not have.
	if a.Data().NullN() != 0 || len(d.Buffers()) < 2 || d.Buffers()[1] == nil && a.Len()*size > 0 {
		return nil, errors.New("values are missing")
	}
	if a.Len()*size == 0 {
		return nil, nil
	}
	b := d.Buffers()[1].Bytes()
	if len(b) < (off+a.Len())*size {
		return nil, fmt.Errorf("%d bytes, expected %d", len(b), (off+a.Len())*size)
	}
	return b[off*size : (off+a.Len())*size], nil
}

// Rows returns the rows of a record batch that has these columns, env and kind, in any order: each
// row's environment, its kind and the bytes of the columns, which share the batch's memory. Without
// env all are of the first environment.
func Rows(columns []replay.FileColumn, rec arrow.Record) (env []int32, kind []byte, list [][]byte, err error) {
	// n is what the batch says, which its columns need not have.
	n := int(rec.NumRows())
	column := func(name string, want arrow.DataType, size int) ([]byte, error) {
		i := rec.Schema().FieldIndices(name)
		if len(i) != 1 {
			return nil, fmt.Errorf("replay: rows have %d columns %q, expected one", len(i), name)
		}
		a := rec.Column(i[0])
		if !Alike(a.DataType(), want) {
			return nil, fmt.Errorf("replay: column %q is %v, expected %v", name, a.DataType(), want)
		}
		if a.Len() != n {
			return nil, fmt.Errorf("replay: column %q has %d rows, expected %d", name, a.Len(), n)
		}
		b, err := bytesOf(a, size)
		if err != nil {
			return nil, fmt.Errorf("replay: column %q: %w", name, err)
		}
		return b, nil
	}
	// Of this one a row has a byte.
	if kind, err = column(kindColumn, arrow.PrimitiveTypes.Uint8, 1); err != nil {
		return nil, nil, nil, err
	}
	for _, c := range columns {
		f, err := field(c)
		if err != nil {
			return nil, nil, nil, err
		}
		b, err := column(c.Name, f.Type, c.Size)
		if err != nil {
			return nil, nil, nil, err
		}
		list = append(list, b)
	}
	env = make([]int32, n)
	if rec.Schema().HasField(envColumn) {
		b, err := column(envColumn, arrow.PrimitiveTypes.Int32, 4)
		if err != nil {
			return nil, nil, nil, err
		}
		for r := range env {
			env[r] = int32(binary.LittleEndian.Uint32(b[4*r:]))
		}
	}
	return env, kind, list, nil
}

// Alike reports whether columns of two types have the same bytes: names of elements, and whether
// they could be missing, do not matter.
func Alike(a, b arrow.DataType) bool {
	x, ok := a.(*arrow.FixedSizeListType)
	if y, both := b.(*arrow.FixedSizeListType); ok && both {
		return x.Len() == y.Len() && arrow.TypeEqual(x.Elem(), y.Elem())
	}
	return arrow.TypeEqual(a, b)
}
