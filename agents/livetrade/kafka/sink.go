package kafka

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/configs"
)

// SinkConfig is the section of a sink of this package.
type SinkConfig struct {
	Config `yaml:",inline"`
	// Prefix comes before the names of the topics: fills, risk.events, signals, orders, positions,
	// and market.bars.dead for messages that cannot be read.
	Prefix string `yaml:"prefix,omitzero"`
	// Partitions are those of topics that are made; 0 is as many as brokers give.
	Partitions int `yaml:"partitions,omitzero"`
	// Transaction is the id of the producer's transactions; empty: onnxrl-live- and the name of the
	// service. Two services with the same one end each other.
	Transaction string `yaml:"transaction,omitzero"`
}

// Validate reports what is wrong with the fields.
func (c SinkConfig) Validate() error {
	var p configs.Problems
	c.check(&p)
	p.Check(c.Partitions >= 0 && c.Partitions <= 10_000, "partitions", "%d, expected a number of partitions, or 0", c.Partitions)
	return p.Err()
}

// Sink writes batches. Batches that wait are written in one transaction.
type Sink struct {
	// Say, unless nil, is called when brokers do not answer, and when they do again. It is called
	// by several goroutines.
	Say func(string)

	c       SinkConfig
	name    string
	client  *kgo.Client
	trouble trouble // of write

	mu      sync.Mutex
	queue   []*livetrade.Batch
	dead    []*livetrade.Bad
	err     error
	busy    bool
	waits   uint64 // the first decision that is not written
	changed *sync.Cond
	closed  bool
	last    error         // of the last attempt, nil if that succeeded
	done    chan struct{} // nil before Start has succeeded
}

// NewSink returns a sink of a service of a name; Start connects.
func NewSink(c SinkConfig, name string) *Sink {
	s := &Sink{c: c, name: name}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// deadTopic is that of messages that cannot be read.
const deadTopic = "market.bars.dead"

// Start implements livetrade.Sink. It fences other producers of the same service first.
func (s *Sink) Start(ctx context.Context) (last uint64, err error) {
	defer s.c.starting("sink", s.Say)()
	if err = s.makeTopics(ctx); err == nil {
		err = s.c.again(ctx, func(ctx context.Context) error {
			s.disconnect()
			last, err = s.connect(ctx)
			return err
		})
	}
	if err != nil {
		return 0, fmt.Errorf("kafka: sink: %w", err)
	}
	s.trouble.say, s.done = s.Say, make(chan struct{})
	go s.write()
	return last, nil
}

// makeTopics makes topics that are not there.
func (s *Sink) makeTopics(ctx context.Context) error {
	client, err := s.c.newClient()
	if err != nil {
		return err
	}
	defer client.Close()
	names := []string{deadTopic}
	for t := range livetrade.Topics {
		names = append(names, t.String())
	}
	partitions := s.c.Partitions
	if partitions == 0 {
		partitions = -1
	}
	for _, name := range names {
		if err := s.c.create(ctx, client, s.c.Prefix+name, partitions); err != nil {
			return fmt.Errorf("topic %s: %w", s.c.Prefix+name, err)
		}
	}
	return nil
}

// transaction is the id of the producer's transactions.
func (s *Sink) transaction() string {
	if s.c.Transaction != "" {
		return s.c.Transaction
	}
	return "onnxrl-live-" + s.name
}

// connect begins a producer and finds the last batch.
func (s *Sink) connect(ctx context.Context) (last uint64, err error) {
	s.client, err = s.c.newClient(kgo.TransactionalID(s.transaction()), kgo.ProducerLinger(0), kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), kgo.TransactionTimeout(transactionWithin))
	if err != nil {
		return 0, err
	}
	// The id of the producer is asked for here, so that what an earlier one has not committed is
	// aborted before the last batch is looked for.
	if _, _, err := s.client.ProducerID(ctx); err != nil {
		return 0, fmt.Errorf("transaction %s: %w", s.transaction(), err)
	}
	if last, err = s.lastBatch(ctx); err != nil {
		return 0, fmt.Errorf("topic %s: %w", s.c.Prefix+livetrade.Positions.String(), err)
	}
	return last, nil
}

