package flight

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/flight"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/onnxrl/onnxrl/configs"
)

// Config is the section replay of a document: where transitions are kept instead of in the
// learner's own replay.
type Config struct {
	// Kind is flight.
	Kind string `yaml:"kind"`
	// URL is grpc://HOST:PORT, or grpc+tls://HOST:PORT.
	URL   string `yaml:"url"`
	Table string `yaml:"table"`
	// Writer is the name by which the server knows the run's batches; empty is one that is drawn.
	Writer string `yaml:"writer,omitempty"`
	// Policy is whose transitions they are to others.
	Policy int32 `yaml:"policy,omitempty"`
	// Prefetch is the number of samples that are asked for ahead. With 0 a sample may be of all that
	// the run has recorded, and runs that are alone repeat.
	Prefetch int `yaml:"prefetch"`
	// Rounds is the number of rounds that are sent together; a sample does not wait for it.
	Rounds int `yaml:"rounds"`
	// CA is a file with the certificate of the authority, in PEM; empty are the system's. Cert and
	// Key are the client's own, TokenFile has the bearer token.
	CA        string `yaml:"ca,omitempty"`
	Cert      string `yaml:"cert,omitempty"`
	Key       string `yaml:"key,omitempty"`
	TokenFile string `yaml:"token_file,omitempty"`
	// Timeout is how long a server that does not answer is waited for.
	Timeout time.Duration `yaml:"timeout"`
}

// SetDefaults implements configs.Defaulter.
func (c *Config) SetDefaults() {
	*c = Config{Kind: "flight", Table: "transitions", Rounds: 16, Timeout: time.Minute}
}

// Validate implements configs.Validator.
func (c Config) Validate() error {
	var p configs.Problems
	p.Check(c.Kind == "flight", "kind", "is %q, expected flight", c.Kind)
	_, _, err := c.address()
	p.Check(err == nil, "url", "%v", err)
	p.Check(c.Table != "", "table", "required: the name of a table of the server")
	p.AtLeast("prefetch", c.Prefetch, 0)
	p.AtLeast("rounds", c.Rounds, 1)
	p.Check(c.Timeout > 0, "timeout", "is %v, expected more than 0", c.Timeout)
	p.Check((c.Cert == "") == (c.Key == ""), "cert", "needs key, and key cert")
	return p.Err()
}

func (c *Config) address() (host string, secure bool, err error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return "", false, err
	}
	secure = u.Scheme == "grpc+tls"
	if !secure && u.Scheme != "grpc" && u.Scheme != "grpc+tcp" || u.Port() == "" || u.Path != "" || u.User != nil {
		return "", false, fmt.Errorf("is %q, expected grpc://HOST:PORT or grpc+tls://HOST:PORT", c.URL)
	}
	return u.Host, secure, nil
}

// bearer is a token in the metadata of calls.
type bearer struct {
	token  string
	secure bool
}

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.token}, nil
}

func (b bearer) RequireTransportSecurity() bool { return b.secure }

// Client is a connection to a server. It is safe for concurrent use.
type Client struct {
	c      Config
	conn   *grpc.ClientConn
	flight flight.Client
	ctx    context.Context
	cancel context.CancelFunc
}

// maxMessage is the largest message of either side, in bytes.
const maxMessage = 256 << 20

// Dial makes a client. The server need not be there yet.
func Dial(c Config) (*Client, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	host, secure, err := c.address()
	if err != nil {
		return nil, err
	}
	creds := insecure.NewCredentials()
	if secure {
		t := &tls.Config{MinVersion: tls.VersionTLS12}
		if c.CA != "" {
			text, err := os.ReadFile(c.CA)
			if err != nil {
				return nil, fmt.Errorf("ca: %w", err)
			}
			if t.RootCAs = x509.NewCertPool(); !t.RootCAs.AppendCertsFromPEM(text) {
				return nil, fmt.Errorf("ca: %s has no certificate in PEM", c.CA)
			}
		}
		if c.Cert != "" {
			pair, err := tls.LoadX509KeyPair(c.Cert, c.Key)
			if err != nil {
				return nil, fmt.Errorf("cert %s with key %s: %w", c.Cert, c.Key, err)
			}
			t.Certificates = []tls.Certificate{pair}
		}
		creds = credentials.NewTLS(t)
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(creds), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithInitialWindowSize(4 << 20), grpc.WithInitialConnWindowSize(16 << 20),
	}
	if c.TokenFile != "" {
		text, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("token_file: %w", err)
		}
		options = append(options, grpc.WithPerRPCCredentials(bearer{strings.TrimSpace(string(text)), secure}))
	}
	conn, err := grpc.NewClient(host, options...)
	if err != nil {
		return nil, err
	}
	x := &Client{c: c, conn: conn, flight: flight.NewClientFromConn(conn, nil)}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	return x, nil
}

