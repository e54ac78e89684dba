package decisions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Action is the output that is logged.
const Action = "action"

const (
	// maxOpen bounds the sequences whose last decision waits for its outcome: the one that has
	// waited longest makes room.
	maxOpen = 1 << 16
	// maxQueued bounds the lines that wait to be written.
	maxQueued = 1 << 12
)

// Counts are what a log has done so far.
type Counts struct {
	// Lines were handed on to be written. Broken are episodes whose rest was left out: because a
	// request gave no reward or no action, has a number that is none, or came when the disk could
	// not keep up.
	Lines, Broken uint64
}

// Log is a service that logs decisions. Beside the log it is the service that it stands before.
type Log struct {
	serve.Service
	log *slog.Logger

	mu     sync.Mutex
	open   map[key]*pending
	count  Counts
	closed bool

	lines chan []byte
	done  chan error
}

// key tells sequences apart.
type key struct{ model, id string }

// pending is the last decision of a sequence, which waits for its outcome.
type pending struct {
	episode string
	step    int
	// obs and action are in JSON, info is that of the request.
	obs, action, info []byte
	// broken says that the rest of the episode is left out.
	broken bool
	since  time.Time
}

// New returns a service that logs the decisions of s in a file, which is created, or continued
// after its last whole line. Warnings go to log. Close it after the last request.
func New(s serve.Service, path string, log *slog.Logger) (*Log, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("decisions: %w", err)
	}
	if err := whole(f); err != nil {
		return nil, errors.Join(fmt.Errorf("decisions: %s: %w", path, err), f.Close())
	}
	l := &Log{Service: s, log: log, open: map[key]*pending{}, lines: make(chan []byte, maxQueued), done: make(chan error, 1)}
	go l.write(f)
	return l, nil
}

// whole leaves the file at its end, without a last line that has none.
func whole(f *os.File) error {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	b := make([]byte, 4096)
	for at := end; at > 0; {
		n := min(int64(len(b)), at)
		if _, err := f.ReadAt(b[:n], at-n); err != nil {
			return err
		}
		for i := n - 1; i >= 0; i-- {
			if b[i] == '\n' {
				return cutAt(f, at-n+i+1)
			}
		}
		at -= n
	}
	return cutAt(f, 0)
}

func cutAt(f *os.File, size int64) error {
	if err := f.Truncate(size); err != nil {
		return err
	}
	_, err := f.Seek(size, io.SeekStart)
	return err
}

// write writes lines until there are no more. After an error the rest is thrown away.
func (l *Log) write(f *os.File) {
	var failed error
	for line := range l.lines {
		if failed != nil {
			continue
		}
		if _, failed = f.Write(line); failed != nil {
			l.log.Error("decisions are not logged any more", "error", failed)
		}
	}
	l.done <- errors.Join(failed, f.Sync(), f.Close())
}

// Infer implements serve.Service: it answers, and logs what is known by now.
func (l *Log) Infer(ctx context.Context, req *serve.Request, resp *serve.Response) error {
	err := l.Service.Infer(ctx, req, resp)
	if req.Sequence.ID != "" {
		l.append(req, resp, err == nil, time.Now())
	}
	return err
}

// append settles the decision before a request, and keeps the request's own.
func (l *Log) append(req *serve.Request, resp *serve.Response, answered bool, now time.Time) {
	k := key{req.Model, req.Sequence.ID}
	var obs, action, info []byte
	var seen, acted bool
	if answered {
		obs, seen = observation(req.Inputs)
		action, acted = actionOf(resp.Outputs)
		info = about(req, resp, now)
	}
	o := req.Sequence.Outcome
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	p := l.open[k]
	switch {
	case req.Sequence.Start || p == nil:
		if p != nil {
			// The sequence has begun anew without an end: what came of its last decision is not
			// known.
			delete(l.open, k)
		}
		if !req.Sequence.Start {
			return // It was given up, or begun before there was a log.
		}
		p = &pending{episode: req.Sequence.ID + " " + now.UTC().Format(time.RFC3339Nano), step: -1}
		l.room()
		l.open[k] = p
	case !p.broken:
		switch ends := o.Terminated || o.Truncated; {
		case !o.Given && req.Sequence.End:
			// It ends without saying what came of the last decision.
		case !o.Given || !finite(o.Reward) || !seen:
			l.breaks(p)
		case ends:
			l.line(p, o, obs)
		default:
			l.line(p, o, nil)
		}
	}
	if req.Sequence.End || o.Terminated || o.Truncated {
		delete(l.open, k)
		return
	}
	if !seen || !acted {
		l.breaks(p)
	}
	p.step++
	p.obs, p.action, p.info, p.since = obs, action, info, now
}

