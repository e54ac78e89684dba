package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	arrowflight "github.com/apache/arrow/go/v15/arrow/flight"
	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/replay/flight"
	"github.com/onnxrl/onnxrl/configs"
)

func (a *app) replayCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "replay", Short: "Keep transitions for learners and actors elsewhere", Args: cobra.NoArgs}
	cmd.AddCommand(a.replayServeCommand(), a.replayRepairCommand())
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
An address that other machines reach needs a file of bearer tokens (token_file) or of the authority of clients (tls.client_ca); SIGHUP reads them and the certificate again. SIGTERM and SIGINT save the tables and end the server.`,
		Example: `  onnxrl replay serve --listen 127.0.0.1:7070 --dir replay
  onnxrl replay serve replay.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := replayTables(cmd, args, dir)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("listen") {
				c.Listen = listen
			}
			if err := a.replayServe(cmd.Context(), c); err != nil {
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

// replayTables reads the file of a server, which may be missing; the flag --dir goes before it.
func replayTables(cmd *cobra.Command, args []string, dir string) (*replayServer, error) {
	c := replayServer{flightListener: flightListener{Listen: "127.0.0.1:7070"}}
	if len(args) == 1 {
		if _, err := configs.Load(args[0], nil, &c); err != nil {
			return nil, err
		}
	}
	if cmd.Flags().Changed("dir") {
		c.Dir = dir
	}
	if len(c.Tables) == 0 {
		var t flight.TableConfig
		t.SetDefaults()
		c.Tables = map[string]flight.TableConfig{"transitions": t}
	}
	return &c, nil
}

func (a *app) replayRepairCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "repair [CONFIG]",
		Short: "Keep what is whole of tables whose journals are damaged",
		Long: `Reads the directory of a server that has ended, whose journals are damaged before their end. Keeps all records that are whole, before and behind the damage, and says which are lost. The tables are saved, so that replay serve begins with them; files that are damaged are kept under names that end in .damaged.
CONFIG is that of replay serve. A directory that is whole stays as it is, but for a checkpoint.`,
		Example: `  onnxrl replay repair --dir replay
  onnxrl replay repair replay.yaml`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := replayTables(cmd, args, dir)
			if err != nil {
				return err
			}
			if c.Dir == "" {
				return errors.New("replay repair: --dir: required, the directory of the server")
			}
			// Opening would begin one that is not there.
			if _, err := os.Stat(c.Dir); err != nil {
				return fmt.Errorf("replay repair: --dir: %w", err)
			}
			list, err := flight.Repair(c.Dir, c.Tables, a.log)
			if err != nil {
				return fmt.Errorf("replay repair: %w", err)
			}
			return a.printTable(&replayRepaired{list}, nil)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "directory of journals and checkpoints")
	return cmd
}

// replayRepaired is what replay repair prints; the keys are stable.
type replayRepaired struct {
	Tables []flight.Repaired `json:"tables"`
}

// Print writes the report.
func (r *replayRepaired) Print(w io.Writer) error {
	for _, t := range r.Tables {
		state := "nothing is lost"
		if len(t.Lost) > 0 {
			state = fmt.Sprintf("lost of its journal, beside %d whole records that mean nothing without it:", t.LeftOut)
		}
		if _, err := fmt.Fprintf(w, "%s: %d kept; %s\n", t.Table, t.Size, state); err != nil {
			return err
		}
		for _, d := range t.Lost {
			if _, err := fmt.Fprintf(w, "  %v\n", &d); err != nil {
				return err
			}
		}
	}
	return nil
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
	return c.serve(ctx, a, func() (_ arrowflight.FlightServer, err error) {
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
		return jsonOutput{w: a.out}.Encode(s)
	}
	return s.Print(a.out)
}
