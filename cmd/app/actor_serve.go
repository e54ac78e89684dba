package app

import (
	"context"
	"fmt"
	"io"
	"runtime"

	arrowflight "github.com/apache/arrow/go/v15/arrow/flight"
	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/actors/flight"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/gymnasium"
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
	// Python is what documents may name of Python. Without the section they may name anything to a
	// server that only this machine reaches, and nothing to another one.
	Python *actorPython `yaml:"python"`
}

// actorPython is the section python of a server of actors.
type actorPython struct {
	// Interpreters are those that a document may name; one that names none gets the server's own.
	Interpreters []string `yaml:"interpreters"`
	// Modules are those that environments may be imported from, with the modules of packages.
	Modules []string `yaml:"modules"`
}

// permission is what the processes of actors may open; nil permits everything.
func (c *actorServer) permission() *gymnasium.Permission {
	if c.Python == nil && !c.public() {
		return nil
	}
	var p actorPython
	if c.Python != nil {
		p = *c.Python
	}
	return &gymnasium.Permission{Interpreters: p.Interpreters, Modules: p.Modules}
}

func (a *app) actorServeCommand() *cobra.Command {
	var listen string
	var slots int
	cmd := &cobra.Command{
		Use:   "serve [CONFIG]",
		Short: "Serve actors over Arrow Flight (gRPC)",
		Long: `Serves actors for runs of other machines, over Arrow Flight. Each is a process that opens the configuration of its run, steps its part of the environments and hands over what it has played. A run has its actors here by "train: {actors: {count: 4, urls: ["grpc://HOST:PORT"]}}" in its document. Both are to be the same build of the program, and where a document names files, they are needed here under the same paths.
CONFIG may have the address, the slots, a certificate (tls: {cert, key, client_ca}), a file of bearer tokens (token_file), and what of Python documents may name (python: {interpreters, modules}). An address that other machines reach needs token_file or tls.client_ca, and permits no interpreter and no module that python does not list. SIGHUP reads tokens and the certificate again.
SIGTERM and SIGINT end the actors and the server; runs begin them again elsewhere, or wait for a server.`,
		Example: `  onnxrl actor serve --slots 8
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
	s, err := flight.NewServer(flight.Options{Hello: flight.HelloOf(e.Name()), Slots: c.Slots, Launch: a.launchActor(e, c.permission()), Log: a.log})
	if err != nil {
		return err
	}
	defer s.Wait()
	return c.serve(ctx, a, func() (arrowflight.FlightServer, error) { return s, nil }, func(l listening) error {
		return a.printListening(&actorStarted{l, c.Slots, e.Name()})
	})
}
