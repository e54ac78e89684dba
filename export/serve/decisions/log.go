package decisions

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/models/decisionlog"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The outputs of policies that are read, in the words of package agents.
const (
	Action  = "action"
	scores  = "log_probs"
	means   = "action_mean"
	logStds = "action_log_std"
)

// maxQueued bounds the rows that wait to be written.
const maxQueued = 1 << 14

// Options of a log.
type Options struct {
	// Dir is the folder of the log, which is made.
	Dir string
	// Every is how often files are published, more than 0.
	Every time.Duration
	// Wait has answers wait where rows come faster than they can be written, instead of dropping
	// rows.
	Wait bool
	// Explore has actions drawn from the policies' distributions.
	Explore bool
	// Log gets warnings.
	Log *slog.Logger
}

// Counts are what a log has done so far with the rows of requests that were answered.
type Counts struct {
	// Published rows were written into files, of which Removed rows were in a folder that somebody
	// has removed meanwhile.
	Published, Removed uint64
	// Queue rows were dropped because the queue was full, Disk rows because their file could not be
	// written, and Form rows because the log has no place for what they have: no action was asked
	// for, or elements have a type that it does not know.
	Queue, Disk, Form uint64
}

// Log is a service that logs decisions. Beside that it is the service that it stands before.
type Log struct {
	serve.Service
	o Options

	published, removed, queue, disk, form atomic.Uint64

	// mu is held for reading while a row is handed over.
	mu     sync.RWMutex
	closed bool
	rows   chan *entry
	done   chan struct{}
	failed error

	// mark and last make the ids of requests without one, and key and last the draws.
	mark string
	key  rng.Key
	last atomic.Uint64

	known  sync.Mutex
	policy map[version]*policy
}

// version is the key of what is known of a policy.
type version struct{ model, version, digest string }

// entry is a row that waits to be written.
type entry struct {
	model  string
	layout *decisionlog.Layout
	row    decisionlog.Row
}

var entries = sync.Pool{New: func() any { return new(entry) }}

// New returns a service that logs the decisions of s. Close it after the last request.
func New(s serve.Service, o Options) (*Log, error) {
	if o.Every <= 0 {
		return nil, fmt.Errorf("decisions: files every %v, expected more than 0", o.Every)
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("decisions: %w", err)
	}
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		return nil, fmt.Errorf("decisions: %w", err)
	}
	l := &Log{Service: s, o: o, rows: make(chan *entry, maxQueued), done: make(chan struct{}), mark: fmt.Sprintf("%x", b[:8]), key: rng.New(binary.LittleEndian.Uint64(b[8:])), policy: map[version]*policy{}}
	go l.write()
	return l, nil
}

// Counts returns what was logged so far.
func (l *Log) Counts() Counts {
	return Counts{l.published.Load(), l.removed.Load(), l.queue.Load(), l.disk.Load(), l.form.Load()}
}

// write writes rows until there are no more.
func (l *Log) write() {
	defer close(l.done)
	writers := map[string]*decisionlog.Writer{}
	pending := map[string]int{}
	t := time.NewTicker(l.o.Every)
	defer t.Stop()
	// settle counts the rows of a model that are in files since the last time, or lost.
	settle := func(model string, left int, err error) {
		n := uint64(pending[model] - left)
		pending[model] = left
		if err == nil {
			l.published.Add(n)
			return
		}
		if l.failed == nil {
			l.o.Log.Error("decisions could not be written, and further losses are counted only", "error", err)
			l.failed = err
		}
		l.disk.Add(n)
	}
	// gone says that a folder was removed, which has been made again.
	gone := func(model string, w *decisionlog.Writer) {
		if rows, again := w.Removed(); again {
			l.removed.Add(uint64(rows))
			l.o.Log.Warn("the folder of decisions was removed and is made again; what was in it is lost to this log", "folder", decisionlog.Folder(l.o.Dir, model), "decisions", rows)
		}
	}
	publish := func() {
		for model, w := range writers {
			settle(model, 0, w.Publish())
			gone(model, w)
		}
	}
	for {
		select {
		case <-t.C:
			publish()
		case e, ok := <-l.rows:
			if !ok {
				publish()
				return
			}
			w, err := writers[e.model], error(nil)
			if w == nil {
				if w, err = decisionlog.NewWriter(l.o.Dir, e.model); err == nil {
					writers[e.model] = w
				}
			}
			before := pending[e.model]
			pending[e.model]++
			switch {
			case err != nil:
				settle(e.model, 0, err)
			default:
				if err = w.Add(e.layout, &e.row); err != nil {
					settle(e.model, 0, err)
				} else if w.Rows() <= before {
					settle(e.model, w.Rows(), nil)
				}
				gone(e.model, w)
			}
			entries.Put(e)
		}
	}
}

// Close writes what waits. Requests afterwards are answered and not logged. The error is the first
// one of a file that could not be written.
func (l *Log) Close() error {
	l.mu.Lock()
	if !l.closed {
		l.closed = true
		close(l.rows)
	}
	l.mu.Unlock()
	<-l.done
	if l.failed != nil {
		return fmt.Errorf("decisions: %w", l.failed)
	}
	return nil
}

