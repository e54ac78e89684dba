package board

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/export/serve/guard"
)

// handlers answers who looks at a service.
type handlers struct {
	board    *board
	commands chan<- string
	ended    <-chan struct{}
}

// eventDeadline is how long a client may take to read an event, and heartbeat how often a client
// without events receives a sign that the service is there.
const (
	eventDeadline = 10 * time.Second
	heartbeat     = 15 * time.Second
	maxReason     = 200
)

// handler has the endpoints: looking needs the token of use, the kill switch that of
// administration.
func (s *handlers) handler(g *guard.Guard, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /live/state", g.Handler(guard.Use, http.HandlerFunc(s.state)))
	mux.Handle("GET /live/events", g.Handler(guard.Use, http.HandlerFunc(s.events)))
	mux.Handle("GET /metrics", g.Handler(guard.Use, metrics))
	for _, word := range []string{livetrade.CommandKill, livetrade.CommandResume} {
		mux.Handle("POST /live/"+word, g.Handler(guard.Administer, s.command(word)))
	}
	return mux
}

func (s *handlers) state(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = encode(w, s.board.report()) // A client that has gone has no use for it.
}

// events sends decisions as server-sent events, from behind that which Last-Event-ID names.
func (s *handlers) events(w http.ResponseWriter, r *http.Request) {
	seq := uint64(0)
	if text := r.Header.Get("Last-Event-ID"); text != "" {
		var err error
		if seq, err = strconv.ParseUint(text, 10, 64); err != nil {
			http.Error(w, "Last-Event-ID: expected the number of a decision", http.StatusBadRequest)
			return
		}
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	c := http.NewResponseController(w)
	tick := time.NewTicker(heartbeat)
	defer tick.Stop()
	for {
		lines, first, more := s.board.after(seq)
		var text []byte
		for i, l := range lines {
			text = fmt.Appendf(text, "id: %d\ndata: %s\n\n", first+uint64(i), l)
		}
		if len(lines) > 0 {
			seq = first + uint64(len(lines)) - 1
		} else {
			text = append(text, ": here\n\n"...)
		}
		_ = c.SetWriteDeadline(time.Now().Add(eventDeadline)) // Where it cannot be, writes end with the server.
		if _, err := w.Write(text); err != nil {
			return
		}
		if c.Flush() != nil {
			return
		}
		select {
		case <-more:
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-s.ended:
			return
		}
	}
}

// command gives the service a command, whose reason is the body.
func (s *handlers) command(word string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reason, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxReason))
		if err != nil {
			http.Error(w, fmt.Sprintf("the reason: expected a text of at most %d bytes", maxReason), http.StatusBadRequest)
			return
		}
		text := strings.TrimSpace(word + " " + strings.Join(strings.Fields(string(reason)), " "))
		select {
		case s.commands <- text:
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]string{"command": text})
		case <-r.Context().Done():
		case <-s.ended:
			http.Error(w, "the service stops", http.StatusServiceUnavailable)
		}
	})
}

// encode writes a line of JSON.
func encode(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
