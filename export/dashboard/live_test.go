package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// double is a live trading service as far as it is asked: a state, and events that the test sends
// or ends.
type double struct {
	*httptest.Server
	events chan string // "" ends the connection

	mu    sync.Mutex
	state string
	// lastIDs are those that were asked for.
	lastIDs []string
}

func newDouble(t *testing.T, token string) *double {
	d := &double{events: make(chan string), state: `{"name":"paper","value":100}`}
	d.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if token != "" && r.Header.Get("Authorization") != "Bearer "+token {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return
		}
		switch r.URL.Path {
		case "/live/state":
			d.mu.Lock()
			defer d.mu.Unlock()
			fmt.Fprint(w, d.state)
		case "/live/events":
			d.mu.Lock()
			d.lastIDs = append(d.lastIDs, r.Header.Get("Last-Event-ID"))
			d.mu.Unlock()
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			for {
				select {
				case <-r.Context().Done():
					return
				case text := <-d.events:
					if text == "" {
						return
					}
					fmt.Fprint(w, text)
					w.(http.Flusher).Flush()
				}
			}
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(d.Server.Close)
	return d
}

// live runs a board with a live service; until waits for a condition of what it says.
func live(t *testing.T, l *Live) (b *Board, until func(what string, f func(d *LiveData) bool)) {
	t.Helper()
	before := runtime.NumGoroutine()
	l.Retry = time.Millisecond
	b = New(Options{Paths: []string{t.TempDir()}, Live: l, Interval: time.Millisecond})
	ctx, stop := context.WithCancel(t.Context())
	changed, end := b.listen()
	ended := make(chan error, 1)
	go func() { ended <- b.Run(ctx) }()
	t.Cleanup(func() {
		end()
		stop()
		if err := <-ended; err != context.Canceled {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
		for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before+4; runtime.Gosched() {
			if time.Now().After(deadline) {
				t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
				return
			}
		}
	})
	return b, func(what string, f func(d *LiveData) bool) {
		t.Helper()
		deadline := time.After(time.Minute)
		for !f(l.data()) {
			select {
			case <-changed:
			case <-deadline:
				t.Fatalf("%s: %+v", what, l.data())
			}
		}
	}
}

func event1(seq, i int, value float64, more string) string {
	return fmt.Sprintf("id: %d\ndata: {\"seq\":%d,\"time\":\"2024-01-01 %05d\",\"value\":%v,\"cash\":5,\"positions\":{\"A\":%d}%s}\n\n", seq, seq, i, value, i, more)
}

// TestLive listens to a service that needs a token, loses it, and hears some of it again.
func TestLive(t *testing.T) {
	d := newDouble(t, "open")
	b, until := live(t, &Live{URL: d.URL + "/", Token: "open"})
	until("connected", func(l *LiveData) bool { return l.Connected && string(l.State) == `{"name":"paper","value":100}` })
	values := []float64{100, 120, 90, 110}
	for i, v := range values {
		d.events <- event1(i+1, i, v, `,"weights":{"A":0.75,"cash":0.25},"orders":{"A":"buy"},"rejected":[{"reason":"lot"}],"refused":{"A":"sell"},"limited":"hold","because":["killed","drift"]`)
	}
	until("four events", func(l *LiveData) bool { return l.Seq == 4 })
	got := b.o.Live.data()
	if !slices.Equal(got.Trading.Value, values) || got.Trading.Drawdown[2] != 90.0/120-1 || got.Trading.Orders["buy"] != 4 || got.Trading.Rejected["lot"] != 4 || got.Trading.Rejected["killed"] != 4 || got.Trading.Rejected["drift"] != 4 || got.Trading.Weights[0][3] != 0.75 || got.Trading.Cash[3] != 5 || got.Trading.Positions[0][3] != 3 || got.Repeated != 0 {
		t.Errorf("%+v", got.Trading)
	}
	d.events <- "" // It goes away, and comes back with what it last said.
	d.events <- event1(3, 2, 90, "") + ": a comment\n\n" + event1(4, 3, 110, "") + event1(5, 4, 105, "")
	until("five events", func(l *LiveData) bool { return l.Seq == 5 && l.Connected })
	if got = b.o.Live.data(); got.Repeated != 2 || !slices.Equal(got.Trading.Value, append(values, 105)) {
		t.Errorf("%d repeated, %v", got.Repeated, got.Trading.Value)
	}
	// One that began again numbers from the beginning, of later times.
	d.events <- event1(1, 9, 50, "")
	until("another beginning", func(l *LiveData) bool { return l.Seq == 1 })
	// A message that is no event is counted and changes nothing.
	d.events <- "data: no json\n\ndata: {\"time\":\"x\"}\n\nevent: y\ndata:" + event1(2, 10, 60, "")[len("id: 2\ndata: "):]
	until("no events", func(l *LiveData) bool { return l.Seq == 2 && l.Trading.Bad == 2 })
	d.mu.Lock()
	if !slices.Equal(d.lastIDs, []string{"", "4"}) {
		t.Errorf("asked from %q", d.lastIDs)
	}
	d.mu.Unlock()
	// The page has it from this origin.
	s := page(t, b, guardless)
	if l := asked[LiveData](t, s, "/data/live"); l.Trading.EventsOf != 7 || !l.Connected || l.URL != d.URL+"/" || string(l.State) == "" {
		t.Errorf("%+v", l)
	}
	if _, text := request(t, s.URL+"/data/live"); strings.Contains(text, "open") {
		t.Errorf("the token is told: %s", text)
	}
}

// TestLiveRefuses says what is wrong with a service.
func TestLiveRefuses(t *testing.T) {
	token := newDouble(t, "open")
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, token.URL+r.URL.Path, http.StatusFound)
	}))
	t.Cleanup(elsewhere.Close)
	none := httptest.NewServer(http.NotFoundHandler())
	none.Close()
	garbage := newDouble(t, "")
	garbage.state = "<html>"
	large := newDouble(t, "")
	large.state = `"` + strings.Repeat("x", longestLine) + `"`
	cases := 0
	for _, c := range []struct{ url, want string }{
		{token.URL, "401"}, {elsewhere.URL, "redirects"}, {none.URL, "refused"}, {garbage.URL, "expected JSON"}, {large.URL, "expected JSON of at most"},
	} {
		t.Run(c.want, func(t *testing.T) {
			_, until := live(t, &Live{URL: c.url, Token: "wrong"})
			until(c.want, func(l *LiveData) bool {
				return !l.Connected && strings.Contains(l.Problem, c.want) && len(l.State) == 0
			})
		})
		cases++
	}
	if cases != 5 {
		t.Errorf("%d cases ran", cases)
	}
}

// TestLiveState is asked for again whether events come or not.
func TestLiveState(t *testing.T) {
	longtest.Slow(t)
	d := newDouble(t, "")
	l := &Live{URL: d.URL}
	_, until := live(t, l)
	until("connected", func(l *LiveData) bool { return l.Connected })
	d.mu.Lock()
	d.state = `{"killed":true}`
	d.mu.Unlock()
	until("killed", func(l *LiveData) bool { return string(l.State) == `{"killed":true}` })
	// Events of a service whose state is none are not shown as if all were well.
	d.mu.Lock()
	d.state = "<html>"
	d.mu.Unlock()
	until("no state", func(l *LiveData) bool { return !l.Connected && strings.Contains(l.Problem, "expected JSON") })
	if text, err := json.Marshal(l.data()); err != nil || !json.Valid(text) {
		t.Error(err)
	}
}
