package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/export/serve/guard"
	"github.com/onnxrl/onnxrl/export/serve/server"
)

// liveServer answers who looks at a service.
type liveServer struct {
	board    *liveBoard
	commands chan<- string
	ended    <-chan struct{}
}

// eventDeadline is how long a client may take to read an event, and heartbeat how often one that
// hears nothing is told that the service is there.
const (
	eventDeadline = 10 * time.Second
	heartbeat     = 15 * time.Second
	maxReason     = 200
)

// handler has the endpoints: looking needs the token of use, the kill switch that of
// administration.
func (s *liveServer) handler(g *guard.Guard, metrics http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /live/state", g.Handler(guard.Use, http.HandlerFunc(s.state)))
	mux.Handle("GET /live/events", g.Handler(guard.Use, http.HandlerFunc(s.events)))
	mux.Handle("GET /metrics", g.Handler(guard.Use, metrics))
	for _, word := range []string{livetrade.CommandKill, livetrade.CommandResume} {
		mux.Handle("POST /live/"+word, g.Handler(guard.Administer, s.command(word)))
	}
	return mux
}

func (s *liveServer) state(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = jsonOutput{w: w}.Encode(s.board.report()) // A client that has gone has no use for it.
}

// events sends decisions as server-sent events, from behind that which Last-Event-ID names.
func (s *liveServer) events(w http.ResponseWriter, r *http.Request) {
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
func (s *liveServer) command(word string) http.Handler {
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

// serveLive begins to answer, until end is called.
func (a *app) serveLive(c *livetrade.HTTP, s *liveServer, metrics http.Handler) (end func(), err error) {
	address, err := server.Local(c.Address)
	if err != nil {
		return nil, err
	}
	if c.TokenFile == "" && c.AdminTokenFile == "" && !server.Loopback(address) {
		return nil, errors.New("everyone who reaches the address could use the kill switch: expected admin_token_file or token_file, or an address of this machine")
	}
	files := server.Files{Token: c.TokenFile, AdminToken: c.AdminTokenFile}
	n, err := server.Listen(server.Options{HTTP: address, Files: files, AllowedHosts: c.AllowedHosts, Flag: "http.allowed_hosts", Log: a.log, Failed: a.unanswered("http")})
	if err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	s.ended = ended
	n.AnswerHTTP(s.handler(n.Guard, metrics), 0)
	if !a.quiet {
		a.say("state on http://%s/live/state, metrics on http://%s/metrics", n.HTTP(), n.HTTP())
	}
	same := a.onHangup(n, files)
	return func() {
		same()
		close(ended)
		n.Close()
	}, nil
}
