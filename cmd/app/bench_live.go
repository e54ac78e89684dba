package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/agents/trader"
	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/stream"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/engine"
)

// liveBench is what onnxrl bench live measures with.
type liveBench struct {
	times    int
	rate     float64
	encoding string
	// bars is the number of bars of the rows on speed, memory that of those on memory.
	bars, memory int
	// assets are those of the agents that are made.
	assets []int
	store  storeFlag
}

func (a *app) benchLiveCommand() *cobra.Command {
	b := liveBench{}
	var out benchmark.Output
	cmd := &cobra.Command{
		Use:   "live [RUN|REF]",
		Short: "From a bar to its orders: what a live service adds",
		Long: `Trades with a published market agent on made-up bars as onnxrl live does, its journal on the disk included. Measures the time from when a bar should have come until its orders are given to the sink. Bars come at a steady rate whether or not those before are done with. So a decision that takes long counts for all that wait behind it (no coordinated omission). Where the source of the bars slept and was woken up late by the operating system, they count from then; by how much is a row of its own. The time of
the policy's own run is subtracted.

The targets are for up to 16 assets (50 µs in the median, 500 µs for 99 %) and for up to 300 (3 ms for 99 %). Further rows are the speed of reading messages and making features of
them (a million bars a second from a file), decisions without waiting, which allocate nothing, and the memory after --memory bars, which does not grow. Without an agent two
are made, of 16 and of 300 assets and QTMRL's features. Latencies of a machine that has other work say nothing about the service.`,
		Example: `  onnxrl bench live --check
  onnxrl bench live runs/demo --rate 500
  onnxrl bench live --memory 10000000`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			err := b.check()
			if err == nil {
				_, err = a.compiler(cmd.Context()) // The report names the engine.
			}
			r := &benchmark.Report{Machine: benchmark.ThisMachine()}
			switch {
			case err != nil:
			case len(args) > 0:
				err = a.benchLive(cmd.Context(), args[0], "", &b, r)
			default:
				err = a.benchLiveOwn(cmd.Context(), &b, r)
			}
			if err != nil {
				return fmt.Errorf("bench live: %w", err)
			}
			if err := out.Save(r); err != nil {
				return err
			}
			return a.printTable(r, out.Verdict(r.Missed))
		},
	}
	f := cmd.Flags()
	out.AddFlags(f)
	b.store.add(cmd)
	f.IntVar(&b.times, "times", 5000, "times, with a bar of every asset")
	f.Float64Var(&b.rate, "rate", 200, "times a second")
	f.IntSliceVar(&b.assets, "assets", []int{16, 300}, "assets of the agents that are made where none is given")
	f.IntVar(&b.bars, "bars", 400_000, "bars that speed is measured with")
	f.IntVar(&b.memory, "memory", 100_000, "bars after which memory is measured; 0: not at all")
	f.StringVar(&b.encoding, "encoding", string(stream.Protobuf), "json or protobuf")
	return cmd
}

// timedSource gives the bars of a time when it is due. Each time begins when it was due, whoever is
// not ready for it then. Where the source itself was waiting for it and woke up late, it begins
// when the source woke up: that is the operating system's doing and not the service's.
type timedSource struct {
	values [][]byte // of all times, one asset after another
	assets int
	due    []time.Time
	began  []time.Time     // by time, of those that were given
	late   []time.Duration // after which the source woke up, where it waited
}

func (s *timedSource) Start(context.Context, map[int32]int64) ([]int32, error) {
	return nil, nil
}

// spin is how long before a time is due waiting ends and watching the clock begins: sleepers wake
// up late.
const spin = 300 * time.Microsecond

func (s *timedSource) Poll(ctx context.Context) ([]livetrade.Message, error) {
	at := len(s.began)
	if at == len(s.due) {
		return nil, io.EOF
	}
	due := s.due[at]
	waited := time.Now().Before(due)
	if wait := time.Until(due) - spin; wait > 0 {
		time.Sleep(wait)
	}
	for time.Now().Before(due) {
		// The processor is kept.
	}
	list := make([]livetrade.Message, 0, s.assets)
	now := time.Now()
	for ; at < len(s.due) && !s.due[at].After(now); at++ {
		for i := range s.assets {
			k := at*s.assets + i
			list = append(list, livetrade.Message{Offset: int64(k), Value: s.values[k]})
		}
		began := s.due[at]
		if waited {
			s.late = append(s.late, now.Sub(began))
			began, waited = now, false
		}
		s.began = append(s.began, began)
	}
	return list, ctx.Err()
}

