package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/configs"
)

// SourceConfig is the section of a source of this package.
type SourceConfig struct {
	Config `yaml:",inline"`
	// Topic has the messages of bars.
	Topic string `yaml:"topic"`
	// Commands is a topic of commands, kill and resume, each with a reason behind a space if there
	// is one; empty: none. It is read from its beginning, and later from where it was left: who has
	// killed and has not resumed has killed services that begin later, too.
	Commands string `yaml:"commands,omitzero"`
	// End ends with the messages that are there when the source starts; otherwise it waits for
	// more.
	End bool `yaml:"end,omitzero"`
}

// DefaultSource returns the defaults; Brokers must be set.
func DefaultSource() SourceConfig { return SourceConfig{Topic: "market.bars"} }

// Validate reports what is wrong with the fields.
func (c SourceConfig) Validate() error {
	var p configs.Problems
	c.check(&p)
	p.Check(c.Topic != "", "topic", "required")
	p.Check(c.Commands == "" || c.Commands != c.Topic, "commands", "it is the topic of bars")
	return p.Err()
}

// Source reads the messages of a topic.
type Source struct {
	// Say, unless nil, is called when brokers do not answer, and when they do again. It is called
	// by several goroutines.
	Say func(string)

	c      SourceConfig
	client *kgo.Client
	// left are the offsets at which partitions that are behind ended, of those that have not been
	// read so far; next are those that are next.
	left, next map[int32]int64
	// heard is when a broker answered last, and trouble since when none does.
	heard   time.Time
	trouble trouble
}

// NewSource returns a source; Start connects.
func NewSource(c SourceConfig) *Source { return &Source{c: c} }

// Start implements livetrade.Source.
func (s *Source) Start(ctx context.Context, next map[int32]int64) (behind []int32, err error) {
	defer s.c.starting("topic "+s.c.Topic, s.Say)()
	client, err := s.c.newClient()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	bars, commands := map[int32]int64{}, map[int32]int64{}
	for id, offset := range next {
		if id < 0 {
			commands[-1-id] = offset
		} else {
			bars[id] = offset
		}
	}
	starts, left, err := s.c.begin(ctx, client, s.c.Topic, bars)
	if err != nil {
		return nil, err
	}
	s.next = map[int32]int64{}
	for id, at := range starts {
		s.next[id] = at.EpochOffset().Offset
	}
	topics := map[string]map[int32]kgo.Offset{s.c.Topic: starts}
	s.left = left
	for id := range left {
		behind = append(behind, id)
	}
	slices.Sort(behind)
	if s.c.Commands != "" {
		if err := s.c.create(ctx, client, s.c.Commands, 1); err != nil {
			return nil, fmt.Errorf("kafka: topic %s: %w", s.c.Commands, err)
		}
		if topics[s.c.Commands], _, err = s.c.begin(ctx, client, s.c.Commands, commands); err != nil {
			return nil, err
		}
	}
	s.client, err = s.c.newClient(kgo.ConsumePartitions(topics),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(), kgo.FetchMaxWait(100*time.Millisecond), kgo.KeepRetryableFetchErrors())
	s.heard, s.trouble.say = time.Now(), s.Say
	return behind, err
}

// begin says where to begin with the partitions of a topic, whose next offsets are known of those
// that were read before, and where those end that have messages from there on.
func (c Config) begin(ctx context.Context, client *kgo.Client, topic string, next map[int32]int64) (starts map[int32]kgo.Offset, left map[int32]int64, err error) {
	begins, err := c.list(ctx, client, topic, -2)
	var ends map[int32]int64
	if err == nil {
		ends, err = c.list(ctx, client, topic, -1)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("kafka: topic %s: %w", topic, err)
	}
	starts, left = map[int32]kgo.Offset{}, map[int32]int64{}
	for id, at := range begins {
		if want, ok := next[id]; ok {
			if want < at {
				return nil, nil, fmt.Errorf("kafka: topic %s, partition %d: offset %d is next, and the first that is kept is %d: messages between are lost", topic, id, want, at)
			}
			if want > ends[id] {
				return nil, nil, fmt.Errorf("kafka: topic %s, partition %d: offset %d is next, and the partition ends before %d: it is another topic, or was made again", topic, id, want, ends[id])
			}
			at = want
		}
		if starts[id] = kgo.NewOffset().At(at); at < ends[id] {
			left[id] = ends[id]
		}
	}
	for id := range next {
		if _, ok := begins[id]; !ok {
			return nil, nil, fmt.Errorf("kafka: topic %s has no partition %d, which messages were taken from before", topic, id)
		}
	}
	return starts, left, nil
}

