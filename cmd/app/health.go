package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/export/serve/httpapi"
)

// Health is told on a port of its own, without TLS, tokens and certificates, which those who probe a
// server for a cluster do not have (kubelets):
//
//	GET /livez   200 as long as the process answers
//	GET /readyz  200, or 503 while the server is not to be asked
//
// Without a host the address is one of every network of the machine.
const (
	livePath  = "/livez"
	readyPath = "/readyz"
)

// probes are the answers of such a port.
type probes struct {
	live, ready func() bool
	// metrics is nil where the port has none.
	metrics http.Handler
}

// handler has the endpoints.
func (p *probes) handler() http.Handler {
	mux := http.NewServeMux()
	for path, is := range map[string]func() bool{livePath: p.live, readyPath: p.ready} {
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
	if p.metrics != nil {
		mux.Handle("GET /metrics", p.metrics)
	}
	return mux
}

// checkAddress notes an address that is none; an empty one is not asked for.
func checkAddress(p *configs.Problems, key, address string) {
	if address == "" {
		return
	}
	if _, port, err := net.SplitHostPort(address); err != nil {
		p.Addf(key, "%q is no address, expected host:port such as 127.0.0.1:8000", address)
	} else if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		p.Addf(key, "%q has no port from 0 to 65535", address)
	}
}

// answerHTTP answers on a listener until end is called; failed is told when it ends by itself.
func answerHTTP(l net.Listener, h http.Handler, log *slog.Logger, failed func(error)) (end func()) {
	server := httpapi.NewServer(h, httpapi.ServerOptions{})
	server.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			failed(err)
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), metricsGrace)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close() // Who reads that slowly is cut off.
		}
		<-done
	}
}

// unanswered warns of what is called so, and has ended by itself.
func (a *app) unanswered(called string) func(error) {
	return func(err error) { a.say("warning: %s: nobody is answered any more: %v", called, err) }
}

// answerHealth answers probes at the address of a configuration, unless it is empty, until end is
// called: live from now on, and ready as ready says. It returns the address that it has.
func (a *app) answerHealth(address string, ready *atomic.Bool) (at string, end func(), err error) {
	if address == "" {
		return "", func() {}, nil
	}
	l, err := net.Listen(family(address), address)
	if err != nil {
		return "", nil, fmt.Errorf("health: %w", err)
	}
	p := probes{live: func() bool { return true }, ready: ready.Load}
	return l.Addr().String(), answerHTTP(l, p.handler(), a.log, a.unanswered("health")), nil
}
