package flight

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/flight"

	"github.com/onnxrl/onnxrl/runtime/flightrpc"
)

// Reader asks a table for samples, or a queue for items. It belongs to one goroutine.
//
// A connection or a server that ends loses nothing and gives nothing twice: the reader asks again
// for items that have not come, and tells the server which of the items that have come it holds,
// and which it is done with. Only where it has given an item to another reader in between do both
// have it.
type Reader struct {
	c      *Client
	cmd    SampleCommand
	stream flight.FlightService_DoExchangeClient
	in     *flight.Reader
	cancel context.CancelFunc
	// asked are the requests whose samples, or items, have not come yet, one for each.
	asked []asked
	// number is that of the last request.
	number int64
	// held are the items that have come, and of which it is not known that the server has on its
	// disk that they are done with.
	held []held
}

type asked struct {
	q      SampleRequest
	number int64
}

type held struct {
	item, number int64
	done         bool
}

// Reader opens a reader.
func (c *Client) Reader(cmd SampleCommand) (*Reader, error) {
	r := &Reader{c: c, cmd: cmd}
	return r, c.explain(cmd.Table, c.retry(r.connect))
}

// connect opens the stream and asks again for what was asked for.
func (r *Reader) connect() (err error) {
	r.Close()
	defer func() {
		if err != nil {
			r.Close()
		}
	}()
	b, err := json.Marshal(r.cmd)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.c.ctx)
	r.cancel = cancel
	if r.stream, err = r.c.conn.DoExchange(ctx); err != nil {
		return err
	}
	if err := r.stream.Send(&flight.FlightData{FlightDescriptor: &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: b}}); err != nil {
		return r.end(err)
	}
	if r.cmd.Batch > 0 {
		for _, a := range r.asked {
			if err := r.send(a.q); err != nil {
				return err
			}
		}
		return nil
	}
	// Of a queue all are one request, so that none says that those before it are done with.
	q := SampleRequest{Take: len(r.asked), Done: len(r.asked) == 0}
	r.number++
	for i := range r.asked {
		r.asked[i].number = r.number
	}
	for i := range r.held {
		h := &r.held[i]
		h.number = r.number
		if h.done {
			q.Finished = append(q.Finished, h.item)
		} else {
			q.Held = append(q.Held, h.item)
		}
	}
	if q.Done && len(r.held) == 0 {
		return nil
	}
	return r.send(q)
}

// end is what the stream has ended with, where sending only says that it has.
func (r *Reader) end(err error) error {
	if errors.Is(err, io.EOF) {
		if _, inner := r.stream.Recv(); inner != nil {
			return inner
		}
	}
	return err
}

func (r *Reader) send(q SampleRequest) error {
	b, err := json.Marshal(q)
	if err != nil {
		return err
	}
	if err := r.stream.Send(&flight.FlightData{AppMetadata: b}); err != nil {
		return r.end(err)
	}
	return nil
}

// Ask asks for a sample, or for items. The samples come in this order. Of a queue it says that the
// items of all requests before are done with.
func (r *Reader) Ask(q SampleRequest) error {
	r.number++
	for i := range r.held {
		r.held[i].done = true
	}
	if !q.Done {
		for range max(1, q.Take) {
			one := q
			one.Take = 0
			r.asked = append(r.asked, asked{one, r.number})
		}
	}
	var err error
	if r.stream != nil {
		err = r.send(q)
	}
	if r.stream == nil || err != nil && flightrpc.Again(err) {
		// The items that were asked for are asked for again.
		err = r.c.retry(r.connect)
	}
	return r.c.explain(r.cmd.Table, err)
}

// Asked is the number of samples, or items, that have been asked for and have not come.
func (r *Reader) Asked() int { return len(r.asked) }

// Next returns the next sample, or item, which is good until the next call.
func (r *Reader) Next() (rec arrow.Record, about Sampled, err error) {
	if len(r.asked) == 0 {
		return nil, about, r.c.explain(r.cmd.Table, errors.New("nothing was asked for"))
	}
	err = r.c.retry(func() error {
		if r.stream == nil {
			if err := r.connect(); err != nil {
				return err
			}
		}
		err := r.next(&rec)
		if err != nil {
			r.Close()
		}
		return err
	})
	if err == nil {
		err = json.Unmarshal(r.in.LatestAppMetadata(), &about)
	}
	if err != nil {
		return nil, about, r.c.explain(r.cmd.Table, err)
	}
	number := r.asked[0].number
	r.asked = r.asked[1:]
	if about.Item > 0 {
		// The server has worked off the requests before this one.
		r.held = slices.DeleteFunc(r.held, func(h held) bool { return h.number < number })
		r.held = append(r.held, held{about.Item, number, r.number > number})
	}
	return rec, about, nil
}

func (r *Reader) next(rec *arrow.Record) (err error) {
	if r.in == nil {
		if r.in, err = newReader(r.stream); err != nil {
			r.in = nil
			return err
		}
	}
	if !r.in.Next() {
		if err := r.in.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	*rec = r.in.Record()
	return nil
}

// Finish says that all items that have come are done with, and ends the stream when the server has
// that on its disk. What was asked for and has not come stays in the queue.
func (r *Reader) Finish() error {
	if len(r.asked) > 0 {
		r.asked = nil
		r.Close()
	}
	if r.stream == nil && len(r.held) == 0 {
		return nil
	}
	for i := range r.held {
		r.held[i].done = true
	}
	err := r.c.retry(func() (err error) {
		if r.stream == nil {
			err = r.connect()
		} else {
			err = r.send(SampleRequest{Done: true})
		}
		if err == nil {
			err = r.stream.CloseSend()
		}
		for err == nil {
			_, err = r.stream.Recv()
		}
		r.Close()
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	})
	if err == nil {
		r.held = nil
	}
	return r.c.explain(r.cmd.Table, err)
}

// Close ends the stream. Items that have come since the last request go back into their queue.
func (r *Reader) Close() error {
	if r.cancel != nil {
		r.cancel()
	}
	if r.in != nil {
		r.in.Release()
	}
	r.in, r.cancel, r.stream = nil, nil, nil
	return nil
}
