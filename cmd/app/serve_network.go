package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/grpcapi"
	"github.com/onnxrl/onnxrl/export/serve/guard"
	"github.com/onnxrl/onnxrl/export/serve/httpapi"
	"github.com/onnxrl/onnxrl/export/serve/metrics"
	"github.com/onnxrl/onnxrl/export/serve/page"
	"github.com/onnxrl/onnxrl/export/serve/tracing"
	"github.com/onnxrl/onnxrl/export/serve/traffic"
	"github.com/onnxrl/onnxrl/runtime/tokenfile"
)

// network is the server's listeners, with what protects them.
type network struct {
	config     *serveConfig
	http, grpc net.Listener
	web        *http.Server
	// health answers probes until close, whose end unprobe is.
	health  net.Listener
	unprobe func()
	rpc     *grpcapi.Server
	// leaving says that connections end after their next answer.
	leaving atomic.Bool
	guard   *guard.Guard
	// secure is nil without a certificate; reload replaces it.
	secure atomic.Pointer[tls.Config]
	// failed gets the error of a listener that ends by itself.
	failed chan error
}

// listen takes the addresses and reads token and certificate.
func listen(c *serveConfig) (*network, error) {
	names := c.AllowedHosts
	if name, err := os.Hostname(); err == nil {
		// Some systems let it stand for a loopback address, and nobody else gives it to theirs.
		names = append(slices.Clone(names), name)
	}
	n := &network{config: c, guard: guard.New(guard.Tokens{}, names...), failed: make(chan error, 3)}
	if err := n.reload(c); err != nil {
		return nil, err
	}
	for _, v := range []struct {
		address string
		to      *net.Listener
	}{{c.HTTP, &n.http}, {c.GRPC, &n.grpc}, {c.Health, &n.health}} {
		if v.address == "" {
			continue
		}
		l, err := net.Listen(family(v.address), v.address)
		if err != nil {
			return nil, errors.Join(err, n.close())
		}
		*v.to = l
	}
	return n, nil
}

// family is the network of an address: one of IPv4, 0.0.0.0 among them, does not mean IPv6 too.
// Without a host, and with [::], both are meant, as far as the system has them.
func family(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		if ip, err := netip.ParseAddr(host); err == nil && ip.Is4() {
			return "tcp4"
		}
	}
	return "tcp"
}

// reload reads the tokens and the certificate that the configuration names. What cannot be read
// stays as it was.
func (n *network) reload(c *serveConfig) error {
	return errors.Join(n.reloadTokens(c), n.reloadCertificate(c.TLS))
}

func (n *network) reloadTokens(c *serveConfig) error {
	return setTokens(n.guard, c.TokenFile, c.AdminTokenFile)
}

// setTokens reads the tokens of a guard again.
func setTokens(g *guard.Guard, useFile, adminFile string) error {
	use, err := readToken(useFile)
	if err != nil {
		return err
	}
	admin, err := readToken(adminFile)
	if err != nil {
		return err
	}
	if use != "" && use == admin {
		return fmt.Errorf("read the token: %s and %s hold the same one, expected one of its own for administration", useFile, adminFile)
	}
	g.Set(guard.Tokens{Use: use, Admin: admin})
	return nil
}

// readToken is empty without a file.
func readToken(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	token, err := tokenfile.ReadOne(path)
	if err != nil {
		return "", fmt.Errorf("read the token: %w", err)
	}
	return token, nil
}

