package kafka

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Writer writes messages of bars to a topic, by an idempotent producer: those of a symbol are in
// one partition, in order, and none is there twice however often a broker ends in between. It is an
// error if none of those that wait is written for longer than the patience.
type Writer struct {
	c      Config
	topic  string
	client *kgo.Client
	ctx    context.Context // of all records; it ends with the patience
	stop   context.CancelFunc
	done   chan struct{} // closed when nobody watches any more

	mu    sync.Mutex
	err   error
	waits int       // messages that are not written
	heard time.Time // when one was, or when the first began to wait
}

// NewWriter connects to brokers and makes a topic of so many partitions where there is none; one
// that is there keeps its own number. The end of the context is that of the writer.
func NewWriter(ctx context.Context, c Config, topic string, partitions int) (*Writer, error) {
	client, err := c.newClient(kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(2*time.Millisecond), kgo.DefaultProduceTopic(topic))
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	if err := c.create(ctx, client, topic, partitions); err != nil {
		client.Close()
		return nil, fmt.Errorf("kafka: topic %s: %w", topic, err)
	}
	w := &Writer{c: c, topic: topic, client: client, done: make(chan struct{})}
	w.ctx, w.stop = context.WithCancel(ctx)
	go w.watch()
	return w, nil
}

// watch ends the writer when nothing is written for too long.
func (w *Writer) watch() {
	defer close(w.done)
	tick := time.NewTicker(w.c.patience() / 16)
	defer tick.Stop()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-tick.C:
		}
		w.mu.Lock()
		if w.waits > 0 && time.Since(w.heard) > w.c.patience() {
			if w.err == nil {
				w.err = fmt.Errorf("kafka: topic %s: %w", w.topic, w.c.silent(fmt.Errorf("%d messages are not written", w.waits)))
			}
			w.stop()
		}
		w.mu.Unlock()
	}
}

// Write takes a message of a symbol, whose memory remains the caller's. It may return before the
// message is written.
func (w *Writer) Write(ctx context.Context, symbol string, value []byte) error {
	w.mu.Lock()
	err := w.err
	if err == nil {
		if w.waits == 0 {
			w.heard = time.Now()
		}
		w.waits++
	}
	w.mu.Unlock()
	if err != nil {
		return err
	}
	// The client takes some thousands; then it waits for room.
	w.client.Produce(w.ctx, &kgo.Record{Key: []byte(symbol), Value: append([]byte(nil), value...)}, w.written)
	return ctx.Err()
}

func (w *Writer) written(_ *kgo.Record, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits--
	w.heard = time.Now()
	if err != nil && w.err == nil {
		w.err = fmt.Errorf("kafka: topic %s: brokers %s: %w", w.topic, w.c.addresses(), err)
	}
}

// Flush returns when all messages are written.
func (w *Writer) Flush(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.ctx, cancel)()
	err := w.client.Flush(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	if err != nil {
		return fmt.Errorf("kafka: topic %s: %w", w.topic, err)
	}
	return nil
}

// Close disconnects.
func (w *Writer) Close() error {
	w.stop()
	<-w.done
	w.client.Close()
	return nil
}
