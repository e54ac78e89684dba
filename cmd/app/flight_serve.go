package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/apache/arrow/go/v15/arrow/flight"

	"github.com/onnxrl/onnxrl/runtime/flightrpc"
)

// flightListener is what the files of servers over Arrow Flight have in common.
type flightListener struct {
	// Listen is HOST:PORT; port 0 is a free one.
	Listen string   `yaml:"listen"`
	TLS    serveTLS `yaml:"tls"`
	// TokenFile has a bearer token on each line; calls need one of them.
	TokenFile string `yaml:"token_file"`
}

// listening is how such a server can be reached; the JSON keys are stable.
type listening struct {
	Listen string `json:"listen"`
	PID    int    `json:"pid"`
	TLS    bool   `json:"tls"`
	Token  bool   `json:"token"`
}

// url is the address as a document has it.
func (l *listening) url() string {
	if l.TLS {
		return "grpc+tls://" + l.Listen
	}
	return "grpc://" + l.Listen
}

// secrets reads certificate and tokens.
func (c *flightListener) secrets() (secure *tls.Config, tokens []string, err error) {
	if c.TokenFile != "" {
		text, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return nil, nil, fmt.Errorf("token_file: %w", err)
		}
		if tokens = strings.Fields(string(text)); len(tokens) == 0 {
			return nil, nil, fmt.Errorf("token_file: %s is empty, expected a token on each line", c.TokenFile)
		}
	}
	if (c.TLS.Cert == "") != (c.TLS.Key == "") || c.TLS.ClientCA != "" && c.TLS.Cert == "" {
		return nil, nil, errors.New("tls: expected cert and key together, and client_ca only beside them")
	}
	if c.TLS.Cert == "" {
		return nil, tokens, nil
	}
	pair, err := tls.LoadX509KeyPair(c.TLS.Cert, c.TLS.Key)
	if err != nil {
		return nil, nil, fmt.Errorf("tls: cert %s with key %s: %w", c.TLS.Cert, c.TLS.Key, err)
	}
	secure = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if c.TLS.ClientCA != "" {
		text, err := os.ReadFile(c.TLS.ClientCA)
		if err != nil {
			return nil, nil, fmt.Errorf("tls.client_ca: %w", err)
		}
		secure.ClientAuth, secure.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		if !secure.ClientCAs.AppendCertsFromPEM(text) {
			return nil, nil, fmt.Errorf("tls.client_ca: %s has no certificate in PEM", c.TLS.ClientCA)
		}
	}
	return secure, tokens, nil
}

// serve has s answer until ctx ends. open is called before the port is taken, when certificate and
// tokens are known to be good; started when calls are answered.
func (c *flightListener) serve(ctx context.Context, open func() (flight.FlightServer, error), started func(listening) error) error {
	secure, tokens, err := c.secrets()
	if err != nil {
		return err
	}
	s, err := open()
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	g := flightrpc.NewServer(s, secure, tokens)
	failed := make(chan error, 1)
	go func() { failed <- g.Serve(l) }()
	if err := started(listening{Listen: l.Addr().String(), PID: os.Getpid(), TLS: secure != nil, Token: len(tokens) > 0}); err != nil {
		g.Stop()
		return err
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ended := make(chan struct{})
	go func() { defer close(ended); g.GracefulStop() }()
	select {
	case <-ended:
	case <-time.After(time.Second):
		// Streams of learners do not end by themselves.
		g.Stop()
	}
	return nil
}
