package flight

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/flight"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// said is a stream of a client that says so much, and hears nothing.
type said struct {
	grpc.ServerStream
	ctx  context.Context
	list []*flight.FlightData
}

func (s *said) Context() context.Context { return s.ctx }

func (s *said) Recv() (*flight.FlightData, error) {
	if len(s.list) == 0 {
		return nil, io.EOF
	}
	d := s.list[0]
	s.list = s.list[1:]
	return d, nil
}

type saidPut struct{ said }

func (s *saidPut) Send(*flight.PutResult) error { return nil }

type saidExchange struct{ said }

func (s *saidExchange) Send(*flight.FlightData) error { return nil }

type saidAction struct{ said }

func (s *saidAction) Send(*flight.Result) error { return nil }

// small is a server of a small table and a queue in memory.
func small(t testing.TB) *Server {
	t.Helper()
	var table, queue TableConfig
	table.SetDefaults()
	queue.SetDefaults()
	table.Selector, table.Capacity, table.ChunkRows = Prioritised, 64, 4
	queue.Selector, queue.Capacity = FIFO, 8
	s, err := Open("", map[string]TableConfig{"t": table, "q": queue}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// put has a server hear messages of a DoPut. What is refused is an error of gRPC.
func put(t testing.TB, s *Server, list ...*flight.FlightData) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := s.DoPut(&saidPut{said{ctx: ctx, list: list}})
	if err != nil && err != io.EOF {
		if _, ok := status.FromError(err); !ok {
			t.Errorf("%T: %v", err, err)
		}
	}
	return err
}

// recordedPut is a put that was seen: descriptor, schema, header and body.
func recordedPut(t testing.TB) (cmd, schema, header, body []byte) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "flight_fuzz_100.bin"))
	if err != nil {
		t.Fatal(err)
	}
	parts := bytes.Split(text, []byte("||"))
	if len(parts) != 4 {
		t.Fatal(len(parts))
	}
	return []byte(`{"table": "t", "writer": "w"}`), parts[1], parts[2], parts[3]
}

func messages(cmd, schema, header, body, meta []byte) []*flight.FlightData {
	return []*flight.FlightData{
		{FlightDescriptor: &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: cmd}, DataHeader: schema}, {DataHeader: header, DataBody: body, AppMetadata: meta},
	}
}

