package actors

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
)

// Conn is a connection to where an actor is served, see [Serve]. Close has it end, and may be
// called while something is read.
type Conn interface {
	io.ReadWriteCloser
	// Ending says how it has ended, for errors.
	Ending() string
	// Where is the address of another machine, for errors; empty is this one.
	Where() string
}

// Remote says how actors are reached that live elsewhere.
type Remote struct {
	// Launch starts, or connects to, what serves an actor.
	Launch func(ctx context.Context, index int) (Conn, error)
	// Document is that of the run.
	Document []byte
}

// LostError says that whoever served an actor has gone, with the unroll that was being played.
// Where is the address of another machine, or empty.
type LostError struct{ Where, How string }

func (e *LostError) Error() string {
	if e.Where == "" {
		return "its process has ended: " + e.How
	}
	return "it is lost at " + e.Where + ": " + e.How
}

// remote is an actor that lives elsewhere.
type remote struct {
	to           *Remote
	index, count int
	params       map[string][]byte

	conn Conn
	buf  *bufio.Writer
	enc  *gob.Encoder
	dec  *gob.Decoder
}

// begin begins in another process, with the parameters of the learner.
func (r *remote) begin(ctx context.Context, params map[string][]byte, at *Position) error {
	r.params = params
	return r.again(ctx, at)
}

// again begins in another process.
func (r *remote) again(ctx context.Context, at *Position) error {
	if err := r.Close(); err != nil {
		return err
	}
	conn, err := r.to.Launch(ctx, r.index)
	if err != nil {
		return err
	}
	r.conn, r.buf = conn, bufio.NewWriterSize(conn, 1<<16)
	r.enc, r.dec = gob.NewEncoder(r.buf), gob.NewDecoder(bufio.NewReaderSize(conn, 1<<16))
	_, err = r.ask(ctx, &request{Begin: &beginning{Protocol: protocol, Document: r.to.Document, Index: r.index, Count: r.count, Params: r.params, Position: at}})
	return err
}

// Play is Actor.Play.
func (r *remote) Play(ctx context.Context, number int64, w *Weights) (*Played, error) {
	o := &order{Number: number}
	o.Version, o.Values = w.bytes()
	h, err := r.ask(ctx, &request{Play: o})
	if err != nil {
		return nil, err
	}
	if h == nil {
		return nil, errors.New("its process has answered with no unroll")
	}
	return h.unpack()
}

// ask sends a request and waits for the reply. When ctx ends, so does the process.
func (r *remote) ask(ctx context.Context, q *request) (*handed, error) {
	if r.conn == nil {
		return nil, &LostError{How: "it was not started"}
	}
	conn := r.conn
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	var a reply
	err := r.enc.Encode(q)
	if err == nil {
		err = r.buf.Flush()
	}
	if err == nil {
		err = r.dec.Decode(&a)
	}
	if !stop() {
		r.conn = nil
		return nil, ctx.Err()
	}
	if err != nil {
		how := conn.Ending()
		r.conn = nil
		// It says nothing that is not known.
		_ = conn.Close()
		return nil, &LostError{conn.Where(), how}
	}
	switch {
	case a.Error == "":
		return a.Played, nil
	case conn.Where() == "":
		return nil, errors.New(a.Error)
	default:
		return nil, fmt.Errorf("%s: %s", conn.Where(), a.Error)
	}
}

// Close ends the process.
func (r *remote) Close() error {
	if r.conn == nil {
		return nil
	}
	err := r.conn.Close()
	r.conn = nil
	return err
}

func littleEndian(x []float32) []byte {
	b := make([]byte, 0, 4*len(x))
	// A slice of numbers always can be.
	b, _ = binary.Append(b, binary.LittleEndian, x)
	return b
}

// bytes returns the newest values as they are sent.
func (w *Weights) bytes() (version int64, list [][]byte) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	for _, v := range w.values {
		list = append(list, littleEndian(v))
	}
	return w.version, list
}

// receive replaces the values by those that were sent.
func (w *Weights) receive(version int64, list [][]byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version, w.values = version, make([][]float32, len(list))
	for i, b := range list {
		if len(b)%4 != 0 {
			return fmt.Errorf("parameters of %d bytes", len(b))
		}
		w.values[i] = make([]float32, len(b)/4)
		if _, err := binary.Decode(b, binary.LittleEndian, w.values[i]); err != nil {
			return err
		}
	}
	return nil
}
