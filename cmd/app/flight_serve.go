package app

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow/flight"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/export/serve/guard"
	"github.com/onnxrl/onnxrl/export/serve/server"
	"github.com/onnxrl/onnxrl/runtime/flightrpc"
)

// flightListener is what the files of servers over Arrow Flight have in common.
type flightListener struct {
	// Listen is HOST:PORT; port 0 is a free one.
	Listen string     `yaml:"listen"`
	TLS    server.TLS `yaml:"tls"`
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

// files are the server's secrets.
func (c *flightListener) files() server.Files {
	return server.Files{TLS: c.TLS, Token: c.TokenFile}
}

// public reports whether other machines reach the address.
func (c *flightListener) public() bool { return !server.Loopback(c.Listen) }

// serve has what open returns answer until ctx ends. open is called when the address is taken and
// certificate and tokens are known to be good; started when calls are answered. An address that
// other machines reach is refused unless callers say who they are. SIGHUP reads tokens and
// certificates again.
func (c *flightListener) serve(ctx context.Context, a *app, open func() (flight.FlightServer, error), started func(listening) error) error {
	if c.public() && c.TokenFile == "" && c.TLS.ClientCA == "" {
		return fmt.Errorf("listen: %s is open to other machines, and whoever reaches it could use it: expected token_file or tls.client_ca in the configuration, or an address of this machine alone, such as 127.0.0.1:7070", c.Listen)
	}
	failed := make(chan error, 2)
	n, err := server.Listen(server.Options{GRPC: c.Listen, Health: c.Health, Files: c.files(), Log: a.log, Failed: func(err error) { failed <- err }})
	if err != nil {
		return err
	}
	// Streams of learners do not end by themselves: they are cut off.
	defer n.Close()
	if c.public() && c.TLS.Cert == "" {
		a.say("warning: %s is served without TLS (tls.cert, tls.key): everyone on the way can read tokens and what is sent", c.Listen)
	}
	var ready atomic.Bool
	n.AnswerHealth(server.Probes{Ready: ready.Load})
	s, err := open()
	if err != nil {
		return err
	}
	n.AnswerGRPC(flightrpc.NewServer(s, n.TLS(), func(authorization string) error { return n.Guard.Authorize(guard.Use, authorization) }))
	defer a.onHangup(n, c.files())()
	// The listener takes calls: who reads that the server has started may ask whether it is ready.
	ready.Store(true)
	if err := started(listening{Listen: n.GRPC(), PID: os.Getpid(), TLS: c.TLS.Cert != "", Token: c.TokenFile != "", Health: n.Health()}); err != nil {
		return err
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return nil
	}
}
