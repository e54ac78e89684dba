package flight

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/apache/arrow/go/v15/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/onnxrl/onnxrl/configs"
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
	_, _, err := c.address()
	p.Check(err == nil, "url", "%v", err)
	p.Check(c.Table != "", "table", "required: the name of a table of the server")
	p.AtLeast("prefetch", c.Prefetch, 0)
	p.AtLeast("rounds", c.Rounds, 1)
	p.Check(c.Timeout > 0, "timeout", "is %v, expected more than 0", c.Timeout)
	p.Check((c.Cert == "") == (c.Key == ""), "cert", "needs key, and key cert")
	return p.Err()
}

func (c *Config) address() (host string, secure bool, err error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		u = &url.URL{}
	}
	secure = u.Scheme == "grpc+tls"
	if !secure && u.Scheme != "grpc" && u.Scheme != "grpc+tcp" || u.Port() == "" || u.Path != "" || u.User != nil {
		return "", false, fmt.Errorf("is %q, expected grpc://HOST:PORT or grpc+tls://HOST:PORT", c.URL)
	}
	return u.Host, secure, nil
}

// bearer is a token in the metadata of calls.
type bearer struct {
	token  string
	secure bool
}

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.token}, nil
}

func (b bearer) RequireTransportSecurity() bool { return b.secure }

// Client is a connection to a server. It is safe for concurrent use.
type Client struct {
	c      Config
	conn   *grpc.ClientConn
	flight flight.Client
	ctx    context.Context
	cancel context.CancelFunc
	// refused is why the last handshake has failed for good; nil where it has not.
	refused atomic.Pointer[error]
	// gone says that the server was waited for in vain: what follows tries once.
	gone atomic.Bool
}

// alive is after how long without a message either side asks whether the other is still there.
const alive = 10 * time.Second

// maxMessage is the largest message of either side, in bytes.
const maxMessage = 256 << 20

// Dial makes a client. The server need not be there yet.
func Dial(c Config) (*Client, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	host, secure, err := c.address()
	if err != nil {
		return nil, err
	}
	x := &Client{c: c}
	creds := insecure.NewCredentials()
	if secure {
		t := &tls.Config{MinVersion: tls.VersionTLS12}
		if c.CA != "" {
			text, err := os.ReadFile(c.CA)
			if err != nil {
				return nil, fmt.Errorf("ca: %w", err)
			}
			if t.RootCAs = x509.NewCertPool(); !t.RootCAs.AppendCertsFromPEM(text) {
				return nil, fmt.Errorf("ca: %s has no certificate in PEM", c.CA)
			}
		}
		if c.Cert != "" {
			pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
			if err != nil {
				return nil, fmt.Errorf("cert %s with key %s: %w", c.Cert, c.Key, err)
			}
			t.Certificates = []tls.Certificate{pair}
		}
		creds = &judged{credentials.NewTLS(t), &x.refused}
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(creds), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithInitialWindowSize(4 << 20), grpc.WithInitialConnWindowSize(16 << 20),
		// gRPC's own pauses begin at a second and grow to two minutes, which a server that is
		// started again, or killed again, is not worth.
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}, MinConnectTimeout: 5 * time.Second}),
		// A server that was paused, or lies behind a network that is cut, is told from one that
		// lets wait.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: alive, Timeout: max(c.Timeout, time.Second)}),
	}
	if c.TokenFile != "" {
		text, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("token_file: %w", err)
		}
		options = append(options, grpc.WithPerRPCCredentials(bearer{strings.TrimSpace(string(text)), secure}))
	}
	conn, err := grpc.NewClient(host, options...)
	if err != nil {
		return nil, err
	}
	x.conn, x.flight = conn, flight.NewClientFromConn(conn, nil)
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

// again reports whether an error is one of a connection or of a server that may come back.
func again(err error) bool {
	return errors.Is(err, io.EOF) || status.Code(err) == codes.Unavailable
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
		if err == nil || !again(err) {
			c.gone.Store(false)
			return err
		}
		if refused := c.refused.Load(); refused != nil {
			return *refused
		}
		if time.Now().After(until) {
			c.gone.Store(true)
			return fmt.Errorf("no server for %v: %w", c.c.Timeout, err)
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
		stream, err := c.flight.DoAction(c.ctx, &flight.Action{Type: action, Body: b})
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
