package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/cmd/app"
	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/cmd/internal/servebench"
	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/processes"
)

// remoteFlags are those of a server in another process.
type remoteFlags struct {
	url, against, model string
	rows                int
	transports          []string
	atLeast             float64
}

func serveCommand(p *app.Program) *cobra.Command {
	var o servebench.Options
	var r remoteFlags
	var soak time.Duration
	var out benchmark.Output
	var list bool
	cmd := &cobra.Command{
		Use:   "serve [ROW…]",
		Short: "Latency, throughput and memory of the server, each with its ratio to a reference",
		Long: `Measures the server with callers that send their next request when they have the answer to the last: over HTTP with binary tensors and with JSON,
over gRPC, and within the process. Then what has a target: the overhead over a bare handler and a bound run, what batching gains, JSON against
encoding/json, the slowest requests while versions are swapped and beside a training run, and memory after many requests and reloads.
The training run is onnxrl train --nice 19; --neighbour-nice sets another niceness, 0 the server's own priority. In that row, with and without training, the server is one with --spare-processor.
Rows are selected by patterns ('loads', 'batching'); without any, all are measured. Two sides take turns; ratios still wander on a busy machine, so a row
that misses its target is measured up to twice more, and the median of all rounds counts.

With --url, the same load goes to a server in another process, and with --against to a second one in turns, which may be any that speaks the protocol.
With --soak, good and hostile traffic over HTTP and gRPC are mixed for that long while versions are swapped: good requests must succeed, and nothing may grow.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				fmt.Fprintln(cmd.OutOrStdout(), strings.Join(servebench.Names(), "\n"))
				return nil
			}
			o.Rows = args
			var err error
			if soak > 0 {
				err = runSoak(cmd.Context(), p, o, soak)
			} else {
				err = runServe(cmd.Context(), p, o, r, out)
			}
			if err != nil {
				return fmt.Errorf("serve: %w", err)
			}
			return nil
		},
	}
	f := cmd.Flags()
	out.AddFlags(f)
	f.BoolVar(&list, "list", false, "list the rows and measure nothing")
	f.IntSliceVar(&o.Callers, "concurrency", []int{1, 8, 64}, "numbers of callers")
	f.IntVar(&o.Rounds, "rounds", 7, "how often the two sides of a row take turns")
	f.DurationVar(&o.Round, "round", 500*time.Millisecond, "time of one side in one round")
	f.IntVar(&o.Requests, "requests", 1_000_000, "requests after which memory must be as before")
	f.IntVar(&o.Reloads, "reloads", 10_000, "reloads after which memory must be as before")
	f.DurationVar(&o.SwapEvery, "swap-every", 100*time.Millisecond, "time between two versions")
	f.IntVar(&o.NeighbourNice, "neighbour-nice", processes.Least, "niceness of the training run beside the server, 0 for the server's own priority")
	f.DurationVar(&soak, "soak", 0, "mix good and hostile traffic for this long instead")
	f.StringVar(&r.url, "url", "", "measure the server at this URL instead")
	f.StringVar(&r.against, "against", "", "compare it with the server at this URL")
	f.StringVar(&r.model, "model", "", "model to ask for; not needed where each server has one")
	f.IntVar(&r.rows, "rows", 1, "rows of a request to --url")
	f.StringSliceVar(&r.transports, "transports", []string{"http-binary", "http-json"}, "how requests to --url are written")
	f.Float64Var(&r.atLeast, "at-least", 0, "target for the ratio of --url's requests per second to --against's")
	return cmd
}

func runServe(ctx context.Context, p *app.Program, o servebench.Options, r remoteFlags, out benchmark.Output) error {
	var report *servebench.Report
	var err error
	switch {
	case r.url != "":
		report, err = servebench.RunRemote(ctx, servebench.Remote{
			URL: r.url, Against: r.against, Model: r.model, Callers: o.Callers, Rows: r.rows, Transports: r.transports, AtLeast: r.atLeast, Rounds: o.Rounds, Round: o.Round,
		})
	case r.against != "":
		return errors.New("--against needs --url: the server that is compared with it")
	default:
		if err = equip(ctx, p, &o); err == nil {
			report, err = servebench.Run(ctx, o)
		}
	}
	if err != nil {
		return err
	}
	if err := out.Save(report); err != nil {
		return err
	}
	return p.Print(report, out.Verdict(report.Missed))
}

func runSoak(ctx context.Context, p *app.Program, o servebench.Options, d time.Duration) error {
	if err := equip(ctx, p, &o); err != nil {
		return err
	}
	report, err := servebench.Soak(ctx, o, d)
	if err != nil {
		return err
	}
	var failed error
	if len(report.Problems) > 0 {
		failed = errors.New("the soak is not passed")
	}
	return p.Print(report, failed)
}

// equip fills in the engine, the network that onnxrl serve has, and a neighbour.
func equip(ctx context.Context, p *app.Program, o *servebench.Options) (err error) {
	if o.Compiler, err = p.Engine(ctx, ""); err != nil {
		return err
	}
	o.Listen = func(s *serve.Server) (*servebench.Front, error) {
		l, err := p.Listen(s, o.Compiler.Name())
		if err != nil {
			return nil, err
		}
		return &servebench.Front{URL: l.URL(), GRPC: l.GRPC(), Close: l.Close}, nil
	}
	o.Neighbour = func(ctx context.Context, nice int) (func() error, error) {
		return trainBeside(ctx, p.EngineFlag(), nice)
	}
	o.Began = func(name string) { p.Progress("measuring %s", name) }
	return nil
}

// trainBeside starts the demo's training in another process and returns when it has written its
// first metrics.
func trainBeside(ctx context.Context, engine string, nice int) (stop func() error, err error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "onnxrl-neighbour-")
	if err != nil {
		return nil, err
	}
	out := filepath.Join(dir, "run")
	var text strings.Builder
	cmd := exec.CommandContext(ctx, exe, "train", "demo", "-q", "--engine", engine, "--set", "train.total_env_steps=100000000", "--nice", strconv.Itoa(nice), "--out", out)
	cmd.Stdout, cmd.Stderr = &text, &text
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop = func() error {
		// Killed: how it ends does not matter.
		_ = cmd.Process.Kill()
		<-ended
		return os.RemoveAll(dir)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case err := <-ended:
			return nil, errors.Join(fmt.Errorf("it ended: %w\n%s", err, text.String()), os.RemoveAll(dir))
		case <-tick.C:
			if info, err := os.Stat(filepath.Join(out, "metrics.jsonl")); err == nil && info.Size() > 0 {
				return stop, nil
			}
		}
	}
}
