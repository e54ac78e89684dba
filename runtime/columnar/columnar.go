// Package columnar reads Arrow files that may be damaged; package parquetfile beside it reads Parquet.
//
// The Arrow library allocates whatever length a file states, which ends the program.
// [OpenArrow] and [OpenArrowStream] check the lengths beforehand and bound what is allocated by the
// size of the file.
//
// How to add a way of reading: build it on [ArrowFile.Batch], [ArrowStream.Next] or parquetfile's
// Column, which hold the guards.
package columnar

import (
	"errors"
	"fmt"
)

// ErrDamaged is in the chain of every error that a file's content causes, but for those of what cannot
// be read, which are ErrUnsupported.
var ErrDamaged = errors.New("the file is damaged")

// ErrUnsupported is in the chain of errors that name a column of another type, encoding or compression
// than is read.
var ErrUnsupported = errors.New("not supported")

// Guard is deferred by what calls a library that reads a file: it turns a panic and every other error
// into one that is ErrDamaged, unless it is ErrUnsupported.
func Guard(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("%v", r)
	}
	if *err != nil && !errors.Is(*err, ErrUnsupported) {
		*err = fmt.Errorf("%w: %w", ErrDamaged, *err)
	}
}