// breaks leaves out the rest of an episode.
func (l *Log) breaks(p *pending) {
	if p.broken {
		return
	}
	p.broken = true
	if l.count.Broken++; l.count.Broken == 1 {
		l.log.Warn("of an episode the rest is not logged: a request gave no reward, no action was asked for, a number is none, or the disk cannot keep up; further ones are counted only", "episode", p.episode)
	}
}

// room makes room for another sequence.
func (l *Log) room() {
	if len(l.open) < maxOpen {
		return
	}
	var oldest key
	var since time.Time
	for k, p := range l.open {
		if since.IsZero() || p.since.Before(since) {
			oldest, since = k, p.since
		}
	}
	l.breaks(l.open[oldest])
	delete(l.open, oldest)
}

// line writes a decision with its outcome; final is the observation after it, nil where the episode
// goes on.
func (l *Log) line(p *pending, o serve.Outcome, final []byte) {
	b := make([]byte, 0, len(p.obs)+len(p.action)+len(p.info)+len(final)+256)
	b = append(b, `{"episode":`...)
	b = append(b, quoted(p.episode)...)
	b = strconv.AppendInt(append(b, `,"step":`...), int64(p.step), 10)
	b = append(append(b, `,"obs":`...), p.obs...)
	b = append(append(b, `,"action":`...), p.action...)
	b = strconv.AppendFloat(append(b, `,"reward":`...), o.Reward, 'g', -1, 64)
	switch {
	case o.Terminated:
		b = append(b, `,"terminated":true`...)
	case o.Truncated:
		b = append(b, `,"truncated":true`...)
	}
	if final != nil {
		b = append(append(b, `,"final_obs":`...), final...)
	}
	b = append(append(append(b, `,"info":`...), p.info...), '}', '\n')
	select {
	case l.lines <- b:
		l.count.Lines++
	default:
		l.breaks(p)
	}
}

// Counts returns what was logged so far.
func (l *Log) Counts() Counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count
}

// Close writes what waits and closes the file. Requests afterwards are answered and not logged.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	close(l.lines)
	l.mu.Unlock()
	if err := <-l.done; err != nil {
		return fmt.Errorf("decisions: %w", err)
	}
	return nil
}

// observation has inputs as an object; it is false where a number is none.
func observation(list []serve.Tensor) ([]byte, bool) {
	b, sound := []byte{'{'}, true
	for i, in := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, quoted(in.Name)...), ':')
		var ok bool
		b, ok = values(b, in.Value)
		sound = sound && ok
	}
	return append(b, '}'), sound
}

// actionOf is the action among outputs; it is false where there is none.
func actionOf(list []serve.Tensor) ([]byte, bool) {
	for _, out := range list {
		if out.Name == Action {
			return values(nil, out.Value)
		}
	}
	return nil, false
}

// about says where a decision comes from.
func about(req *serve.Request, resp *serve.Response, now time.Time) []byte {
	// Strings can be encoded.
	b, _ := json.Marshal(struct {
		Time    time.Time `json:"time"`
		Model   string    `json:"model"`
		Version string    `json:"version"`
		Request string    `json:"request,omitempty"`
	}{now.UTC(), resp.Model, resp.Version, req.ID})
	return b
}

func quoted(s string) []byte {
	// Strings can be encoded.
	b, _ := json.Marshal(s)
	return b
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// values appends the elements of a tensor as a list of numbers, by which they can be told exactly;
// it is false where one is none.
func values(b []byte, t *tensor.Tensor) ([]byte, bool) {
	if t == nil {
		return append(b, `null`...), false
	}
	sound := true
	float := func(x float64, bits int) {
		if !finite(x) {
			sound = false
			b = append(b, `null`...)
			return
		}
		b = strconv.AppendFloat(b, x, 'g', -1, bits)
	}
	b = append(b, '[')
	for i := range t.Len() {
		if i > 0 {
			b = append(b, ',')
		}
		switch t.DType() {
		case tensor.Float32:
			float(float64(t.Float32s()[i]), 32)
		case tensor.Float64:
			float(t.Float64s()[i], 64)
		case tensor.Int64:
			b = strconv.AppendInt(b, t.Int64s()[i], 10)
		case tensor.Int32:
			b = strconv.AppendInt(b, int64(t.Int32s()[i]), 10)
		case tensor.Uint8:
			b = strconv.AppendUint(b, uint64(t.Bytes()[i]), 10)
		case tensor.Bool:
			x := byte('0')
			if t.Bools()[i] {
				x = '1'
			}
			b = append(b, x)
		default:
			return append(b, ']'), false
		}
	}
	return append(b, ']'), sound
}
