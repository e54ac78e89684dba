package livetrade_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/agents/livetrade/kafka"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// patience is short, and shorter than what the client waits by itself.
const patience = 1500 * time.Millisecond

// newCluster starts a broker with a topic of bars.
func newCluster(t *testing.T) (*kfake.Cluster, kafka.Config) {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DefaultNumPartitions(2), kfake.SeedTopics(2, "market.bars"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster, kafka.Config{Brokers: cluster.ListenAddrs(), Patience: patience}
}

// silence has a broker take requests and not answer.
func silence(cluster *kfake.Cluster, key kmsg.Key) {
	cluster.ControlKey(key.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		return nil, nil, true
	})
}

// A broker that takes a request and never answers it is an error that names it, whatever the
// request is, and what was begun can be closed.
func TestKafkaThatIsSilent(t *testing.T) {
	list := batches(3)
	start := func(t *testing.T, c kafka.Config, _ func()) (livetrade.Sink, error) {
		s := kafka.NewSink(kafka.SinkConfig{Config: c}, "demo")
		_, err := s.Start(t.Context())
		return s, err
	}
	type closer interface{ Close() error }
	cases := 0
	for _, x := range []struct {
		what, says string
		key        kmsg.Key
		do         func(t *testing.T, c kafka.Config, hush func()) (closer, error)
	}{
		{"topics of a sink", "topic market.bars.dead: ", kmsg.Metadata, func(t *testing.T, c kafka.Config, hush func()) (closer, error) { hush(); return start(t, c, hush) }},
		{"making topics", "topic market.bars.dead: ", kmsg.CreateTopics, func(t *testing.T, c kafka.Config, hush func()) (closer, error) { hush(); return start(t, c, hush) }},
		{"the id of a producer", "transaction onnxrl-live-demo: ", kmsg.InitProducerID, func(t *testing.T, c kafka.Config, hush func()) (closer, error) { hush(); return start(t, c, hush) }},
		{"the last batch", "topic positions: ", kmsg.Fetch, func(t *testing.T, c kafka.Config, hush func()) (closer, error) {
			publish(t, kafka.NewSink(kafka.SinkConfig{Config: c}, "demo"), list)
			hush()
			return start(t, c, hush)
		}},
		{"a transaction", "transaction onnxrl-live-demo: ", kmsg.EndTxn, func(t *testing.T, c kafka.Config, hush func()) (closer, error) {
			s, err := start(t, c, hush)
			if err != nil {
				t.Fatal(err)
			}
			hush()
			if err := s.Publish(list[0]); err != nil {
				t.Fatal(err)
			}
			return s, s.Flush(t.Context())
		}},
		{"records", "transaction onnxrl-live-demo: ", kmsg.Produce, func(t *testing.T, c kafka.Config, hush func()) (closer, error) {
			s, err := start(t, c, hush)
			if err != nil {
				t.Fatal(err)
			}
			hush()
			if err := s.Publish(list[0]); err != nil {
				t.Fatal(err)
			}
			return s, s.Flush(t.Context())
		}},
		{"offsets", "topic market.bars: ", kmsg.ListOffsets, func(t *testing.T, c kafka.Config, hush func()) (closer, error) {
			hush()
			s := kafka.NewSource(kafka.SourceConfig{Config: c, Topic: "market.bars"})
			_, err := s.Start(t.Context(), nil)
			return s, err
		}},
		{"published records", "topic positions: ", kmsg.Fetch, func(t *testing.T, c kafka.Config, hush func()) (closer, error) {
			s := kafka.NewSink(kafka.SinkConfig{Config: c}, "demo")
			publish(t, kafka.NewSink(kafka.SinkConfig{Config: c}, "demo"), list)
			hush()
			_, err := s.Read(t.Context(), livetrade.Positions)
			return s, err
		}},
		{"messages that are written", "topic market.bars: ", kmsg.Produce, func(t *testing.T, c kafka.Config, hush func()) (closer, error) {
			w, err := kafka.NewWriter(t.Context(), c, "market.bars", 2)
			if err != nil {
				t.Fatal(err)
			}
			hush()
			for range 20_000 { // More than the client takes at once.
				if err := w.Write(t.Context(), "IBM", []byte("x")); err != nil {
					return w, err
				}
			}
			return w, w.Flush(t.Context())
		}},
	}[:longtest.Cases(t, 9, 2)] {
		t.Run(x.what, func(t *testing.T) {
			t.Parallel()
			cluster, c := newCluster(t)
			end, err := x.do(t, c, func() { silence(cluster, x.key) })
			if err == nil || !strings.Contains(err.Error(), "kafka: ") || !strings.Contains(err.Error(), "brokers "+c.Brokers[0]+": no answer within 1.5s: ") || !strings.Contains(err.Error(), x.says) {
				t.Errorf("%v, expected that brokers do not answer and %q", err, x.says)
			}
			if err := end.Close(); err != nil {
				t.Error(err)
			}
		})
		cases++
	}
	if cases != longtest.Cases(t, 9, 2) {
		t.Errorf("%d cases", cases)
	}
}

