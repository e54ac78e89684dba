package flight

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/apache/arrow/go/v15/arrow/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/onnxrl/onnxrl/runtime/flightrpc"
)

// conn is a stream to an actor on another machine.
type conn struct {
	url    string
	c      *flightrpc.Conn
	stream flight.FlightService_DoExchangeClient
	cancel context.CancelFunc
	// rest was received and not read yet.
	rest []byte

	mu sync.Mutex
	// ended is what the stream has ended with.
	ended error
}

// answer is how long a server may take to answer that it has begun an actor.
const answer = 10 * time.Second

// connect begins an actor at a server. An error is status' ResourceExhausted, Unavailable or
// DeadlineExceeded where it may help to ask again, or another server.
func connect(ctx context.Context, p flightrpc.Peer, own Hello) (_ *conn, theirs Hello, err error) {
	c := &conn{url: p.URL}
	if c.c, err = p.Dial(); err != nil {
		return nil, theirs, err
	}
	// The stream outlives ctx, which is that of its beginning.
	var stream context.Context
	stream, c.cancel = context.WithCancel(context.WithoutCancel(ctx))
	ctx, done := context.WithTimeout(ctx, min(answer, p.Timeout))
	defer done()
	stop := context.AfterFunc(ctx, c.cancel)
	theirs, err = c.begin(stream, own)
	if !stop() {
		err = status.Error(codes.DeadlineExceeded, "the server does not answer")
	}
	if err == nil {
		return c, theirs, nil
	}
	err = c.c.Hint(err)
	if refused := c.c.Refused(); refused != nil {
		err = refused
	}
	// Why it could not begin says more than how it ends.
	_ = c.Close()
	return nil, theirs, err
}

func (c *conn) begin(ctx context.Context, own Hello) (theirs Hello, err error) {
	if c.stream, err = c.c.DoExchange(ctx); err != nil {
		return theirs, err
	}
	d := &flight.FlightData{FlightDescriptor: &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: own.bytes()}}
	if err := c.stream.Send(d); err != nil && !errors.Is(err, io.EOF) {
		return theirs, err
	}
	if d, err = c.stream.Recv(); err != nil {
		if errors.Is(err, io.EOF) {
			err = status.Error(codes.Unimplemented, "the server answers nothing")
		}
		switch status.Code(err) {
		case codes.Unimplemented, codes.NotFound, codes.InvalidArgument:
			err = status.Errorf(codes.Unimplemented, "expected a server of actors (onnxrl actor serve): %s", status.Convert(err).Message())
		}
		return theirs, err
	}
	if err := json.Unmarshal(d.AppMetadata, &theirs); err != nil {
		return theirs, status.Errorf(codes.Unimplemented, "expected a server of actors (onnxrl actor serve), which says what it is: %v", err)
	}
	return theirs, theirs.fits(own)
}

// Where implements actors.Conn.
func (c *conn) Where() string { return c.url }

// Read implements io.Reader.
func (c *conn) Read(b []byte) (int, error) {
	for len(c.rest) == 0 {
		d, err := c.stream.Recv()
		if err != nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.ended = err
			return 0, err
		}
		c.rest = d.DataBody
	}
	n := copy(b, c.rest)
	c.rest = c.rest[n:]
	return n, nil
}

// Write implements io.Writer.
func (c *conn) Write(b []byte) (n int, err error) {
	for n < len(b) {
		part := b[n:min(len(b), n+Part)]
		if err := c.stream.Send(&flight.FlightData{DataBody: part}); err != nil {
			return n, err
		}
		n += len(part)
	}
	return n, nil
}

// leave is how long a stream that is broken may take to say why.
const leave = 3 * time.Second

// Ending implements actors.Conn.
func (c *conn) Ending() string {
	c.mu.Lock()
	err := c.ended
	c.mu.Unlock()
	if err == nil {
		// It was found by writing, which does not say why.
		defer time.AfterFunc(leave, c.cancel).Stop()
		for err == nil {
			_, err = c.stream.Recv()
		}
	}
	switch {
	case errors.Is(err, io.EOF):
		return "the server has ended the stream"
	case status.Code(err) == codes.Canceled:
		return "the server does not answer"
	}
	return status.Convert(err).Message()
}

// Close implements io.Closer.
func (c *conn) Close() error {
	c.cancel()
	return c.c.Close()
}
