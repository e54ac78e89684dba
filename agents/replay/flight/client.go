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

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/flightrpc"
	"github.com/onnxrl/onnxrl/runtime/flightrpc/flighturl"
)

// Config is the section replay of a document: where transitions are kept instead of in the
// learner's own replay.
type Config struct {
	// Kind is flight.
	Kind string `yaml:"kind"`
	// URL is grpc://HOST:PORT, or grpc+tls://HOST:PORT.
	URL string `yaml:"url"`
	// Table is the name of one that the server has, and that can be sampled.
	Table string `yaml:"table"`
	// Writer is the name by which the server knows the run's batches; empty is one that is drawn.
	Writer string `yaml:"writer,omitempty"`
	// Policy is whose transitions they are to others.
	Policy int32 `yaml:"policy,omitempty"`
	// Prefetch is the number of samples that are asked for ahead. With 0 a sample may be of all
	// that the run has recorded, and runs that are alone repeat.
	Prefetch int `yaml:"prefetch"`
	// Rounds is the number of rounds that are sent together; a sample does not wait for it.
	Rounds int `yaml:"rounds"`
	// CA is a file with the certificate of the authority, in PEM; empty are the system's. Cert and
	// Key are the client's own, TokenFile has the bearer token.
	CA        string `yaml:"ca,omitempty"`
	Cert      string `yaml:"cert,omitempty"`
	Key       string `yaml:"key,omitempty"`
	TokenFile string `yaml:"token_file,omitempty"`
	// AnyBuild takes a server of another build of the program, which may draw other samples.
	AnyBuild bool `yaml:"any_build,omitempty"`
	// Timeout is how long a server that does not answer is waited for.
	Timeout time.Duration `yaml:"timeout"`
}

// SetDefaults implements configs.Defaulter.
func (c *Config) SetDefaults() {
	*c = Config{Kind: "flight", Table: "transitions", Rounds: 16, Timeout: time.Minute}
}

// Validate implements configs.Validator.
func (c Config) Validate() error {
	var p configs.Problems
	p.Check(c.Kind == "flight", "kind", "is %q, expected flight", c.Kind)
	p.Join("url", flighturl.Check(c.URL))
	p.Check(c.Table != "", "table", "required: the name of a table of the server")
	p.AtLeast("prefetch", c.Prefetch, 0)
	p.AtLeast("rounds", c.Rounds, 1)
	p.Check(c.Timeout > 0, "timeout", "is %v, expected more than 0", c.Timeout)
	p.Check((c.Cert == "") == (c.Key == ""), "cert", "needs key, and key cert")
	return p.Err()
}

// Client is a connection to a server. It is safe for concurrent use.
type Client struct {
	c      Config
	conn   *flightrpc.Conn
	ctx    context.Context
	cancel context.CancelFunc
	// gone says that the server was waited for in vain: what follows tries once.
	gone atomic.Bool
}

// Dial makes a client. The server need not be there yet.
func Dial(c Config) (*Client, error) {
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
