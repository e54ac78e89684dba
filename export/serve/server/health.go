package server

import (
	"io"
	"net/http"

	"github.com/onnxrl/onnxrl/export/serve/httpapi"
)

// Probes of a cluster, such as those of kubelets, have no tokens or certificates. The server answers
// them on a port of its own, without TLS:
//
//	GET /livez   200 as long as the process answers
//	GET /readyz  200, or 503 while the server is not to be asked
//
// Without a host the address is one of every network of the machine.
const (
	LivePath  = "/livez"
	ReadyPath = "/readyz"
)

// Probes are the answers of such a port. Live is nil where a server that answers is live.
type Probes struct {
	Live, Ready func() bool
	// Metrics are answered at /metrics; nil where the port has none.
	Metrics http.Handler
}

// AnswerHealth begins to answer probes at the address of health, unless there is none. A server that
// is leaving is not ready.
func (s *Server) AnswerHealth(p Probes) {
	if s.health == nil {
		return
	}
	mux := http.NewServeMux()
	for path, is := range map[string]func() bool{
		LivePath:  func() bool { return p.Live == nil || p.Live() },
		ReadyPath: func() bool { return p.Ready() && !s.leaving.Load() },
	} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			w.Header().Set("Cache-Control", "no-store")
			text := "ok\n"
			if !is() {
				w.WriteHeader(http.StatusServiceUnavailable)
				text = "no\n"
			}
			_, _ = io.WriteString(w, text) // Who has gone has no use for it.
		})
	}
	if p.Metrics != nil {
		mux.Handle("GET /metrics", p.Metrics)
	}
	s.probes = s.answer("health", s.health, mux, httpapi.ServerOptions{})
}
