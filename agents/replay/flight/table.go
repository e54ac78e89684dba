package flight

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/flight"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/replay/arrowrows"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/columnar"
)

// base is what tables of all kinds have in common: writers with their numbers, a rate and a
// journal.
type base struct {
	name string
	c    TableConfig
	dir  string // "" keeps nothing on disk
	log  *slog.Logger
	// repaired is not nil where what is whole of a damaged folder is kept.
	repaired *Repaired

	// mu is held while anything changes, so that the journal has the order in which it did.
	mu      sync.Mutex
	changed chan struct{} // closed when something has changed that somebody may wait for
	limiter limiter
	// seqs are the last batches of writers; sessions the streams that write.
	seqs     map[string]int64
	sessions map[string]*session
	journal  *journal
	restored int64
	closed   bool
	record   []byte // memory of records
}

// session is a stream that writes.
type session struct {
	name   string
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{}
	writer *replay.Writer
}

var (
	errTakenOver = status.Error(codes.Aborted, "another stream has taken over the writer's name")
	errClosed    = status.Error(codes.Unavailable, "the server stops")
)

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

// wake lets all look again who wait. The caller holds mu.
func (t *base) wake() {
	close(t.changed)
	t.changed = make(chan struct{})
}

// await waits with mu held, which it gives up meanwhile, until ready says so.
func (t *base) await(ctx context.Context, ready func() bool) error {
	for {
		if t.closed {
			return errClosed
		}
		if err := t.journal.failed(); err != nil {
			return status.Error(codes.DataLoss, err.Error())
		}
		if ctx.Err() != nil {
			if cause := ended(ctx); cause != nil {
				return cause
			}
			return status.FromContextError(ctx.Err()).Err()
		}
		if ready() {
			return nil
		}
		changed := t.changed
		t.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		t.mu.Lock()
	}
}