// Infer implements serve.Service: it answers, and logs.
func (l *Log) Infer(ctx context.Context, req *serve.Request, resp *serve.Response) error {
	all, number := *req, l.last.Add(1)
	// The propensity may be made of outputs that the client does not ask for.
	all.Outputs = nil
	noise, err := l.noise(&all, number)
	if err != nil {
		return err
	}
	if err := l.Service.Infer(ctx, &all, resp); err != nil {
		return err
	}
	if resp.ID == "" {
		resp.ID = l.mark + "-" + strconv.FormatUint(number, 10)
	}
	p, err := l.of(resp.Model, resp.Version, resp.Digest)
	if err != nil {
		// The model is gone meanwhile; its answer counts all the same.
		l.form.Add(1)
		return choose(resp, req.Outputs)
	}
	out := answer{list: resp.Outputs, noise: noise, drawn: noise != nil && l.o.Explore}
	if l.o.Explore && !out.drawn {
		if out.drawn = p.draw(&out, l.key.Split("draw", int(number)).Stream()); !out.drawn && out.get(Action) != nil && !p.told.Swap(true) {
			l.o.Log.Warn("the policy gives no distribution to draw from: its best actions are taken", "model", resp.Model, "version", resp.Version)
		}
	}
	if out.drawn && noise != nil {
		if a, s := out.get(Action), out.get(bake.SampleOutput); a != nil && s != nil && a.DType() == s.DType() && a.Len() == s.Len() {
			// The best action is what the density is made of.
			out.best = slices.Clone(a.Bytes())
			copy(a.Bytes(), s.Bytes())
		}
	}
	l.keep(p, req, resp, &out)
	return choose(resp, req.Outputs)
}

// noise gives a request to a model that samples the noise of its draw, where it has none. It
// returns the noise, whoever drew it.
func (l *Log) noise(req *serve.Request, number uint64) (*tensor.Tensor, error) {
	for _, in := range req.Inputs {
		if in.Name == bake.NoiseInput {
			return in.Value, nil
		}
	}
	if !l.o.Explore || len(req.Inputs) == 0 || req.Inputs[0].Value == nil {
		return nil, nil
	}
	// Without noise, the version that answers is found by the request, and may be another one.
	m, err := l.Service.Metadata(req.Model, req.Version)
	if err != nil {
		return nil, nil //nolint:nilerr // the request itself says it better
	}
	for _, p := range m.Inputs {
		if p.Name != bake.NoiseInput || p.DType != tensor.Float32 || len(p.Shape) != 2 || p.Shape[1] < 1 || req.Inputs[0].Value.Rank() == 0 {
			continue
		}
		rows := req.Inputs[0].Value.Shape()[0]
		x, s := tensor.New(tensor.Float32, rows, p.Shape[1]), l.key.Split("noise", int(number)).Stream()
		for i := range x.Float32s() {
			if m.Info[bake.MetaNoise] == "gumbel" {
				x.Float32s()[i] = float32(-math.Log(s.Exp()))
			} else {
				x.Float32s()[i] = float32(s.Normal())
			}
		}
		req.Inputs = append(slices.Clone(req.Inputs), serve.Tensor{Name: bake.NoiseInput, Value: x})
		return x, nil
	}
	return nil, nil
}

// choose leaves of an answer the outputs that were asked for.
func choose(resp *serve.Response, names []string) error {
	if len(names) == 0 {
		return nil
	}
	list := make([]serve.Tensor, len(names))
	for k, name := range names {
		i := slices.IndexFunc(resp.Outputs, func(t serve.Tensor) bool { return t.Name == name })
		if i < 0 || slices.Index(names, name) != k {
			return &serve.Error{Code: serve.InvalidArgument, Model: resp.Model, Version: resp.Version, Err: errors.New("output " + strconv.Quote(name) + " is unknown, or asked for twice")}
		}
		list[k] = resp.Outputs[i]
	}
	resp.Outputs = list
	return nil
}

// keep hands the rows of a request over.
func (l *Log) keep(p *policy, req *serve.Request, resp *serve.Response, out *answer) {
	asked := func(name string) bool { return len(req.Outputs) == 0 || slices.Contains(req.Outputs, name) }
	action, rows := out.get(Action), 1
	if action == nil {
		return // It is no policy.
	}
	if out.noise != nil && !out.drawn {
		// The client has drawn.
		action = out.get(bake.SampleOutput)
	}
	if p.batch && len(req.Inputs) > 0 {
		rows = req.Inputs[0].Value.Shape()[0]
	}
	if action == nil || !asked(Action) && !asked(bake.SampleOutput) || rows == 0 {
		l.form.Add(uint64(max(rows, 1)))
		return
	}
	layout := p.layoutOf(req.Inputs, action)
	if layout == nil {
		l.form.Add(uint64(rows))
		return
	}
	now, o := time.Now().UnixMicro(), req.Sequence.Outcome
	reward := math.NaN()
	if o.Given {
		reward = o.Reward
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return
	}
	for i := range rows {
		e := entries.Get().(*entry)
		e.model, e.layout = resp.Model, layout
		e.row = decisionlog.Row{
			Time: now, Request: resp.ID, Row: int32(i), Version: resp.Version, Digest: resp.Digest, Sequence: req.Sequence.ID, Start: req.Sequence.Start, End: req.Sequence.End,
			Data: e.row.Data[:0], LogProb: p.logProb(out, action, i, rows), Reward: reward, Terminated: o.Terminated, Truncated: o.Truncated,
		}
		for _, in := range req.Inputs {
			if in.Name != bake.NoiseInput {
				e.row.Data = append(e.row.Data, rowOf(in.Value, i, rows)...)
			}
		}
		e.row.Data = append(e.row.Data, rowOf(action, i, rows)...)
		if l.o.Wait {
			l.rows <- e
			continue
		}
		select {
		case l.rows <- e:
		default:
			entries.Put(e)
			if l.queue.Add(1) == 1 {
				l.o.Log.Warn("decisions come faster than they can be written: some are not logged; further ones are counted only")
			}
		}
	}
}

// rowOf are the bytes of a row of several.
func rowOf(t *tensor.Tensor, i, rows int) []byte {
	b := t.Bytes()
	n := len(b) / rows
	return b[i*n : (i+1)*n]
}
