package livetrade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/onnxrl/onnxrl/envs/market/broker"
	"github.com/onnxrl/onnxrl/envs/market/stream"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/spans"
)

// Options join a service.
type Options struct {
	Config  *Config
	Machine *Machine // before its first event
	// Warm, unless nil, is the state of features that a service without events begins with.
	Warm   []byte
	Source Source
	Sink   Sink
	// Broker executes the orders of a machine that has none of its own; nil where it has.
	Broker broker.Broker
	// Now is the clock; nil is that of the system.
	Now func() time.Time
	// Say receives messages for the user.
	Say func(string)
	// OnBatch, unless nil, is called with each batch that is published, and how long after its last
	// message it was given to the sink, the run of the policy included and by itself. It must not
	// keep the batch.
	OnBatch func(b *Batch, latency, policy time.Duration)
	// OnAlert, unless nil, is called with each risk event, in the order in which they are
	// published, once unless the service is killed between. It must not wait.
	OnAlert func(*Alert)
	// Alerter, unless nil, receives them too.
	Alerter Alerter
	// OnStanding, unless nil, is called before Ready with a batch of the account's positions as
	// they stand, under the number of the last batch and without the limits that bound it. It is
	// not published, and not there where that batch has just been.
	OnStanding func(*Batch)
	// OnStatus, unless nil, is called at the beginning and after events were taken.
	OnStatus func(Status)
	// Traces, unless nil, takes a span of each decision once the journal has been read, and of its
	// stages.
	Traces trace.TracerProvider
	// Commands are given to the machine. Ready, unless nil, is called when the service has caught
	// up with its journal.
	Commands <-chan string
	Ready    func()
}

// Status is how a service stands.
type Status struct {
	// Seq is the number of the last batch, and Decisions how many were those of decisions.
	Seq, Decisions uint64
	// Differs is how many positions are not those of the broker, and Open how many orders it may
	// still execute, or is to get.
	Differs, Open int
	// Policy is the digest of the version that trades.
	Policy string
	Shadow string // that which decides beside, empty for none
	Killed bool
	Reason string // of the kill switch
	// Heard is when the last message came.
	Heard time.Time
	Bars  stream.Counters
	// Reconnects is how often the source has connected again, of a Connected one.
	Reconnects int64
}

// Run trades until the context ends, or the source does. In both cases a snapshot is written; the
// end of the context is no error.
func Run(ctx context.Context, o Options) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%v: %w", o.Config, err)
		}
	}()
	if o.Now == nil {
		o.Now = time.Now
	}
	dir := o.Config.State
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	release, err := atomicfile.Lock(filepath.Join(dir, lockFile))
	if err != nil {
		return fmt.Errorf("state %s: %w", dir, err)
	}
	defer func() { err = errors.Join(err, release()) }()
	s := &service{Options: o, m: o.Machine, dir: dir}
	s.m.onAlert = s.alert
	if s.journal, err = OpenJournal(dir, o.Say); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.journal.Close()) }()
	if mb := o.Config.Journal.FileMB; mb > 0 {
		s.journal.limit = int64(mb) << 20
	}
	if s.last, err = o.Sink.Start(ctx); err != nil {
		return err
	}
	if err := s.catchUp(); err != nil {
		return err
	}
	if s.source, _ = o.Source.(Connected); s.source != nil {
		s.source.Tell(o.Say)
	}
	if err := s.beginJournal(ctx); err != nil {
		return err
	}
	if (s.m.desk == nil) != (o.Broker == nil) {
		return errors.New("a broker belongs to a machine whose configuration has one")
	}
	if s.m.desk != nil {
		s.executor = newExecutor(o.Broker, o.Config, s.m.desk.assets, o.Now, o.Say)
		tell := func(r report) error {
			e, err := r.event(o.Now())
			if err != nil {
				return err
			}
			return s.take(ctx, []Event{e})
		}
		if err := s.executor.begin(ctx, s.m.desk, tell); err != nil {
			return fmt.Errorf("broker: %w", err)
		}
	}
	s.status()
	if o.Alerter != nil {
		o.Alerter.Start()
	}
	if seq := s.m.Seq(); o.OnStanding != nil && seq > 0 && s.shown < seq {
		o.OnStanding(s.m.standing())
	}
	if o.Ready != nil {
		o.Ready()
	}
	return s.run(ctx)
}

