package study

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// Log is a file of JSON lines, a record each, to which records are appended and in which none is
// changed. One goroutine uses it at a time; others may read the file meanwhile.
type Log[R any] struct {
	path    string
	records []R
	// ends are where the records' lines end, in bytes; whole says that the last one has its end of a
	// line.
	ends  []int64
	whole bool
}

// OpenLog reads a log; one that does not exist has no records. A last line that is not whole was
// being written, and is left out. Anything else that [decodeLine] refuses is an error that names
// file and line.
func OpenLog[R any](path string) (*Log[R], error) {
	l := &Log[R]{path: path, whole: true}
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	end := int64(0)
	for line := range bytes.Lines(text) {
		end += int64(len(line))
		var r R
		l.whole = bytes.HasSuffix(line, []byte("\n"))
		err := decodeLine(line, &r)
		if !l.whole && errors.Is(err, io.ErrUnexpectedEOF) {
			l.whole = true
			break
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, len(l.records)+1, err)
		}
		l.records, l.ends = append(l.records, r), append(l.ends, end)
	}
	return l, nil
}

// decodeLine reads a line. A key that v does not have, a line that is no JSON or empty, and anything
// behind its element are errors: where the end of a line is damaged, two lines look like one.
func decodeLine(line []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(v); errors.Is(err, io.EOF) {
		return errors.New("the line is empty")
	} else if err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("something follows the element, at byte %d of the line", d.InputOffset())
	}
	return nil
}

// Records are those of the log, in their order, which the caller does not change.
func (l *Log[R]) Records() []R { return l.records }

// Keep forgets all records but the first n. They leave the file with the next [Log.Append].
func (l *Log[R]) Keep(n int) {
	if n < len(l.records) {
		l.records, l.ends, l.whole = l.records[:n:n], l.ends[:n:n], true
	}
}

// Append writes records behind the others and waits until the disk has them. Where it fails the log
// has none of them.
func (l *Log[R]) Append(list ...R) error {
	var text bytes.Buffer
	end := int64(0)
	if n := len(l.ends); n > 0 {
		end = l.ends[n-1]
	}
	if !l.whole {
		text.WriteByte('\n')
	}
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	var ends []int64
	for _, r := range list {
		if err := enc.Encode(r); err != nil {
			return fmt.Errorf("%s: %w", l.path, err)
		}
		ends = append(ends, end+int64(text.Len()))
	}
	// The bytes after end belong to a torn line, or to records that were dropped.
	if err := atomicfile.OS.Append(l.path, end, text.Bytes()); err != nil {
		return err
	}
	l.records, l.ends, l.whole = append(l.records, list...), append(l.ends, ends...), true
	return nil
}
