package board

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/export/serve/guard"
	"github.com/onnxrl/onnxrl/runtime/metrics/exporter"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestBoard: a client gets the state and the events after the last one that it has seen. The kill
// switch needs a token of its own.
func TestBoard(t *testing.T) {
	b := newBoard("paper")
	for seq := range uint64(history + 10) {
		b.add(&Event{Seq: seq + 1, Value: 1, Fills: []Fill{}})
	}
	b.set(livetrade.Status{Seq: history + 10, Heard: time.Unix(0, 0)})
	commands, ended := make(chan string, 1), make(chan struct{})
	h := handlers{board: b, commands: commands, ended: ended}
	s := httptest.NewServer(h.handler(guard.New(guard.Tokens{Use: []string{"look"}, Admin: []string{"chief"}}), http.NotFoundHandler()))
	defer s.Close()
	ask := func(method, path, token, last, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Last-Event-ID", last)
		resp, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		return resp
	}
	text, err := io.ReadAll(ask("GET", "/live/state", "look", "", "").Body)
	if err != nil || !strings.Contains(string(text), `"name":"paper"`) || !strings.Contains(string(text), `"heard":"1970-01-01T00:00:00Z"`) || !strings.Contains(string(text), `"last":{"seq":1034,`) {
		t.Errorf("%s %v", text, err)
	}
	for last, want := range sorted.All(map[string]string{"1033": "id: 1034\n", "": "id: 513\n", "99999": "id: 513\n"}) {
		if line, err := bufio.NewReader(ask("GET", "/live/events", "look", last, "").Body).ReadString('\n'); err != nil || line != want {
			t.Errorf("behind %q: %q, %v, expected %q", last, line, err, want)
		}
	}
	for _, x := range []struct {
		method, path, token, last, body string
		status                          int
	}{
		{"GET", "/live/state", "", "", "", 401}, {"GET", "/live/events", "look", "x", "", 400}, {"GET", "/metrics", "look", "", "", 404},
		{"POST", "/live/kill", "look", "", "", 403}, {"POST", "/live/kill", "chief", "", strings.Repeat("x", maxReason+1), 400}, {"POST", "/live/kill", "chief", "", " by\nhand ", 200},
	} {
		if got := ask(x.method, x.path, x.token, x.last, x.body).StatusCode; got != x.status {
			t.Errorf("%+v: %d", x, got)
		}
	}
	if c := <-commands; c != livetrade.CommandKill+" by hand" {
		t.Errorf("command %q", c)
	}
	close(ended)
	commands <- "is full"
	if got := ask("POST", "/live/resume", "chief", "", "").StatusCode; got != 503 {
		t.Errorf("a service that stops: %d", got)
	}
}

// TestPortfolio: a value that is not known yet is 0, and one that was known stays.
func TestPortfolio(t *testing.T) {
	e := exporter.New(time.Now)
	p := NewPortfolio(e)
	loss := 0.25
	p.Set(time.Unix(7, 0), 100, -1, Risk{CVaR: &loss, Cut: true})
	p.Set(time.Unix(8, 0), 101, 1, Risk{Stopped: true})
	p.Bound(func(yield func(string) bool) { yield("cvar") })
	w := httptest.NewRecorder()
	e.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	for _, want := range []string{"onnxrl_portfolio_value 101\n", "onnxrl_portfolio_cvar 0.25\n", "onnxrl_portfolio_cvar95 0\n"} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("no %q in\n%s", want, w.Body)
		}
	}
}