// onHangup has SIGHUP read secrets again, until end is called. Those that cannot be read stay as
// they were, which is said.
func (a *app) onHangup(reload func() error) (end func()) {
	hangup, done := make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(hangup, syscall.SIGHUP)
	go func() {
		defer close(done)
		for range hangup {
			if err := reload(); err != nil {
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

func (n *network) reloadCertificate(t serveTLS) error {
	if (t.Cert == "") != (n.config.TLS.Cert == "") {
		return errors.New("tls: connections are encrypted or they are not from the start on: start anew for that")
	}
	if t.Cert == "" {
		return nil
	}
	c, err := t.load()
	if err != nil {
		return err
	}
	c.NextProtos = []string{"h2", "http/1.1"}
	n.secure.Store(c)
	return nil
}

// load reads the certificate and the authorities of clients, which are named in the section tls.
func (t serveTLS) load() (*tls.Config, error) {
	if t.Cert == "" || t.Key == "" {
		return nil, errors.New("tls: expected cert and key together, and client_ca only beside them")
	}
	pair, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	if err != nil {
		return nil, fmt.Errorf("tls: cert %s with key %s: %w", t.Cert, t.Key, err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
	if t.ClientCA != "" {
		text, err := os.ReadFile(t.ClientCA)
		if err != nil {
			return nil, fmt.Errorf("tls.client_ca: %w", err)
		}
		c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
		if !c.ClientCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("tls.client_ca: %s has no certificate in PEM", t.ClientCA)
		}
	}
	return c, nil
}

// tls is nil without a certificate. Connections get what was read last before they began.
func (n *network) tls() *tls.Config {
	c := n.secure.Load()
	if c == nil {
		return nil
	}
	outer := c.Clone()
	outer.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return n.secure.Load(), nil }
	return outer
}

// serve begins to answer on the addresses. Failures go to log; requests, unless nil, gets a line
// for each request, tracer a span.
func (n *network) serve(s serve.Service, engine string, log, requests *slog.Logger, tracer *tracing.Tracer) {
	c := n.config
	record := traffic.New(requests)
	shown := metrics.Handler(s, record)
	if n.health != nil {
		p := probes{live: s.Live, ready: func() bool { return s.Ready() && !n.leaving.Load() }}
		if c.HealthMetrics {
			p.metrics = n.guard.Handler(guard.Use, shown)
		}
		n.unprobe = answerHTTP(n.health, p.handler(), log, func(err error) { n.failed <- fmt.Errorf("health: %w", err) })
	}
	if n.http != nil {
		handler := httpapi.New(tracer.Service(s), httpapi.Options{
			Name: c.ServerName, Version: version(), MaxBody: int64(c.MaxBody), MaxConcurrent: c.MaxConcurrent, Timeout: c.Timeout, Guard: n.guard, Traffic: record, Tracer: tracer, Leaving: n.leaving.Load,
			Metrics: shown, Page: page.Handler(newPageSource(s, engine)), Open: page.IsFile, Log: log,
		})
		n.web = httpapi.NewServer(handler, httpapi.ServerOptions{TLS: n.tls()})
		n.web.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
		go func() {
			var err error
			if n.web.TLSConfig != nil {
				err = n.web.ServeTLS(n.http, "", "")
			} else {
				err = n.web.Serve(n.http)
			}
			if !errors.Is(err, http.ErrServerClosed) {
				n.failed <- fmt.Errorf("HTTP: %w", err)
			}
		}()
	}
	if n.grpc != nil {
		n.rpc = grpcapi.NewServer(tracer.Service(s), grpcapi.Options{
			Name: c.ServerName, Version: version(), MaxMessage: int(c.MaxBody), MaxConcurrent: c.MaxConcurrent, Timeout: c.Timeout, Guard: n.guard, Traffic: record, Tracer: tracer, TLS: n.tls(), Log: log,
		})
		go func() {
			if err := n.rpc.Serve(n.grpc); err != nil {
				n.failed <- fmt.Errorf("gRPC: %w", err)
			}
		}()
	}
}

// lameDuck has connections end after their next answer; everything is answered, new connections
// too.
func (n *network) lameDuck() {
	n.leaving.Store(true)
	if n.rpc != nil {
		n.rpc.LameDuck()
	}
}

// shutdown refuses new connections and requests and waits for those that have begun, as long as the
// context allows; then it cuts off what is left.
func (n *network) shutdown(ctx context.Context) error {
	n.leaving.Store(true)
	graceful := make(chan struct{})
	if n.rpc != nil {
		go func() {
			n.rpc.GracefulStop()
			close(graceful)
		}()
	} else {
		close(graceful)
	}
	var err error
	if n.web != nil {
		if err = n.web.Shutdown(ctx); err != nil {
			err = fmt.Errorf("requests over HTTP were cut off: %w", errors.Join(err, n.web.Close()))
		}
	}
	select {
	case <-graceful:
	case <-ctx.Done():
		if n.rpc == nil {
			break
		}
		n.rpc.Stop()
		<-graceful
		err = errors.Join(err, fmt.Errorf("requests over gRPC were cut off: %w", ctx.Err()))
	}
	return err
}

// close frees the addresses; it does no harm after shutdown.
func (n *network) close() error {
	if n.unprobe != nil {
		n.unprobe()
	}
	var errs []error
	for _, l := range []net.Listener{n.http, n.grpc, n.health} {
		if l == nil {
			continue
		}
		if err := l.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (n *network) httpAddress() string { return address(n.http) }
func (n *network) grpcAddress() string { return address(n.grpc) }

// address is empty without a listener.
func address(l net.Listener) string {
	if l == nil {
		return ""
	}
	return l.Addr().String()
}

// exposed says what is missing where others than this machine can reach the server.
func (c *serveConfig) exposed() []string {
	var list []string
	if c.HealthMetrics && c.TokenFile == "" && !loopback(c.Health) {
		list = append(list, fmt.Sprintf("health listens on %s with metrics without a token (--token-file): everyone who reaches it can read them", c.Health))
	}
	for _, v := range []struct{ what, address string }{{"HTTP", c.HTTP}, {"gRPC", c.GRPC}} {
		if v.address == "" || loopback(v.address) {
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

// loopback reports whether only this machine reaches an address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
