package servebench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"

	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// overhead is what the server adds to a bare HTTP handler and to the bound run.
func (l *lab) overhead(ctx context.Context, r *Report) error {
	a, doneA, err := l.side(ctx, httpBinary, policyName, policyInputs, 1)
	if err != nil {
		return err
	}
	b, doneB, err := l.echo(ctx)
	if err != nil {
		return errors.Join(err, doneA())
	}
	rows, err := l.contest(contest{a: a, doneA: doneA, b: b, doneB: doneB}, func(d *duel) []benchmark.Row {
		row := d.row("overhead/http-binary", "p50 of the 2×64 policy, 1 caller", "bare net/http echo", "µs", p50, benchmark.Target{AtMost: 1.5})
		row.Note = fmt.Sprintf("p99 %.0f against %.0f µs; %.1f allocations", d.a.P99, d.b.P99, *d.a.Allocs)
		return []benchmark.Row{row}
	})
	if err != nil {
		return err
	}
	r.add(rows...)
	return l.overheadInProcess(ctx, r)
}

// bareHandler echoes the body of a request.
func bareHandler(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Write(body)
}

// echo is a load with the same bytes on a bare handler.
func (l *lab) echo(ctx context.Context) (side, func() error, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	server := &http.Server{Handler: http.HandlerFunc(bareHandler)}
	go server.Serve(listener)
	base := &url.URL{Scheme: "http", Host: listener.Addr().String()}
	dial, err := (&remote{base: base, model: policyName, inputs: []port{floats(1, policyInputs)}}).dialer(httpBinary)
	if err != nil {
		return nil, nil, errors.Join(err, server.Close())
	}
	s, done, err := l.sideOf(ctx, "bare echo", dial, 1)
	if err != nil {
		return nil, nil, errors.Join(err, server.Close())
	}
	return s, func() error { return errors.Join(done(), server.Close()) }, nil
}

// boundCaller runs a binding.
type boundCaller struct {
	binding engine.Binding
	session engine.Session
}

func (c *boundCaller) call() error  { return c.binding.Run() }
func (c *boundCaller) close() error { return errors.Join(c.binding.Close(), c.session.Close()) }

// dialBound binds the policy for one row.
func (l *lab) dialBound(context.Context) (caller, error) {
	m, err := policy(1)
	if err != nil {
		return nil, err
	}
	if m, err = onnx.BindDims(m, map[string]int{"batch": 1}); err != nil {
		return nil, err
	}
	s, err := l.Compiler.Compile(m, engine.Options{})
	if err != nil {
		return nil, err
	}
	in, out := tensor.Of(observations(1, policyInputs), 1, policyInputs), tensor.New(tensor.Float32, s.Outputs()[0].Shape...)
	b, err := s.Bind([]*tensor.Tensor{out}, []*tensor.Tensor{in})
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &boundCaller{b, s}, nil
}

func (l *lab) overheadInProcess(ctx context.Context, r *Report) error {
	a, doneA, err := l.sideOf(ctx, inProcess, dialCaller(l.server, policyName, policyInputs), 1)
	if err != nil {
		return err
	}
	b, doneB, err := l.sideOf(ctx, "bound run", l.dialBound, 1)
	if err != nil {
		return errors.Join(err, doneA())
	}
	rows, err := l.contest(contest{a: a, doneA: doneA, b: b, doneB: doneB}, func(d *duel) []benchmark.Row {
		// The target is a difference: the bound run and a microsecond.
		row := d.rowBeyond("overhead/in-process", "p50 of the 2×64 policy by serve.Caller", "bound run + 1 µs", "µs", p50, 1, benchmark.Target{AtMost: 1})
		allocs := math.Floor(*d.a.Allocs)
		row.Allocs, row.Pass = &allocs, row.Pass && allocs == 0
		row.Note = fmt.Sprintf("%.2f µs more than the bound run; %g allocations", d.a.P50-d.b.P50, allocs)
		return []benchmark.Row{row}
	})
	if err != nil {
		return err
	}
	r.add(rows...)
	return nil
}

// crowded is the number of callers with which batching is measured.
const crowded = 64

// slack is the part that a ratio may fall short of "never worse": two measurements of the same
// thing differ by that much.
const slack = 0.05

// batching compares requests that are combined with requests that are not.
func (l *lab) batching(ctx context.Context, r *Report) error {
	for _, n := range []struct {
		name, what string
		width      int
		target     float64
	}{{wideName, "4×1024", wideInputs, 3}, {policyName, "2×64", policyInputs, 1 - slack}} {
		a, doneA, err := l.side(ctx, httpBinary, n.name, n.width, crowded)
		if err != nil {
			return err
		}
		b, doneB, err := l.side(ctx, httpBinary, n.name+alone, n.width, crowded)
		if err != nil {
			return errors.Join(err, doneA())
		}
		rows, err := l.contest(contest{a: a, doneA: doneA, b: b, doneB: doneB}, func(d *duel) []benchmark.Row {
			measures := fmt.Sprintf("of %s, %d callers, batching", n.what, crowded)
			return []benchmark.Row{
				d.row("batching/throughput-"+n.what, "requests/s "+measures, "without", "requests/s", perSec, benchmark.Target{AtLeast: n.target}),
				d.row("batching/p50-"+n.what, "p50 "+measures, "without", "µs", p50, benchmark.Target{AtMost: 1 + slack}),
			}
		})
		if err != nil {
			return err
		}
		r.add(rows...)
	}
	return nil
}
