package worker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
)

// Options say what a [Pool] consists of.
type Options struct {
	// Workers is how many processes there are, at least 1. They are started when they are needed.
	Workers int
	// Command returns the command of a worker, which serves jobs on its standard streams.
	Command func() *exec.Cmd
	// Hello is what this process would say of itself; a worker that does not fit is refused.
	Hello Hello
	// Log, unless nil, is where what workers write on their standard error goes.
	Log io.Writer
	// Note, unless nil, receives messages for the user, each once: that a worker has ended and
	// its job goes on in another.
	Note func(text string)
	// Tries is how many workers a job may end with before it fails; 0 is 3. Silence is how long a
	// worker may say nothing before it counts as hung and is ended; 0 is a minute. Grace is how
	// long one may take to save after it was asked to stop; 0 is 25 seconds.
	Tries          int
	Silence, Grace time.Duration

	// started receives every process; nil outside of tests.
	started func(p *os.Process)
}

// Pool is the executor that carries jobs out in processes of this machine. A process that ends, or
// hangs, takes nothing with it: its job goes on from where it has saved, in another process.
type Pool struct {
	o Options
	// idle has a place for each worker: one that waits, or nil for one to be started.
	idle   chan *process
	mu     sync.Mutex
	said   map[string]bool
	closed bool
}

var _ run.Executor = (*Pool)(nil)

// NewPool returns a pool. Nothing is started before the first job. Close it after use.
func NewPool(o Options) (*Pool, error) {
	if o.Workers < 1 {
		return nil, fmt.Errorf("%d workers, expected at least 1", o.Workers)
	}
	if o.Tries == 0 {
		o.Tries = 3
	}
	if o.Silence == 0 {
		o.Silence = time.Minute
	}
	if o.Grace == 0 {
		o.Grace = 25 * time.Second
	}
	p := &Pool{o: o, idle: make(chan *process, o.Workers), said: map[string]bool{}}
	for range o.Workers {
		p.idle <- nil
	}
	return p, nil
}

// Slots implements run.Executor.
func (p *Pool) Slots() int { return p.o.Workers }

// Do implements run.Executor.
func (p *Pool) Do(ctx context.Context, j run.Job, h run.Hooks) (r run.Result, err error) {
	w, err := p.take(ctx)
	if err != nil {
		return r, err
	}
	defer func() { p.idle <- w }()
	told := tellOnce(h)
	told.Note = p.note
	for try := 1; ; try++ {
		if w == nil {
			w, err = p.start()
		}
		if err == nil {
			r, err = w.do(ctx, j, told)
		}
		var lost *lostError
		if !errors.As(err, &lost) {
			return r, err
		}
		if w != nil {
			_ = w.kill()
			w = nil
		}
		if ctx.Err() != nil {
			return r, ctx.Err()
		}
		if try == p.o.Tries {
			return r, fmt.Errorf("%w; it was tried %d times", err, try)
		}
		p.note(fmt.Sprintf("%s: %v; it goes on in another worker", j.ID, err))
	}
}

// start starts a worker that fits.
func (p *Pool) start() (*process, error) {
	w, err := start(p.o)
	if err != nil {
		return nil, err
	}
	differs, err := p.o.Hello.Fits(w.hello)
	if err != nil {
		_ = w.kill()
		return nil, err
	}
	if differs != "" {
		p.note(differs)
	}
	return w, nil
}

// take waits for a worker.
func (p *Pool) take(ctx context.Context) (*process, error) {
	select {
	case w := <-p.idle:
		if err := ctx.Err(); err != nil {
			p.idle <- w
			return nil, err
		}
		return w, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// note says what was not said yet.
func (p *Pool) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.o.Note != nil && !p.said[text] {
		p.said[text] = true
		p.o.Note(text)
	}
}

// tellOnce are hooks that may be called again for what a job has done before its worker ended:
// evaluations and env steps are reported once. A job that begins again does the same again.
func tellOnce(h run.Hooks) run.Hooks {
	out := h
	reached, judged := int64(-1), int64(-1)
	if h.Progress != nil {
		out.Progress = func(_ *run.Run, p train.Progress) {
			if p.EnvSteps >= reached {
				reached = p.EnvSteps
				h.Progress(nil, p)
			}
		}
	}
	if h.Evaluated != nil {
		out.Evaluated = func(_ *run.Run, at int64, m map[string]float64) error {
			if at <= judged {
				return nil
			}
			judged = at
			return h.Evaluated(nil, at, m)
		}
	}
	return out
}

// Close ends the workers. No job may be going on.
func (p *Pool) Close() error {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil
	}
	p.closed = true
	p.mu.Unlock()
	var errs []error
	for range p.o.Workers {
		if w := <-p.idle; w != nil {
			errs = append(errs, w.close(p.o.Grace))
		}
	}
	return errors.Join(errs...)
}
