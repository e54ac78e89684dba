// Package parquetfile writes Parquet files, and reads those that may be damaged.
//
// The Parquet library reads tables in goroutines of its own, and there a damaged page ends the
// whole program with a panic that nobody can recover. This package reads one column of one row
// group at a time in the caller's goroutine and turns panics into errors. Lists of plain values are
// read too; other nested columns are listed but cannot be read. Numbers by BYTE_STREAM_SPLIT, which the
// library does not know, are; what is not, for its type, encoding or compression, is
// [columnar.ErrUnsupported] and no damage.
package parquetfile

import (
	"context"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/file"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"github.com/onnxrl/onnxrl/runtime/columnar"
)

// File is an open Parquet file. It is not safe for concurrent use.
type File struct {
	file   *file.Reader
	reader *pqarrow.FileReader
	fields []arrow.Field
}

// Open reads the description of a file. Close also closes r where it can be closed.
func Open(r parquet.ReaderAtSeeker) (_ *File, err error) {
	defer columnar.Guard(&err)
	f, err := file.NewParquetReader(r)
	if err != nil {
		return nil, err
	}
	// Writers of Arrow data embed a second schema, whose decoder believes any size that a damaged
	// one states. The Parquet schema says all that is needed, except for the name of a timestamp's
	// time zone.
	f.MetaData().FileMetaData.KeyValueMetadata = nil
	pr, err := pqarrow.NewFileReader(f, pqarrow.ArrowReadProperties{}, memory.DefaultAllocator)
	if err != nil {
		return nil, err
	}
	c := &File{file: f, reader: pr}
	for _, field := range pr.Manifest.Fields {
		c.fields = append(c.fields, *field.Field)
	}
	return c, nil
}

// Fields lists the columns with their types.
func (f *File) Fields() []arrow.Field { return f.fields }

// Names lists the columns.
func (f *File) Names() []string {
	names := make([]string, len(f.fields))
	for i, field := range f.fields {
		names[i] = field.Name
	}
	return names
}

// Groups is the number of row groups.
func (f *File) Groups() int { return f.file.NumRowGroups() }

// Rows is the number of rows that a group says it has.
func (f *File) Rows(group int) int { return int(f.file.RowGroup(group).NumRows()) }

// Close releases the file.
func (f *File) Close() error { return f.file.Close() }

// Column reads a column, given by its position in Names, of one row group. The caller releases the
// array, which has exactly the rows of the group.
func (f *File) Column(group, column int) (_ arrow.Array, err error) {
	defer columnar.Guard(&err)
	field := f.reader.Manifest.Fields[column]
	leaf := field
	if field.Field.Type.ID() == arrow.LIST && len(field.Children) == 1 {
		leaf = field.Children[0]
	}
	if len(leaf.Children) > 0 {
		return nil, fmt.Errorf("%w: column %q has the type %v; lists of plain values are read, and no others in which columns lie", columnar.ErrUnsupported, field.Field.Name, field.Field.Type)
	}
	chunk, err := f.file.RowGroup(group).MetaData().ColumnChunk(leaf.ColIndex)
	if err != nil {
		return nil, fmt.Errorf("row group %d, column %q: %w", group, field.Field.Name, err)
	}
	split, err := readable(chunk, *leaf.Field, field.Field.Name)
	if err != nil {
		return nil, err
	}
	if split {
		a, err := f.splitColumn(group, leaf.ColIndex, *field.Field)
		if err != nil {
			return nil, fmt.Errorf("row group %d, column %q: %w", group, field.Field.Name, err)
		}
		return a, nil
	}
	ctx := context.Background()
	r, err := f.reader.GetFieldReader(ctx, column, map[int]bool{leaf.ColIndex: true}, []int{group})
	if err != nil {
		return nil, fmt.Errorf("row group %d, column %q: %w", group, field.Field.Name, err)
	}
	defer r.Release()
	chunked, err := f.reader.ReadColumn([]int{group}, r)
	if err != nil {
		return nil, fmt.Errorf("row group %d, column %q: %w", group, field.Field.Name, err)
	}
	defer chunked.Release()
	if chunked.Len() != f.Rows(group) {
		return nil, fmt.Errorf("row group %d, column %q has %d rows, expected %d", group, field.Field.Name, chunked.Len(), f.Rows(group))
	}
	switch chunks := chunked.Chunks(); len(chunks) {
	case 0:
		return array.MakeArrayOfNull(memory.DefaultAllocator, chunked.DataType(), 0), nil
	case 1:
		chunks[0].Retain()
		return chunks[0], nil
	default:
		return array.Concatenate(chunks, memory.DefaultAllocator)
	}
}
