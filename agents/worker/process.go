package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/runtime/processes"
)

// process is a worker that this process has started.
type process struct {
	o     Options
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *json.Encoder
	hello Hello
	// messages is what the worker says; it is closed when the worker's output has ended.
	messages chan message
	log      *processes.Tail
	wait     func() error
}

// kept is how many bytes of a worker's output are reported when it has ended.
const kept = 2048

// lostError says that a worker has ended, or was ended, in the middle of a job.
type lostError struct{ text string }

func (e *lostError) Error() string { return e.text }

// start starts a worker and waits until it has said what it is.
func start(o Options) (*process, error) {
	w := &process{o: o, cmd: o.Command(), messages: make(chan message, 16), log: &processes.Tail{Limit: kept, Copy: o.Log}}
	processes.Apart(w.cmd)
	w.cmd.Stderr = w.log
	// Processes that the worker has started may keep its streams open.
	w.cmd.WaitDelay = time.Second
	in, err := w.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	if o.started != nil {
		o.started(w.cmd.Process)
	}
	w.in, w.out = in, json.NewEncoder(in)
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(w.messages)
		d := json.NewDecoder(bufio.NewReader(out))
		for {
			var m message
			if d.Decode(&m) != nil {
				return // It has ended, or says what nobody understands: both are found out below.
			}
			w.messages <- m
		}
	}()
	w.wait = sync.OnceValue(func() error {
		<-read
		return w.cmd.Wait()
	})
	select {
	case m, ok := <-w.messages:
		if ok && m.Hello != nil {
			w.hello = *m.Hello
			return w, nil
		}
		err = errors.New("it said something else than what it is")
		if !ok {
			err = w.ended()
		}
	case <-time.After(o.Silence):
		err = fmt.Errorf("it has said nothing for %v", o.Silence)
	}
	_ = w.kill()
	return nil, &lostError{fmt.Sprintf("start a worker, %s: %v", w.cmd.Path, err)}
}

// do has the worker carry out a job.
func (w *process) do(ctx context.Context, j run.Job, h run.Hooks) (r run.Result, err error) {
	if err := w.out.Encode(message{Job: &j}); err != nil {
		return r, &lostError{fmt.Sprintf("the worker takes no job: %v", w.ended())}
	}
	cancelled := ctx.Done()
	var late <-chan time.Time
	// Silence is counted and not measured: while the machine sleeps, neither side is heard.
	beats := time.NewTicker(beat)
	defer beats.Stop()
	silent := 0
	var refused error
	for {
		select {
		case <-cancelled:
			cancelled = nil
			late = time.After(w.o.Grace)
			_ = w.out.Encode(message{Cancel: true}) // A worker that takes none has ended.
		case <-late:
			return r, &lostError{fmt.Sprintf("the worker did not stop within %v", w.o.Grace)}
		case <-beats.C:
			if silent++; time.Duration(silent)*beat > w.o.Silence {
				return r, &lostError{fmt.Sprintf("the worker has said nothing for %v and was ended", w.o.Silence)}
			}
		case m, ok := <-w.messages:
			silent = 0
			switch {
			case !ok && refused != nil:
				return r, refused // The job was to end.
			case !ok:
				return r, &lostError{fmt.Sprintf("the worker has ended: %v", w.ended())}
			case m.Note != "":
				h.Note(m.Note)
			case m.Progress != nil:
				if h.Progress != nil {
					h.Progress(nil, *m.Progress)
				}
			case m.Evaluated != nil:
				answer := goOn
				if h.Evaluated != nil && refused == nil {
					refused = h.Evaluated(nil, m.Evaluated.EnvSteps, m.Evaluated.Metrics)
				}
				if refused != nil {
					answer = stop
				}
				_ = w.out.Encode(message{Answer: answer})
			case m.Result != nil:
				err := m.Result.Failure.Err()
				switch {
				case refused != nil:
					err = refused
				case errors.Is(err, context.Canceled) && ctx.Err() != nil:
					err = ctx.Err()
				case errors.Is(err, context.Canceled):
					err = &lostError{"the worker was told to stop by somebody else"}
				}
				return m.Result.Result, err
			}
		}
	}
}

// dying is how long a worker that says nothing any more may take to end by itself.
const dying = time.Second

// ended is why a worker is no more, with what it wrote last; one that still is, is ended.
func (w *process) ended() error {
	w.drain()
	late := time.AfterFunc(dying, func() { _ = processes.Kill(w.cmd.Process) })
	err := w.wait()
	late.Stop()
	if err == nil {
		err = errors.New("exit status 0")
	}
	if text := w.log.String(); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return err
}

// kill ends the worker at once, and returns how it has ended.
func (w *process) kill() error {
	if err := processes.Kill(w.cmd.Process); err != nil {
		return err
	}
	w.drain()
	return w.wait()
}

// drain lets the reader go on to the end of what the worker says, where nobody takes that.
func (w *process) drain() {
	go func() {
		for range w.messages {
		}
	}()
}

// close asks the worker to end, and ends it where it does not.
func (w *process) close(grace time.Duration) error {
	_ = w.in.Close() // Ends what it reads; one that is gone has no use for that.
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.drain()
		_ = w.wait()
	}()
	select {
	case <-done:
		return nil
	case <-time.After(grace):
		err := processes.Kill(w.cmd.Process)
		<-done
		return err
	}
}