func (s *Sink) disconnect() {
	if s.client != nil {
		s.client.Close()
		s.client = nil
	}
}

// lastBatch reads the topic of positions from its end until it finds a record of the service.
func (s *Sink) lastBatch(ctx context.Context) (last uint64, err error) {
	topic := s.c.Prefix + livetrade.Positions.String()
	client, err := s.c.newClient(kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	begins, err := s.c.list(ctx, client, topic, -2)
	if err != nil {
		return 0, err
	}
	ends, err := s.c.list(ctx, client, topic, -1)
	if err != nil {
		return 0, err
	}
	for id, end := range ends {
		// Back from the end in ever larger steps: others may write to the topic, too.
		for step := int64(256); ; step *= 8 {
			from := max(begins[id], end-step)
			seq, err := s.lastIn(ctx, topic, id, from, end)
			if err != nil {
				return 0, err
			}
			if last = max(last, seq); seq > 0 || from == begins[id] {
				break
			}
		}
	}
	return last, nil
}

// lastIn reads a part of a partition.
func (s *Sink) lastIn(ctx context.Context, topic string, id int32, from, end int64) (last uint64, err error) {
	if from >= end {
		return 0, nil
	}
	client, err := s.c.newClient(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {id: kgo.NewOffset().At(from)}}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(50*time.Millisecond))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	for at := from; at < end; {
		fetches, err := s.c.poll(ctx, client)
		if err != nil {
			return 0, err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			at = r.Offset + 1
			if r.Attrs.IsControl() || string(r.Key) != s.name {
				return
			}
			var line struct {
				Seq uint64 `json:"seq"`
			}
			if json.Unmarshal(r.Value, &line) == nil {
				last = max(last, line.Seq)
			}
		})
	}
	return last, nil
}

// Publish implements livetrade.Sink.
func (s *Sink) Publish(b *livetrade.Batch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.queue = append(s.queue, b.Clone())
	s.changed.Broadcast()
	return nil
}

// Bad implements livetrade.Sink.
func (s *Sink) Bad(b *livetrade.Bad) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	copied := *b
	copied.Value = append([]byte(nil), b.Value...)
	s.dead = append(s.dead, &copied)
	s.changed.Broadcast()
	return s.err
}

// Flush implements livetrade.Sink.
func (s *Sink) Flush(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.changed.Broadcast()
	})
	defer stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for (len(s.queue) > 0 || len(s.dead) > 0 || s.busy) && s.err == nil && ctx.Err() == nil {
		s.changed.Wait()
	}
	if s.err != nil {
		return s.err
	}
	if err := ctx.Err(); err != nil {
		if s.last != nil {
			err = fmt.Errorf("%w: %w", err, s.last)
		}
		return fmt.Errorf("kafka: sink: topics %s*: brokers %s: decisions from %d on are not written, and are when the service is started again: %w", s.c.Prefix, s.c.addresses(), s.waits, err)
	}
	return nil
}

// transactionWithin is after how long brokers abort a transaction by themselves: who wrote it has
// given it up by then, and is not taken for one that was fenced.
const transactionWithin = attemptWithin + 15*time.Second

// most is the largest number of batches of a transaction.
const most = 512

