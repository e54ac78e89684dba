package kafka

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	// defaultPatience is that of a Config that says none.
	defaultPatience = 10 * time.Minute
	// attemptWithin is how long brokers may take over one thing before it is begun again.
	attemptWithin = 30 * time.Second
	// dialWithin is how long a connection may take.
	dialWithin = 5 * time.Second
)

// newClient returns a client of the brokers, which looks for leaders again soon after they are
// gone.
func (c Config) newClient(options ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.Brokers...), kgo.DialTimeout(dialWithin), kgo.MetadataMinAge(500 * time.Millisecond)}, options...)...)
}

func (c Config) patience() time.Duration {
	if c.Patience == 0 {
		return defaultPatience
	}
	return c.Patience
}

// attempt is how long one attempt may take.
func (c Config) attempt() time.Duration { return min(c.patience(), attemptWithin) }

// silent is the error of brokers that do not answer for longer than the patience.
func (c Config) silent(err error) error {
	return fmt.Errorf("brokers %s: no answer within %v: %w", c.addresses(), c.patience(), err)
}

func (c Config) addresses() string { return strings.Join(c.Brokers, ", ") }

// within calls do and returns no later than the context ends: the client waits for some answers
// whatever its context says, until it is closed, and do returns then.
func within(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// again does what passes by itself again, until it succeeds, brokers refuse it for good, the
// context ends or the patience does. Every attempt has a context of its own.
func (c Config) again(ctx context.Context, do func(ctx context.Context) error) error {
	end := time.Now().Add(c.patience())
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, 2*time.Second) {
		one, cancel := context.WithTimeout(ctx, min(c.attempt(), time.Until(end)))
		err := do(one)
		cancel()
		if err == nil || !passes(err) {
			return err
		}
		if ctx.Err() == nil && time.Now().Add(wait).Before(end) {
			pause(ctx, wait)
		} else if ctx.Err() == nil {
			return c.silent(err)
		}
		if ctx.Err() != nil {
			return fmt.Errorf("brokers %s: %w", c.addresses(), errors.Join(ctx.Err(), err))
		}
	}
}

// slowly is after how long a start is reported as slow.
const slowly = 2 * time.Second

// starting tells, unless the start is over before, that brokers do not answer.
func (c Config) starting(what string, say func(string)) (over func() bool) {
	if say == nil {
		return func() bool { return true }
	}
	return time.AfterFunc(slowly, func() {
		say(fmt.Sprintf("kafka: %s: brokers %s have not answered so far; each thing is asked for up to %v", what, c.addresses(), c.patience()))
	}).Stop
}

// pause waits, or until the context ends.
func pause(ctx context.Context, wait time.Duration) {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// fenced says that another producer of the same transactions has begun.
func fenced(err error) bool {
	return errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch)
}

// passes says that what failed may not fail when it is tried again.
func passes(err error) bool {
	if errors.Is(err, errNoTopic) {
		return false
	}
	var broker *kerr.Error
	return !errors.As(err, &broker) || broker.Retriable || errors.Is(err, kerr.TransactionAbortable) || errors.Is(err, kerr.InvalidTxnState) || errors.Is(err, kerr.InvalidProducerIDMapping) || errors.Is(err, kerr.UnknownProducerID) || errors.Is(err, kerr.OperationNotAttempted)
}

// poll returns what a client fetches next; it is an error if that takes longer than the patience.
func (c Config) poll(ctx context.Context, client *kgo.Client) (kgo.Fetches, error) {
	one, cancel := context.WithTimeout(ctx, c.patience())
	defer cancel()
	for {
		fetches := client.PollFetches(one)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := one.Err(); err != nil {
			return nil, c.silent(err)
		}
		if err := fetches.Err(); err != nil && !kerr.IsRetriable(err) && !kgo.IsRetryableBrokerErr(err) {
			return nil, err
		}
		if !fetches.Empty() {
			return fetches, nil
		}
	}
}

// trouble tells once that brokers do not answer, and once that they do again.
type trouble struct {
	say   func(string)
	since time.Time
	err   error // the last
}

// is notes that something failed, and returns for how long everything has.
func (t *trouble) is(c Config, what string, err error) time.Duration {
	if t.err = err; t.since.IsZero() {
		t.since = time.Now()
		if t.say != nil {
			t.say(fmt.Sprintf("kafka: %s: brokers %s: tried again for %v: %v", what, c.addresses(), c.patience(), err))
		}
	}
	return time.Since(t.since)
}

// over notes that something succeeded.
func (t *trouble) over(c Config, what string) {
	if !t.since.IsZero() && t.say != nil {
		t.say(fmt.Sprintf("kafka: %s: brokers %s answer again, after %v", what, c.addresses(), time.Since(t.since).Round(time.Millisecond)))
	}
	t.since, t.err = time.Time{}, nil
}
