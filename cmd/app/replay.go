package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	arrowflight "github.com/apache/arrow/go/v15/arrow/flight"
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
	flightListener `yaml:",inline"`
	// Dir is where journals, checkpoints and spilled transitions are; without one nothing outlives
	// the server.
	Dir    string                        `yaml:"dir"`
	Tables map[string]flight.TableConfig `yaml:"tables"`
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
			c := replayServer{flightListener: flightListener{Listen: "127.0.0.1:7070"}}
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
	listening
	Tables []flight.TableStats `json:"tables"`
}

// Print writes the report.
func (s *replayStarted) Print(w io.Writer) error {
	if _, err := fmt.Fprintf(w, "replay served at %s\n", s.url()); err != nil {
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
	defer a.stop.hold(saveGrace)()
	var s *flight.Server
	defer func() {
		if s != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	return c.serve(ctx, func() (_ arrowflight.FlightServer, err error) {
		s, err = flight.Open(c.Dir, c.Tables, a.log)
		return s, err
	}, func(l listening) error {
		return a.printListening(&replayStarted{l, s.Tables()})
	})
}

// printListening writes the report of a server that answers; as JSON on one line, as serve does,
// because more may follow.
func (a *app) printListening(s interface{ Print(io.Writer) error }) error {
	if a.json {
		return json.NewEncoder(a.out).Encode(s)
	}
	return s.Print(a.out)
}
