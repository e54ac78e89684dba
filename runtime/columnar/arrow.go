package columnar

import (
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// ArrowFile is an open Arrow IPC file, also called Feather version 2. It is not safe for concurrent
// use.
type ArrowFile struct{ reader *ipc.FileReader }

// OpenArrow reads the description of an Arrow file of the given size. r stays the caller's.
func OpenArrow(r ipc.ReadAtSeeker, size int64) (_ *ArrowFile, err error) {
	defer Guard(&err)
	if err := checkFooter(r, size); err != nil {
		return nil, err
	}
	reader, err := ipc.NewFileReader(r, ipc.WithAllocator(&boundedAllocator{memory.DefaultAllocator, size}))
	if err != nil {
		return nil, err
	}
	return &ArrowFile{reader}, nil
}

// Fields lists the columns with their types.
func (f *ArrowFile) Fields() []arrow.Field { return f.reader.Schema().Fields() }

// Batches is the number of record batches.
func (f *ArrowFile) Batches() int { return f.reader.NumRecords() }

// Batch reads a record batch. The caller releases it.
func (f *ArrowFile) Batch(i int) (_ arrow.Record, err error) {
	defer Guard(&err)
	rec, err := f.reader.RecordAt(i)
	if err != nil {
		return nil, fmt.Errorf("record batch %d: %w", i, err)
	}
	return rec, nil
}

// Close releases what was read, but not the underlying file.
func (f *ArrowFile) Close() error { return f.reader.Close() }

// ArrowStream is an open Arrow IPC stream. It is not safe for concurrent use.
type ArrowStream struct {
	reader *ipc.Reader
	read   int
}

// OpenArrowStream checks the lengths in a stream of the given size and reads its schema. r stays
// the caller's.
func OpenArrowStream(r io.ReaderAt, size int64) (_ *ArrowStream, err error) {
	defer Guard(&err)
	if err := checkStream(r, size); err != nil {
		return nil, err
	}
	reader, err := ipc.NewReader(io.NewSectionReader(r, 0, size), ipc.WithAllocator(&boundedAllocator{memory.DefaultAllocator, size}))
	if err != nil {
		return nil, err
	}
	return &ArrowStream{reader: reader}, nil
}

// Fields lists the columns with their types.
func (s *ArrowStream) Fields() []arrow.Field { return s.reader.Schema().Fields() }

// Next reads the next record batch, which is valid until the call after it. After the last one the
// error is io.EOF.
func (s *ArrowStream) Next() (arrow.Record, error) {
	rec, err := s.next()
	if err == nil && rec == nil {
		err = io.EOF
	}
	return rec, err
}

func (s *ArrowStream) next() (_ arrow.Record, err error) {
	defer Guard(&err)
	if !s.reader.Next() {
		if err := s.reader.Err(); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("record batch %d: %w", s.read, err)
		}
		return nil, nil
	}
	s.read++
	return s.reader.Record(), nil
}

// Close releases what was read, but not the underlying file.
func (s *ArrowStream) Close() { s.reader.Release() }
