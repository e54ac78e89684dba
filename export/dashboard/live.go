package dashboard

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Live is a live trading service, which is asked for GET URL/live/state and for the server-sent
// events of GET URL/live/events. Its fields are not changed once a board has it.
type Live struct {
	// URL is where it is, such as http://127.0.0.1:8080.
	URL string
	// Token, unless empty, is its bearer token.
	Token string
	// Client asks it; nil is one of its own, which follows no redirections.
	Client *http.Client
	// Retry is how long to wait before the first of several attempts to reach it again, which grow
	// to 16 times that (1 s).
	Retry time.Duration

	mu        sync.Mutex
	track     *track
	state     json.RawMessage
	connected bool
	problem   string
	seq       int64
	time      string
	skipped   int
}

// LiveData is what is known of the service.
type LiveData struct {
	URL string `json:"url"`
	// Connected says that its events arrive; Problem why not.
	Connected bool   `json:"connected"`
	Problem   string `json:"problem,omitempty"`
	// State is the newest answer of live/state, as it is; null without one.
	State json.RawMessage `json:"state"`
	// Seq is the number of the newest event; Repeated counts events that came once more.
	Seq      int64        `json:"seq"`
	Repeated int          `json:"repeated"`
	Trading  *TradingData `json:"trading"`
}

// data is a copy.
func (l *Live) data() *LiveData {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.track == nil {
		l.track = newTrack()
	}
	return &LiveData{URL: l.URL, Connected: l.connected, Problem: l.problem, State: l.state, Seq: l.seq, Repeated: l.skipped, Trading: l.track.data("live")}
}

// errRedirected says that the service sends elsewhere, where its token does not belong.
var errRedirected = errors.New("the service redirects, which is not followed")

// run listens until the context ends; changed is called after every change.
func (l *Live) run(ctx context.Context, changed func()) {
	client := l.Client
	if client == nil {
		client = &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return errRedirected }, Transport: http.DefaultTransport.(*http.Transport).Clone()}
		defer client.CloseIdleConnections()
	}
	least := l.Retry
	if least <= 0 {
		least = time.Second
	}
	for wait := least; ; wait = min(2*wait, 16*least) {
		heard, err := l.listen(ctx, client, changed)
		if ctx.Err() != nil {
			return
		}
		if heard {
			wait = least
		}
		l.mu.Lock()
		l.connected, l.problem = false, err.Error()
		l.mu.Unlock()
		changed()
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}

// get asks for a path below the URL.
func (l *Live) get(ctx context.Context, client *http.Client, path, accept string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(l.URL, "/")+path, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", accept)
	if l.Token != "" {
		r.Header.Set("Authorization", "Bearer "+l.Token)
	}
	l.mu.Lock()
	if l.time != "" && path == eventsPath {
		r.Header.Set("Last-Event-ID", strconv.FormatInt(l.seq, 10))
	}
	l.mu.Unlock()
	answer, err := client.Do(r)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 512))
		answer.Body.Close()
		return nil, fmt.Errorf("GET %s: status %d: %s", path, answer.StatusCode, bytes.TrimSpace(text))
	}
	return answer, nil
}

const (
	statePath  = "/live/state"
	eventsPath = "/live/events"
	// stateEvery is how often the state is asked for.
	stateEvery = time.Second
)

// ask asks for the state, and says whether it is another than before.
func (l *Live) ask(ctx context.Context, client *http.Client) (changed bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	answer, err := l.get(ctx, client, statePath, "application/json")
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, longestLine+1))
	if err != nil {
		return false, err
	}
	if len(text) > longestLine || !json.Valid(text) {
		return false, fmt.Errorf("GET %s: expected JSON of at most %d bytes", statePath, longestLine)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	changed = !bytes.Equal(l.state, text)
	l.state = text
	return changed, nil
}

// keepAsking asks for the state again and again: it changes without an event too, such as by the
// kill switch.
func (l *Live) keepAsking(ctx context.Context, client *http.Client, changed func()) error {
	tick := time.NewTicker(stateEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		switch other, err := l.ask(ctx, client); {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		case other:
			changed()
		}
	}
}

// listen takes events until the service ends them; heard says that there was one. The error is
// never nil.
func (l *Live) listen(ctx context.Context, client *http.Client, changed func()) (heard bool, err error) {
	if _, err := l.ask(ctx, client); err != nil {
		return false, err
	}
	ctx, stop := context.WithCancel(ctx)
	asking := make(chan error, 1)
	go func() {
		// An error of asking ends the events too, or the wait for them.
		defer stop()
		asking <- l.keepAsking(ctx, client, changed)
	}()
	defer func() {
		stop()
		if failed := <-asking; failed != nil {
			err = failed
		}
	}()
	answer, err := l.get(ctx, client, eventsPath, "text/event-stream")
	if err != nil {
		return false, err
	}
	defer answer.Body.Close()
	l.mu.Lock()
	l.connected, l.problem = true, ""
	l.mu.Unlock()
	changed()
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(make([]byte, 64<<10), longestLine)
	for lines.Scan() {
		text, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if !ok {
			continue // A comment, an id, or the end of an event, which is one line of data.
		}
		heard = true
		l.take(bytes.TrimSpace(text))
		changed()
	}
	if err := lines.Err(); err != nil {
		return heard, err
	}
	return heard, errors.New("the service has ended its events")
}

// take adds an event, unless it came before.
func (l *Live) take(text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.track == nil {
		l.track = newTrack()
	}
	var e event
	if json.Unmarshal(text, &e) == nil && e.Seq != nil && l.time != "" && *e.Seq <= l.seq && e.Time <= l.time {
		l.skipped++
		return
	}
	e, err := l.track.add(text)
	if err != nil {
		return // It is counted.
	}
	l.time = e.Time
	if e.Seq != nil {
		l.seq = *e.Seq
	}
}
