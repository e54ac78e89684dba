package guard

import (
	"encoding/json"
	"net"
	"net/http"

	"github.com/onnxrl/onnxrl/export/serve"
)

// SenderOf is what a request over HTTP tells of where it comes from.
func SenderOf(r *http.Request) Sender {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return Sender{
		Host: r.Host, Local: local, Origin: r.Header.Get("Origin"), Site: r.Header.Get("Sec-Fetch-Site"), Mode: r.Header.Get("Sec-Fetch-Mode"),
		Reads: r.Method == http.MethodGet || r.Method == http.MethodHead,
	}
}

// Handler answers by next what is let in and has a right, and refuses all else, in JSON as the
// server does.
func (g *Guard) Handler(right Right, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		err := g.Sender(SenderOf(r))
		if err == nil {
			err = g.Authorize(right, r.Header.Get("Authorization"))
		}
		if err == nil {
			next.ServeHTTP(w, r)
			return
		}
		status := serve.CodeOf(err).HTTPStatus()
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		// A client that has gone has no use for the reason.
		_ = json.NewEncoder(w).Encode(map[string]string{"error": err.Error()})
	})
}