// join begins a session, and ends the one that has the name.
func (t *base) join(ctx context.Context, name string) (*session, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errClosed
	}
	for {
		old := t.sessions[name]
		if old == nil {
			break
		}
		old.cancel(errTakenOver)
		t.mu.Unlock()
		select {
		case <-old.done:
		case <-ctx.Done():
		}
		t.mu.Lock()
		if ctx.Err() != nil {
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
	if _, known := t.seqs[name]; !known && len(t.seqs)+len(t.sessions) >= MaxWriters {
		return nil, status.Errorf(codes.ResourceExhausted, "%s knows %d writers by name, expected one of these", t.name, len(t.seqs))
	}
	s := &session{name: name, done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancelCause(ctx)
	t.sessions[name] = s
	return s, nil
}

// ended is why the server has ended a session; nil where its client has.
func ended(ctx context.Context) error {
	cause := context.Cause(ctx)
	if _, ok := status.FromError(cause); ok {
		return cause
	}
	return nil
}

// run calls f, which reads the session's stream, and returns when it has ended, or another stream
// has taken over, or the disk has failed: what f waits for on a connection that nobody is at the other end of comes when
// the call has returned.
func (s *session) run(f func() error) error {
	returned := make(chan error, 1)
	go func() { returned <- f() }()
	select {
	case err := <-returned:
		return err
	case <-s.ctx.Done():
		if cause := ended(s.ctx); cause != nil {
			return cause
		}
		return <-returned
	}
}

// fresh reports whether a batch of a writer is new, and its number.
func (t *base) fresh(writer string, seq int64) (int64, bool, error) {
	last := t.seqs[writer]
	switch {
	case seq == 0:
		return last + 1, true, nil
	case seq <= last:
		return seq, false, nil
	case seq > last+1:
		return 0, false, status.Errorf(codes.FailedPrecondition, "batch %d of the writer %q, and the server has %d: expected the next one", seq, writer, last)
	}
	return seq, true, nil
}

func (t *base) stats() TableStats {
	return TableStats{
		Table: t.name, Selector: t.c.Selector, Capacity: t.c.Capacity, Inserts: t.limiter.inserts, Samples: t.limiter.samples, Clock: t.limiter.inserts,
		Writers: len(t.sessions), Durable: t.journal != nil, Journal: t.journal.size(), Restored: t.restored,
	}
}

// The records of a table's journal: a letter, and what it is of.
const (
	recordOpen     = 'O' // a writer: policy, environments, name
	recordClose    = 'C' // a writer: name
	recordInsert   = 'I' // number, samples so far, length of the name, name, rows
	recordPriority = 'P' // keys and errors
)

// table keeps transitions in a replay.Shared.
type table struct {
	*base
	// schema is that of what is inserted; nil, as shared, before the first writer.
	schema *arrow.Schema
	shared *replay.Shared
	// writers are those that are open, by name.
	writers map[string]*replay.Writer
	// settings are those of writers, for the checkpoint.
	settings map[string]PutCommand
	// absent are the writers whose streams have not ended by themselves, and since when: their place
	// waits for them, so that the rows of one that comes back lie where they would have.
	absent map[string]time.Time
	store  *checkpoint.Store
	// kept is the first record of the journal that the last checkpoint does not have.
	kept int64
	// saving is held while a checkpoint is made. It is taken before mu.
	saving sync.Mutex
}

const schemaFile = "schema.arrow"

// openTable restores a table from its folder.
func openTable(b *base) (*table, error) {
	t := &table{base: b, writers: map[string]*replay.Writer{}, settings: map[string]PutCommand{}, absent: map[string]time.Time{}}
	if t.dir == "" {
		return t, nil
	}
	err := t.open()
	if err == nil {
		return t, nil
	}
	if t.store != nil {
		err = errors.Join(err, t.store.Close())
	}
	if t.shared != nil {
		err = errors.Join(err, t.shared.Close())
	}
	return nil, err
}

func (t *table) open() (err error) {
	if err := os.MkdirAll(t.dir, 0o777); err != nil {
		return err
	}
	if t.store, err = checkpoint.OpenStore(filepath.Join(t.dir, "checkpoints"), checkpoint.Options{KeepLast: 2, Disk: steadyDisk{atomicfile.OS}}); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(t.dir, schemaFile))
	if errors.Is(err, os.ErrNotExist) {
		t.journal, err = openJournal(t.dir, 0, t.opening(), t.apply)
		return err
	}
	if err != nil {
		return err
	}
	stream, err := columnar.OpenArrowStream(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(t.dir, schemaFile), err)
	}
	schema := arrow.NewSchema(stream.Fields(), nil)
	stream.Close()
	damaged, err := t.restore(schema)
	if err != nil {
		return err
	}
	if t.journal, err = openJournal(t.dir, t.kept, t.opening(), t.apply); err != nil {
		for _, d := range damaged {
			err = errors.Join(err, d)
		}
		return err
	}
	if err := t.setAside(damaged); err != nil {
		return err
	}
	// No stream goes on: writers come back.
	for name := range t.writers {
		t.absent[name] = time.Now()
	}
	return nil
}

// damagedCheckpoint is one that cannot be read.
type damagedCheckpoint struct {
	path string
	error
}

// restore makes the store of a schema, with what the newest checkpoint has that is whole, and lists
// the newer ones; without any it is empty.
func (t *table) restore(schema *arrow.Schema) (damaged []damagedCheckpoint, err error) {
	list, err := checkpoint.List(filepath.Join(t.dir, "checkpoints"))
	if err != nil {
		return nil, err
	}
	if err := t.make(schema); err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(list) {
		c, err := checkpoint.Open(e.Path)
		if errors.Is(err, checkpoint.ErrCorrupt) {
			damaged = append(damaged, damagedCheckpoint{e.Path, err})
			continue
		}
		if err != nil {
			return nil, err
		}
		s := &tableState{t: t}
		if err := errors.Join(c.Load(s), c.Close()); err != nil {
			return nil, err
		}
		t.kept = s.saved.Record
		break
	}
	return damaged, nil
}

