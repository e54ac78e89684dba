package parquetfile

import (
	"errors"
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
)

// Writer writes a Parquet file. Rows are appended to its fields, and Flush writes them as a row group.
// The caller calls Close, also after an error. It is not safe for concurrent use.
type Writer struct {
	*array.RecordBuilder

	out  *pqarrow.FileWriter
	sink *sticky
}

// Create begins a file in w, which Close leaves open. Columns are compressed by Zstandard unless the
// options say otherwise.
func Create(w io.Writer, schema *arrow.Schema, options ...parquet.WriterProperty) (*Writer, error) {
	options = append([]parquet.WriterProperty{parquet.WithCompression(compress.Codecs.Zstd), parquet.WithCreatedBy("onnxrl")}, options...)
	sink := &sticky{w: w}
	out, err := pqarrow.NewFileWriter(schema, sink, parquet.NewWriterProperties(options...), pqarrow.DefaultWriterProps())
	if err = errors.Join(err, sink.err); err != nil {
		return nil, err
	}
	return &Writer{RecordBuilder: array.NewRecordBuilder(memory.DefaultAllocator, schema), out: out, sink: sink}, nil
}

// Flush writes the rows that were appended since the last Flush as a row group. Without rows it writes
// nothing.
func (w *Writer) Flush() error {
	rec := w.NewRecord()
	defer rec.Release()
	if rec.NumRows() == 0 {
		return w.sink.err
	}
	return w.Write(rec)
}

// Write writes a record, which the caller releases, as a row group.
func (w *Writer) Write(rec arrow.Record) error { return errors.Join(w.out.Write(rec), w.sink.err) }

// Close writes the rows that are left, ends the file, and releases memory.
func (w *Writer) Close() error {
	defer w.Release()
	return errors.Join(w.Flush(), w.out.Close(), w.sink.err)
}

// sticky keeps the first error of a writer and accepts later bytes without writing them: the Parquet
// writer panics when its first bytes cannot be written. It has no Close, so the caller's file stays open.
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