// service is a running one.
type service struct {
	Options
	m       *Machine
	dir     string
	journal *Journal
	source  Connected // nil where it is none
	// last is the batch that the sink had at the beginning: what leads up to it is not published
	// again.
	last     uint64
	saved    uint64    // the batch of the last snapshot
	owed     bool      // there is to be one when nothing comes for a while
	executor *executor // nil without a broker
	came     time.Time
	live     bool   // the journal has been read
	shown    uint64 // the last batch that OnBatch was given
	// paused are the partitions that wait, ahead those that are to.
	ahead, paused []int32
}

// catchUp begins with the snapshot and the events after it.
func (s *service) catchUp() error {
	snapshot, err := readSnapshot(s.dir)
	if err != nil {
		return err
	}
	from := int64(0)
	switch {
	case snapshot != nil:
		if err := s.m.load(snapshot); err != nil {
			return fmt.Errorf("snapshot %s: %w", filepath.Join(s.dir, snapshotFile), err)
		}
		from, s.saved = snapshot.Events, snapshot.Seq
		if from > s.journal.Next() {
			return fmt.Errorf("snapshot %s: it is of event %d, and the journal ends before event %d", filepath.Join(s.dir, snapshotFile), from, s.journal.Next())
		}
	case s.Warm != nil:
		if err := s.m.WarmUp(s.Warm); err != nil {
			return err
		}
	}
	if s.OnStatus != nil {
		s.OnStatus(s.m.Status())
	}
	if err := Events(s.dir, from, func(_ int64, e *Event) error { return s.apply(e) }); err != nil {
		return err
	}
	if s.last > s.m.Seq() {
		s.Say(fmt.Sprintf("the sink has batch %d and the journal leads to batch %d: those between are made again from the source and not published", s.last, s.m.Seq()))
	}
	s.live = true
	s.m.tracer = spans.New(s.Traces, "github.com/onnxrl/onnxrl/agents/livetrade")
	return nil
}

// apply gives an event to the machine and what follows to the sink.
func (s *service) apply(e *Event) error {
	s.came = e.Came
	err := s.m.Apply(e, s.publish)
	var bad *Bad
	if errors.As(err, &bad) {
		// Those since the last snapshot are sent again after a stop: at least once. Partition and
		// offset say which they are.
		err := s.Sink.Bad(bad)
		s.Say(bad.Error())
		return err
	}
	return err
}

func (s *service) publish(b *Batch) error {
	if b.Seq <= s.last {
		return nil
	}
	if err := s.Sink.Publish(b); err != nil {
		return err
	}
	if s.OnBatch != nil {
		latency := time.Duration(0)
		if s.live {
			latency = s.Now().Sub(s.came)
		}
		s.OnBatch(b, latency, s.m.took)
	}
	s.shown = b.Seq
	return nil
}

// beginJournal writes which version trades from the beginning: whoever reads the journal again may
// have been given another one.
func (s *service) beginJournal(ctx context.Context) error {
	if s.journal.Next() > 0 {
		return nil
	}
	return s.take(ctx, []Event{{Kind: Command, Came: s.Now(), Offset: -1, Value: []byte(CommandPolicy + " " + s.m.version)}})
}

// run takes messages, commands and times.
func (s *service) run(ctx context.Context) (err error) {
	next := map[int32]int64{}
	s.m.Offsets(func(id int32, offset int64) { next[id] = offset })
	behind, err := s.Source.Start(ctx, next)
	if err != nil {
		return err
	}
	var events []Event
	for _, id := range behind {
		events = append(events, Event{Kind: Behind, Came: s.Now(), Partition: id})
	}
	if err := s.take(ctx, events); err != nil {
		return err
	}
	polling, stop := context.WithCancel(ctx)
	messages := make(chan polled)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			list, err := s.Source.Poll(polling)
			select {
			case messages <- polled{list, err}:
			case <-polling.Done():
				return
			}
			if err != nil {
				return
			}
		}
	}()
	executing := make(chan struct{})
	var reports chan report
	if s.executor != nil {
		reports = s.executor.reports
		go func() {
			defer close(executing)
			s.executor.run(polling)
		}()
	} else {
		close(executing)
	}
	defer func() {
		stop()
		<-done
		<-executing
	}()
	timer, quiet := time.NewTimer(time.Hour), time.NewTimer(time.Hour)
	defer timer.Stop()
	defer quiet.Stop()
	for {
		s.wait(timer)
		if s.owed {
			quiet.Reset(quietFor)
		}
		events = events[:0]
		select {
		case <-ctx.Done():
			return s.end()
		case p := <-messages:
			came := s.Now()
			for _, m := range p.list {
				switch {
				case m.Behind:
					events = append(events, Event{Kind: Behind, Came: came, Partition: m.Partition})
				case m.CaughtUp:
					events = append(events, Event{Kind: CaughtUp, Came: came, Partition: m.Partition})
				case m.Offset >= s.m.Next(m.Partition):
					kind := Bar
					if m.Command {
						kind = Command
					}
					events = append(events, Event{kind, came, m.Partition, m.Offset, m.Value})
				}
			}
			if p.err != nil {
				err := s.take(ctx, events)
				if err == nil && ctx.Err() == nil && !errors.Is(p.err, io.EOF) {
					err = fmt.Errorf("source: %w", p.err)
				}
				return errors.Join(err, s.end())
			}
		case r := <-reports:
			e, err := r.event(s.Now())
			if err != nil {
				return err
			}
			events = append(events, e)
		case text := <-s.Commands:
			events = append(events, Event{Kind: Command, Came: s.Now(), Offset: -1, Value: []byte(text)})
		case <-timer.C:
			now := s.Now()
			if due, ok := s.m.Due(); !ok || due.After(now) {
				continue
			}
			events = append(events, Event{Kind: Clock, Came: now})
		case <-quiet.C:
			if s.owed {
				if err := s.save(ctx); err != nil && ctx.Err() == nil {
					return err
				}
			}
			continue
		}
		if err := s.take(ctx, events); err != nil {
			return errors.Join(err, s.flush())
		}
	}
}

