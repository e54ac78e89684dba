package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
)

// beat is how often a worker says that it lives.
const beat = time.Second

// Serve carries out the jobs that come in, one at a time, and says on out how they go, until in
// ends: the process that has started this one has ended or wants no more. A job that is going on
// then saves its state. note is where the caller says what somebody should know, such as what data
// knows of the future: what it is given reaches the other process.
func Serve(ctx context.Context, l *Local, hello Hello, in io.Reader, out io.Writer, note func(say func(text string))) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &serving{out: json.NewEncoder(out), answers: make(chan string, 1)}
	if err := s.send(message{Hello: &hello}); err != nil {
		return err
	}
	if note != nil {
		note(func(text string) { _ = s.send(message{Note: text}) })
	}
	go s.live(ctx)
	jobs := make(chan taken)
	var lost error
	go func() {
		defer cancel()
		defer close(jobs)
		lost = s.read(ctx, in, jobs)
	}()
	for {
		select {
		case <-ctx.Done():
			return nil
		case k, ok := <-jobs:
			if !ok {
				return lost
			}
			err := s.carryOut(k.ctx, l, k.job)
			k.cancel()
			if err != nil {
				return err
			}
		}
	}
}

// taken is a job that came in, with what ends it.
type taken struct {
	job    run.Job
	ctx    context.Context
	cancel context.CancelFunc
}

// serving is one connection of a worker.
type serving struct {
	mu  sync.Mutex
	out *json.Encoder
	// cancel ends the last job that came in; nil before the first.
	cancel context.CancelFunc
	// answers has what the other process says of an evaluation.
	answers chan string
}

func (s *serving) send(m message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out.Encode(m)
}

// live says that the process lives, until ctx ends.
func (s *serving) live(ctx context.Context) {
	tick := time.NewTicker(beat)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if s.send(message{Alive: true}) != nil {
				return // It is noticed by what is read.
			}
		}
	}
}

// read hands on what comes in.
func (s *serving) read(ctx context.Context, in io.Reader, jobs chan<- taken) error {
	d := json.NewDecoder(bufio.NewReader(in))
	for {
		var m message
		if err := d.Decode(&m); err != nil {
			s.end()
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return nil
			}
			return fmt.Errorf("a message that is none: %w", err)
		}
		switch {
		case m.Job != nil:
			// Before the job goes on, so that what cancels it may come at once.
			k := taken{job: *m.Job}
			k.ctx, k.cancel = context.WithCancel(ctx)
			s.mu.Lock()
			s.cancel = k.cancel
			s.mu.Unlock()
			select {
			case jobs <- k:
			case <-ctx.Done():
				k.cancel()
				return nil
			}
		case m.Cancel:
			s.end()
		case m.Answer != "":
			select {
			case s.answers <- m.Answer:
			default: // Nobody has asked.
			}
		}
	}
}

// end ends the job that goes on, if there is one.
func (s *serving) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cancel != nil {
		s.cancel()
	}
}

// errStopped ends a job that the other process does not want to go on.
var errStopped = errors.New("stopped after an evaluation")

// showEvery is how often progress is reported at most.
const showEvery = 100 * time.Millisecond

func (s *serving) carryOut(ctx context.Context, l *Local, j run.Job) error {
	var shown time.Time
	var last *train.Progress
	r, err := l.Do(ctx, j, run.Hooks{
		Note: func(text string) { _ = s.send(message{Note: text}) },
		Progress: func(_ *run.Run, p train.Progress) {
			if last = &p; time.Since(shown) >= showEvery {
				shown, last = time.Now(), nil
				_ = s.send(message{Progress: &p})
			}
		},
		Evaluated: func(_ *run.Run, at int64, m map[string]float64) error {
			select {
			case <-s.answers: // That of a job which was cancelled before it came.
			default:
			}
			if err := s.send(message{Evaluated: &evaluated{EnvSteps: at, Metrics: m}}); err != nil {
				return err
			}
			select {
			case answer := <-s.answers:
				if answer != goOn {
					return errStopped
				}
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	})
	if last != nil {
		_ = s.send(message{Progress: last})
	}
	return s.send(message{Result: resultOf(r, err)})
}