// setAside moves checkpoints that are damaged out of the way of those that will be written, and
// tells of them.
func (t *table) setAside(damaged []damagedCheckpoint) error {
	for _, d := range damaged {
		to := filepath.Join(t.dir, "damaged-"+filepath.Base(d.path))
		if err := errors.Join(os.RemoveAll(to), os.Rename(d.path, to)); err != nil {
			return err
		}
		from := "the beginning of the journal"
		if t.kept > 0 {
			from = fmt.Sprintf("the checkpoint before it and the journal from record %d on", t.kept)
		}
		t.log.Warn("a checkpoint is damaged: the table was restored from "+from+", which lacks nothing", "error", d.error, "moved to", to)
		if t.repaired != nil {
			t.repaired.Checkpoints = append(t.repaired.Checkpoints, to)
		}
	}
	return nil
}

// make makes the store of a schema.
func (t *table) make(schema *arrow.Schema) error {
	l, err := layoutOf(schema)
	if err != nil {
		return err
	}
	s, err := replay.NewShared(l, replay.SharedConfig{Capacity: t.c.Capacity, ChunkRows: t.c.chunkRows(), Name: t.name, Dir: t.c.spill(t.dir), Format: arrowrows.File{}})
	if err != nil {
		return invalid("%v", err)
	}
	if t.c.Selector == Prioritised {
		if err := s.Prioritise(replay.Priorities{Alpha: t.c.Alpha, Eps: t.c.Eps}); err != nil {
			return errors.Join(err, s.Close())
		}
	}
	t.shared, t.schema = s, schema
	return nil
}

// define makes the store for the first writer, or checks the schema of another.
func (t *table) define(schema *arrow.Schema) error {
	if t.schema == nil {
		if err := t.make(schema); err != nil {
			return err
		}
		if t.dir == "" {
			return nil
		}
		text := flight.SerializeSchema(schema, memory.DefaultAllocator)
		if err := atomicfile.WriteBytes(filepath.Join(t.dir, schemaFile), text); err != nil {
			// Rows without a schema could not be read again.
			err = errors.Join(err, t.shared.Close())
			t.shared, t.schema = nil, nil
			return status.Error(codes.ResourceExhausted, err.Error())
		}
		return nil
	}
	for _, f := range t.schema.Fields() {
		g, ok := schema.FieldsByName(f.Name)
		if !ok || !arrowrows.Alike(g[0].Type, f.Type) {
			return invalid("the table %s has the column %q of %v, and the writer's schema is %v", t.name, f.Name, f.Type, schema)
		}
	}
	return nil
}

// begin opens the writer of a session.
func (t *table) begin(ctx context.Context, c PutCommand, schema *arrow.Schema) (*session, error) {
	s, err := t.join(ctx, c.Writer)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.define(schema); err != nil {
		t.part(s)
		return nil, err
	}
	delete(t.absent, c.Writer)
	if has, back := t.settings[c.Writer]; back && has.Policy == c.Policy && has.Envs == c.Envs {
		s.writer = t.writers[c.Writer]
		return s, nil
	}
	if err := t.leave(c.Writer); err != nil {
		t.part(s)
		return nil, status.Error(codes.Internal, err.Error())
	}
	for {
		err := t.enter(c)
		if err == nil {
			break
		}
		if !t.giveUp(time.Time{}) {
			t.part(s)
			return nil, invalid("%v", err)
		}
	}
	s.writer = t.writers[c.Writer]
	b := []byte{recordOpen}
	b = binary.LittleEndian.AppendUint32(b, uint32(c.Policy))
	b = binary.LittleEndian.AppendUint32(b, uint32(c.Envs))
	t.journal.append(append(b, c.Writer...))
	return s, nil
}

// part ends a session. The caller holds mu.
func (t *base) part(s *session) {
	delete(t.sessions, s.name)
	s.cancel(nil)
	close(s.done)
	t.wake()
}

