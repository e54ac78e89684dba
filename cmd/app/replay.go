package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/replay/flight"
	"github.com/onnxrl/onnxrl/configs"
)

func (a *app) replayCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "replay", Short: "Keep transitions for learners and actors elsewhere", Args: cobra.NoArgs}
	cmd.AddCommand(a.replayServeCommand())
	return cmd
}

// replayServer is the file that onnxrl replay serve reads.
type replayServer struct {
	// Listen is HOST:PORT; port 0 is a free one.
	Listen string `yaml:"listen"`
	// Dir is where journals, checkpoints and spilled transitions are; without one nothing outlives
	// the server.
	Dir string   `yaml:"dir"`
	TLS serveTLS `yaml:"tls"`
	// TokenFile has a bearer token on each line; calls need one of them.
	TokenFile string                        `yaml:"token_file"`
	Tables    map[string]flight.TableConfig `yaml:"tables"`
}

func (a *app) replayServeCommand() *cobra.Command {
	var listen, dir string
	cmd := &cobra.Command{
		Use:   "serve [CONFIG]",
		Short: "Serve tables of transitions over Arrow Flight (gRPC)",
		Long: `Serves tables that learners and actors record into and sample from, over Arrow Flight. CONFIG describes them; without one there is the table transitions, of a million transitions that are drawn uniformly.
With a directory a batch is acknowledged when it is on the disk: a server that was killed goes on with all that it has acknowledged. A run uses a table by "replay: {kind: flight, url: grpc://HOST:PORT, table: transitions}" in its document.
SIGTERM and SIGINT save the tables and end the server.`,
		Example: `  onnxrl replay serve --listen 127.0.0.1:7070 --dir replay
  onnxrl replay serve replay.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c := replayServer{Listen: "127.0.0.1:7070"}
			if len(args) == 1 {
				if _, err := configs.Load(args[0], nil, &c); err != nil {
					return err
				}
			}
			if cmd.Flags().Changed("listen") {
				c.Listen = listen
			}
			if cmd.Flags().Changed("dir") {
				c.Dir = dir
			}
			if len(c.Tables) == 0 {
				var t flight.TableConfig
				t.SetDefaults()
				c.Tables = map[string]flight.TableConfig{"transitions": t}
			}
			if err := a.replayServe(cmd.Context(), &c); err != nil {
				return fmt.Errorf("replay serve: %w", err)
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:7070", "address, HOST:PORT; port 0 is a free one")
	f.StringVar(&dir, "dir", "", "directory of journals and checkpoints; without one nothing outlives the server")
	return cmd
}

// replayStarted is what replay serve prints when it answers; the keys are stable.
type replayStarted struct {
	Listen string              `json:"listen"`
	PID    int                 `json:"pid"`
	TLS    bool                `json:"tls"`
	Token  bool                `json:"token"`
	Tables []flight.TableStats `json:"tables"`
}

// Print writes the report.
func (s *replayStarted) Print(w io.Writer) error {
	scheme := "grpc"
	if s.TLS {
		scheme = "grpc+tls"
	}
	if _, err := fmt.Fprintf(w, "replay served at %s://%s\n", scheme, s.Listen); err != nil {
		return err
	}
	for _, t := range s.Tables {
		durable := "in memory"
		if t.Durable {
			durable = fmt.Sprintf("durable, %d records restored", t.Restored)
		}
		if _, err := fmt.Fprintf(w, "  %s: %s, %d of %d, %s\n", t.Table, t.Selector, t.Size, t.Capacity, durable); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) replayServe(ctx context.Context, c *replayServer) (err error) {
	secure, tokens, err := c.secrets()
	if err != nil {
		return err
	}
	s, err := flight.Open(c.Dir, c.Tables, a.log)
	if err != nil {
		return err
	}
	defer a.stop.hold(saveGrace)()
	defer func() { err = errors.Join(err, s.Close()) }()
	l, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return err
	}
	g := s.GRPC(secure, tokens)
	failed := make(chan error, 1)
	go func() { failed <- g.Serve(l) }()
	if err := a.printReplay(&replayStarted{Listen: l.Addr().String(), PID: os.Getpid(), TLS: secure != nil, Token: len(tokens) > 0, Tables: s.Tables()}); err != nil {
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

// printReplay writes the report; as JSON on one line, as serve does, because more may follow.
func (a *app) printReplay(s *replayStarted) error {
	if a.json {
		return json.NewEncoder(a.out).Encode(s)
	}
	return s.Print(a.out)
}

// secrets reads certificate and tokens.
func (c *replayServer) secrets() (secure *tls.Config, tokens []string, err error) {
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
