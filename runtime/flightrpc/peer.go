package flightrpc

import (
	"context"
	"errors"
	"fmt"
	"io"
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

	"github.com/onnxrl/onnxrl/runtime/buildinfo"
	"github.com/onnxrl/onnxrl/runtime/flightrpc/flighturl"
	"github.com/onnxrl/onnxrl/runtime/secretfile"
)

// Peer is a server as its clients know it.
type Peer struct {
	// URL is grpc://HOST:PORT, or grpc+tls://HOST:PORT.
	URL string
	// CA is a file with the certificate of the authority, in PEM; empty are the system's. Cert and
	// Key are the client's own, TokenFile has the bearer token.
	CA, Cert, Key, TokenFile string
	// Build is the program that the server has to be the same as; the zero value is this one. With
	// AnyBuild a server of any program answers.
	Build    buildinfo.Info
	AnyBuild bool
	// Timeout is how long a server that says nothing may take to answer that it is there.
	Timeout time.Duration
}

// callMetadata is what goes with each call.
type callMetadata struct {
	build, tokenFile string
	secure           bool
}

// GetRequestMetadata reads the token again, which may be another one by now.
func (m callMetadata) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	values := map[string]string{}
	if m.build != "" {
		values[buildKey] = m.build
	}
	if m.tokenFile != "" {
		token, err := secretfile.Token(m.tokenFile)
		if err != nil {
			return nil, status.Errorf(codes.Unauthenticated, "token_file: %v", err)
		}
		values["authorization"] = "Bearer " + token
	}
	return values, nil
}

func (m callMetadata) RequireTransportSecurity() bool { return m.secure }

// Conn is a connection to a server. It is safe for concurrent use.
type Conn struct {
	flight.Client
	conn    *grpc.ClientConn
	secure  bool
	refused atomic.Pointer[error]
	closed  atomic.Bool
}

// alive is after how long without a message either side asks whether the other is still there.
const alive = 10 * time.Second

// MaxMessage is the largest message of either side, in bytes.
const MaxMessage = 64 << 20

// Dial makes a connection. The server need not be there yet; files are read now.
func (p Peer) Dial() (*Conn, error) {
	host, secure, err := flighturl.Parse(p.URL)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	x := &Conn{secure: secure}
	creds := insecure.NewCredentials()
	if secure {
		t, err := secretfile.Client(p.CA, p.Cert, p.Key)
		if err != nil {
			return nil, err
		}
		creds = credentials.NewTLS(t)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(&judged{creds, &x.refused, &x.closed}), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
		grpc.WithInitialWindowSize(4 << 20), grpc.WithInitialConnWindowSize(16 << 20),
		// gRPC's own pauses begin at a second and grow to two minutes, which a server that is
		// started again, or killed again, is not worth.
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}, MinConnectTimeout: 5 * time.Second}),
		// Keep-alives distinguish a server that was paused, or lies behind a network that is
		// cut, from a slow one.
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: alive, Timeout: max(p.Timeout, time.Second)}),
	}
	with := callMetadata{tokenFile: p.TokenFile, secure: secure}
	if p.TokenFile != "" {
		if _, err := secretfile.Token(p.TokenFile); err != nil {
			return nil, fmt.Errorf("token_file: %w", err)
		}
	}
	if !p.AnyBuild {
		own := p.Build
		if own == (buildinfo.Info{}) {
			own = buildinfo.This()
		}
		with.build = own.Digest + " " + own.Version
	}
	options = append(options, grpc.WithPerRPCCredentials(with))
	if x.conn, err = grpc.NewClient(host, options...); err != nil {
		return nil, err
	}
	x.Client = flight.NewClientFromConn(x.conn, nil)
	return x, nil
}

// Refused is why the last attempt to connect will fail again; nil where it may not.
func (c *Conn) Refused() error {
	if err := c.refused.Load(); err != nil {
		return *err
	}
	return nil
}

// Hint adds to the error of a server that does not answer what may be the reason: one that speaks
// TLS ends connections without a word, as does a relay whose server is not there.
func (c *Conn) Hint(err error) error {
	if err != nil && !c.secure && c.closed.Load() {
		return fmt.Errorf("%w (it takes connections and ends them: a server with a certificate has grpc+tls:// in its url)", err)
	}
	return err
}

// Close ends the connection, and what goes on over it.
func (c *Conn) Close() error { return c.conn.Close() }

// Again reports whether an error is one of a connection or of a server that may come back.
func Again(err error) bool {
	return errors.Is(err, io.EOF) || status.Code(err) == codes.Unavailable
}
