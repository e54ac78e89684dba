package webhook

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/agents/livetrade"
)

// Sender posts alerts to a webhook. It is safe for concurrent use.
type Sender struct {
	config livetrade.Alerts
	url    *url.URL
	host   string // which is all of the URL that is ever said
	token  string
	client *http.Client
	path   string
	say    func(string)
	// pause is that before the second attempt, which doubles up to longest.
	pause, longest time.Duration
	grace          time.Duration

	mu      sync.Mutex
	told    mark
	noted   bool // there was a file
	changed bool // since the file was written
	waiting []waiting
	full    bool // the last alert found the queue full
	counts  Counts

	writing sync.Mutex // of the file
	broken  bool       // it could not be written; under writing
	wake    chan struct{}
	ending  chan struct{}
	end     func() // nil before Start
	done    chan struct{}
}

// waiting is an alert that was not delivered yet.
type waiting struct {
	mark
	ID   string          `json:"id"`
	At   time.Time       `json:"at"`
	Body json.RawMessage `json:"body"`
}

// Counts are what has become of alerts since the sender was opened.
type Counts struct {
	// Delivered are those that the receiver took, Failed those that were given up, and Dropped
	// those that the queue had no room for.
	Delivered uint64 `json:"delivered"`
	Failed    uint64 `json:"failed"`
	Dropped   uint64 `json:"dropped"`
	Waiting   int    `json:"waiting"`
}

const (
	firstPause = time.Second
	mostPause  = time.Minute
	// closing is how long those that wait may take to be delivered when a service ends.
	closing = 2 * time.Second
)

// Open reads from the state directory of a service which alerts were sent before. It calls say
// with later errors, never with more of the URL than its host.
func Open(c livetrade.Alerts, dir string, say func(string)) (*Sender, error) {
	u, err := c.Endpoint()
	if err != nil {
		return nil, err
	}
	token, err := c.Token()
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConns, transport.MaxConnsPerHost = 1, 1
	s := &Sender{
		config: c, url: u, host: u.Scheme + "://" + u.Host, token: token, path: filepath.Join(dir, fileName), say: say, pause: firstPause, longest: mostPause, grace: closing,
		// Elsewhere the token does not belong.
		client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		wake:   make(chan struct{}, 1), ending: make(chan struct{}), done: make(chan struct{}),
	}
	before, err := readState(s.path)
	if err != nil {
		return nil, err
	}
	if before != nil {
		s.told, s.waiting, s.noted = before.Told, before.Waiting, true
	}
	return s, nil
}

// Alert implements livetrade.Alerter. Without a file, those whose batch was published are of the
// time before there was a webhook.
func (s *Sender) Alert(a *livetrade.Alert, published bool) {
	body, err := encode(a)
	if err != nil {
		s.say("alerts: " + a.ID() + ": " + err.Error())
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := mark{a.Seq, a.Number}
	if !m.after(s.told) {
		return
	}
	s.told, s.changed = m, true
	if published && !s.noted {
		return
	}
	if len(s.waiting) >= s.config.Queue {
		// The first is being tried.
		s.waiting = append(s.waiting[:1], s.waiting[2:]...)
		s.counts.Dropped++
		if !s.full {
			s.say(fmt.Sprintf("alerts: %d wait for %s: the oldest are left out", s.config.Queue, s.host))
		}
		s.full = true
	} else {
		s.full = false
	}
	s.waiting = append(s.waiting, waiting{mark: m, ID: a.ID(), At: a.Time, Body: body})
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Save implements livetrade.Alerter.
func (s *Sender) Save() {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	if !s.changed && s.noted {
		s.mu.Unlock()
		return
	}
	now := state{Version: stateVersion, Told: s.told, Waiting: append([]waiting{}, s.waiting...)}
	s.changed, s.noted = false, true
	s.mu.Unlock()
	if err := writeState(s.path, &now); err != nil {
		s.mu.Lock()
		s.changed = true
		s.mu.Unlock()
		if !s.broken {
			s.say(fmt.Sprintf("alerts: they may be delivered again or be lost after a restart: %v", err))
		}
		s.broken = true
		return
	}
	s.broken = false
}

// Counts returns what has become of alerts.
func (s *Sender) Counts() Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.counts
	c.Waiting = len(s.waiting)
	return c
}

// Close delivers what waits for a moment, keeps the rest for the next start, and returns within
// seconds. One that was not started changes nothing.
func (s *Sender) Close() {
	if s.end == nil {
		return
	}
	close(s.ending)
	grace := time.AfterFunc(s.grace, s.end)
	<-s.done
	grace.Stop()
	s.end()
	s.client.CloseIdleConnections()
	s.Save()
}
