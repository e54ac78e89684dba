package processes

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// Tail keeps the last lines written to it. It is safe for concurrent use.
type Tail struct {
	// Limit is how many bytes are kept, at least.
	Limit int
	// Copy, unless nil, is written to as well.
	Copy io.Writer

	mu  sync.Mutex
	buf []byte
}

// Write implements io.Writer and never fails.
func (w *Tail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.Copy != nil {
		// Where the copy cannot be written there is nowhere to report that.
		_, _ = w.Copy.Write(p)
	}
	w.buf = append(w.buf, p...)
	if n := len(w.buf); n > 2*w.Limit {
		w.buf = append(w.buf[:0], w.buf[n-w.Limit:]...)
	}
	return len(p), nil
}

// String returns the last lines, of at most Limit bytes.
func (w *Tail) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.buf
	if n := len(b); n > w.Limit {
		b = b[n-w.Limit:]
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			b = b[i+1:]
		}
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(b), "?"))
}
