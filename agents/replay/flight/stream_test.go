package flight

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/flight"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// waiting is a put whose client has sent some messages, waits for their acknowledgements, and hears
// nothing but the end of the call.
type waiting struct {
	saidPut
	hears func()
}

func (w *waiting) Recv() (*flight.FlightData, error) {
	if len(w.list) > 0 {
		return w.said.Recv()
	}
	<-w.ctx.Done()
	return nil, w.ctx.Err()
}

func (w *waiting) Send(r *flight.PutResult) error {
	w.hears()
	return nil
}

// TestFullDisk: a write that fails ends the streams of those who wait for it, of tables and of
// queues, and what others ask for is an error, too.
func TestFullDisk(t *testing.T) {
	var rows, items TableConfig
	rows.SetDefaults()
	items.SetDefaults()
	rows.Capacity, rows.ChunkRows = 64, 4
	items.Selector, items.Capacity = FIFO, 8
	s, err := Open(t.TempDir(), map[string]TableConfig{"t": rows, "q": items}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range sorted.All(map[string]*base{"t": s.tables["t"].(*table).base, "q": s.tables["q"].(*queue).base}) {
		ctx, cancel := context.WithCancel(t.Context())
		// The disk fails when the first acknowledgement, of the stream's beginning, is out.
		fails := func() { _ = b.journal.file.Close() }
		err := s.DoPut(&waiting{saidPut{said{ctx: ctx, list: rowsOf(t, name, 4)}}, fails})
		// gRPC does this when the call has returned.
		cancel()
		if status.Code(err) != codes.DataLoss || !strings.Contains(err.Error(), "until the server is started again") {
			t.Errorf("%s: the writer's stream ends with %v", name, err)
		}
		if err := put(t, s, rowsOf(t, name, 4)...); status.Code(err) != codes.DataLoss {
			t.Errorf("%s: another writer: %v", name, err)
		}
	}
	if err := s.Close(); err == nil {
		t.Error("closing does not say that the disk has failed")
	}
}

// TestRefusedSamples: requests that are refused are not charged to the rate.
func TestRefusedSamples(t *testing.T) {
	var table TableConfig
	table.SetDefaults()
	table.Capacity, table.ChunkRows, table.Rate = 64, 4, Rate{SamplesPerInsert: 1, MinSize: 1, ErrorBuffer: 8}
	s, err := Open("", map[string]TableConfig{"t": table}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := put(t, s, rowsOf(t, "t", 8)...); err != nil {
		t.Fatal(err)
	}
	get := func(ticket string) error {
		return s.DoGet(&flight.Ticket{Ticket: []byte(ticket)}, &saidExchange{said{ctx: t.Context()}})
	}
	for _, ticket := range []string{
		`{"table": "t", "batch": 1000000}`, `{"table": "t", "batch": -5}`, `{"table": "t"}`, `{"table": "t", "batch": 4, "columns": ["nothing"]}`, `{"table": "t", "batch": 4, "gamma": 2}`,
		`{"table": "t", "batch": 4, "mix": {"7": 1}}`, `{"table": "t", "batch": 4, "length": 3}`, `{"table": "t", "batch": 64, "length": 64}`,
	} {
		if err := get(ticket); status.Code(err) != codes.InvalidArgument && status.Code(err) != codes.FailedPrecondition {
			t.Errorf("%s: %v", ticket, err)
		}
	}
	// And one whose client is gone before it has the sample.
	if err := s.DoGet(&flight.Ticket{Ticket: []byte(`{"table": "t", "batch": 4}`)}, &deaf{saidExchange{said{ctx: t.Context()}}}); err == nil {
		t.Error("a client that hears nothing")
	}
	if n := s.Tables()[0].Samples; n != 0 {
		t.Fatalf("%d samples were counted, of none that went out", n)
	}
	if err := get(`{"table": "t", "batch": 4}`); err != nil || s.Tables()[0].Samples != 4 {
		t.Error(s.Tables()[0].Samples, err)
	}
}

// deaf is a stream that is broken.
type deaf struct{ saidExchange }

func (d *deaf) Send(*flight.FlightData) error { return status.Error(codes.Unavailable, "gone") }

// TestBounds are requests beyond what a client may ask for.
func TestBounds(t *testing.T) {
	s := filled(t)
	defer s.Close()
	ctx := t.Context()
	cmd := func(text string) []*flight.FlightData {
		d := rowsOf(t, "t", 4)
		d[0].FlightDescriptor.Cmd = []byte(text)
		return d
	}
	long := strings.Repeat("x", MaxName+1)
	for name, f := range sorted.All(map[string]func() error{
		"a writer's name": func() error { return put(t, s, cmd(`{"table": "t", "writer": "`+long+`"}`)...) },
		"environments":    func() error { return put(t, s, cmd(`{"table": "t", "envs": 65537}`)...) },
		"a descriptor":    func() error { return put(t, s, cmd(`{"table": "`+strings.Repeat("x", MaxJSON)+`"}`)...) },
		"metadata": func() error {
			d := rowsOf(t, "t", 4)
			d[1].AppMetadata = make([]byte, MaxJSON+1)
			return put(t, s, d...)
		},
		"a schema": func() error {
			d := rowsOf(t, "t", 4)
			d[0].DataHeader = make([]byte, MaxSchema+1)
			return put(t, s, d...)
		},
		"steps": func() error {
			return s.DoGet(&flight.Ticket{Ticket: []byte(`{"table": "t", "batch": 4, "n_steps": 65537}`)}, &saidExchange{said{ctx: ctx}})
		},
		"items": func() error {
			return s.DoExchange(&saidExchange{said{ctx: ctx, list: []*flight.FlightData{{FlightDescriptor: &flight.FlightDescriptor{Cmd: []byte(`{"table": "q"}`)}}, {AppMetadata: []byte(`{"take": 65537}`)}}}})
		},
		"priorities": func() error {
			return s.DoAction(&flight.Action{Type: ActionPriorities, Body: []byte(`{"table": "t", "keys": [1` + strings.Repeat(",1", MaxKeys) + `]}`)}, &saidAction{said{ctx: ctx}})
		},
		"an action's body": func() error {
			return s.DoAction(&flight.Action{Type: ActionTables, Body: make([]byte, MaxJSON+1)}, &saidAction{said{ctx: ctx}})
		},
	}) {
		if err := f(); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "expected") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