// write writes what waits until the sink is closed.
func (s *Sink) write() {
	defer close(s.done)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for !s.closed {
			s.changed.Wait()
		}
		stop()
	}()
	for {
		s.mu.Lock()
		for len(s.queue) == 0 && len(s.dead) == 0 && !s.closed {
			s.changed.Wait()
		}
		if s.closed {
			s.mu.Unlock()
			return
		}
		n := min(len(s.queue), most)
		batches, dead := s.queue[:n:n], s.dead
		s.queue, s.dead, s.busy = s.queue[n:], nil, true
		if n > 0 {
			s.waits = batches[0].Seq
		}
		s.mu.Unlock()
		err := s.deliver(ctx, batches, dead)
		s.mu.Lock()
		s.busy = false
		if err != nil {
			s.err = fmt.Errorf("kafka: sink: %w", err)
		}
		s.changed.Broadcast()
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// deliver writes batches, again where brokers were not there or have lost the transaction: whether
// it was committed is then found in the topic of positions. Only a producer that was fenced, what
// brokers refuse for good, and the end of the patience are errors.
func (s *Sink) deliver(ctx context.Context, batches []*livetrade.Batch, dead []*livetrade.Bad) error {
	err := s.transact(ctx, batches, dead)
	for wait := 100 * time.Millisecond; err != nil; wait = min(2*wait, 5*time.Second) {
		if ctx.Err() != nil || fenced(err) || !passes(err) {
			return err
		}
		long := s.trouble.is(s.c.Config, "sink", err)
		s.note(err)
		if long > s.c.patience() {
			return s.c.silent(err)
		}
		if pause(ctx, wait); ctx.Err() != nil {
			return err
		}
		s.disconnect()
		one, cancel := context.WithTimeout(ctx, s.c.attempt())
		last, again := s.connect(one)
		cancel()
		if err = again; err != nil {
			continue
		}
		for len(batches) > 0 && batches[0].Seq <= last {
			// It was committed, and what it was committed with.
			batches, dead = batches[1:], nil
		}
		if len(batches) > 0 || len(dead) > 0 {
			err = s.transact(ctx, batches, dead)
		}
	}
	s.trouble.over(s.c.Config, "sink")
	s.note(nil)
	return nil
}

// note keeps the error of the last attempt for who waits.
func (s *Sink) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = err
}

// transact writes batches in one transaction.
func (s *Sink) transact(ctx context.Context, batches []*livetrade.Batch, dead []*livetrade.Bad) error {
	var records []*kgo.Record
	for _, b := range batches {
		for i := range b.Records {
			r := &b.Records[i]
			headers := []kgo.RecordHeader{{Key: headerService, Value: []byte(s.name)}, {Key: headerRecord, Value: strconv.AppendInt(nil, int64(i), 10)}}
			if t := b.Trace.Traceparent; t != "" {
				headers = append(headers, kgo.RecordHeader{Key: "traceparent", Value: []byte(t)})
			}
			records = append(records, &kgo.Record{Topic: s.c.Prefix + r.Topic.String(), Key: []byte(r.Key), Value: b.Value(r), Headers: headers})
		}
	}
	for _, b := range dead {
		records = append(records, &kgo.Record{Topic: s.c.Prefix + deadTopic, Value: b.Value, Headers: []kgo.RecordHeader{
			{Key: "reason", Value: []byte(b.Err.Error())}, {Key: "partition", Value: strconv.AppendInt(nil, int64(b.Partition), 10)}, {Key: "offset", Value: strconv.AppendInt(nil, b.Offset, 10)},
		}})
	}
	ctx, cancel := context.WithTimeout(ctx, s.c.attempt())
	defer cancel()
	client := s.client
	err := within(ctx, client.BeginTransaction)
	if err != nil {
		return fmt.Errorf("transaction %s: begin: %w", s.transaction(), err)
	}
	topic := records[0].Topic
	err = within(ctx, func() error {
		for _, r := range client.ProduceSync(ctx, records...) {
			if r.Err != nil {
				return fmt.Errorf("topic %s: %w", r.Record.Topic, r.Err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("transaction %s: %d records, the first to topic %s: %w", s.transaction(), len(records), topic, err)
	}
	if err := within(ctx, func() error { return client.EndTransaction(ctx, kgo.TryCommit) }); err != nil {
		return fmt.Errorf("transaction %s: commit: %w", s.transaction(), err)
	}
	return nil
}

// Close implements livetrade.Sink. What waits and was not flushed is not written.
func (s *Sink) Close() error {
	if s.done != nil {
		s.mu.Lock()
		s.closed = true
		s.changed.Broadcast()
		s.mu.Unlock()
		<-s.done
	}
	s.disconnect()
	return nil
}