// polled is what a poll gave.
type polled struct {
	list []Message
	err  error
}

// wait sets the timer to when something is due.
func (s *service) wait(timer *time.Timer) {
	if due, ok := s.m.Due(); ok {
		timer.Reset(max(0, due.Sub(s.Now())))
	}
}

// take writes events down, and then decides on them.
func (s *service) take(ctx context.Context, events []Event) error {
	if err := s.journal.Append(events...); err != nil {
		return err
	}
	for i := range events {
		if err := s.apply(&events[i]); err != nil {
			return err
		}
	}
	if s.executor != nil && s.executor.changed(s.m.desk) {
		// The broker must know of nothing that the journal does not have after any end.
		if err := s.journal.Sync(); err != nil {
			return err
		}
		s.executor.show(s.m.desk)
	}
	if s.ahead = s.m.gather.Ahead(s.ahead[:0]); !slices.Equal(s.ahead, s.paused) {
		s.Source.Pause(s.ahead)
		s.paused = append(s.paused[:0], s.ahead...)
	}
	s.status()
	// Snapshots wait for the disk, and decisions for them: they are put off until bars do not come
	// one upon the other, but not for ever.
	due := s.saved + uint64(s.Config.Snapshot)
	if s.owed = s.m.Seq() >= due; s.m.Seq() >= due+uint64(s.Config.Snapshot) {
		// The sink may wait for somebody who is not there. Who stops meanwhile saves at the end.
		if err := s.save(ctx); err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}

// quietFor is how long nothing must come before a snapshot that is due is written.
const quietFor = 50 * time.Millisecond

// status tells how the service stands, and a source how far it has come.
func (s *service) status() {
	x := s.m.Status()
	if s.source != nil {
		s.source.Decided(s.m.Time())
		x.Reconnects = s.source.Reconnects()
	}
	if s.OnStatus != nil {
		s.OnStatus(x)
	}
}

// save writes a snapshot, of what has been published alone.
func (s *service) save(ctx context.Context) error {
	if s.Alerter != nil {
		s.Alerter.Save()
	}
	if err := s.Sink.Flush(ctx); err != nil {
		return err
	}
	if err := s.journal.Sync(); err != nil {
		return err
	}
	state, err := s.m.save(s.journal.Next())
	if err != nil {
		return err
	}
	s.saved, s.owed = s.m.Seq(), false
	if err := writeSnapshot(s.dir, state); err != nil || s.Config.Journal.Keep == 0 {
		return err
	}
	return retain(s.dir, s.Config.Journal.Keep, s.journal.first, state)
}

// EndWithin is how long the last batches may take to be written when a service ends.
const EndWithin = 10 * time.Second

// flush gives what is published that long.
func (s *service) flush() error {
	ctx, cancel := context.WithTimeout(context.Background(), EndWithin)
	defer cancel()
	return s.Sink.Flush(ctx)
}

// end writes the last snapshot.
func (s *service) end() error {
	ctx, cancel := context.WithTimeout(context.Background(), EndWithin)
	defer cancel()
	return s.save(ctx)
}
