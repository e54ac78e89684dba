package web

// Connections end through which nothing goes any more. A server that stops within an answer is
// otherwise waited for as long as the connection stays open, which may be for ever. A limit on the
// whole answer would be one on its size.

import (
	"context"
	"net"
	"net/http"
	"time"
)

// StallLimit is how long a connection may bring nothing, and a server may take to answer.
const StallLimit = time.Minute

// DialFunc makes a connection, as [net.Dialer.DialContext] does.
type DialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// StallDialer returns connections that fail with [os.ErrDeadlineExceeded] when nothing went through
// them for a time. Uploads take as long as they need: what is sent counts, too.
func StallDialer(dial DialFunc, limit time.Duration) DialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &stallConn{c, limit}, nil
	}
}

// StallTransport is that of package http with connections of [StallDialer].
func StallTransport(limit time.Duration) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = StallDialer(t.DialContext, limit)
	return t
}

// stallConn moves the deadline with every byte. One that waits between two requests is closed by
// it, too.
type stallConn struct {
	net.Conn
	limit time.Duration
}

func (c *stallConn) Read(p []byte) (int, error) {
	if err := c.extend(); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *stallConn) Write(p []byte) (int, error) {
	if err := c.extend(); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

func (c *stallConn) extend() error { return c.SetDeadline(time.Now().Add(c.limit)) }
