package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// limit ends what waits for a broker for too long.
func limit(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func client(t *testing.T, address string, options ...kgo.Opt) *kgo.Client {
	t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(address)}, options...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func createTopic(t *testing.T, address, topic string) string {
	t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	one := kmsg.NewCreateTopicsRequestTopic()
	one.Topic, one.NumPartitions, one.ReplicationFactor = topic, 1, 1
	req.Topics = append(req.Topics, one)
	resp, err := req.RequestWith(limit(t), client(t, address))
	if err == nil {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
	return topic
}

// produce writes records one after another.
func produce(t *testing.T, c *kgo.Client, topic string, values ...string) {
	t.Helper()
	for _, v := range values {
		if err := write(t, c, topic, v); err != nil {
			t.Fatalf("produce %s: %v", v, err)
		}
	}
}

// write writes a record. The client does not give up a record that the broker may have, whatever
// its context says.
func write(t *testing.T, c *kgo.Client, topic, value string) error {
	t.Helper()
	done := make(chan error, 1)
	c.Produce(t.Context(), &kgo.Record{Topic: topic, Value: []byte(value)}, func(_ *kgo.Record, err error) { done <- err })
	return wait(t, done)
}

func wait(t *testing.T, done chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-limit(t).Done():
		t.Fatal("the client waits for the broker for too long")
		return nil
	}
}

// consume reads the topic from its beginning until there are as many records as expected.
func consume(t *testing.T, address, topic string, n int, options ...kgo.Opt) (values []string) {
	t.Helper()
	c := client(t, address, append([]kgo.Opt{kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart())}, options...)...)
	ctx := limit(t)
	for len(values) < n {
		fetches := c.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("%d of %d records: %v", len(values), n, err)
		}
		fetches.EachRecord(func(r *kgo.Record) { values = append(values, string(r.Value)) })
	}
	return values
}

// One broker, which takes seconds to start, goes through everything that a test may do to it.
// After kill -9 all is there that a client saw acknowledged; one that hangs answers nothing, and
// everything once it goes on; transactions are the same as those of kfake, which stands for a
// broker in tests; and the process is gone when the test is over, paused or not.
func TestBroker(t *testing.T) {
	var pid int
	ran := t.Run("Kafka", func(t *testing.T) {
		b := Start(t)
		kill(t, b)
		pause(t, b)
		transactions(t, b.Address(), func() { b.Kill(); b.Restart() })
		pid = b.PID()
		b.Pause()
	})
	if os.Getenv(Variable) == "" {
		t.Skip(Variable + " is not set")
	}
	if ran && pid == 0 {
		t.Error("no process")
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("process %d is there after its test: %v", pid, err)
	}
}

func TestTransactionsOfKfake(t *testing.T) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	transactions(t, c.ListenAddrs()[0], func() {})
}

// kill ends the broker between records of an idempotent producer, which goes on where it was.
func kill(t *testing.T, b *Broker) {
	topic := createTopic(t, b.Address(), "killed")
	producer := client(t, b.Address())
	var want []string
	for i := range 200 {
		want = append(want, fmt.Sprint("order ", i))
	}
	produce(t, producer, topic, want[:100]...)
	pid := b.PID()
	b.Kill()
	b.Restart()
	if b.PID() == pid || b.PID() == 0 {
		t.Errorf("process %d after %d", b.PID(), pid)
	}
	produce(t, producer, topic, want[100:]...)
	if got := consume(t, b.Address(), topic, len(want)); !slices.Equal(got, want) {
		t.Errorf("%d records, expected %d: %v", len(got), len(want), got)
	}
}

func pause(t *testing.T, b *Broker) {
	topic := createTopic(t, b.Address(), "paused")
	producer := client(t, b.Address())
	produce(t, producer, topic, "before")
	b.Pause()
	ctx := limit(t)
	done := make(chan error, 1)
	producer.Produce(ctx, &kgo.Record{Topic: topic, Value: []byte("meanwhile")}, func(_ *kgo.Record, err error) { done <- err })
	other := client(t, b.Address())
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := other.Ping(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a paused broker: %v", err)
	}
	select {
	case err := <-done:
		t.Errorf("a paused broker acknowledged: %v", err)
	default:
	}
	b.Resume()
	if err := wait(t, done); err != nil {
		t.Fatal(err)
	}
	if got := consume(t, b.Address(), topic, 2); !slices.Equal(got, []string{"before", "meanwhile"}) {
		t.Error(got)
	}
}

// transactions begins, aborts and commits; restart happens within a transaction that then ends.
func transactions(t *testing.T, address string, restart func()) {
	topic := createTopic(t, address, "orders")
	ctx := limit(t)
	id := kgo.TransactionalID("live-demo")
	first := client(t, address, id, kgo.TransactionTimeout(time.Minute))
	transaction := func(c *kgo.Client, end kgo.TransactionEndTry, during func(), values ...string) {
		t.Helper()
		if err := c.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		produce(t, c, topic, values...)
		during()
		if err := c.EndTransaction(ctx, end); err != nil {
			t.Fatalf("end the transaction of %v: %v", values, err)
		}
	}
	transaction(first, kgo.TryCommit, func() {}, "a1", "a2")
	transaction(first, kgo.TryAbort, func() {}, "b1", "b2")
	transaction(first, kgo.TryCommit, restart, "c1")

	// The next producer of the same id takes over while the first has a transaction open.
	if err := first.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	produce(t, first, topic, "d1")
	second := client(t, address, id, kgo.TransactionTimeout(time.Minute))
	transaction(second, kgo.TryCommit, func() {}, "e1")
	err := write(t, first, topic, "d2")
	if err == nil {
		err = first.EndTransaction(ctx, kgo.TryCommit)
	}
	if !errors.Is(err, kerr.InvalidProducerEpoch) && !errors.Is(err, kerr.ProducerFenced) {
		t.Errorf("a producer whose id another has: %v, expected that it is fenced", err)
	}
	transaction(second, kgo.TryCommit, func() {}, "f1")

	want := []string{"a1", "a2", "c1", "e1", "f1"}
	if got := consume(t, address, topic, len(want), kgo.FetchIsolationLevel(kgo.ReadCommitted())); !slices.Equal(got, want) {
		t.Errorf("read committed: %v, expected %v", got, want)
	}
	want = []string{"a1", "a2", "b1", "b2", "c1", "d1", "e1", "f1"}
	if got := consume(t, address, topic, len(want)); !slices.Equal(got, want) {
		t.Errorf("everything: %v, expected %v", got, want)
	}
}

// A broker that is cut off takes nothing, and what a client gave it meanwhile when it is joined
// again.
func TestBrokerCutOff(t *testing.T) {
	b := StartApart(t)
	cuts := 0
	for how, name := range []string{Lost: "lost", Unreachable: "unreachable"} {
		topic := createTopic(t, b.Address(), name)
		producer := client(t, b.Address())
		produce(t, producer, topic, "before")
		b.Cut(Partition(how))
		done := make(chan error, 1)
		producer.Produce(limit(t), &kgo.Record{Topic: topic, Value: []byte("meanwhile")}, func(_ *kgo.Record, err error) { done <- err })
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := client(t, b.Address()).Ping(short); err == nil {
			t.Errorf("%s: a broker that is cut off answers", name)
		}
		b.Join()
		if err := wait(t, done); err != nil {
			t.Fatal(err)
		}
		if got := consume(t, b.Address(), topic, 2); !slices.Equal(got, []string{"before", "meanwhile"}) {
			t.Error(got)
		}
		cuts++
	}
	if cuts != 2 {
		t.Errorf("%d cuts", cuts)
	}
}
