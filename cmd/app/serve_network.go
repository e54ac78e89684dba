package app

import (
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/grpcapi"
	"github.com/onnxrl/onnxrl/export/serve/guard"
	"github.com/onnxrl/onnxrl/export/serve/httpapi"
	"github.com/onnxrl/onnxrl/export/serve/metrics"
	"github.com/onnxrl/onnxrl/export/serve/page"
	"github.com/onnxrl/onnxrl/export/serve/server"
	"github.com/onnxrl/onnxrl/export/serve/tracing"
	"github.com/onnxrl/onnxrl/export/serve/traffic"
)

// files are the server's secrets.
func (c *serveConfig) files() server.Files {
	return server.Files{TLS: c.TLS, Token: c.TokenFile, AdminToken: c.AdminTokenFile}
}

// listen takes the addresses and reads token and certificate.
func (c *serveConfig) listen(log *slog.Logger, failed func(error)) (*server.Server, error) {
	return server.Listen(server.Options{HTTP: c.HTTP, GRPC: c.GRPC, Health: c.Health, Files: c.files(), AllowedHosts: c.AllowedHosts, Log: log, Failed: failed})
}

// answer has models answered by s on the addresses. Failures go to log; requests, unless nil, gets a
// line for each request, tracer a span.
func (c *serveConfig) answer(n *server.Server, s serve.Service, engine string, log, requests *slog.Logger, tracer *tracing.Tracer) {
	record := traffic.New(requests)
	shown := metrics.Handler(s, record)
	p := server.Probes{Live: s.Live, Ready: s.Ready}
	if c.HealthMetrics {
		p.Metrics = n.Guard.Handler(guard.Use, shown)
	}
	n.AnswerHealth(p)
	if c.HTTP != "" {
		n.AnswerHTTP(httpapi.New(tracer.Service(s), httpapi.Options{
			Name: c.ServerName, Version: version(), MaxBody: int64(c.MaxBody), MaxConcurrent: c.MaxConcurrent, Timeout: c.Timeout, Guard: n.Guard, Traffic: record, Tracer: tracer, Leaving: n.Leaving,
			Metrics: shown, Page: page.Handler(newPageSource(s, engine)), Open: page.IsFile, Log: log,
		}), 0)
	}
	if c.GRPC != "" {
		n.AnswerGRPC(grpcapi.NewServer(tracer.Service(s), grpcapi.Options{
			Name: c.ServerName, Version: version(), MaxMessage: int(c.MaxBody), MaxConcurrent: c.MaxConcurrent, Timeout: c.Timeout, Guard: n.Guard, Traffic: record, Tracer: tracer, TLS: n.TLS(), Log: log,
		}))
	}
}

// onHangup has SIGHUP read secrets again, until end is called. Those that cannot be read stay as
// they were, which is said.
func (a *app) onHangup(n *server.Server, f server.Files) (end func()) {
	hangup, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangup, syscall.SIGHUP)
	go func() {
		defer close(done)
		for range hangup {
			if err := n.Reload(f); err != nil {
				a.say("warning: SIGHUP: %v; what was read before stays in force", err)
			} else {
				a.say("SIGHUP: tokens and certificates were read again")
			}
		}
	}()
	return func() {
		signal.Stop(hangup)
		close(hangup)
		<-done
	}
}

// unanswered warns of what is called so, and has ended by itself.
func (a *app) unanswered(called string) func(error) {
	return func(err error) { a.say("warning: %s: nobody is answered any more: %v", called, err) }
}

// checkAddress notes an address that is none; an empty one is not asked for.
func checkAddress(p *configs.Problems, key, address string) {
	if address == "" {
		return
	}
	if err := server.CheckAddress(address); err != nil {
		p.Addf(key, "%v", err)
	}
}

// exposed says what is missing where others than this machine can reach the server.
func (c *serveConfig) exposed() []string {
	var list []string
	if c.HealthMetrics && c.TokenFile == "" && !server.Loopback(c.Health) {
		list = append(list, fmt.Sprintf("health listens on %s with metrics without a token (--token-file): everyone who reaches it can read them", c.Health))
	}
	for _, v := range []struct{ what, address string }{{"HTTP", c.HTTP}, {"gRPC", c.GRPC}} {
		if v.address == "" || server.Loopback(v.address) {
			continue
		}
		var missing []string
		if c.TokenFile == "" && c.TLS.ClientCA == "" {
			missing = append(missing, "without a token (--token-file): everyone who reaches it can use it")
		}
		if c.TLS.Cert == "" {
			missing = append(missing, "without TLS (--tls-cert, --tls-key): everyone on the way can read it")
		}
		if len(missing) > 0 {
			list = append(list, fmt.Sprintf("%s listens on %s %s", v.what, v.address, strings.Join(missing, ", and ")))
		}
	}
	return list
}