// TestHostileHeaders are headers of record batches that ended the server for lack of memory.
func TestHostileHeaders(t *testing.T) {
	_, schema, first, body := recordedPut(t)
	headers := [][]byte{first} // This one is right.
	list, err := filepath.Glob(filepath.Join("testdata", "flight_header_*.bin"))
	if err != nil || len(list) != 3 {
		t.Fatal(list, err)
	}
	for _, path := range list {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		headers = append(headers, b)
	}
	// And each of their bytes, to a value that is none, of the recorded one, and of an empty header.
	for at := range first {
		for _, x := range []byte{0x7f, 0xff} {
			b := slices.Clone(first)
			b[at] = x
			headers = append(headers, b)
		}
	}
	headers = append(headers, []byte{1}, []byte{4, 0, 0, 0}, bytes.Repeat([]byte{0xff}, 64))
	s := small(t)
	refused := 0
	for _, table := range []string{"t", "q"} {
		for i, h := range headers {
			name, err := json.Marshal(PutCommand{Table: table, Writer: "w"})
			if err != nil {
				t.Fatal(err)
			}
			// A queue that is full lets wait.
			if q := s.tables["q"].(*queue); len(q.items) > 4 {
				q.items = nil
			}
			if put(t, s, messages(name, schema, h, body, nil)...) != nil {
				refused++
			} else if table == "t" && i > 0 && i < 4 {
				t.Errorf("header %d is taken", i)
			}
		}
	}
	if refused < 400 {
		t.Errorf("%d of %d are refused", refused, 2*len(headers))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// FuzzPut puts what nobody would.
func FuzzPut(f *testing.F) {
	cmd, schema, header, body := recordedPut(f)
	f.Add(cmd, schema, header, body, []byte(`{"seq": 1}`))
	f.Add([]byte(`{"table": "q", "envs": 3}`), schema, header, body, []byte(`{"seq": 1, "meta": {}}`))
	f.Fuzz(func(t *testing.T, cmd, schema, header, body, meta []byte) {
		s := small(t)
		_ = put(t, s, messages(cmd, schema, header, body, meta)...)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// rowsOf are the messages of a put of so many transitions of one environment.
func rowsOf(t testing.TB, table string, n int) []*flight.FlightData {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "obs.x", Type: arrow.PrimitiveTypes.Float32}, {Name: "action", Type: arrow.PrimitiveTypes.Int64}, {Name: "reward", Type: arrow.PrimitiveTypes.Float32},
		{Name: "discount", Type: arrow.PrimitiveTypes.Float32}, {Name: "kind", Type: arrow.PrimitiveTypes.Uint8},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := range n + 1 {
		b.Field(0).(*array.Float32Builder).Append(float32(i))
		b.Field(1).(*array.Int64Builder).Append(int64(i))
		b.Field(2).(*array.Float32Builder).Append(1)
		b.Field(3).(*array.Float32Builder).Append(1)
		b.Field(4).(*array.Uint8Builder).Append(uint8(i / n * 2))
	}
	rec := b.NewRecord()
	defer rec.Release()
	d, err := batchData(rec)
	if err != nil {
		t.Fatal(err)
	}
	cmd, err := json.Marshal(PutCommand{Table: table, Writer: "w"})
	if err != nil {
		t.Fatal(err)
	}
	return messages(cmd, schemaHeader(schema), d.DataHeader, d.DataBody, nil)
}

// filled is a server whose table and queue have something.
func filled(t testing.TB) *Server {
	t.Helper()
	s := small(t)
	if err := put(t, s, rowsOf(t, "t", 8)...); err != nil {
		t.Fatal(err)
	}
	if err := put(t, s, rowsOf(t, "q", 2)...); err != nil {
		t.Fatal(err)
	}
	return s
}

// FuzzSample asks for samples and items: as the descriptor of a DoExchange, which a request follows,
// as the ticket of a DoGet, and for information.
func FuzzSample(f *testing.F) {
	f.Add([]byte(`{"table": "t", "batch": 4, "n_steps": 2, "gamma": 0.9, "columns": ["reward", "key"]}`), []byte(`{"seed": 1, "beta": 0.5}`), "t")
	f.Add([]byte(`{"table": "t", "batch": 4, "length": 2, "mix": {"0": 1}, "half_life": 3}`), []byte(`{}`), "q")
	f.Add([]byte(`{"table": "q"}`), []byte(`{"take": 2, "held": [1], "finished": [2], "done": true}`), "x")
	f.Fuzz(func(t *testing.T, cmd, request []byte, path string) {
		s := filled(t)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		d := &flight.FlightDescriptor{Type: flight.DescriptorCMD, Cmd: cmd}
		_ = s.DoExchange(&saidExchange{said{ctx: ctx, list: []*flight.FlightData{{FlightDescriptor: d}, {AppMetadata: request}}}})
		_ = s.DoGet(&flight.Ticket{Ticket: cmd}, &saidExchange{said{ctx: ctx}})
		for _, d := range []*flight.FlightDescriptor{d, {Type: flight.DescriptorPATH, Path: []string{path}}, nil} {
			_, _ = s.GetSchema(ctx, d)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// FuzzAction asks for actions.
func FuzzAction(f *testing.F) {
	f.Add(ActionPriorities, []byte(`{"table": "t", "keys": [0, 1, -1], "errors": [1, 0.5, 3e38]}`))
	f.Add(ActionTables, []byte(`{"table": "q"}`))
	f.Add(ActionCheckpoint, []byte(`{}`))
	f.Fuzz(func(t *testing.T, action string, body []byte) {
		s := filled(t)
		_ = s.DoAction(&flight.Action{Type: action, Body: body}, &saidAction{said{ctx: t.Context()}})
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