func (s *timedSource) Pause([]int32) {}
func (s *timedSource) Close() error  { return nil }

// timedSink notes when decisions come.
type timedSink struct{ came []time.Time }

func (s *timedSink) Start(context.Context) (uint64, error) { return 0, nil }
func (s *timedSink) Publish(*livetrade.Batch) error {
	s.came = append(s.came, time.Now())
	return nil
}
func (s *timedSink) Bad(b *livetrade.Bad) error  { return b }
func (s *timedSink) Flush(context.Context) error { return nil }
func (s *timedSink) Close() error                { return nil }

// benchLiveOwn measures with agents that are made for it.
func (a *app) benchLiveOwn(ctx context.Context, b *liveBench, r *benchmark.Report) error {
	for _, assets := range b.assets {
		err := func() (err error) {
			dir, err := os.MkdirTemp("", "onnxrl-bench-live-")
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
			run, err := a.benchAgent(ctx, dir, assets)
			if err != nil {
				return err
			}
			own := *b
			if assets > 16 {
				// The policy's own run takes its time.
				own.memory, own.rate, own.times = 0, min(b.rate, 50), max(100, b.times/4)
			}
			return a.benchLive(ctx, run, fmt.Sprintf("%d/", assets), &own, r)
		}()
		if err != nil {
			return fmt.Errorf("%d assets: %w", assets, err)
		}
	}
	return nil
}

// liveSubject is an agent that is measured.
type liveSubject struct {
	config  livetrade.Config
	version artifact.Version
	with    engine.Compiler
	warm    []byte
	next    time.Time
	dir     string
}

// machine makes one before its first event, and what closes it.
func (s *liveSubject) machine(ctx context.Context) (*livetrade.Machine, *trader.Trader, error) {
	t, err := trader.New(ctx, s.version, s.with)
	if err != nil {
		return nil, nil, err
	}
	m, err := livetrade.NewMachine(&s.config, t, s.version.Digest, func(string) {})
	if err != nil {
		return nil, nil, errors.Join(err, t.Close())
	}
	return m, t, nil
}

// state is a fresh directory for a journal.
func (s *liveSubject) state(name string) string { return filepath.Join(s.dir, name) }

// check says what is wrong with the flags.
func (b *liveBench) check() error {
	switch {
	case b.times < 100:
		return fmt.Errorf("--times %d: expected at least 100", b.times)
	case !(b.rate > 0) || b.rate > 1e6:
		return fmt.Errorf("--rate %g: expected times a second", b.rate)
	case b.encoding != string(stream.JSON) && b.encoding != string(stream.Protobuf):
		return fmt.Errorf("--encoding %s: expected json or protobuf", b.encoding)
	case b.bars < 1000:
		return fmt.Errorf("--bars %d: expected at least 1000", b.bars)
	case b.memory < 0 || b.memory > 0 && b.memory < 10_000:
		return fmt.Errorf("--memory %d: expected at least 10000, or 0", b.memory)
	}
	for _, n := range b.assets {
		if n < 1 || n > 5000 {
			return fmt.Errorf("--assets %d: expected 1 to 5000", n)
		}
	}
	return nil
}

