package livetrade

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// replay applies the events of a journal from a number on to a machine and calls publish with each
// batch. It returns how many events there were.
func replay(dir string, m *Machine, from int64, publish func(*Batch) error) (events int64, err error) {
	err = Events(dir, from, func(_ int64, e *Event) error {
		events++
		err := m.Apply(e, publish)
		var bad *Bad
		if errors.As(err, &bad) {
			return nil
		}
		return err
	})
	return events, err
}

// Published is a sink whose records can be read back.
type Published interface {
	// Read returns the records of a topic that were published by the service, in order.
	Read(ctx context.Context, t Topic) (Records, error)
}

// Records are those of a topic. Next returns the next value, valid until the following call, and
// io.EOF after the last.
type Records interface {
	Next() ([]byte, error)
	io.Closer
}

// Comparison is what a replay came to.
type Comparison struct {
	// From is the batch of the snapshot that the replay began with, where the beginning of the
	// journal was removed; see [Retention].
	From      uint64
	Events    int64
	Decisions uint64
	Records   int
}

// Compare applies the events of a journal to a machine before its first event, from the beginning
// or from the oldest snapshot that was kept for this. It compares each record with that which was
// published. The error names topic and batch of the first that differs, is missing, or is there
// beyond the last. warm is as in [Options].
func Compare(ctx context.Context, dir string, m *Machine, warm []byte, p Published) (c Comparison, err error) {
	var published [Topics]Records
	defer func() {
		for _, r := range published {
			if r != nil {
				err = errors.Join(err, r.Close())
			}
		}
	}()
	for t := range Topics {
		if published[t], err = p.Read(ctx, t); err != nil {
			return c, err
		}
	}
	from, err := m.begin(dir, warm)
	if err != nil {
		return c, fmt.Errorf("replay: %w", err)
	}
	decided := m.Decisions()
	if c.From = m.Seq(); from > 0 {
		for t := range published {
			published[t] = &recordsAfter{Records: published[t], seq: c.From}
		}
	}
	c.Events, err = replay(dir, m, from, func(b *Batch) error {
		for i := range b.Records {
			r := &b.Records[i]
			want := b.Value(r)
			have, err := published[r.Topic].Next()
			switch {
			case errors.Is(err, io.EOF):
				return fmt.Errorf("%v: the journal leads to batch %d of %s, which was not published: %s", r.Topic, b.Seq, b.Time.Format(time.DateTime), want)
			case err != nil:
				return err
			case !bytes.Equal(have, want):
				return fmt.Errorf("%v: batch %d of %s was published as %s, and the journal leads to %s", r.Topic, b.Seq, b.Time.Format(time.DateTime), have, want)
			}
			c.Records++
		}
		return ctx.Err()
	})
	c.Decisions = m.Decisions() - decided
	if err != nil {
		return c, fmt.Errorf("replay: %w", err)
	}
	for t, r := range published {
		if have, err := r.Next(); err == nil {
			return c, fmt.Errorf("replay: %v: there is a record that the journal does not lead to: %s", Topic(t), have)
		} else if !errors.Is(err, io.EOF) {
			return c, err
		}
	}
	return c, nil
}

// recordsAfter are those of later batches than one.
type recordsAfter struct {
	Records
	seq   uint64
	found bool
}

// Next implements Records.
func (r *recordsAfter) Next() ([]byte, error) {
	for {
		value, err := r.Records.Next()
		if err != nil || r.found {
			return value, err
		}
		var x struct {
			Seq uint64 `json:"seq"`
		}
		if err := json.Unmarshal(value, &x); err != nil {
			return nil, fmt.Errorf("%s: it is no record: %w", value, err)
		}
		if r.found = x.Seq > r.seq; r.found {
			return value, nil
		}
	}
}
