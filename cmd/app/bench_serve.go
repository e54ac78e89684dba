package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/cmd/internal/servebench"
	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/priority"
)

// remoteFlags are those of a server in another process.
type remoteFlags struct {
	url, against, model string
	rows                int
	transports          []string
	atLeast             float64
}

func (a *app) benchServeCommand() *cobra.Command {
	var o servebench.Options
	var r remoteFlags
	var soak time.Duration
	var file string
	var check, list bool
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
				fmt.Fprintln(a.out, strings.Join(servebench.Names(), "\n"))
				return nil
			}
			o.Rows = args
			var err error
			if soak > 0 {
				err = a.soak(cmd.Context(), o, soak)
			} else {
				err = a.benchServe(cmd.Context(), o, r, file, check)
			}
			if err != nil && !errors.As(err, new(quietError)) {
				return fmt.Errorf("bench serve: %w", err)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.BoolVar(&check, "check", false, "exit with status 1 when a target is missed")
	f.BoolVar(&list, "list", false, "list the rows and measure nothing")
	f.StringVar(&file, "out", "", "also write the raw figures to this JSON file")
	f.IntSliceVar(&o.Callers, "concurrency", []int{1, 8, 64}, "numbers of callers")
	f.IntVar(&o.Rounds, "rounds", 7, "how often the two sides of a row take turns")
	f.DurationVar(&o.Round, "round", 500*time.Millisecond, "time of one side in one round")
	f.IntVar(&o.Requests, "requests", 1_000_000, "requests after which memory must be as before")
	f.IntVar(&o.Reloads, "reloads", 10_000, "reloads after which memory must be as before")
	f.DurationVar(&o.SwapEvery, "swap-every", 100*time.Millisecond, "time between two versions")
	f.IntVar(&o.NeighbourNice, "neighbour-nice", priority.Least, "niceness of the training run beside the server, 0 for the server's own priority")
	f.DurationVar(&soak, "soak", 0, "mix good and hostile traffic for this long instead")
	f.StringVar(&r.url, "url", "", "measure the server at this URL instead")
	f.StringVar(&r.against, "against", "", "compare it with the server at this URL")
	f.StringVar(&r.model, "model", "", "model to ask for; not needed where each server has one")
	f.IntVar(&r.rows, "rows", 1, "rows of a request to --url")
	f.StringSliceVar(&r.transports, "transports", []string{"http-binary", "http-json"}, "how requests to --url are written")
	f.Float64Var(&r.atLeast, "at-least", 0, "target for the ratio of --url's requests per second to --against's")
	return cmd
}

func (a *app) benchServe(ctx context.Context, o servebench.Options, r remoteFlags, file string, check bool) error {
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
		if err = a.serveBench(ctx, &o); err == nil {
			report, err = servebench.Run(ctx, o)
		}
	}
	if err != nil {
		return err
	}
	if file != "" {
		err := atomicfile.WriteFile(file, func(w io.Writer) error {
			enc := json.NewEncoder(w)
			enc.SetIndent("", "  ")
			return enc.Encode(report)
		})
		if err != nil {
			return fmt.Errorf("write the figures: %w", err)
		}
	}
	if a.json {
		err = a.printJSON(report)
	} else {
		err = report.Print(a.out)
	}
	if err == nil && check && report.Missed > 0 {
		return quietError{errors.New("targets are missed")}
	}
	return err
}

func (a *app) soak(ctx context.Context, o servebench.Options, d time.Duration) error {
	if err := a.serveBench(ctx, &o); err != nil {
		return err
	}
	report, err := servebench.Soak(ctx, o, d)
	if err != nil {
		return err
	}
	if a.json {
		err = a.printJSON(report)
	} else {
		err = report.Print(a.out)
	}
	if err == nil && len(report.Problems) > 0 {
		return quietError{errors.New("the soak is not passed")}
	}
	return err
}

// serveBench fills in what the library is given: the engine, the network that onnxrl serve has, and
// a neighbour.
func (a *app) serveBench(ctx context.Context, o *servebench.Options) (err error) {
	if o.Compiler, err = a.compiler(ctx); err != nil {
		return err
	}
	engine := o.Compiler.Name()
	o.Listen = func(s *serve.Server) (*servebench.Front, error) {
		c := serveDefaults()
		c.HTTP, c.GRPC = "127.0.0.1:0", "127.0.0.1:0"
		n, err := listen(&c)
		if err != nil {
			return nil, err
		}
		n.serve(s, engine, a.log, nil, nil)
		return &servebench.Front{URL: (&url.URL{Scheme: "http", Host: n.httpAddress()}).String(), GRPC: n.grpcAddress(), Close: func() error {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			// Connections of hostile clients may be open still.
			_ = n.shutdown(ctx)
			return n.close()
		}}, nil
	}
	o.Neighbour, o.SpareProcessor = a.trainBeside, spareProcessor
	if !a.quiet && isTerminal(a.err) {
		o.Began = func(name string) { fmt.Fprintf(a.err, "onnxrl: measuring %s\n", name) }
	}
	return nil
}

// trainBeside starts the demo's training in another process and returns when it has written its
// first metrics.
func (a *app) trainBeside(ctx context.Context, nice int) (stop func() error, err error) {
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
	cmd := exec.CommandContext(ctx, exe, "train", "demo", "-q", "--engine", a.engine, "--set", "train.total_env_steps=100000000", "--nice", strconv.Itoa(nice), "--out", out)
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
			if info, err := os.Stat(filepath.Join(out, metricsFile)); err == nil && info.Size() > 0 {
				return stop, nil
			}
		}
	}
}