// Close ends the connection, and what goes on over it.
func (c *Client) Close() error {
	c.cancel()
	return c.conn.Close()
}

// explain says of which server and table an error is.
func (c *Client) explain(table string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("replay %s: table %s: %w", c.c.URL, table, err)
}

// again reports whether an error is one of a connection or of a server that may come back.
func again(err error) bool {
	return errors.Is(err, io.EOF) || status.Code(err) == codes.Unavailable
}

// retry calls f until it succeeds, or fails otherwise than by the server's not being there, or the
// timeout is over.
func (c *Client) retry(f func() error) error {
	until := time.Now().Add(c.c.Timeout)
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := f()
		if err == nil || !again(err) || time.Now().After(until) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-c.ctx.Done():
			return err
		}
	}
}

// Act calls an action with a body, as JSON, and returns the answers.
func (c *Client) Act(action string, body any) (answers [][]byte, err error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	err = c.retry(func() error {
		answers = nil
		stream, err := c.flight.DoAction(c.ctx, &flight.Action{Type: action, Body: b})
		if err != nil {
			return err
		}
		for {
			r, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			answers = append(answers, r.Body)
		}
	})
	return answers, err
}

// Stats describes a table.
func (c *Client) Stats(table string) (s TableStats, err error) {
	list, err := c.Act(ActionTables, map[string]string{"table": table})
	if err == nil && len(list) == 1 {
		err = json.Unmarshal(list[0], &s)
	}
	return s, c.explain(table, err)
}

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
	stream, err := w.c.flight.DoPut(ctx)
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
	// What the stream ended with is what receive finds.
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
			if !again(broken) {
				return w.c.explain(w.cmd.Table, broken)
			}
			if err := w.c.retry(w.connect); err != nil {
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

// Close waits for what is under way and ends the stream.
func (w *Writer) Close() error {
	err := w.Flush()
	if w.stream != nil {
		err = errors.Join(err, w.stream.CloseSend())
		w.mu.Lock()
		for w.broken == nil {
			w.acked.Wait()
		}
		w.mu.Unlock()
	}
	w.cancel()
	return err
}

// Reader asks a table for samples, or a queue for items. It belongs to one goroutine.
type Reader struct {
	c      *Client
	cmd    SampleCommand
	stream flight.FlightService_DoExchangeClient
	in     *flight.Reader
	cancel context.CancelFunc
	// asked are the requests whose samples have not come yet.
	asked []SampleRequest
}

// Reader opens a reader.
func (c *Client) Reader(cmd SampleCommand) (*Reader, error) {
	r := &Reader{c: c, cmd: cmd}
	return r, c.explain(cmd.Table, c.retry(r.connect))
}

func (r *Reader) connect() error {
	r.Close()
	b, err := json.Marshal(r.cmd)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(r.c.ctx)
	r.cancel = cancel
	stream, err := r.c.flight.DoExchange(ctx)
	if err != nil {
		return err
	}
	r.stream = stream
	if err := r.stream.Send(&flight.FlightData{FlightDescriptor: &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: b}}); err != nil {
		return r.end(err)
	}
	for _, q := range r.asked {
		if err := r.send(q); err != nil {
			return err
		}
	}
	return nil
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
	if !q.Done {
		for range max(1, q.Take) {
			one := q
			one.Take = 0
			r.asked = append(r.asked, one)
		}
	}
	var err error
	if r.stream != nil {
		err = r.send(q)
	}
	if r.stream == nil || err != nil && again(err) {
		// What was asked for is asked for again.
		err = r.c.retry(r.connect)
	}
	return r.c.explain(r.cmd.Table, err)
}

// Asked is the number of samples, or items, that have been asked for and have not come.
func (r *Reader) Asked() int { return len(r.asked) }

// Next returns the next sample, or item, which is good until the next call.
func (r *Reader) Next() (rec arrow.Record, about Sampled, err error) {
	err = r.c.retry(func() error {
		if r.stream == nil {
			if err := r.connect(); err != nil {
				r.Close()
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
		r.asked = r.asked[1:]
		err = json.Unmarshal(r.in.LatestAppMetadata(), &about)
	}
	return rec, about, r.c.explain(r.cmd.Table, err)
}

func (r *Reader) next(rec *arrow.Record) (err error) {
	if r.in == nil {
		if r.in, err = flight.NewRecordReader(r.stream); err != nil {
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
// heard it.
func (r *Reader) Finish() error {
	if r.stream == nil {
		return nil
	}
	err := errors.Join(r.send(SampleRequest{Done: true}), r.stream.CloseSend())
	for err == nil {
		_, err = r.stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	r.Close()
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
