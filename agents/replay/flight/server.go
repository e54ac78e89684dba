package flight

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/apache/arrow/go/v15/arrow/flight"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	files "github.com/onnxrl/onnxrl/runtime/journal"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// kept is a table of any selector.
type kept interface {
	put(first *flight.FlightData, c PutCommand, stream flight.FlightService_DoPutServer) error
	exchange(c SampleCommand, r *requests, to flight.DataStreamWriter) error
	about() TableStats
	checkpoint() error
	due() error
	// repair is what a repair has found; nil without one.
	repair() *Repaired
	close() error
}

// Server keeps tables and answers Flight's calls. It is safe for concurrent use.
type Server struct {
	flight.BaseFlightServer
	tables  map[string]kept
	log     *slog.Logger
	release func() error
	stop    chan struct{}
	stopped chan struct{}
}

// Open restores the tables of a folder, or begins them; without a folder they are kept in memory
// only, and an acknowledged batch lives as long as the server. A folder has one server at a time.
func Open(dir string, tables map[string]TableConfig, log *slog.Logger) (*Server, error) {
	s, err := open(dir, tables, log, false)
	var damage *files.Damage
	if errors.As(err, &damage) {
		return nil, fmt.Errorf("%w; onnxrl replay repair keeps what is whole, and says what is lost", err)
	}
	return s, err
}

// open is Open; with repair it keeps what is whole of tables that are damaged.
func open(dir string, tables map[string]TableConfig, log *slog.Logger, repair bool) (_ *Server, err error) {
	s := &Server{tables: map[string]kept{}, log: log, release: func() error { return nil }, stop: make(chan struct{}), stopped: make(chan struct{})}
	if len(tables) == 0 {
		return nil, errors.New("tables: none; expected at least one")
	}
	for _, name := range sortedKeys(tables) {
		c := tables[name]
		if err := c.check(name, dir != ""); err != nil {
			return nil, err
		}
	}
	if dir != "" {
		if err := os.MkdirAll(dir, 0o777); err != nil {
			return nil, err
		}
		if s.release, err = atomicfile.Lock(filepath.Join(dir, ".lock")); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err == nil {
			go s.save()
			return
		}
		for _, name := range sortedKeys(s.tables) {
			err = errors.Join(err, s.tables[name].close())
		}
		err = errors.Join(err, s.release())
	}()
	for _, name := range sortedKeys(tables) {
		c := tables[name]
		if err := c.check(name, dir != ""); err != nil {
			return nil, err
		}
		b := &base{name: name, c: c, log: log.With("table", name), changed: make(chan struct{}), limiter: limiter{Rate: c.Rate}, seqs: map[string]int64{}, sessions: map[string]*session{}}
		if dir != "" {
			b.dir = filepath.Join(dir, name)
		}
		if repair {
			b.repaired = &Repaired{Table: name}
		}
		var t kept
		if c.Selector == FIFO {
			t, err = openQueue(b)
		} else {
			t, err = openTable(b)
		}
		if err != nil {
			return nil, fmt.Errorf("table %s: %w", name, err)
		}
		s.tables[name] = t
	}
	return s, nil
}

// save saves tables whose journals have grown.
func (s *Server) save() {
	defer close(s.stopped)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
		}
		for _, name := range sortedKeys(s.tables) {
			if err := s.tables[name].due(); err != nil {
				s.log.Error("checkpoint", "table", name, "error", err)
			}
		}
	}
}

// Tables describes the tables, by name.
func (s *Server) Tables() []TableStats {
	var list []TableStats
	for _, name := range sortedKeys(s.tables) {
		list = append(list, s.tables[name].about())
	}
	return list
}

// Close ends the calls that wait and saves all tables.
func (s *Server) Close() error {
	close(s.stop)
	<-s.stopped
	var errs []error
	for _, name := range sortedKeys(s.tables) {
		errs = append(errs, s.tables[name].close())
	}
	return errors.Join(append(errs, s.release())...)
}

func (s *Server) table(name string) (kept, error) {
	t := s.tables[name]
	if t == nil {
		return nil, status.Errorf(codes.NotFound, "there is no table %q; expected one of %q", name, sortedKeys(s.tables))
	}
	return t, nil
}

// DoPut implements flight.FlightServer.
func (s *Server) DoPut(stream flight.FlightService_DoPutServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	c, err := command(first.FlightDescriptor, func(c *PutCommand) *string { return &c.Table })
	if err != nil {
		return err
	}
	t, err := s.table(c.Table)
	if err != nil {
		return err
	}
	if c.Writer == "" {
		c.Writer = "anonymous-" + rand.Text()
	}
	if c.Envs == 0 {
		c.Envs = 1
	}
	if c.Envs < 1 || c.Envs > MaxEnvs || len(c.Writer) > MaxName {
		return invalid("a writer with a name of %d bytes for %d environments, expected at most %d bytes, and 1 to %d environments", len(c.Writer), c.Envs, MaxName, MaxEnvs)
	}
	if len(first.DataHeader) > MaxSchema {
		return invalid("a schema of %d bytes, expected at most %d", len(first.DataHeader), MaxSchema)
	}
	return t.put(first, c, stream)
}

