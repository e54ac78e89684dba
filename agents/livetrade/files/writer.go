package files

import (
	"bufio"
	"context"
	"fmt"
	"os"
)

// Writer appends messages of bars in JSON to a file, a line each.
type Writer struct {
	file *os.File
	buf  *bufio.Writer
}

// NewWriter opens a file, or makes it.
func NewWriter(path string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	return &Writer{f, bufio.NewWriterSize(f, block)}, nil
}

// Write takes a message.
func (w *Writer) Write(_ context.Context, _ string, value []byte) error {
	_, err := w.buf.Write(value)
	if err == nil {
		err = w.buf.WriteByte('\n')
	}
	return w.named(err)
}

// Flush writes what waits.
func (w *Writer) Flush(context.Context) error { return w.named(w.buf.Flush()) }

// Close closes the file; what was not flushed is not written.
func (w *Writer) Close() error { return w.named(w.file.Close()) }

func (w *Writer) named(err error) error {
	if err != nil {
		err = fmt.Errorf("%s: %w", w.file.Name(), err)
	}
	return err
}
