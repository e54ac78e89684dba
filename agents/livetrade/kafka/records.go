package kafka

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/onnxrl/onnxrl/agents/livetrade"
)

// The headers of records: whose they are, and their place in their batch, as records of one batch
// may be in several partitions.
const (
	headerService = "service"
	headerRecord  = "record"
)

// published is a record that was read back.
type published struct {
	seq   uint64
	place int
	value []byte
}

// records are those of a topic, in order.
type records struct{ list []published }

func (r *records) Next() ([]byte, error) {
	if len(r.list) == 0 {
		return nil, io.EOF
	}
	value := r.list[0].value
	r.list = r.list[1:]
	return value, nil
}

func (r *records) Close() error { return nil }

// Read implements livetrade.Published. All records of the topic are in memory at once.
func (s *Sink) Read(ctx context.Context, t livetrade.Topic) (livetrade.Records, error) {
	topic := s.c.Prefix + t.String()
	list, err := s.read(ctx, topic)
	if err != nil {
		return nil, fmt.Errorf("kafka: topic %s: %w", topic, err)
	}
	slices.SortStableFunc(list, func(a, b published) int { return cmp.Or(cmp.Compare(a.seq, b.seq), a.place-b.place) })
	return &records{list}, nil
}

func (s *Sink) read(ctx context.Context, topic string) (out []published, err error) {
	client, err := s.c.newClient()
	if err != nil {
		return nil, err
	}
	begins, err := s.c.listWithin(ctx, client, topic, -2, 0)
	if errors.Is(err, errNoTopic) {
		client.Close()
		return nil, nil // There was nothing to publish.
	}
	var ends map[int32]int64
	if err == nil {
		ends, err = s.c.list(ctx, client, topic, -1)
	}
	client.Close()
	if err != nil {
		return nil, err
	}
	starts, left := map[int32]kgo.Offset{}, map[int32]int64{}
	for id, begin := range begins {
		if begin < ends[id] {
			starts[id], left[id] = kgo.NewOffset().At(begin), ends[id]
		}
	}
	if len(left) == 0 {
		return nil, nil
	}
	// Marks of transactions are kept, so that it is seen where a partition ends.
	client, err = s.c.newClient(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: starts}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(50*time.Millisecond))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for len(left) > 0 {
		fetches, err := s.c.poll(ctx, client)
		if err != nil {
			return nil, err
		}
		var bad error
		fetches.EachRecord(func(r *kgo.Record) {
			if end, ok := left[r.Partition]; ok && r.Offset+1 >= end {
				delete(left, r.Partition)
			}
			x, mine, err := s.recordOf(r)
			if err != nil && bad == nil {
				bad = fmt.Errorf("partition %d, offset %d: %w", r.Partition, r.Offset, err)
			}
			if mine {
				out = append(out, x)
			}
		})
		if bad != nil {
			return nil, bad
		}
	}
	return out, nil
}

// recordOf reads a record, if it is one of the service.
func (s *Sink) recordOf(r *kgo.Record) (x published, mine bool, err error) {
	for _, h := range r.Headers {
		switch h.Key {
		case headerService:
			mine = string(h.Value) == s.name
		case headerRecord:
			if x.place, err = strconv.Atoi(string(h.Value)); err != nil {
				return x, false, fmt.Errorf("header %s: %w", headerRecord, err)
			}
		}
	}
	if r.Attrs.IsControl() || !mine {
		return x, false, nil
	}
	var line struct {
		Seq uint64 `json:"seq"`
	}
	if err := json.Unmarshal(r.Value, &line); err != nil {
		return x, false, err
	}
	x.seq, x.value = line.Seq, r.Value
	return x, true, nil
}
