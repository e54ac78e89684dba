package livetrade_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/agents/livetrade/files"
	"github.com/onnxrl/onnxrl/agents/livetrade/kafka"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// batches are decisions with some records of every topic, and always one of signals and positions.
func batches(n int) (list []*livetrade.Batch) {
	r, at := rng.New(4).Stream(), time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC)
	for i := range n {
		var topics []livetrade.Topic
		for _, t := range []livetrade.Topic{livetrade.Fills, livetrade.RiskEvents} {
			topics = append(topics, slices.Repeat([]livetrade.Topic{t}, r.IntN(3))...)
		}
		topics = append(topics, livetrade.Signals)
		topics = append(topics, slices.Repeat([]livetrade.Topic{livetrade.Orders}, r.IntN(3))...)
		list = append(list, livetrade.NewBatch(uint64(i+1), at.AddDate(0, 0, i), append(topics, livetrade.Positions)...))
	}
	return list
}

// publish starts a sink, gives it the batches that it lacks, and returns what it had.
func publish(t *testing.T, s livetrade.Sink, list []*livetrade.Batch) (last uint64) {
	t.Helper()
	last, err := s.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range list {
		if b.Seq > last {
			if err := s.Publish(b); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Files have every write; thousands of writes to the disk take a minute.
	if _, ok := s.(*files.Sink); !ok {
		if err := s.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return last
}

// published are the records that a sink reads back.
func published(t *testing.T, s livetrade.Published) (list [livetrade.Topics][]string) {
	t.Helper()
	for topic := range livetrade.Topics {
		r, err := s.Read(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		for {
			value, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			list[topic] = append(list[topic], string(value))
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// expected are the records of batches.
func expected(list []*livetrade.Batch) (all [livetrade.Topics][]string) {
	for _, b := range list {
		for i := range b.Records {
			r := &b.Records[i]
			all[r.Topic] = append(all[r.Topic], string(b.Value(r)))
		}
	}
	return all
}

func same(t *testing.T, what string, got, want [livetrade.Topics][]string) {
	t.Helper()
	for topic := range livetrade.Topics {
		if !slices.Equal(got[topic], want[topic]) {
			t.Fatalf("%s: %v: %d records, expected %d", what, topic, len(got[topic]), len(want[topic]))
		}
	}
}

// Files that end anywhere within a decision lose it and nothing else, and get it again.
func TestFilesThatAreCutOff(t *testing.T) {
	longtest.Slow(t)
	list := batches(6)
	dir := t.TempDir()
	if last := publish(t, files.NewSink(files.SinkConfig{Path: dir}), list); last != 0 {
		t.Fatal(last)
	}
	same(t, "written", published(t, files.NewSink(files.SinkConfig{Path: dir})), expected(list))
	whole := map[livetrade.Topic][]byte{}
	for topic := range livetrade.Topics {
		text, err := os.ReadFile(files.Path(dir, topic))
		if err != nil {
			t.Fatal(err)
		}
		whole[topic] = text
	}
	// A program that ends while it writes a decision has written some topics whole, one in part,
	// and of the others nothing.
	cuts := 0
	for k := range list {
		before, after := expected(list[:k]), expected(list[:k+1])
		length := func(lines []string) int { return len(strings.Join(append(lines, ""), "\n")) }
		for topic := range livetrade.Topics {
			for cut := length(before[topic]); cut <= length(after[topic]); cut++ {
				at := t.TempDir()
				for other := range livetrade.Topics {
					n := length(after[other])
					switch {
					case other == topic:
						n = cut
					case other > topic:
						n = length(before[other])
					}
					if err := os.WriteFile(files.Path(at, other), whole[other][:n], 0o600); err != nil {
						t.Fatal(err)
					}
				}
				want := uint64(k)
				if topic == livetrade.Positions && cut == length(after[topic]) {
					want++
				}
				s := files.NewSink(files.SinkConfig{Path: at})
				if last := publish(t, s, list); last != want {
					t.Fatalf("decision %d, %v cut at byte %d: the last is %d", k+1, topic, cut, last)
				}
				same(t, "again", published(t, s), expected(list))
				cuts++
			}
		}
	}
	if cuts < 1500 {
		t.Errorf("%d cuts", cuts)
	}
	// Files that are no records are not removed.
	path := files.Path(dir, livetrade.Orders)
	if err := os.WriteFile(path, []byte("mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := files.NewSink(files.SinkConfig{Path: dir}).Start(t.Context()); err == nil || !strings.Contains(err.Error(), "orders.jsonl: byte 0: it is no record of a decision") {
		t.Error(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "mine\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// A second service of the same name ends the first; what it publishes follows what the first has.
func TestKafkaFences(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DefaultNumPartitions(3))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	list := batches(40)
	c := kafka.SinkConfig{Config: kafka.Config{Brokers: cluster.ListenAddrs()}, Prefix: "test."}
	first := kafka.NewSink(c, "demo")
	if last, err := first.Start(t.Context()); err != nil || last != 0 {
		t.Fatal(last, err)
	}
	for _, b := range list[:15] {
		if err := first.Publish(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := kafka.NewSink(c, "demo")
	if last, err := second.Start(t.Context()); err != nil || last != 15 {
		t.Fatal(last, err)
	}
	if err := first.Publish(list[15]); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := first.Flush(ctx); err == nil || !strings.Contains(err.Error(), "fenced") && !strings.Contains(err.Error(), "epoch") {
		t.Errorf("the first goes on: %v", err)
	}
	for _, b := range list[15:] {
		if err := second.Publish(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(second.Flush(t.Context()), second.Close(), first.Close()); err != nil {
		t.Fatal(err)
	}
	// Another service writes to the same topics.
	other := kafka.NewSink(c, "other")
	if last := publish(t, other, list[:3]); last != 0 {
		t.Errorf("another service begins with %d", last)
	}
	same(t, "both", published(t, kafka.NewSink(c, "demo")), expected(list))
	same(t, "the other", published(t, kafka.NewSink(c, "other")), expected(list[:3]))
	if last := publish(t, kafka.NewSink(c, "demo"), list); last != 40 {
		t.Errorf("the last is %d", last)
	}
}

// A file gives its lines once, from an offset on, and what is appended.
func TestFileSource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bars.jsonl")
	var lines []string
	for i := range 5000 {
		lines = append(lines, strings.Repeat("x", 1+i%300))
	}
	text := strings.Join(append(lines, "half"), "\n")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	reads := 0
	for _, from := range []int{0, 1, 700, 4999, 5000} {
		next := map[int32]int64{}
		if from > 0 {
			// Behind the last message.
			next[0] = int64(len(strings.Join(lines[:from-1], "\n"))) + 1
			if from == 1 {
				next[0] = 1
			} else {
				next[0]++
			}
		}
		s := files.NewSource(files.SourceConfig{Path: path})
		if _, err := s.Start(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		var got []livetrade.Message
		for {
			list, err := s.Poll(t.Context())
			for _, m := range list {
				if m.Offset >= next[0] {
					got = append(got, m)
				}
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if len(got) != 5000-from {
			t.Fatalf("%d messages from %d on", len(got), from)
		}
		for i, m := range got {
			if string(m.Value) != lines[from+i] || text[m.Offset:][:len(m.Value)] != lines[from+i] {
				t.Fatalf("message %d is %q at %d", from+i, m.Value, m.Offset)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		reads++
	}
	if reads != 5 {
		t.Errorf("%d reads", reads)
	}
	s := files.NewSource(files.SourceConfig{Path: path, Follow: true})
	if _, err := s.Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	seen := 0
	for seen < 5000 {
		list, err := s.Poll(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen += len(list)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(" and half\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if list, err := s.Poll(t.Context()); err != nil || len(list) != 1 || !bytes.Equal(list[0].Value, []byte("half and half")) {
		t.Errorf("%v, %v", list, err)
	}
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Poll(t.Context()); err == nil || !strings.Contains(err.Error(), "it is shorter than what was read") {
		t.Error(err)
	}
}