// Requests that are lost are asked again, and nothing is there twice.
func TestKafkaThatLosesRequests(t *testing.T) {
	list := batches(12)
	cases := 0
	for _, key := range []kmsg.Key{kmsg.Metadata, kmsg.CreateTopics, kmsg.InitProducerID, kmsg.ListOffsets, kmsg.Produce, kmsg.EndTxn} {
		t.Run(key.Name(), func(t *testing.T) {
			t.Parallel()
			cluster, c := newCluster(t)
			c.Patience = time.Minute
			s := kafka.NewSink(kafka.SinkConfig{Config: c}, "demo")
			drop(cluster, key, 3)
			if last := publish(t, s, list); last != 0 {
				t.Errorf("the last is %d", last)
			}
			same(t, key.Name(), published(t, kafka.NewSink(kafka.SinkConfig{Config: c}, "demo")), expected(list))
		})
		cases++
	}
	if cases != 6 {
		t.Errorf("%d cases", cases)
	}
}

// drop has a broker end the connections of the first n requests.
func drop(cluster *kfake.Cluster, key kmsg.Key, n int) {
	taken := 0
	cluster.ControlKey(key.Int16(), func(kmsg.Request) (kmsg.Response, error, bool) {
		if taken++; taken > n {
			cluster.DropControl()
			return nil, nil, false
		}
		return nil, errors.New("the connection is lost"), true
	})
}

// A source or sink that waits for brokers ends with its context, says what is not written, and can be closed.
func TestKafkaIsStopped(t *testing.T) {
	longtest.Slow(t)
	list := batches(3)
	cluster, c := newCluster(t)
	c.Patience = time.Hour
	s := kafka.NewSink(kafka.SinkConfig{Config: c}, "demo")
	if _, err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	source := kafka.NewSource(kafka.SourceConfig{Config: c, Topic: "market.bars"})
	if _, err := source.Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	silence(cluster, kmsg.Produce)
	for _, b := range list {
		if err := s.Publish(b); err != nil {
			t.Fatal(err)
		}
	}
	soon := func() (context.Context, context.CancelFunc) {
		return context.WithTimeout(t.Context(), 300*time.Millisecond)
	}
	ctx, cancel := soon()
	defer cancel()
	if err := s.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "brokers "+c.Brokers[0]+": decisions from 1 on are not written") {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	cluster.Close()
	ctx, cancel = soon()
	defer cancel()
	if _, err := source.Poll(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := source.Close(); err != nil {
		t.Error(err)
	}
	ctx, cancel = soon()
	defer cancel()
	s = kafka.NewSink(kafka.SinkConfig{Config: c}, "demo")
	if _, err := s.Start(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), c.Brokers[0]) {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// Who waits for brokers does not ask them all the time, and gives up.
func TestKafkaThatIsGone(t *testing.T) {
	longtest.Nightly(t)
	cluster, c := newCluster(t)
	source := kafka.NewSource(kafka.SourceConfig{Config: c, Topic: "market.bars"})
	var told []string
	source.Say = func(text string) { told = append(told, text) }
	if _, err := source.Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	sink := kafka.NewSink(kafka.SinkConfig{Config: c}, "demo")
	if _, err := sink.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer sink.Close()
	cluster.Close()
	// In its place is one that ends every connection.
	l, err := net.Listen("tcp", c.Brokers[0])
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var dials atomic.Int64
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			dials.Add(1)
			_ = conn.Close() // That is all.
		}
	}()
	silent := "brokers " + c.Brokers[0] + ": no answer within 1.5s"
	if _, err := source.Poll(t.Context()); err == nil || !strings.Contains(err.Error(), "kafka: topic market.bars: "+silent) {
		t.Error(err)
	}
	if len(told) != 1 || !strings.Contains(told[0], "topic market.bars: brokers "+c.Brokers[0]+": tried again for 1.5s: ") {
		t.Error(told)
	}
	if err := sink.Publish(batches(1)[0]); err != nil {
		t.Fatal(err)
	}
	if err := sink.Flush(t.Context()); err == nil || !strings.Contains(err.Error(), "kafka: sink: "+silent) {
		t.Error(err)
	}
	if n := dials.Load(); n == 0 || n > 200 {
		t.Errorf("%d connections", n)
	}
}
