package flight

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow/flight"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/onnxrl/onnxrl/runtime/columnar"
	files "github.com/onnxrl/onnxrl/runtime/journal"
)

// item is a record batch of a queue, in the bytes in which it came.
type item struct {
	id     int64
	writer string
	meta   json.RawMessage
	header []byte
	body   []byte
	// holder is who has it and has not said that it is done with.
	holder *holder
}

// holder is a stream that takes items.
type holder struct{ items []*item }

// queue is a table whose items are taken once, in order. Items go on as they have come: they are
// not decoded.
type queue struct {
	*base
	schema *flight.FlightData // the message with the schema; nil before the first writer
	items  []*item
	// kept is the size of the items at the beginning of the journal's file.
	kept atomic.Int64
}

// The records of a queue's journal.
const (
	recordItem   = 'i' // JSON, header, body
	recordTaken  = 't' // numbers
	recordSchema = 's' // header
	recordSeqs   = 'q' // JSON: the state at the beginning of a file
)

// queueState is a recordSeqs.
type queueState struct {
	Seqs    map[string]int64 `json:"seqs"`
	Inserts int64            `json:"inserts"`
	Samples int64            `json:"samples"`
}

// itemHead is the JSON of a recordItem.
type itemHead struct {
	ID     int64           `json:"id"`
	Writer string          `json:"writer"`
	Seq    int64           `json:"seq"`
	Meta   json.RawMessage `json:"meta,omitempty"`
}

func openQueue(b *base) (q *queue, err error) {
	q = &queue{base: b}
	if q.dir == "" {
		return q, nil
	}
	if err := os.MkdirAll(q.dir, 0o777); err != nil {
		return nil, err
	}
	first := int64(0)
	if list, err := files.Files(q.dir, journalPrefix); err != nil {
		return nil, err
	} else if len(list) > 0 {
		first = list[0].First
	}
	if q.journal, err = openJournal(q.dir, first, q.opening(), q.apply); err != nil {
		return nil, err
	}
	if q.repaired.lost() && q.schema == nil {
		// Nobody could read them.
		q.repaired.LeftOut += len(q.items)
		q.items = nil
	}
	return q, nil
}

// apply does again what a record of the journal says.
func (q *queue) apply(b []byte) error {
	q.restored++
	err := q.redo(slices.Clone(b))
	if err != nil && q.repaired.lost() {
		q.repaired.LeftOut++
		return nil
	}
	return err
}

// redo keeps b.
func (q *queue) redo(b []byte) error {
	if len(b) == 0 {
		return errors.New("an empty record")
	}
	kind, b := b[0], b[1:]
	// part cuts off what comes after its length.
	part := func() (x []byte) {
		if len(b) < 4 || int(binary.LittleEndian.Uint32(b)) > len(b)-4 {
			b = nil
			return nil
		}
		n := 4 + int(binary.LittleEndian.Uint32(b))
		x, b = b[4:n:n], b[n:]
		return x
	}
	switch kind {
	case recordSchema:
		q.schema = &flight.FlightData{DataHeader: b}
		return nil
	case recordSeqs:
		var s queueState
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		if s.Seqs != nil {
			q.seqs = s.Seqs
		}
		q.limiter.inserts, q.limiter.samples = s.Inserts, s.Samples
		return nil
	case recordItem:
		var h itemHead
		if err := json.Unmarshal(part(), &h); err != nil {
			return err
		}
		x := &item{id: h.ID, writer: h.Writer, meta: h.Meta, header: part(), body: part()}
		if b == nil || len(b) > 0 {
			return fmt.Errorf("item %d is cut off", h.ID)
		}
		// Items that a checkpoint has written again have no number, and are older than others.
		q.seqs[h.Writer] = max(q.seqs[h.Writer], h.Seq)
		q.limiter.inserts = max(q.limiter.inserts, h.ID)
		if !slices.ContainsFunc(q.items, func(y *item) bool { return y.id == x.id }) {
			q.items = append(q.items, x)
		}
		return nil
	case recordTaken:
		for ; len(b) >= 8; b = b[8:] {
			q.remove(int64(binary.LittleEndian.Uint64(b)))
		}
		return nil
	}
	return fmt.Errorf("a record of kind %q and %d bytes", kind, len(b))
}

// remove takes an item out, and reports whether it was there.
func (q *queue) remove(id int64) bool {
	i := slices.IndexFunc(q.items, func(x *item) bool { return x.id == id })
	if i >= 0 {
		q.items = slices.Delete(q.items, i, i+1)
		q.limiter.samples++
	}
	return i >= 0
}