// replayed is a stream whose first message was read already.
type replayed struct {
	first *flight.FlightData
	flight.DataStreamReader
}

func (r *replayed) Recv() (*flight.FlightData, error) {
	if d := r.first; d != nil {
		r.first = nil
		return d, nil
	}
	return r.DataStreamReader.Recv()
}

// acknowledge sends what was taken of a session, as soon as it is on the disk, until list is closed.
// An error ends the session, whose client may wait for what will never be acknowledged, and lets all
// others look again; then it goes on to empty the list.
func (t *base) acknowledge(s *session, stream flight.FlightService_DoPutServer, list <-chan taken) (err error) {
	for x := range list {
		if err != nil {
			continue
		}
		if err = t.lasting(x.record); err == nil {
			err = sendAck(stream, Ack{Seq: x.seq, Clock: x.clock})
		}
		if err != nil {
			s.cancel(err)
			t.mu.Lock()
			t.wake()
			t.mu.Unlock()
		}
	}
	return err
}

// lasting returns when the records before a number are on the disk.
func (t *base) lasting(record int64) error {
	if err := t.journal.wait(record); err != nil {
		return status.Error(codes.DataLoss, err.Error())
	}
	return nil
}

type taken struct{ seq, record, clock int64 }

func sendAck(stream flight.FlightService_DoPutServer, a Ack) error {
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return stream.Send(&flight.PutResult{AppMetadata: b})
}

// underWay is the number of batches of a stream that may wait for the disk.
const underWay = 64

// put implements kept.
func (t *table) put(first *flight.FlightData, c PutCommand, stream flight.FlightService_DoPutServer) error {
	r, err := newReader(&replayed{first, stream})
	if err != nil {
		return invalid("the schema: %v", err)
	}
	s, err := t.begin(stream.Context(), c, r.Schema())
	if err != nil {
		r.Release()
		return err
	}
	return s.run(func() error { return t.receive(s, r, c, stream) })
}

// receive takes the rows of a session until its stream ends.
func (t *table) receive(s *session, r *flight.Reader, c PutCommand, stream flight.FlightService_DoPutServer) (err error) {
	defer r.Release()
	t.mu.Lock()
	hello := Ack{Writer: c.Writer, Seq: t.seqs[c.Writer], Clock: t.limiter.inserts}
	t.mu.Unlock()
	acks, acked := make(chan taken, underWay), make(chan error, 1)
	err = sendAck(stream, hello)
	go func() { acked <- t.acknowledge(s, stream, acks) }()
	for err == nil && r.Next() {
		var in Insert
		if err = readMeta(r.LatestAppMetadata(), &in); err != nil {
			break
		}
		var x taken
		if x.seq, x.record, err = t.insert(s, r.Record(), in); err == nil {
			t.mu.Lock()
			x.clock = t.limiter.inserts
			t.mu.Unlock()
			acks <- x
		}
	}
	if err == nil && r.Err() != nil && !errors.Is(r.Err(), io.EOF) {
		err = r.Err()
		if _, ok := status.FromError(err); !ok {
			err = invalid("%v", err)
		}
	}
	close(acks)
	err = cmp.Or(err, <-acked)
	return cmp.Or(err, t.end(s, err == nil))
}

// requests are those of a DoExchange, or the one of a DoGet.
type requests struct {
	ctx  context.Context
	next func() (*SampleRequest, error)
}

// DoExchange implements flight.FlightServer.
func (s *Server) DoExchange(stream flight.FlightService_DoExchangeServer) error {
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	c, err := command(first.FlightDescriptor, func(c *SampleCommand) *string { return &c.Table })
	if err != nil {
		return err
	}
	t, err := s.table(c.Table)
	if err != nil {
		return err
	}
	from := &replayed{first, stream}
	return t.exchange(c, &requests{stream.Context(), func() (*SampleRequest, error) {
		for {
			d, err := from.Recv()
			if err != nil {
				return nil, err
			}
			// A message without metadata is the descriptor, or a schema.
			if len(d.AppMetadata) > 0 {
				q := &SampleRequest{}
				if err := readMeta(d.AppMetadata, q); err != nil {
					return nil, err
				}
				if max(q.Take, len(q.Held), len(q.Finished)) > MaxItems || q.Take < 0 {
					return nil, invalid("a request for %d items that names %d and %d others, expected at most %d of each", q.Take, len(q.Held), len(q.Finished), MaxItems)
				}
				return q, nil
			}
		}
	}}, stream)
}

