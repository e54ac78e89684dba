package bars

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// poll is how often a file that ended is looked at again.
const poll = 100 * time.Millisecond

// errRestarted says that a file begins again: it was cut off, or another one has taken its name.
var errRestarted = errors.New("the file begins again")

// lines gives the lines of a text that may grow. A line is what ends in a line feed: what follows
// the last one is not given until the rest of it is there.
type lines struct {
	// more reads what follows into p. It waits where the text may grow, and returns io.EOF where it
	// cannot, or errRestarted.
	more  func(ctx context.Context, p []byte) (int, error)
	close func() error
	buf   []byte
	chunk []byte
	n     int // lines given
}

func newLines(more func(context.Context, []byte) (int, error), close func() error) *lines {
	return &lines{more: more, close: close, chunk: make([]byte, 1<<16)}
}

// next returns the next line without its end, and its number. After io.EOF or errRestarted, rest
// has what was left of an unfinished line.
func (l *lines) next(ctx context.Context) (line []byte, n int, err error) {
	for {
		if i := bytes.IndexByte(l.buf, '\n'); i >= 0 {
			line, l.buf = l.buf[:i], l.buf[i+1:]
			l.n++
			return bytes.TrimSuffix(line, []byte("\r")), l.n, nil
		}
		k, err := l.more(ctx, l.chunk)
		if k > 0 {
			l.buf = append(l.buf[:len(l.buf):len(l.buf)], l.chunk[:k]...)
		}
		if err != nil {
			return nil, l.n + 1, err
		}
	}
}

// restart forgets an unfinished line and returns it.
func (l *lines) restart() (rest []byte) {
	rest, l.buf, l.n = l.buf, nil, 0
	return rest
}

// readerLines gives the lines of a stream up to its end.
func readerLines(in io.Reader) *lines {
	type piece struct {
		data []byte
		err  error
	}
	// A read cannot be interrupted; its goroutine ends with the stream or the program.
	pieces, done := make(chan piece), make(chan struct{})
	go func() {
		for {
			p := make([]byte, 1<<15)
			n, err := in.Read(p)
			select {
			case pieces <- piece{p[:n], err}:
			case <-done:
				return
			}
			if err != nil {
				return
			}
		}
	}()
	more := func(ctx context.Context, p []byte) (int, error) {
		select {
		case got := <-pieces:
			return copy(p, got.data), got.err
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return newLines(more, func() error { close(done); return nil })
}

// fileLines gives the lines of a file and waits for those that are appended, until its context
// ends. A file that is cut off is read again from its beginning, and one that takes its name is
// read after it.
func fileLines(path string) (*lines, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	var at int64
	more := func(ctx context.Context, p []byte) (int, error) {
		for {
			n, err := f.Read(p)
			at += int64(n)
			if n > 0 {
				return n, nil
			}
			if err != nil && !errors.Is(err, io.EOF) {
				return 0, err
			}
			now, err := f.Stat()
			if err != nil {
				return 0, err
			}
			if now.Size() < at {
				at = 0
				if _, err := f.Seek(0, io.SeekStart); err != nil {
					return 0, err
				}
				return 0, errRestarted
			}
			if named, err := os.Stat(path); err == nil && !os.SameFile(now, named) && now.Size() == at {
				next, err := os.Open(path)
				if err == nil {
					err = f.Close()
					f, at = next, 0
				}
				if err != nil {
					return 0, fmt.Errorf("follow the new file: %w", err)
				}
				return 0, errRestarted
			}
			select {
			case <-time.After(poll):
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
	}
	return newLines(more, func() error { return f.Close() }), nil
}