// end ends a session, and its writer if that is done with.
func (t *table) end(s *session, done bool) (err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if done {
		err = t.leave(s.name)
	} else {
		t.absent[s.name] = time.Now()
	}
	t.part(s)
	return err
}

// absence is how long the place of a writer that is not there waits for it, if nobody needs it.
const absence = 10 * time.Minute

// giveUp closes the writer that has been absent for longest, unless that is since before a time; the
// zero time is any. It reports whether there was one. The caller holds mu.
func (t *table) giveUp(before time.Time) bool {
	oldest := ""
	for name, at := range t.absent {
		if (before.IsZero() || at.Before(before)) && (oldest == "" || at.Before(t.absent[oldest]) || at.Equal(t.absent[oldest]) && name < oldest) {
			oldest = name
		}
	}
	if oldest == "" {
		return false
	}
	t.log.Info("a writer that was not heard of is given up: should it come back its rows begin again", "writer", oldest, "since", t.absent[oldest])
	delete(t.absent, oldest)
	// Closing fails with the store alone, which others find.
	_ = t.leave(oldest)
	return true
}

func (t *table) enter(c PutCommand) error {
	w, err := t.shared.Writer(c.Writer, c.Policy, c.Envs, nil)
	if err != nil {
		return err
	}
	t.writers[c.Writer], t.settings[c.Writer] = w, c
	return nil
}

// leave closes a writer, whose chunks others may take then.
func (t *table) leave(name string) error {
	w := t.writers[name]
	if w == nil {
		return nil
	}
	t.journal.append(append([]byte{recordClose}, name...))
	delete(t.writers, name)
	delete(t.settings, name)
	return w.Close()
}

// insert takes a batch of rows, as soon as the rate lets it in, and returns its number and the
// journal's.
func (t *table) insert(s *session, rec arrow.Record, in Insert) (seq, record int64, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	env, kind, columns, err := arrowrows.Rows(t.shared.Columns(), rec)
	if err != nil {
		return 0, 0, invalid("%v", err)
	}
	p := &replay.Strip{Env: env, Kind: kind, Columns: columns}
	n, err := t.shared.Check(p, t.settings[s.name].Envs)
	if err != nil {
		return 0, 0, invalid("%v", err)
	}
	seq, fresh, err := t.fresh(s.name, in.Seq)
	if err != nil || !fresh {
		// Rows that are acknowledged again may still be on their way to the disk.
		return seq, t.journal.number(), err
	}
	if err := t.await(s.ctx, t.limiter.mayInsert); err != nil {
		return 0, 0, err
	}
	for {
		err := s.writer.Reserve(p)
		if err == nil {
			break
		}
		if !errors.Is(err, replay.ErrNoChunk) || !t.giveUp(time.Time{}) {
			return 0, 0, status.Error(codes.ResourceExhausted, err.Error())
		}
	}
	if t.journal != nil {
		b := append(t.record[:0], recordInsert)
		b = binary.LittleEndian.AppendUint64(b, uint64(seq))
		b = binary.LittleEndian.AppendUint64(b, uint64(t.limiter.samples))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(s.name)))
		t.record = p.AppendTo(append(b, s.name...))
		record = t.journal.append(t.record)
	}
	if err := s.writer.Append(p); err != nil {
		return 0, 0, status.Error(codes.Internal, err.Error())
	}
	t.seqs[s.name] = seq
	t.limiter.inserts += int64(n)
	t.wake()
	return seq, record, nil
}

// defined waits until the table has a schema.
func (t *table) defined(ctx context.Context) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.await(ctx, func() bool { return t.shared != nil })
}

// giveBack takes back a sample of n that was admitted, and has not gone out.
func (t *table) giveBack(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.limiter.samples -= int64(n)
	t.wake()
}

// admit waits until a sample of n may be drawn.
func (t *table) admit(ctx context.Context, n int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.await(ctx, func() bool { return t.limiter.maySample(t.shared.Len()) }); err != nil {
		return err
	}
	t.limiter.samples += int64(n)
	if t.limiter.SamplesPerInsert > 0 {
		t.wake()
	}
	return nil
}