// DoGet implements flight.FlightServer: one sample.
func (s *Server) DoGet(ticket *flight.Ticket, stream flight.FlightService_DoGetServer) error {
	c, err := command(&flight.FlightDescriptor{Cmd: ticket.Ticket}, func(c *SampleCommand) *string { return &c.Table })
	if err != nil {
		return err
	}
	t, err := s.table(c.Table)
	if err != nil {
		return err
	}
	list := []*SampleRequest{{}, {Done: true}}
	return t.exchange(c, &requests{stream.Context(), func() (*SampleRequest, error) {
		if len(list) == 0 {
			return nil, io.EOF
		}
		q := list[0]
		list = list[1:]
		return q, nil
	}}, stream)
}

// exchange implements kept.
func (t *table) exchange(c SampleCommand, r *requests, to flight.DataStreamWriter) error {
	var s *samples
	var out *flight.Writer
	for {
		q, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if q.Done {
			continue
		}
		if s == nil {
			if err := t.defined(r.ctx); err != nil {
				return err
			}
			var seed [8]byte
			rand.Read(seed[:])
			if s, err = newSamples(t, c, rng.New(uint64(seed[0])|uint64(seed[1])<<8|uint64(seed[2])<<16|uint64(seed[3])<<24|uint64(seed[4])<<32|uint64(seed[5])<<40).Stream()); err != nil {
				return err
			}
			out = flight.NewRecordWriter(to, ipc.WithSchema(s.schema))
			defer out.Close()
		}
		// Refused rows do not count.
		if err := t.admit(r.ctx, c.Batch); err != nil {
			return err
		}
		if err := s.draw(q); err != nil {
			t.giveBack(c.Batch)
			return status.Error(codes.FailedPrecondition, err.Error())
		}
		t.mu.Lock()
		about := Sampled{Clock: t.limiter.inserts}
		t.mu.Unlock()
		about.Size = t.shared.Len()
		b, err := json.Marshal(about)
		if err != nil {
			return err
		}
		if err := out.WriteWithAppMetadata(s.record, b); err != nil {
			t.giveBack(c.Batch)
			return err
		}
	}
}

// DoAction implements flight.FlightServer.
func (s *Server) DoAction(a *flight.Action, stream flight.FlightService_DoActionServer) error {
	send := func(v any) error {
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		return stream.Send(&flight.Result{Body: b})
	}
	switch a.Type {
	case ActionTables, ActionCheckpoint:
		var in struct {
			Table string `json:"table"`
		}
		if err := readMeta(a.Body, &in); err != nil {
			return err
		}
		names := sortedKeys(s.tables)
		if in.Table != "" {
			if _, err := s.table(in.Table); err != nil {
				return err
			}
			names = []string{in.Table}
		}
		for _, name := range names {
			t := s.tables[name]
			if a.Type == ActionCheckpoint {
				if err := t.checkpoint(); err != nil {
					return status.Error(codes.Internal, err.Error())
				}
			}
			if err := send(t.about()); err != nil {
				return err
			}
		}
		return nil
	case ActionPriorities:
		var u PriorityUpdate
		if err := json.Unmarshal(a.Body, &u); err != nil {
			return invalid("the body %.80q: %v", a.Body, err)
		}
		if len(u.Keys) > MaxKeys {
			return invalid("priorities of %d transitions, expected at most %d at once", len(u.Keys), MaxKeys)
		}
		x, err := s.table(u.Table)
		if err != nil {
			return err
		}
		t, ok := x.(*table)
		if !ok || t.c.Selector != Prioritised {
			return invalid("the table %s has no priorities", u.Table)
		}
		known, err := t.update(&u)
		if err != nil {
			return err
		}
		return send(Updated{known})
	}
	return status.Errorf(codes.Unimplemented, "there is no action %q; expected %s, %s or %s", a.Type, ActionTables, ActionPriorities, ActionCheckpoint)
}

// ListActions implements flight.FlightServer.
func (s *Server) ListActions(_ *flight.Empty, stream flight.FlightService_ListActionsServer) error {
	return errors.Join(
		stream.Send(&flight.ActionType{Type: ActionTables, Description: "describes the tables, or the one that the body names, as JSON"}),
		stream.Send(&flight.ActionType{Type: ActionPriorities, Description: "sets priorities: {\"table\", \"keys\", \"errors\"}"}),
		stream.Send(&flight.ActionType{Type: ActionCheckpoint, Description: "saves the tables, or the one that the body names"}),
	)
}
