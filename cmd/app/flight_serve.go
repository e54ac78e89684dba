package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/apache/arrow/go/v15/arrow/flight"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/flightrpc"
	"github.com/onnxrl/onnxrl/runtime/tokenfile"
)

// flightListener is what the files of servers over Arrow Flight have in common.
type flightListener struct {
	// Listen is HOST:PORT; port 0 is a free one.
	Listen string   `yaml:"listen"`
	TLS    serveTLS `yaml:"tls"`
	// TokenFile has a bearer token on each line; calls need one of them.
	TokenFile string `yaml:"token_file"`
	// Health is the address of a port without TLS and tokens for the probes of a cluster: /livez,
	// and /readyz while calls are answered. Without a host it is one of every network.
	Health string `yaml:"health"`
}

// Validate implements the check of package configs.
func (c *flightListener) Validate() error {
	var p configs.Problems
	checkAddress(&p, "health", c.Health)
	return p.Err()
}

// listening is how such a server can be reached; the JSON keys are stable.
type listening struct {
	Listen string `json:"listen"`
	PID    int    `json:"pid"`
	TLS    bool   `json:"tls"`
	Token  bool   `json:"token"`
	// Health is where probes are answered.
	Health string `json:"health,omitempty"`
}

// url is the address as a document has it.
func (l *listening) url() string {
	if l.TLS {
		return "grpc+tls://" + l.Listen
	}
	return "grpc://" + l.Listen
}

// secrets are what the files hold.
type secrets struct {
	tokens []string
	tls    *tls.Config
}

func (c *flightListener) secrets() (s *secrets, err error) {
	s = &secrets{}
	if c.TokenFile != "" {
		if s.tokens, err = tokenfile.Read(c.TokenFile); err != nil {
			return nil, fmt.Errorf("token_file: %w", err)
		}
	}
	if c.TLS != (serveTLS{}) {
		s.tls, err = c.TLS.load()
	}
	return s, err
}

// public reports whether other machines reach the address.
func (c *flightListener) public() bool { return !loopback(c.Listen) }

// serve has s answer until ctx ends. open is called before the port is taken, when certificate and
// tokens are known to be good; started when calls are answered. An address that other machines reach
// is refused unless callers say who they are. SIGHUP reads tokens and certificates again.
func (c *flightListener) serve(ctx context.Context, a *app, open func() (flight.FlightServer, error), started func(listening) error) error {
	first, err := c.secrets()
	if err != nil {
		return err
	}
	switch {
	case c.public() && c.TokenFile == "" && c.TLS.ClientCA == "":
		return fmt.Errorf("listen: %s is open to other machines, and whoever reaches it could use it: expected token_file or tls.client_ca in the configuration, or an address of this machine alone, such as 127.0.0.1:7070", c.Listen)
	case c.public() && first.tls == nil:
		a.say("warning: %s is served without TLS (tls.cert, tls.key): everyone on the way can read tokens and what is sent", c.Listen)
	}
	var ready atomic.Bool
	health, unprobe, err := a.answerHealth(c.Health, &ready)
	if err != nil {
		return err
	}
	defer unprobe()
	var now atomic.Pointer[secrets]
	now.Store(first)
	s, err := open()
	if err != nil {
		return err
	}
	l, err := net.Listen(family(c.Listen), c.Listen)
	if err != nil {
		return err
	}
	secure := first.tls
	if secure != nil {
		secure = secure.Clone()
		secure.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return now.Load().tls, nil }
	}
	g := flightrpc.NewServer(s, secure, func() []string { return now.Load().tokens })
	defer a.onHangup(func() error {
		next, err := c.secrets()
		if err == nil {
			now.Store(next)
		}
		return err
	})()
	failed := make(chan error, 1)
	go func() { failed <- g.Serve(l) }()
	// The listener takes calls: who reads that the server has started may ask whether it is ready.
	ready.Store(true)
	if err := started(listening{Listen: l.Addr().String(), PID: os.Getpid(), TLS: secure != nil, Token: len(first.tokens) > 0, Health: health}); err != nil {
		g.Stop()
		return err
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	ready.Store(false)
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
