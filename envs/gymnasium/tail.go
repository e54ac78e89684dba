package gymnasium

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// tail keeps the end of what is written to it. It is safe for concurrent use.
type tail struct {
	mu  sync.Mutex
	buf []byte
	// copy, unless nil, is written to as well.
	copy io.Writer
}

// tailBytes is how much is kept, at least.
const tailBytes = 4096

// Write implements io.Writer and never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.copy != nil {
		// A program without a place for its errors has nowhere to say so.
		_, _ = t.copy.Write(p)
	}
	t.buf = append(t.buf, p...)
	if n := len(t.buf); n > 2*tailBytes {
		t.buf = append(t.buf[:0], t.buf[n-tailBytes:]...)
	}
	return len(p), nil
}

// String returns the last lines.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buf
	if n := len(b); n > tailBytes {
		b = b[n-tailBytes:]
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			b = b[i+1:]
		}
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(b), "?"))
}