// quiet is after how long without a message brokers are asked whether they are there.
const quiet = 5 * time.Second

// Poll implements livetrade.Source. Brokers that are not there are waited for as long as the
// patience says.
func (s *Source) Poll(ctx context.Context) ([]livetrade.Message, error) {
	for {
		if s.c.End && len(s.left) == 0 {
			return nil, io.EOF
		}
		one, cancel := context.WithTimeout(ctx, min(quiet, s.c.patience()))
		fetches := s.client.PollRecords(one, 4096)
		cancel()
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for _, e := range fetches.Errors() {
			if !kerr.IsRetriable(e.Err) && !errors.Is(e.Err, context.Canceled) && !errors.Is(e.Err, context.DeadlineExceeded) && !kgo.IsRetryableBrokerErr(e.Err) {
				return nil, fmt.Errorf("kafka: topic %s, partition %d: %w", e.Topic, e.Partition, e.Err)
			}
		}
		messages, err := s.lag(ctx, fetches)
		if err != nil {
			return nil, err
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Topic == s.c.Commands {
				if !r.Attrs.IsControl() {
					messages = append(messages, livetrade.Message{Partition: -1 - r.Partition, Offset: r.Offset, Value: r.Value, Command: true})
				}
				return
			}
			s.next[r.Partition] = r.Offset + 1
			// The marks of transactions have offsets, too, and may be the last.
			if !r.Attrs.IsControl() {
				messages = append(messages, livetrade.Message{Partition: r.Partition, Offset: r.Offset, Value: r.Value})
			}
			if end, ok := s.left[r.Partition]; ok && r.Offset+1 >= end {
				delete(s.left, r.Partition)
				messages = append(messages, livetrade.Message{Partition: r.Partition, CaughtUp: true})
			}
		})
		if len(messages) > 0 {
			s.hear()
			return messages, nil
		}
		if err := s.ask(ctx); err != nil {
			return nil, err
		}
	}
}

// burst is how many messages of a symbol at once are more than come in time.
const burst = 8

// lag finds out which partitions are behind when many times come at once, as they do after a broker
// was away: those of other partitions may have to be waited for.
func (s *Source) lag(ctx context.Context, fetches kgo.Fetches) (behind []livetrade.Message, err error) {
	many := false
	fetches.EachPartition(func(p kgo.FetchTopicPartition) {
		if p.Topic != s.c.Topic || len(p.Records) < burst || s.left[p.Partition] > 0 {
			return
		}
		// Keys are symbols.
		times := 0
		for _, r := range p.Records {
			if bytes.Equal(r.Key, p.Records[0].Key) {
				times++
			}
		}
		many = many || times >= burst
	})
	if !many || s.c.End {
		return nil, nil
	}
	ends, err := s.c.list(ctx, s.client, s.c.Topic, -1)
	if err != nil {
		return nil, fmt.Errorf("kafka: topic %s: %w", s.c.Topic, err)
	}
	for id, end := range ends {
		if at, ok := s.next[id]; ok && at < end && s.left[id] == 0 {
			s.left[id] = end
			behind = append(behind, livetrade.Message{Partition: id, Behind: true})
		}
	}
	slices.SortFunc(behind, func(a, b livetrade.Message) int { return int(a.Partition - b.Partition) })
	return behind, nil
}

// hear notes that a broker has answered.
func (s *Source) hear() {
	s.heard = time.Now()
	s.trouble.over(s.c.Config, "topic "+s.c.Topic)
}

// ask asks brokers whether they are there, if none has answered for a while; it is an error if none
// has for longer than the patience.
func (s *Source) ask(ctx context.Context) error {
	if time.Since(s.heard) < min(quiet, s.c.patience()) {
		return nil
	}
	one, cancel := context.WithTimeout(ctx, s.c.attempt())
	defer cancel()
	err := s.client.Ping(one)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		s.hear()
	case s.trouble.is(s.c.Config, "topic "+s.c.Topic, err) > s.c.patience():
		return fmt.Errorf("kafka: topic %s: %w", s.c.Topic, s.c.silent(err))
	}
	return nil
}

// Pause implements livetrade.Source.
func (s *Source) Pause(partitions []int32) {
	s.client.ResumeFetchPartitions(s.client.PauseFetchPartitions(nil))
	if len(partitions) > 0 {
		s.client.PauseFetchPartitions(map[string][]int32{s.c.Topic: partitions})
	}
}

// Close implements livetrade.Source.
func (s *Source) Close() error {
	if s.client != nil {
		s.client.Close()
	}
	return nil
}
