package servebench

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// patience is how long a request may take before it counts as failed.
const patience = 30 * time.Second

// httpCaller sends the same bytes over one kept connection. It parses no more of an answer than
// where it ends, so that on a small machine the time goes to the server and not to the client.
type httpCaller struct {
	conn    net.Conn
	in      *bufio.Reader
	request []byte
	body    []byte
	// check, if set, judges the body of an answer with status 200.
	check func(body []byte) error
}

// httpRequest is a complete request. header holds further lines, each ended by "\r\n".
func httpRequest(base *url.URL, path, header string, body []byte) []byte {
	var b bytes.Buffer
	uri := "/" + strings.TrimPrefix(base.JoinPath(path).RequestURI(), "/")
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n%s\r\n", uri, base.Host, len(body), header)
	b.Write(body)
	return b.Bytes()
}

func dialHTTP(base *url.URL, request []byte, check func([]byte) error) dialer {
	return func(ctx context.Context) (caller, error) {
		conn, err := connect(ctx, base)
		if err != nil {
			return nil, err
		}
		return &httpCaller{conn: conn, in: newReader(conn), request: request, check: check}, nil
	}
}

func connect(ctx context.Context, base *url.URL) (net.Conn, error) {
	host := base.Host
	switch {
	case base.Scheme == "https" && base.Port() == "":
		host = net.JoinHostPort(base.Hostname(), "443")
	case base.Port() == "":
		host = net.JoinHostPort(base.Hostname(), "80")
	}
	dialer := &net.Dialer{Timeout: patience}
	if base.Scheme == "https" {
		return (&tls.Dialer{NetDialer: dialer}).DialContext(ctx, "tcp", host)
	}
	return dialer.DialContext(ctx, "tcp", host)
}

func (c *httpCaller) call() error {
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := c.conn.Write(c.request); err != nil {
		return err
	}
	status, err := c.read()
	if err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if status != http.StatusOK {
		return fmt.Errorf("status %d: %s", status, bytes.TrimSpace(c.body[:min(len(c.body), 300)]))
	}
	if c.check != nil {
		return c.check(c.body)
	}
	return nil
}

var (
	contentLength    = []byte("content-length:")
	transferEncoding = []byte("transfer-encoding:")
	errAnswer        = errors.New("the answer is not HTTP/1.1")
)

// read leaves the body in c.body.
func (c *httpCaller) read() (status int, err error) {
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < 12 || string(line[:7]) != "HTTP/1." {
		return 0, errAnswer
	}
	for _, d := range line[9:12] {
		if d < '0' || d > '9' {
			return 0, errAnswer
		}
		status = 10*status + int(d-'0')
	}
	length, chunked := 0, false
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			break
		}
		switch {
		case hasFold(line, contentLength):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(contentLength):]))); err != nil || length < 0 || length > 1<<30 {
				return 0, errAnswer
			}
		case hasFold(line, transferEncoding):
			chunked = true
		}
	}
	if chunked {
		return status, c.readChunks()
	}
	if cap(c.body) < length {
		c.body = make([]byte, length)
	}
	c.body = c.body[:length]
	_, err = io.ReadFull(c.in, c.body)
	return status, err
}

func (c *httpCaller) readChunks() error {
	c.body = c.body[:0]
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		size, _, _ := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(";"))
		n, err := strconv.ParseInt(string(size), 16, 32)
		if err != nil || n < 0 {
			return errAnswer
		}
		at := len(c.body)
		c.body = append(c.body, make([]byte, n+2)...)
		if _, err := io.ReadFull(c.in, c.body[at:]); err != nil {
			return err
		}
		c.body = c.body[:at+int(n)]
		if n == 0 {
			return nil
		}
	}
}

func hasFold(line, prefix []byte) bool {
	return len(line) >= len(prefix) && bytes.EqualFold(line[:len(prefix)], prefix)
}

func (c *httpCaller) close() error { return c.conn.Close() }

func newReader(conn net.Conn) *bufio.Reader { return bufio.NewReaderSize(conn, 1<<14) }
