package s3

import (
	"context"
	"net"
	"time"
)

// patience is how long a connection may bring nothing, and a server may take to answer.
var patience = time.Minute

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// stalling returns connections that fail when nothing went through them for a time. Uploads take
// as long as they need: what is sent counts, too.
func stalling(dial dialer, limit time.Duration) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &stallConn{c, limit}, nil
	}
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