func appendPart(b, x []byte) []byte {
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(x))), x...)
}

// put implements kept.
func (q *queue) put(first *flight.FlightData, c PutCommand, stream flight.FlightService_DoPutServer) error {
	if m, err := check(first); err != nil || m.Kind != columnar.Schema {
		return invalid("the first message has no schema (%v)", err)
	}
	r, err := ipc.NewReaderFromMessageReader(&oneMessage{data: first})
	if err != nil {
		return invalid("the schema: %v", err)
	}
	defer r.Release()
	s, err := q.join(stream.Context(), c.Writer)
	if err != nil {
		return err
	}
	return s.run(func() error { return q.receive(s, first, r, c, stream) })
}

// receive takes the items of a session until its stream ends.
func (q *queue) receive(s *session, first *flight.FlightData, r *ipc.Reader, c PutCommand, stream flight.FlightService_DoPutServer) (err error) {
	defer func() {
		q.mu.Lock()
		q.part(s)
		q.mu.Unlock()
	}()
	if err := q.define(first, r); err != nil {
		return err
	}
	q.mu.Lock()
	hello := Ack{Writer: c.Writer, Seq: q.seqs[c.Writer], Clock: q.limiter.inserts}
	q.mu.Unlock()
	acks, acked := make(chan taken, underWay), make(chan error, 1)
	err = sendAck(stream, hello)
	go func() { acked <- q.acknowledge(s, stream, acks) }()
	for err == nil {
		var d *flight.FlightData
		if d, err = stream.Recv(); errors.Is(err, io.EOF) {
			err = nil
			break
		}
		if err != nil || len(d.DataHeader) == 0 {
			continue
		}
		var x taken
		if x, err = q.insert(s, d); err == nil {
			acks <- x
		}
	}
	close(acks)
	return cmp.Or(err, <-acked)
}

// define keeps the schema of the first writer, and compares that of another.
func (q *queue) define(first *flight.FlightData, r *ipc.Reader) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.schema != nil {
		has, err := ipc.NewReaderFromMessageReader(&oneMessage{data: q.schema})
		if err != nil {
			return err
		}
		defer has.Release()
		if !has.Schema().Equal(r.Schema()) {
			return invalid("the queue %s has items of %v, and the writer's are of %v", q.name, has.Schema(), r.Schema())
		}
		return nil
	}
	q.schema = &flight.FlightData{DataHeader: first.DataHeader}
	q.journal.append(append([]byte{recordSchema}, first.DataHeader...))
	return nil
}

func (q *queue) insert(s *session, d *flight.FlightData) (x taken, err error) {
	var in Insert
	if err := readMeta(d.AppMetadata, &in); err != nil {
		return x, err
	}
	m, err := check(d)
	if err != nil {
		return x, err
	}
	if m.Kind != columnar.RecordBatch {
		return x, invalid("a message of type %v, expected a record batch; dictionaries are not kept", m.Kind)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	seq, fresh, err := q.fresh(s.name, in.Seq)
	if err != nil || !fresh {
		return taken{seq, q.journal.number(), q.limiter.inserts}, err
	}
	if err := q.await(s.ctx, func() bool { return len(q.items) < q.c.Capacity }); err != nil {
		return x, err
	}
	q.limiter.inserts++
	y := &item{id: q.limiter.inserts, writer: s.name, meta: in.Meta, header: d.DataHeader, body: d.DataBody}
	if q.journal != nil {
		head, err := json.Marshal(itemHead{y.id, s.name, seq, in.Meta})
		if err != nil {
			return x, err
		}
		q.record = appendPart(appendPart(appendPart(append(q.record[:0], recordItem), head), y.header), y.body)
		x.record = q.journal.append(q.record)
	}
	q.items = append(q.items, y)
	q.seqs[s.name] = seq
	x.seq, x.clock = seq, q.limiter.inserts
	q.wake()
	return x, nil
}

// exchange implements kept. What a stream has taken and not said to be done with goes back when it
// ends.
func (q *queue) exchange(_ SampleCommand, r *requests, to flight.DataStreamWriter) error {
	own := &holder{}
	defer q.giveBack(own)
	told := false
	for {
		req, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := q.done(own, req.Finished); err != nil {
			return err
		}
		q.hold(own, req.Held)
		if req.Done {
			continue
		}
		for range max(1, req.Take) {
			q.mu.Lock()
			var x *item
			err := q.await(r.ctx, func() bool {
				i := slices.IndexFunc(q.items, func(x *item) bool { return x.holder == nil })
				if i >= 0 {
					x = q.items[i]
				}
				return i >= 0
			})
			if err != nil {
				q.mu.Unlock()
				return err
			}
			x.holder = own
			size, clock, schema := len(q.items), q.limiter.inserts, q.schema
			q.mu.Unlock()
			own.items = append(own.items, x)
			if !told {
				if err := to.Send(schema); err != nil {
					return err
				}
				told = true
			}
			b, err := json.Marshal(Sampled{Size: size, Clock: clock, Item: x.id, Writer: x.writer, Meta: x.meta})
			if err != nil {
				return err
			}
			if err := to.Send(&flight.FlightData{DataHeader: x.header, DataBody: x.body, AppMetadata: b}); err != nil {
				return err
			}
		}
	}
}

// giveBack puts the items of a stream that has ended back where they were.
func (q *queue) giveBack(own *holder) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, x := range own.items {
		// Who has come back may hold it by another stream.
		if x.holder == own {
			x.holder = nil
		}
	}
	q.wake()
}

