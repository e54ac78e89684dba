package app

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"

	arrowflight "github.com/apache/arrow/go/v15/arrow/flight"
	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/actors/flight"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/configs"
)

func (a *app) actorCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "actor", Short: "Act for learners on other machines", Args: cobra.NoArgs}
	cmd.AddCommand(a.actorServeCommand())
	return cmd
}

// actorServer is the file that onnxrl actor serve reads.
type actorServer struct {
	flightListener `yaml:",inline"`
	// Slots is how many actors there are at once, each in a process of its own; 0 is one for each
	// processor.
	Slots int `yaml:"slots"`
}

func (a *app) actorServeCommand() *cobra.Command {
	var listen string
	var slots int
	cmd := &cobra.Command{
		Use:   "serve [CONFIG]",
		Short: "Serve actors over Arrow Flight (gRPC)",
		Long: `Serves actors for runs of other machines, over Arrow Flight: each is a process that opens the document of its run, steps its part of the environments and hands over what it has played. A run has its actors here by "train: {actors: {count: 4, urls: ["grpc://HOST:PORT"]}}" in its document. Both programs are to be of one version, and where a document names files, they are needed here under the same paths.
CONFIG may have the address, the slots, a certificate (tls: {cert, key, client_ca}) and a file of bearer tokens (token_file). Without them whoever reaches the port can have anything acted that a document can say: serve to a network that is trusted, or with both.
SIGTERM and SIGINT end the actors and the server; runs begin them again elsewhere, or wait for a server.`,
		Example: `  onnxrl actor serve --listen 0.0.0.0:7071 --slots 8
  onnxrl actor serve actors.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c := actorServer{flightListener: flightListener{Listen: "127.0.0.1:7071"}}
			if len(args) == 1 {
				if _, err := configs.Load(args[0], nil, &c); err != nil {
					return err
				}
			}
			if cmd.Flags().Changed("listen") {
				c.Listen = listen
			}
			if cmd.Flags().Changed("slots") {
				c.Slots = slots
			}
			return saying("actor serve", a.actorServe(cmd.Context(), &c))
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:7071", "address, HOST:PORT; port 0 is a free one")
	f.IntVar(&slots, "slots", 0, "actors at once (0: one for each processor)")
	a.addNice(cmd)
	return cmd
}

// actorStarted is what actor serve prints when it answers; the keys are stable.
type actorStarted struct {
	listening
	Slots  int    `json:"slots"`
	Engine string `json:"engine"`
}

// Print writes the report.
func (s *actorStarted) Print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "actors served at %s: %s, engine %s\n", s.url(), plural(s.Slots, "slot"), s.Engine)
	return err
}

func (a *app) actorServe(ctx context.Context, c *actorServer) error {
	if c.Slots < 0 {
		return fmt.Errorf("slots: %d, expected at least 0", c.Slots)
	}
	if c.Slots == 0 {
		c.Slots = runtime.GOMAXPROCS(0)
	}
	e, err := a.compiler(ctx)
	if err != nil {
		return err
	}
	// The processes of actors are given a few seconds to end.
	defer a.stop.hold(saveGrace)()
	s, err := flight.NewServer(flight.Options{Hello: run.ActorHello(e), Slots: c.Slots, Launch: a.launchActor(e), Log: a.log})
	if err != nil {
		return err
	}
	defer s.Wait()
	return c.serve(ctx, func() (arrowflight.FlightServer, error) { return s, nil }, func(l listening) error {
		if host, _, err := net.SplitHostPort(l.Listen); err == nil && !net.ParseIP(host).IsLoopback() && !l.Token && c.TLS.ClientCA == "" {
			a.say("WARNING: whoever reaches %s can have anything acted that a document can say, programs among it; token_file and tls in a file keep others out", l.Listen)
		}
		return a.printListening(&actorStarted{l, c.Slots, e.Name()})
	})
}
