package servebench

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path"
	"time"

	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/engine"
)

// Names of transports.
const (
	httpBinary = "http-binary"
	httpJSON   = "http-json"
	grpcRaw    = "grpc"
	inProcess  = "in-process"
)

// Front is a server on the network.
type Front struct {
	// URL is where HTTP is answered, GRPC the address of gRPC.
	URL, GRPC string
	Close     func() error
}

// Options of a run.
type Options struct {
	Compiler engine.Compiler
	// Listen puts a server on the network, on ports of the loopback interface.
	Listen func(s *serve.Server) (*Front, error)
	// Rows are patterns (as of path.Match) of the rows to measure; none means all.
	Rows []string
	// Callers are the numbers of connections of the loads.
	Callers []int
	// Rounds is how often two sides take turns, and Round the time of one side in one of them.
	Rounds int
	Round  time.Duration
	// Requests and Reloads are how many of them must leave memory as it was.
	Requests, Reloads int
	// SwapEvery is the time between two versions.
	SwapEvery time.Duration
	// Neighbour starts a training run of this niceness in another process and returns, when it
	// trains, what stops it.
	Neighbour     func(ctx context.Context, nice int) (stop func() error, err error)
	NeighbourNice int
	// Began, if set, is called with the name of each benchmark before it runs.
	Began func(name string)
}

// measurement measures rows whose names begin with its own.
type measurement struct {
	name string
	run  func(*lab, context.Context, *Report) error
}

func benchmarks() []measurement {
	return []measurement{
		{"loads", (*lab).loads},
		{"overhead", (*lab).overhead},
		{"batching", (*lab).batching},
		{"json", (*lab).json},
		{"swap", (*lab).swap},
		{"neighbour", (*lab).neighbour},
		{"memory", (*lab).memory},
	}
}

// Names lists the benchmarks.
func Names() []string {
	var names []string
	for _, b := range benchmarks() {
		names = append(names, b.name)
	}
	return names
}

// Run measures. An error means that something could not be measured or that a request failed;
// missed targets are counted in the report.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	if len(o.Callers) == 0 || o.Rounds < 1 || o.Round <= 0 || o.Requests < 1 || o.Reloads < 1 || o.SwapEvery <= 0 {
		return nil, errors.New("expected at least one number of callers, and rounds, round, requests, reloads and the time between swaps above 0")
	}
	for _, pattern := range o.Rows {
		found := false
		for _, b := range benchmarks() {
			ok, err := path.Match(pattern, b.name)
			if err != nil {
				return nil, fmt.Errorf("%q is no pattern: %w", pattern, err)
			}
			found = found || ok
		}
		if !found {
			return nil, fmt.Errorf("no benchmark is called %q; there are %v", pattern, Names())
		}
	}
	l, err := newLab(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	r := &Report{Machine: benchmark.ThisMachine(), Loads: []*Load{}, Rows: []benchmark.Row{}}
	for _, b := range benchmarks() {
		if !o.selected(b.name) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if o.Began != nil {
			o.Began(b.name)
		}
		if err := b.run(l, ctx, r); err != nil {
			return nil, fmt.Errorf("%s: %w", b.name, err)
		}
	}
	return r, nil
}

func (o *Options) selected(name string) bool {
	for _, pattern := range o.Rows {
		if ok, _ := path.Match(pattern, name); ok {
			return true
		}
	}
	return len(o.Rows) == 0
}

// add counts what is missed.
func (r *Report) add(rows ...benchmark.Row) {
	for _, row := range rows {
		if !row.Pass {
			r.Missed++
		}
		r.Rows = append(r.Rows, row)
	}
}

// Served models: each network with batching as it comes, and with every request by itself.
const alone = "-unbatched"

// lab is a server in this process with the networks of this package.
type lab struct {
	Options
	shelf  *shelf
	server *serve.Server
	front  *Front
	base   *url.URL
}

func newLab(ctx context.Context, o Options) (_ *lab, err error) {
	l := &lab{Options: o, shelf: &shelf{}}
	small, err := policy(1)
	if err != nil {
		return nil, err
	}
	large, err := wide()
	if err != nil {
		return nil, err
	}
	single := serve.Config{Batching: serve.Batching{Off: true}}
	l.shelf.put(policyName, "1", small, serve.Config{})
	l.shelf.put(policyName+alone, "1", small, single)
	l.shelf.put(wideName, "1", large, serve.Config{})
	l.shelf.put(wideName+alone, "1", large, single)
	if l.server, err = serve.New(serve.Options{Compiler: o.Compiler}, l.shelf); err != nil {
		return nil, err
	}
	if err := l.server.Poll(ctx); err != nil {
		return nil, errors.Join(err, l.server.Close(context.WithoutCancel(ctx)))
	}
	if l.front, err = o.Listen(l.server); err != nil {
		return nil, errors.Join(err, l.server.Close(context.WithoutCancel(ctx)))
	}
	l.base, err = url.Parse(l.front.URL)
	return l, err
}

func (l *lab) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return errors.Join(l.front.Close(), l.server.Close(ctx))
}

// transports are those that the front has.
func (l *lab) transports() []string {
	if l.front.GRPC == "" {
		return []string{httpBinary, httpJSON, inProcess}
	}
	return []string{httpBinary, httpJSON, grpcRaw, inProcess}
}

// dial connects to one of the served models.
func (l *lab) dial(transport, model string, width int) (dialer, error) {
	if transport == inProcess {
		return dialDirect(l.server, model, 1, width), nil
	}
	inputs := []port{floats(1, width)}
	if transport == grpcRaw {
		return dialGRPC(l.front.GRPC, model, inputs), nil
	}
	return (&remote{base: l.base, model: model, inputs: inputs}).dialer(transport)
}

// side keeps callers of a model connected until done is called. The first round, in which
// everything warms up, is not returned.
func (l *lab) side(ctx context.Context, transport, model string, width, callers int) (s side, done func() error, err error) {
	dial, err := l.dial(transport, model, width)
	if err != nil {
		return nil, nil, err
	}
	return l.sideOf(ctx, transport, dial, callers)
}

func (l *lab) sideOf(ctx context.Context, transport string, dial dialer, callers int) (s side, done func() error, err error) {
	c, err := gather(ctx, transport, dial, callers)
	if err != nil {
		return nil, nil, err
	}
	s = func(d time.Duration) (*Load, error) {
		load := c.run(ctx, d)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return load, load.failed()
	}
	if err := c.run(ctx, l.Round/4).failed(); err != nil {
		return nil, nil, errors.Join(err, c.close())
	}
	return s, c.close, nil
}

// loads measures every transport with every number of callers, in turns.
func (l *lab) loads(ctx context.Context, r *Report) error {
	for _, callers := range l.Callers {
		var sides []side
		var undo []func() error
		for _, transport := range l.transports() {
			s, done, err := l.side(ctx, transport, policyName, policyInputs, callers)
			if err != nil {
				return errors.Join(err, all(undo))
			}
			sides, undo = append(sides, s), append(undo, done)
		}
		sums := make([]*Load, len(sides))
		for range l.Rounds {
			for i, s := range sides {
				load, err := s(l.Round)
				if err != nil {
					return errors.Join(err, all(undo))
				}
				sums[i] = sums[i].join(load)
			}
		}
		r.Loads = append(r.Loads, sums...)
		if err := all(undo); err != nil {
			return err
		}
	}
	return nil
}

func all(undo []func() error) error {
	var errs []error
	for _, f := range undo {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}
