package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Start implements livetrade.Alerter: it begins to deliver, until Close.
func (s *Sender) Start() {
	ctx, end := context.WithCancel(context.Background())
	s.end = end
	go func() {
		defer close(s.done)
		s.deliver(ctx)
	}()
}

// deliver posts what waits, in order, until the end.
func (s *Sender) deliver(ctx context.Context) {
	for {
		s.mu.Lock()
		there := len(s.waiting) > 0
		var w waiting
		if there {
			w = s.waiting[0]
		}
		s.mu.Unlock()
		if !there {
			select {
			case <-s.wake:
				continue
			case <-s.ending:
				// One that came at the same time is still to be delivered.
				select {
				case <-s.wake:
					continue
				default:
					return
				}
			}
		}
		err := s.insist(ctx, &w)
		if errors.Is(err, errEnding) {
			return
		}
		s.mu.Lock()
		s.waiting = append(s.waiting[:0], s.waiting[1:]...)
		s.changed = true
		if err == nil {
			s.counts.Delivered++
		} else {
			s.counts.Failed++
		}
		s.mu.Unlock()
		if err != nil {
			s.say(fmt.Sprintf("alerts: %s was not delivered to %s: %v", w.ID, s.host, err))
		}
		s.Save()
	}
}

// errEnding says that an alert waits for the next start.
var errEnding = errors.New("the service ends")

// insist posts an alert until it is taken, refused, or given up.
func (s *Sender) insist(ctx context.Context, w *waiting) error {
	for pause, tries := s.pause, 1; ; pause, tries = min(2*pause, s.longest), tries+1 {
		again, err := s.post(ctx, w)
		switch {
		case err == nil:
			if tries > 1 {
				s.say(fmt.Sprintf("alerts: %s takes them again", s.host))
			}
			return nil
		case ctx.Err() != nil:
			return errEnding
		case again < 0:
			return err
		case time.Since(w.At) > s.config.GiveUp:
			return fmt.Errorf("given up at attempt %d: %w", tries, err)
		case tries == 1:
			s.say(fmt.Sprintf("alerts: %s: %v; it is tried again", s.host, err))
		}
		t := time.NewTimer(max(pause, min(again, s.longest)))
		select {
		case <-t.C:
		case <-s.ending:
			t.Stop()
			return errEnding
		}
	}
}

// post makes an attempt. again is negative where another one is of no use, and else the least time
// before it.
func (s *Sender) post(ctx context.Context, w *waiting) (again time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url.String(), bytes.NewReader(w.Body))
	if err != nil {
		return -1, errors.New("the request cannot be made") // The error names the URL.
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "onnxrl")
	r.Header.Set("Idempotency-Key", w.ID)
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	answer, err := s.client.Do(r)
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) {
			err = of.Err // Without the URL.
		}
		if errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("no answer within %v", s.config.Timeout)
		}
		return 0, err
	}
	// The rest of a short answer is read, so that the connection is used again.
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
	_ = answer.Body.Close()
	switch code := answer.StatusCode; {
	case code >= 200 && code < 300:
		return 0, nil
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests, code >= 500:
		if n, bad := strconv.Atoi(answer.Header.Get("Retry-After")); bad == nil && n > 0 && n < 3600 {
			again = time.Duration(n) * time.Second
		}
		return again, fmt.Errorf("status %d", code)
	case code >= 300 && code < 400:
		return -1, fmt.Errorf("status %d: redirections are not followed", code)
	default:
		return -1, fmt.Errorf("status %d", code)
	}
}