// hold gives a stream the items that its reader has of a stream before.
func (q *queue) hold(own *holder, ids []int64) {
	if len(ids) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, x := range q.items {
		if slices.Contains(ids, x.id) {
			x.holder = own
			own.items = append(own.items, x)
		}
	}
}

// done removes the items of a stream, and others, and returns when that is on the disk.
func (q *queue) done(own *holder, more []int64) error {
	if len(own.items)+len(more) == 0 {
		return nil
	}
	q.mu.Lock()
	b := []byte{recordTaken}
	take := func(id int64) {
		if q.remove(id) {
			b = binary.LittleEndian.AppendUint64(b, uint64(id))
		}
	}
	for _, x := range own.items {
		take(x.id)
	}
	for _, id := range more {
		take(id)
	}
	own.items = own.items[:0]
	n := q.journal.append(b)
	q.wake()
	q.mu.Unlock()
	return q.lasting(n)
}

func (q *queue) about() TableStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.stats()
	s.Size = len(q.items)
	if q.schema == nil {
		return s
	}
	if r, err := ipc.NewReaderFromMessageReader(&oneMessage{data: q.schema}); err == nil {
		s.Schema = flight.SerializeSchema(r.Schema(), memory.DefaultAllocator)
		r.Release()
	}
	return s
}

// checkpoint begins a new journal with what the queue has.
func (q *queue) checkpoint() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.save()
}

func (q *queue) save() error {
	if q.journal == nil {
		return nil
	}
	if err := q.journal.rotate(); err != nil {
		return err
	}
	from := q.journal.number()
	state, err := json.Marshal(queueState{q.seqs, q.limiter.inserts, q.limiter.samples})
	if err != nil {
		return err
	}
	if q.schema != nil {
		q.journal.append(append([]byte{recordSchema}, q.schema.DataHeader...))
	}
	for _, x := range q.items {
		head, err := json.Marshal(itemHead{x.id, x.writer, 0, x.meta})
		if err != nil {
			return err
		}
		if err := q.journal.full(q.journal.append(appendPart(appendPart(appendPart([]byte{recordItem}, head), x.header), x.body))); err != nil {
			return err
		}
	}
	// Should the server end before this is written, what was read from the files before holds.
	if err := q.journal.wait(q.journal.append(append([]byte{recordSeqs}, state...))); err != nil {
		return err
	}
	q.kept.Store(q.journal.size())
	return q.journal.forget(from)
}

func (q *queue) due() error {
	// Rows that the queue still has are no reason to write it again.
	if q.journal.size()-q.kept.Load() < q.c.journalBytes() {
		return nil
	}
	return q.checkpoint()
}

func (q *queue) close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.wake()
	return errors.Join(q.save(), q.journal.close())
}

// oneMessage reads one message.
type oneMessage struct {
	data *flight.FlightData
	msg  *ipc.Message
}

func (m *oneMessage) Message() (*ipc.Message, error) {
	if m.data == nil {
		return nil, io.EOF
	}
	m.msg = ipc.NewMessage(memory.NewBufferBytes(m.data.DataHeader), memory.NewBufferBytes(m.data.DataBody))
	m.data = nil
	return m.msg, nil
}

func (m *oneMessage) Retain()  {}
func (m *oneMessage) Release() {}
