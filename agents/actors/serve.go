package actors

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"

	"github.com/onnxrl/onnxrl/agents"
)

// Opened is what a document has become where an actor is served.
type Opened struct {
	Actor *Actor
	Maker agents.Maker
	// Setup is what the agent of the learner is made with, see package train.
	Setup agents.Setup
	// Close frees what is under the actor, after it; nil frees nothing.
	Close func() error
}

// Serve plays unrolls for a group in another process, until its input ends. open opens the document
// of the run for one of its actors. The group receives the error of an unroll that fails; the error
// returned is that of the connection.
func Serve(ctx context.Context, in io.Reader, out io.Writer, open func(ctx context.Context, document []byte, index int) (Opened, error)) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	requests := make(chan *request)
	go func() {
		defer close(requests)
		// An unroll that nobody waits for any more is given up.
		defer cancel()
		dec := gob.NewDecoder(bufio.NewReaderSize(in, 1<<16))
		for {
			q := &request{}
			if dec.Decode(q) != nil {
				return
			}
			select {
			case requests <- q:
			case <-ctx.Done():
				return
			}
		}
	}()
	s := &served{open: open}
	defer func() { err = errors.Join(err, s.close()) }()
	buf := bufio.NewWriterSize(out, 1<<16)
	enc := gob.NewEncoder(buf)
	for q := range requests {
		var a reply
		h, err := s.answer(ctx, q)
		if ctx.Err() != nil {
			return nil
		}
		if a.Played = h; err != nil {
			a.Error = err.Error()
		}
		if err := enc.Encode(a); err != nil {
			return fmt.Errorf("answer: %w", err)
		}
		if err := buf.Flush(); err != nil {
			return fmt.Errorf("answer: %w", err)
		}
	}
	return nil
}

// served is the actor of a process.
type served struct {
	open    func(ctx context.Context, document []byte, index int) (Opened, error)
	opened  Opened
	weights Weights
}

func (s *served) answer(ctx context.Context, q *request) (*handed, error) {
	switch {
	case q.Begin != nil && s.opened.Actor == nil:
		return nil, s.begin(ctx, q.Begin)
	case q.Play != nil && s.opened.Actor != nil:
		if err := s.weights.receive(q.Play.Version, q.Play.Values); err != nil {
			return nil, err
		}
		p, err := s.opened.Actor.Play(ctx, q.Play.Number, &s.weights)
		if err != nil {
			return nil, err
		}
		return pack(p)
	}
	return nil, errors.New("a request that is not expected here")
}

func (s *served) begin(ctx context.Context, b *beginning) error {
	if b.Protocol != protocol {
		return fmt.Errorf("the learner has version %d of the protocol, and the actor %d: both are to be of one version of the program", b.Protocol, protocol)
	}
	if b.Count < 1 || b.Index < 0 || b.Index >= b.Count {
		return fmt.Errorf("actor %d of %d", b.Index, b.Count)
	}
	o, err := s.open(ctx, b.Document, b.Index)
	if err != nil {
		return err
	}
	s.opened = o
	return o.Actor.Begin(ctx, o.Maker, Setup(o.Setup, func(name string) []byte { return b.Params[name] }, b.Index, b.Count), b.Position)
}

func (s *served) close() error {
	var errs []error
	if s.opened.Actor != nil {
		errs = append(errs, s.opened.Actor.Close())
	}
	if s.opened.Close != nil {
		errs = append(errs, s.opened.Close())
	}
	return errors.Join(errs...)
}
