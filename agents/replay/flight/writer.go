package flight

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/flight"

	"github.com/onnxrl/onnxrl/runtime/flightrpc"
)

// window is the number of batches of a writer that may be under way.
const window = 16

// Writer sends record batches to a table, numbered, and again where the connection or the server
// has ended before they were acknowledged. It belongs to one goroutine.
type Writer struct {
	c      *Client
	cmd    PutCommand
	schema *arrow.Schema
	seq    int64
	stream flight.FlightService_DoPutClient
	cancel context.CancelFunc

	mu    sync.Mutex
	acked sync.Cond
	// pending are the batches that are not acknowledged; broken is the end of the stream.
	pending []sent
	clock   int64
	broken  error
	// told says that an error of the stream was returned, after which nothing is sent any more.
	told bool
}

type sent struct {
	seq  int64
	rec  arrow.Record
	meta json.RawMessage
}

// Writer opens a writer of record batches of a schema; a name that has written goes on.
func (c *Client) Writer(cmd PutCommand, schema *arrow.Schema) (*Writer, error) {
	w := &Writer{c: c, cmd: cmd, schema: schema, seq: -1}
	w.acked.L = &w.mu
	return w, c.explain(cmd.Table, c.retry(w.connect))
}

// connect opens the stream and sends what is pending again.
func (w *Writer) connect() error {
	if w.cancel != nil {
		w.cancel()
	}
	b, err := json.Marshal(w.cmd)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(w.c.ctx)
	w.cancel = cancel
	stream, err := w.c.conn.DoPut(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&flight.FlightData{FlightDescriptor: &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: b}, DataHeader: schemaHeader(w.schema)}); err != nil {
		_, err = stream.Recv()
		return err
	}
	var hello Ack
	r, err := stream.Recv()
	if err == nil {
		err = json.Unmarshal(r.AppMetadata, &hello)
	}
	if err != nil {
		return err
	}
	w.mu.Lock()
	if w.seq < 0 {
		w.seq = hello.Seq
	}
	w.cmd.Writer = hello.Writer
	for len(w.pending) > 0 && w.pending[0].seq <= hello.Seq {
		w.pending[0].rec.Release()
		w.pending = w.pending[1:]
	}
	w.stream, w.broken, w.clock = stream, nil, hello.Clock
	list := w.pending
	w.mu.Unlock()
	go w.receive(stream)
	for _, x := range list {
		if err := w.send(x); err != nil {
			return err
		}
	}
	return nil
}

// receive takes acknowledgements until the stream ends.
func (w *Writer) receive(stream flight.FlightService_DoPutClient) {
	for {
		r, err := stream.Recv()
		var a Ack
		if err == nil {
			err = json.Unmarshal(r.AppMetadata, &a)
		}
		w.mu.Lock()
		if stream != w.stream {
			w.mu.Unlock()
			return
		}
		if err != nil {
			w.broken = err
			w.acked.Broadcast()
			w.mu.Unlock()
			return
		}
		w.clock = a.Clock
		for len(w.pending) > 0 && w.pending[0].seq <= a.Seq {
			w.pending[0].rec.Release()
			w.pending = w.pending[1:]
		}
		w.acked.Broadcast()
		w.mu.Unlock()
	}
}

func (w *Writer) send(x sent) error {
	b, err := json.Marshal(Insert{Seq: x.seq, Meta: x.meta})
	if err != nil {
		return err
	}
	d, err := batchData(x.rec)
	if err != nil {
		return err
	}
	d.AppMetadata = b
	if err := w.stream.Send(d); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	// receive finds the error that the stream ended with.
	return nil
}

// Put sends a record batch, which it keeps until it is acknowledged, and waits while too many are
// not.
func (w *Writer) Put(rec arrow.Record, meta json.RawMessage) error {
	if err := w.until(window - 1); err != nil {
		return err
	}
	rec.Retain()
	w.mu.Lock()
	w.seq++
	x := sent{w.seq, rec, meta}
	w.pending = append(w.pending, x)
	w.mu.Unlock()
	return w.c.explain(w.cmd.Table, w.send(x))
}

// Flush waits until the server has everything on its disk.
func (w *Writer) Flush() error { return w.until(0) }

// until waits until at most so many batches are not acknowledged.
func (w *Writer) until(most int) error {
	for {
		w.mu.Lock()
		for len(w.pending) > most && w.broken == nil {
			w.acked.Wait()
		}
		n, broken := len(w.pending), w.broken
		w.mu.Unlock()
		if broken != nil {
			err := broken
			if flightrpc.Again(broken) {
				err = w.c.retry(w.connect)
			}
			if err != nil {
				w.told = true
				return w.c.explain(w.cmd.Table, err)
			}
			continue
		}
		if n <= most {
			return nil
		}
	}
}

// Clock is the number of transitions, or items, that were ever inserted, by all, as far as the
// server has said.
func (w *Writer) Clock() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clock
}

// Close waits for what is under way and ends the stream. After an error that was returned it does
// not wait.
func (w *Writer) Close() error {
	if w.told {
		w.cancel()
		return nil
	}
	err := w.Flush()
	if w.stream != nil {
		err = errors.Join(err, w.stream.CloseSend())
		// A server that hears this ends the stream; another is not waited for longer than that.
		defer time.AfterFunc(w.c.c.Timeout, w.cancel).Stop()
		w.mu.Lock()
		for w.broken == nil {
			w.acked.Wait()
		}
		w.mu.Unlock()
	}
	w.cancel()
	return err
}
