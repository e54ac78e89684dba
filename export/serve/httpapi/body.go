package httpapi

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"os"
	"unsafe"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/oip"
)

// call is what one request needs and the next may use again.
type call struct {
	body []byte // from a 64-byte boundary
	out  []byte
	req  oip.Request
	resp serve.Response
	// held is what the body counts for in handler.buffered.
	held int64
}

const (
	// firstBuffer is what a body gets before any of it has arrived; pooledBuffer is the largest
	// that is kept for another request.
	firstBuffer  = 32 << 10
	pooledBuffer = 1 << 20
)

// release gives a call back to the pool.
func (h *handler) release(c *call) {
	h.forget(c)
	if cap(c.body) > pooledBuffer {
		c.body = nil
	}
	if cap(c.out) > pooledBuffer {
		c.out = nil
	}
	h.calls.Put(c)
}

// forget stops counting the call's body.
func (h *handler) forget(c *call) {
	h.buffered.Add(-c.held)
	c.held = 0
}

// read reads and decompresses the body so that it begins offset bytes after a 64-byte boundary.
// What it returns belongs to the call.
func (h *handler) read(c *call, r *http.Request, offset int) ([]byte, error) {
	if r.ContentLength > h.MaxBody {
		return nil, h.tooLarge()
	}
	var src io.Reader = r.Body
	switch encoding := r.Header.Get("Content-Encoding"); encoding {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(src)
		if err != nil {
			return nil, readError(err)
		}
		src = z
	case "deflate": // zlib's framing by the standard, none at all from some clients
		b := bufio.NewReader(src)
		head, err := b.Peek(2)
		if err != nil {
			return nil, readError(err)
		}
		src = flate.NewReader(b)
		if head[0]&15 == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
			if src, err = zlib.NewReader(b); err != nil {
				return nil, readError(err)
			}
		}
	default:
		return nil, statusf(http.StatusUnsupportedMediaType, "content encoding %q, expected gzip or deflate", encoding)
	}
	want := firstBuffer
	if n := r.ContentLength; n >= 0 && src == r.Body {
		want = int(min(n+1, 4*firstBuffer)) // one more, to see the end
	}
	if err := h.grow(c, 0, offset+want); err != nil {
		return nil, err
	}
	n := offset
	for {
		if n == len(c.body) {
			if err := h.grow(c, n, min(2*len(c.body), offset+int(h.MaxBody)+1)); err != nil {
				return nil, err
			}
		}
		k, err := src.Read(c.body[n:])
		if n += k; int64(n-offset) > h.MaxBody {
			return nil, h.tooLarge()
		}
		if err == io.EOF {
			return c.body[offset:n], nil
		}
		if err != nil {
			return nil, readError(err)
		}
	}
}

// grow makes the body at least size bytes long, keeping the first n.
func (h *handler) grow(c *call, n, size int) error {
	if more := int64(size) - c.held; more > 0 {
		c.held += more
		if h.buffered.Add(more) > h.MaxBuffered {
			return statusf(http.StatusTooManyRequests, "the bodies of all requests take more than %d bytes; try again later", h.MaxBuffered)
		}
	}
	if cap(c.body) < size {
		b := make([]byte, size+63)
		skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) & 63)
		b = b[skip : skip+size]
		copy(b, c.body[:n])
		c.body = b
	}
	c.body = c.body[:cap(c.body)]
	return nil
}

func (h *handler) tooLarge() error {
	return statusf(http.StatusRequestEntityTooLarge, "the body has more than %d bytes", h.MaxBody)
}

func readError(err error) error {
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return statusf(http.StatusRequestTimeout, "read body: it did not arrive in time")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return statusf(http.StatusBadRequest, "read body: it ends early")
	}
	return statusf(http.StatusBadRequest, "read body: %v", err)
}

// compressed is the least answer worth compressing.
const compressed = 1024

// compress returns the answer in an encoding that the client takes, and which that is; "" where it
// stays as it is.
func compress(r *http.Request, body []byte) ([]byte, string) {
	accept := r.Header.Get("Accept-Encoding")
	if len(body) < compressed || accept == "" {
		return body, ""
	}
	var out bytes.Buffer
	var z io.WriteCloser
	encoding := ""
	switch {
	case accepts(accept, "gzip"):
		z, _ = gzip.NewWriterLevel(&out, gzip.BestSpeed)
		encoding = "gzip"
	case accepts(accept, "deflate"):
		z, _ = zlib.NewWriterLevel(&out, zlib.BestSpeed)
		encoding = "deflate"
	default:
		return body, ""
	}
	if _, err := z.Write(body); err != nil { // a buffer takes everything
		panic(err)
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return out.Bytes(), encoding
}