// update sets priorities and returns when they are on the disk.
func (t *table) update(u *PriorityUpdate) (known int, err error) {
	t.mu.Lock()
	if t.shared == nil {
		t.mu.Unlock()
		return 0, invalid("the table %s has no transitions", t.name)
	}
	var record int64
	if known, err = t.shared.Update(u.Keys, u.Errors); err == nil && t.journal != nil {
		b := append(t.record[:0], recordPriority)
		for i, k := range u.Keys {
			b = binary.LittleEndian.AppendUint64(b, uint64(k))
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(u.Errors[i]))
		}
		t.record = b
		record = t.journal.append(b)
	}
	t.mu.Unlock()
	if err != nil {
		return 0, invalid("%v", err)
	}
	return known, t.lasting(record)
}

// apply does again what a record of the journal says. Behind records that are lost some of the others
// mean nothing any more, and are left out.
func (t *table) apply(b []byte) error {
	t.restored++
	if !t.repaired.lost() {
		return t.redo(b)
	}
	if len(b) > 9 && b[0] == recordOpen && t.writers[string(b[9:])] != nil {
		// That it had ended is lost.
		if err := t.leave(string(b[9:])); err != nil {
			return err
		}
	}
	// Keys of priorities count on all rows before them.
	if len(b) > 0 && b[0] == recordPriority || t.redo(b) != nil {
		t.repaired.LeftOut++
	}
	return nil
}

func (t *table) redo(b []byte) error {
	if len(b) == 0 || t.shared == nil {
		return errors.New("a record without a letter, or of a table without a schema")
	}
	kind, b := b[0], b[1:]
	switch {
	case kind == recordOpen && len(b) > 8:
		return t.enter(PutCommand{Writer: string(b[8:]), Policy: int32(binary.LittleEndian.Uint32(b)), Envs: int(binary.LittleEndian.Uint32(b[4:]))})
	case kind == recordClose:
		w := t.writers[string(b)]
		if w == nil {
			return fmt.Errorf("the writer %q ends and has not begun", b)
		}
		delete(t.writers, string(b))
		delete(t.settings, string(b))
		return w.Close()
	case kind == recordInsert && len(b) > 20 && int(binary.LittleEndian.Uint32(b[16:])) <= len(b)-20:
		end := 20 + int(binary.LittleEndian.Uint32(b[16:]))
		name := string(b[20:end])
		p, err := replay.ReadStrip(b[end:])
		if err != nil {
			return err
		}
		w := t.writers[name]
		if w == nil {
			return fmt.Errorf("rows of the writer %q, which has not begun", name)
		}
		n, err := t.shared.Check(p, t.settings[name].Envs)
		if err != nil {
			return err
		}
		if err := w.Reserve(p); err != nil {
			return err
		}
		t.seqs[name] = int64(binary.LittleEndian.Uint64(b))
		t.limiter.samples = int64(binary.LittleEndian.Uint64(b[8:]))
		t.limiter.inserts += int64(n)
		return w.Append(p)
	case kind == recordPriority && len(b)%12 == 0:
		var u PriorityUpdate
		for ; len(b) > 0; b = b[12:] {
			u.Keys, u.Errors = append(u.Keys, int64(binary.LittleEndian.Uint64(b))), append(u.Errors, math.Float32frombits(binary.LittleEndian.Uint32(b[8:])))
		}
		_, err := t.shared.Update(u.Keys, u.Errors)
		return err
	}
	return fmt.Errorf("a record of kind %q and %d bytes", kind, len(b))
}

// savedTable is what a checkpoint has beside the rows. Record is the first record of the journal
// that it does not have.
type savedTable struct {
	Record  int64                 `json:"record"`
	Inserts int64                 `json:"inserts"`
	Samples int64                 `json:"samples"`
	Seqs    map[string]int64      `json:"seqs"`
	Open    map[string]PutCommand `json:"open"`
}

