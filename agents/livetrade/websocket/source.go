package websocket

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/onnxrl/onnxrl/agents/livetrade"
)

// Source reads the messages of a peer. There is one partition, and offsets count messages.
type Source struct {
	c      SourceConfig
	url    *url.URL
	say    func(string)
	queue  *queue
	cancel context.CancelFunc
	done   chan struct{}
	// roots are whom certificates are signed by; nil are those of the system.
	roots *x509.CertPool
	// ticker is time.NewTicker.
	ticker func(time.Duration) *time.Ticker

	next       int64        // offset; Poll's alone
	decided    atomic.Int64 // microseconds since 1970; 0 is none
	reconnects atomic.Int64
}

// NewSource returns a source; Start connects.
func NewSource(c SourceConfig) *Source {
	return &Source{c: c, say: func(string) {}, queue: newQueue(c.Buffer), ticker: time.NewTicker}
}

// Tell implements livetrade.Connected.
func (s *Source) Tell(say func(string)) { s.say = say }

// Decided implements livetrade.Connected.
func (s *Source) Decided(at time.Time) {
	if !at.IsZero() {
		s.decided.Store(at.UnixMicro())
	}
}

// Reconnects implements livetrade.Connected: how often a connection was made after the first.
func (s *Source) Reconnects() int64 { return s.reconnects.Load() }

// Start implements livetrade.Source. It does not wait for the peer.
func (s *Source) Start(ctx context.Context, next map[int32]int64) (behind []int32, err error) {
	if s.url, err = parseURL(s.c.URL, true); err != nil {
		return nil, fmt.Errorf("websocket: url: %w", err)
	}
	if _, err = s.c.token(); err != nil {
		return nil, fmt.Errorf("websocket: %w", err)
	}
	s.next = next[0]
	ctx, s.cancel = context.WithCancel(ctx)
	s.done = make(chan struct{})
	go s.run(ctx)
	return nil, nil
}

// Poll implements livetrade.Source.
func (s *Source) Poll(ctx context.Context) ([]livetrade.Message, error) {
	values, err := s.queue.take(ctx)
	list := make([]livetrade.Message, len(values))
	for i, v := range values {
		list[i] = livetrade.Message{Offset: s.next, Value: v}
		s.next++
	}
	return list, err
}

// Pause implements livetrade.Source.
func (s *Source) Pause(partitions []int32) { s.queue.pause(slices.Contains(partitions, 0)) }

// Close implements livetrade.Source. It takes no longer than a second or two.
func (s *Source) Close() error {
	if s.cancel != nil {
		s.cancel()
		<-s.done
	}
	return nil
}

// name is the address without its query, which may have a key.
func (s *Source) name() string { return "websocket " + s.url.Scheme + "://" + s.url.Host + s.url.Path }

// refused is that there is no use in trying again.
type refused struct{ error }

func (r refused) Unwrap() error { return r.error }

// run makes one connection after the other.
func (s *Source) run(ctx context.Context) {
	defer close(s.done)
	c := connector{Source: s}
	pause, told := s.c.Pause, ""
	for {
		messages, err := c.connection(ctx)
		if ctx.Err() != nil {
			s.queue.end(ctx.Err())
			return
		}
		if s.c.End && websocket.CloseStatus(err) == websocket.StatusNormalClosure {
			s.queue.end(io.EOF)
			return
		}
		if no := (refused{}); c.connections == 0 && errors.As(err, &no) {
			s.queue.end(fmt.Errorf("%s: %w", s.name(), err))
			return
		}
		if messages > 0 {
			pause = s.c.Pause
		}
		wait := spread(pause, rand.Float64())
		pause = min(2*pause, s.c.MaxPause)
		if text := fmt.Sprintf("%s: %v", s.name(), err); messages > 0 || text != told {
			s.say(fmt.Sprintf("%s; trying again after %v, and so on", text, wait.Round(time.Millisecond)))
			told = text
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// spread is a wait of at least half a pause, and at most all of it, by a number u in [0, 1).
func spread(pause time.Duration, u float64) time.Duration {
	return pause/2 + time.Duration(u*float64(pause-pause/2))
}
