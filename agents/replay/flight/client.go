package flight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/apache/arrow/go/v15/arrow/flight"

	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/runtime/flightrpc"
)

// Kind is how documents name a server of this protocol.
var Kind = replay.ServedKind{Name: "flight", Dial: func(c replay.Served) (replay.Connection, error) {
	x, err := Dial(c)
	if err != nil {
		return nil, err
	}
	return x, nil
}}

// Client is a connection to a server. It is safe for concurrent use.
type Client struct {
	c      replay.Served
	conn   *flightrpc.Conn
	ctx    context.Context
	cancel context.CancelFunc
	// gone says that the server was waited for in vain: what follows tries once.
	gone atomic.Bool
}

// Dial makes a client. The server need not be there yet.
func Dial(c replay.Served) (*Client, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	x := &Client{c: c}
	var err error
	if x.conn, err = (flightrpc.Peer{URL: c.URL, CA: c.CA, Cert: c.Cert, Key: c.Key, TokenFile: c.TokenFile, AnyBuild: c.AnyBuild, Timeout: c.Timeout}).Dial(); err != nil {
		return nil, err
	}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	return x, nil
}

// Close ends the connection, and what goes on over it.
func (c *Client) Close() error {
	c.cancel()
	return c.conn.Close()
}

// explain says of which server and table an error is.
func (c *Client) explain(table string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("replay %s: table %s: %w", c.c.URL, table, err)
}

// retry calls f until it succeeds, or fails otherwise than by the server's not being there, or TLS
// refuses one of the two, or the timeout is over.
func (c *Client) retry(f func() error) error {
	until := time.Now()
	if !c.gone.Load() {
		until = until.Add(c.c.Timeout)
	}
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := f()
		if err == nil || !flightrpc.Again(err) {
			c.gone.Store(false)
			return err
		}
		if refused := c.conn.Refused(); refused != nil {
			return refused
		}
		if time.Now().After(until) {
			c.gone.Store(true)
			return fmt.Errorf("no server for %v: %w", c.c.Timeout, c.conn.Hint(err))
		}
		select {
		case <-time.After(pause):
		case <-c.ctx.Done():
			return err
		}
	}
}

// Act calls an action with a body, as JSON, and returns the answers.
func (c *Client) Act(action string, body any) (answers [][]byte, err error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	err = c.retry(func() error {
		answers = nil
		stream, err := c.conn.DoAction(c.ctx, &flight.Action{Type: action, Body: b})
		if err != nil {
			return err
		}
		for {
			r, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			answers = append(answers, r.Body)
		}
	})
	return answers, err
}

// Stats describes a table.
func (c *Client) Stats(table string) (s TableStats, err error) {
	list, err := c.Act(ActionTables, map[string]string{"table": table})
	if err == nil && len(list) == 1 {
		err = json.Unmarshal(list[0], &s)
	}
	return s, c.explain(table, err)
}