// benchLive appends the rows of an agent to a report.
func (a *app) benchLive(ctx context.Context, target, prefix string, b *liveBench, r *benchmark.Report) (err error) {
	v, done, err := marketAgent(target, b.store.path())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	s := &liveSubject{version: v}
	if s.with, err = a.compiler(ctx); err != nil {
		return err
	}
	if s.warm, s.next, err = trader.WarmState(v); err == nil && s.warm == nil {
		err = errors.New("the agent was published without a state to begin with")
	}
	if err != nil {
		return err
	}
	if s.dir, err = os.MkdirTemp("", "onnxrl-bench-live-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.dir)) }()
	s.config = livetrade.Defaults()
	s.config.Name, s.config.Policy = "bench", target
	s.config.Source, s.config.Sink = configs.Kinded{Kind: "timed"}, configs.Kinded{Kind: "timed"}
	before := len(r.Rows)
	for _, measure := range []func(context.Context, *liveSubject, *benchmark.Report) error{b.latency, b.speed, b.decisions, b.flat} {
		if err := measure(ctx, s, r); err != nil {
			return err
		}
	}
	for i := before; i < len(r.Rows); i++ {
		x := &r.Rows[i]
		x.Name = prefix + x.Name
		x.Judge()
		if !x.Pass {
			r.Missed++
		}
	}
	return nil
}

// latency measures from when bars are due until their orders are given to the sink.
func (b *liveBench) latency(ctx context.Context, s *liveSubject, r *benchmark.Report) (err error) {
	m, t, err := s.machine(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.Close(), t.Close()) }()
	c := s.config
	c.State = s.state("latency")
	p := t.Feed.Pipeline()
	source := &timedSource{assets: len(p.Assets), due: make([]time.Time, b.times)}
	made := newMadeUpBars(p, s.next, stream.Encoding(b.encoding))
	for range b.times {
		source.values = made.appendTime(source.values)
	}
	sink := &timedSink{came: make([]time.Time, 0, b.times)}
	policy := make([]time.Duration, 0, b.times)
	start := time.Now().Add(100 * time.Millisecond)
	for i := range source.due {
		source.due[i] = start.Add(time.Duration(float64(i) / b.rate * float64(time.Second)))
	}
	err = livetrade.Run(ctx, livetrade.Options{
		Config: &c, Machine: m, Warm: s.warm, Source: source, Sink: sink, Say: func(string) {},
		OnBatch: func(_ *livetrade.Batch, _, took time.Duration) { policy = append(policy, took) },
	})
	if err != nil {
		return err
	}
	if len(sink.came) < b.times/2 || len(sink.came) != len(policy) {
		return fmt.Errorf("%d decisions at %d times", len(sink.came), b.times)
	}
	// The first window may have to be filled; from then on there is a decision at each time.
	b.report(r, source, sink.came, policy)
	return ctx.Err()
}

// report has the rows of latencies. The first tenth warms up.
func (b *liveBench) report(r *benchmark.Report, source *timedSource, came []time.Time, policy []time.Duration) {
	assets, began := source.assets, source.began[len(source.began)-len(came):]
	var whole, added, own, late []float64
	for i := len(began) / 10; i < len(began); i++ {
		total := float64(came[i].Sub(began[i]))
		whole, added, own = append(whole, total), append(added, total-float64(policy[i])), append(own, float64(policy[i]))
	}
	for _, d := range source.late[len(source.late)/10:] {
		late = append(late, float64(d))
	}
	slices.Sort(late)
	slices.Sort(added)
	p50, p99 := 50.0, 500.0
	if assets > 16 {
		p50, p99 = 0, 3000
	}
	row := func(name, measures string, ns, limit float64, samples []float64) {
		x := benchmark.Row{Name: name, Measures: measures, Value: ns / 1e3, Unit: "µs", Samples: benchmark.Summarize(samples)}
		if limit > 0 && assets <= 300 {
			x.Against, x.Reference, x.Ratio, x.Target = "limit", limit, ns/1e3/limit, benchmark.AtMost(1)
		}
		x.Note = fmt.Sprintf("%d assets, %g times a second", assets, b.rate)
		r.Rows = append(r.Rows, x)
	}
	slices.Sort(whole)
	slices.Sort(own)
	row("added/p50", "bar to orders without the policy, median", benchmark.Quantile(added, 0.5), p50, added)
	row("added/p99", "bar to orders without the policy, 99 %", benchmark.Quantile(added, 0.99), p99, added)
	row("added/p99.9", "bar to orders without the policy, 99.9 %", benchmark.Quantile(added, 0.999), 0, added)
	row("policy/p50", "run of the policy, median", benchmark.Quantile(own, 0.5), 0, own)
	row("whole/p50", "bar to orders, median", benchmark.Quantile(whole, 0.5), 0, whole)
	row("whole/p99", "bar to orders, 99 %", benchmark.Quantile(whole, 0.99), 0, whole)
	if len(late) > 0 {
		row("late/p99", "how late the bars' source woke up, which counts nowhere, 99 %", benchmark.Quantile(late, 0.99), 0, late)
	}
}
