package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// errNoTopic says that brokers know no topic of a name.
var errNoTopic = errors.New("there is no such topic")

// topicWithin is how long a topic may be unknown that should be there: a broker that begins may not
// know it yet.
const topicWithin = 5 * time.Second

// list asks for an offset of each partition: -2 is that of the first record, -1 that behind the
// last. What passes by itself is asked again.
func (c Config) list(ctx context.Context, client *kgo.Client, topic string, at int64) (out map[int32]int64, err error) {
	return c.listWithin(ctx, client, topic, at, topicWithin)
}

// listWithin is list, of a topic that may be unknown for so long.
func (c Config) listWithin(ctx context.Context, client *kgo.Client, topic string, at int64, unknown time.Duration) (out map[int32]int64, err error) {
	meta := kmsg.NewPtrMetadataRequest()
	t := kmsg.NewMetadataRequestTopic()
	t.Topic = kmsg.StringPtr(topic)
	meta.Topics = append(meta.Topics, t)
	var since time.Time
	err = c.again(ctx, func(ctx context.Context) (err error) {
		out, err = listOnce(ctx, client, meta, topic, at)
		if !errors.Is(err, errNoTopic) {
			since = time.Time{}
			return err
		}
		if since.IsZero() {
			since = time.Now()
		}
		if time.Since(since) < unknown {
			return kerr.UnknownTopicOrPartition
		}
		return err
	})
	return out, err
}

func listOnce(ctx context.Context, client *kgo.Client, meta *kmsg.MetadataRequest, topic string, at int64) (map[int32]int64, error) {
	m, err := meta.RequestWith(ctx, client)
	if err != nil {
		return nil, err
	}
	if len(m.Topics) != 1 {
		return nil, fmt.Errorf("the broker told of %d topics", len(m.Topics))
	}
	if err := kerr.ErrorForCode(m.Topics[0].ErrorCode); err != nil {
		if errors.Is(err, kerr.UnknownTopicOrPartition) {
			return nil, errNoTopic
		}
		return nil, err
	}
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID, req.IsolationLevel = -1, 1
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = topic
	for _, p := range m.Topics[0].Partitions {
		rp := kmsg.NewListOffsetsRequestTopicPartition()
		rp.Partition, rp.Timestamp = p.Partition, at
		rt.Partitions = append(rt.Partitions, rp)
	}
	req.Topics = append(req.Topics, rt)
	out := map[int32]int64{}
	for _, shard := range client.RequestSharded(ctx, req) {
		if shard.Err != nil {
			return nil, shard.Err
		}
		for _, t := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
			for _, p := range t.Partitions {
				if err := kerr.ErrorForCode(p.ErrorCode); err != nil {
					return nil, fmt.Errorf("partition %d: %w", p.Partition, err)
				}
				out[p.Partition] = p.Offset
			}
		}
	}
	if len(out) != len(m.Topics[0].Partitions) {
		return nil, fmt.Errorf("the brokers told of %d of %d partitions", len(out), len(m.Topics[0].Partitions))
	}
	return out, nil
}

// create makes a topic of so many partitions, -1 for as many as brokers give it, unless there is
// one.
func (c Config) create(ctx context.Context, client *kgo.Client, topic string, partitions int) error {
	if _, err := c.listWithin(ctx, client, topic, -2, 0); !errors.Is(err, errNoTopic) {
		return err
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = 10_000
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = topic, int32(partitions), -1
	req.Topics = append(req.Topics, t)
	return c.again(ctx, func(ctx context.Context) error {
		resp, err := req.RequestWith(ctx, client)
		if err == nil && len(resp.Topics) == 1 {
			err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
		}
		if errors.Is(err, kerr.TopicAlreadyExists) {
			return nil
		}
		return err
	})
}
