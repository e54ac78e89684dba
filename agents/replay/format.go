package replay

import (
	"io"
	"iter"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// FileColumn is a column of the rows of a file.
type FileColumn struct {
	Name  string
	DType tensor.DType
	// Shape is that of what a row has of it. Where WindowRows is not 0, a row has an int32 in its place:
	// the number of the last row of a window of that shape in a table of WindowRows rows.
	Shape      []int
	WindowRows int
	// Size is the number of bytes of a row.
	Size int
}

// Chunk are rows of one policy, column by column, little-endian.
type Chunk struct {
	// Policy has four bytes, an int32, of every row, and Kind one.
	Policy, Kind []byte
	// Columns are the bytes of every column, row by row.
	Columns [][]byte
}

// File is what is read: an open file.
type File interface {
	io.ReaderAt
	io.ReadSeeker
}

// Format is a form of files. It keeps nothing of what it is given.
type Format interface {
	// Suffix is what names of files end with, with its dot.
	Suffix() string
	// Write writes chunks as one file.
	Write(w io.Writer, columns []FileColumn, chunks iter.Seq[Chunk]) error
	// Read calls each with the chunks of a file of size bytes, one after another, and ends with its
	// error. Other columns than these, and damage, are errors; no chunk that each was given is damaged
	// in its lengths.
	Read(f File, size int64, columns []FileColumn, each func(Chunk) error) error
}