// tableState is a table in a checkpoint.
type tableState struct {
	t     *table
	saved savedTable
	rows  *replay.Moment
}

// SaveState implements checkpoint.Stater.
func (s *tableState) SaveState(w *checkpoint.Writer) error {
	w.PutJSON("table", s.saved)
	return s.rows.SaveState(w.Scope("store"))
}

// LoadState implements checkpoint.Stater.
func (s *tableState) LoadState(r *checkpoint.Reader) error {
	t := s.t
	if err := r.JSON("table", &s.saved); err != nil {
		return err
	}
	if err := t.shared.LoadState(r.Scope("store")); err != nil {
		return err
	}
	t.limiter.inserts, t.limiter.samples = s.saved.Inserts, s.saved.Samples
	if s.saved.Seqs != nil {
		t.seqs = s.saved.Seqs
	}
	for _, name := range sortedKeys(s.saved.Open) {
		c := s.saved.Open[name]
		c.Writer = name
		if err := t.enter(c); err != nil {
			return err
		}
	}
	return nil
}

// checkpoint saves the table, so that the journal before is needed no more.
func (t *table) checkpoint() error { return t.save(false) }

// save saves the table as it is at one moment. Only then do inserts, samples and updates wait, for
// an fsync of the journal; while the checkpoint is written they go on. A table that is closed is
// saved once more, by who closes it.
func (t *table) save(closing bool) error {
	t.saving.Lock()
	defer t.saving.Unlock()
	s, err := t.freeze(closing)
	if s == nil || err != nil {
		return err
	}
	defer s.rows.Close()
	if _, err := t.store.Save(checkpoint.Meta{Kind: "replay-table", Step: s.saved.Record}, s); err != nil {
		return err
	}
	// Should this checkpoint be damaged, the one before it and the journal since then lead here.
	before := t.kept
	t.kept = s.saved.Record
	return t.journal.forget(before)
}

// freeze begins another file of the journal, and returns what the table is before its first record;
// nil where there is nothing to save.
func (t *table) freeze(closing bool) (*tableState, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.store == nil || t.shared == nil || t.closed && !closing {
		return nil, nil
	}
	if err := t.journal.rotate(); err != nil {
		return nil, err
	}
	s := &tableState{t: t, saved: savedTable{Record: t.journal.number(), Inserts: t.limiter.inserts, Samples: t.limiter.samples, Seqs: maps.Clone(t.seqs), Open: maps.Clone(t.settings)}}
	var err error
	s.rows, err = t.shared.Moment()
	return s, err
}

// due saves the table when its journal has grown, and gives up writers that do not come back.
func (t *table) due() error {
	t.mu.Lock()
	for !t.closed && t.giveUp(time.Now().Add(-absence)) {
	}
	t.mu.Unlock()
	if t.journal.size() < t.c.journalBytes() {
		return nil
	}
	return t.save(false)
}

func (t *table) about() TableStats {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.stats()
	if t.shared != nil {
		st := t.shared.Stats()
		s.Size, s.Spilled = st.Transitions, st.Spilled.Transitions
		s.Schema = flight.SerializeSchema(t.schema, memory.DefaultAllocator)
	}
	return s
}

// close ends what waits, and saves the table.
func (t *table) close() error {
	t.mu.Lock()
	t.closed = true
	t.wake()
	t.mu.Unlock()
	err := t.save(true)
	if t.journal != nil {
		err = errors.Join(err, t.journal.close(), t.store.Close())
	}
	return err
}

// readMeta reads the JSON of a message's metadata, which may be missing.
func readMeta(b []byte, v any) error {
	if len(b) == 0 {
		return nil
	}
	if len(b) > MaxJSON {
		return invalid("metadata of %d bytes, expected at most %d", len(b), MaxJSON)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return invalid("the metadata %.80q: %v", b, err)
	}
	return nil
}
