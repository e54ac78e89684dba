package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onnxrl/onnxrl/export/serve/guard"
	"github.com/onnxrl/onnxrl/export/serve/httpapi"
)

// Options say where a server listens and what protects it.
type Options struct {
	// HTTP, GRPC and Health are addresses HOST:PORT, empty for none; port 0 is a free one.
	HTTP, GRPC, Health string
	Files
	// AllowedHosts are further names by which the server is known, see package guard; Flag is what
	// the program calls them, --allow-host where it is empty.
	AllowedHosts []string
	Flag         string
	// Log, unless nil, gets what clients do wrong at connections.
	Log *slog.Logger
	// Failed is called when a protocol has stopped answering and was not ended. Several goroutines
	// may call it.
	Failed func(error)
}

// GRPC is a *grpc.Server, or a server of several. A method LameDuck() of it is called.
type GRPC interface {
	Serve(net.Listener) error
	GracefulStop()
	Stop()
}

// Server is a server's listeners, with what protects them. It is safe for concurrent use from when
// all of its protocols answer.
type Server struct {
	// Guard has the names and the tokens of the server.
	Guard              *guard.Guard
	options            Options
	http, grpc, health net.Listener
	web, probes        *http.Server
	rpc                GRPC
	leaving            atomic.Bool
	// secure is nil without a certificate.
	secure atomic.Pointer[tls.Config]
	// answering are the goroutines that accept connections.
	answering sync.WaitGroup
}

// Listen reads the files and takes the addresses. Connections wait until they are answered.
func Listen(o Options) (*Server, error) {
	names := o.AllowedHosts
	if name, err := os.Hostname(); err == nil {
		// Some systems let it stand for a loopback address, and nobody else gives it to theirs.
		names = append(slices.Clone(names), name)
	}
	s := &Server{Guard: guard.New(guard.Tokens{}, names...), options: o}
	if o.Flag != "" {
		s.Guard.Advise(o.Flag)
	}
	if err := s.Reload(o.Files); err != nil {
		return nil, err
	}
	for _, v := range []struct {
		address string
		to      *net.Listener
	}{{o.HTTP, &s.http}, {o.GRPC, &s.grpc}, {o.Health, &s.health}} {
		if v.address == "" {
			continue
		}
		l, err := net.Listen(family(v.address), v.address)
		if err != nil {
			s.Close()
			return nil, err
		}
		*v.to = l
	}
	return s, nil
}

// HTTP is the address that was taken for it, with its port; empty without one.
func (s *Server) HTTP() string { return address(s.http) }

// GRPC is the address that was taken for it, with its port; empty without one.
func (s *Server) GRPC() string { return address(s.grpc) }

// Health is the address that was taken for it, with its port; empty without one.
func (s *Server) Health() string { return address(s.health) }

func address(l net.Listener) string {
	if l == nil {
		return ""
	}
	return l.Addr().String()
}

// AnswerHTTP begins to answer at the address of HTTP, unless there is none. maxHeader is that of
// [httpapi.ServerOptions].
func (s *Server) AnswerHTTP(h http.Handler, maxHeader int) {
	if s.http != nil {
		s.web = s.answer("HTTP", s.http, h, httpapi.ServerOptions{TLS: s.TLS(), MaxHeader: maxHeader})
	}
}

func (s *Server) answer(what string, l net.Listener, h http.Handler, o httpapi.ServerOptions) *http.Server {
	web := httpapi.NewServer(h, o)
	if s.options.Log != nil {
		web.ErrorLog = slog.NewLogLogger(s.options.Log.Handler(), slog.LevelDebug)
	}
	s.answering.Go(func() {
		var err error
		if o.TLS != nil {
			err = web.ServeTLS(l, "", "")
		} else {
			err = web.Serve(l)
		}
		if !errors.Is(err, http.ErrServerClosed) {
			s.failed(what, err)
		}
	})
	return web
}

// AnswerGRPC begins to answer at the address of gRPC, unless there is none.
func (s *Server) AnswerGRPC(g GRPC) {
	if s.grpc == nil {
		return
	}
	s.rpc = g
	s.answering.Go(func() {
		if err := g.Serve(s.grpc); err != nil {
			s.failed("gRPC", err)
		}
	})
}

func (s *Server) failed(what string, err error) {
	if s.options.Failed != nil {
		s.options.Failed(fmt.Errorf("%s: %w", what, err))
	}
}

// LameDuck has probes hear that the server is not ready, and connections end after their next
// answer. Everything is answered, new connections too.
func (s *Server) LameDuck() {
	s.leaving.Store(true)
	if g, ok := s.rpc.(interface{ LameDuck() }); ok {
		g.LameDuck()
	}
}

// Leaving reports whether connections are to end, since [Server.LameDuck] or [Server.Shutdown].
func (s *Server) Leaving() bool { return s.leaving.Load() }

// Shutdown refuses new connections and requests and waits for those that have begun, as long as the
// context allows; then it cuts off what is left, which is the error. Probes are answered until
// [Server.Close].
func (s *Server) Shutdown(ctx context.Context) error {
	s.leaving.Store(true)
	graceful := make(chan struct{})
	if s.rpc == nil {
		close(graceful)
	} else {
		go func() {
			defer close(graceful)
			s.rpc.GracefulStop()
		}()
	}
	var err error
	if s.web != nil {
		if err = s.web.Shutdown(ctx); err != nil {
			err = fmt.Errorf("requests over HTTP were cut off: %w", errors.Join(err, s.web.Close()))
		}
	}
	select {
	case <-graceful:
	case <-ctx.Done():
		if s.rpc == nil {
			break
		}
		s.rpc.Stop()
		<-graceful
		err = errors.Join(err, fmt.Errorf("requests over gRPC were cut off: %w", ctx.Err()))
	}
	return err
}

// grace is how long an answer that has begun may go on when a server closes.
const grace = time.Second

// Close is [Server.Shutdown] within a second, and ends the answers to probes too. It may be called
// again, and after Shutdown.
func (s *Server) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	_ = s.Shutdown(ctx) // Who reads that slowly is cut off.
	if s.probes != nil && s.probes.Shutdown(ctx) != nil {
		_ = s.probes.Close()
	}
	for _, l := range []net.Listener{s.http, s.grpc, s.health} {
		if l != nil {
			_ = l.Close() // Answering has closed it where it began.
		}
	}
	s.answering.Wait()
}
