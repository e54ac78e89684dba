package server

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onnxrl/onnxrl/export/serve/guard"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// status is that of an answer, 0 without one.
func status(t *testing.T, url, token string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// TestHealth: a probe gets the present state.
func TestHealth(t *testing.T) {
	s, err := Listen(Options{Health: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	var ready atomic.Bool
	s.AnswerHealth(Probes{Ready: ready.Load})
	url := "http://" + s.Health()
	probe := func(live, want int) {
		t.Helper()
		if l, r := status(t, url+LivePath, ""), status(t, url+ReadyPath, ""); l != live || r != want {
			t.Errorf("live %d, ready %d, expected %d and %d", l, r, live, want)
		}
	}
	probe(200, 503)
	ready.Store(true)
	probe(200, 200)
	s.LameDuck()
	probe(200, 503)
	if _, err := Listen(Options{Health: s.Health()}); err == nil || !strings.Contains(err.Error(), s.Health()) {
		t.Errorf("an address that is taken: %v", err)
	}
	s.Close()
	s.Close()
	probe(0, 0)
	none, err := Listen(Options{})
	if err != nil {
		t.Fatal(err)
	}
	none.AnswerHealth(Probes{})
	none.AnswerHTTP(nil, 0)
	none.AnswerGRPC(nil)
	if none.HTTP()+none.GRPC()+none.Health() != "" {
		t.Error("an address that nobody asked for")
	}
	none.Close()
}

// Tokens are read again; those that are wrong leave what was there.
func TestTokens(t *testing.T) {
	dir := t.TempDir()
	f := Files{Token: filepath.Join(dir, "use"), AdminToken: filepath.Join(dir, "admin")}
	write := func(use, admin string) {
		for path, text := range sorted.All(map[string]string{f.Token: use, f.AdminToken: admin}) {
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	write("one\n# of tomorrow\ntwo\n", "chief")
	s, err := Listen(Options{HTTP: "127.0.0.1:0", Files: f})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	mux := http.NewServeMux()
	mux.Handle("/use", s.Guard.Handler(guard.Use, ok))
	mux.Handle("/admin", s.Guard.Handler(guard.Administer, ok))
	s.AnswerHTTP(mux, 0)
	check := func(token string, use, admin int) {
		t.Helper()
		url := "http://" + s.HTTP()
		if u, a := status(t, url+"/use", token), status(t, url+"/admin", token); u != use || a != admin {
			t.Errorf("%s: %d and %d, expected %d and %d", token, u, a, use, admin)
		}
	}
	check("one", 200, 403)
	check("two", 200, 403)
	check("chief", 200, 200)
	check("", 401, 401)
	write("two\nthree", "chief")
	if err := s.Reload(f); err != nil {
		t.Fatal(err)
	}
	check("one", 401, 401)
	check("three", 200, 403)
	for _, x := range []struct{ use, admin, says string }{{"four\nfive", "five", "hold the same one"}, {"", "six", "token_file"}, {"six", "", "admin_token_file"}, {"a b", "six", "without spaces"}} {
		write(x.use, x.admin)
		if err := s.Reload(f); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%+v: %v", x, err)
		}
	}
	check("three", 200, 403)
	check("chief", 200, 200)
	if err := s.Reload(Files{TLS: TLS{Cert: "cert.pem"}, Token: f.AdminToken}); err == nil || !strings.Contains(err.Error(), "from the start on") {
		t.Error(err)
	}
	for _, x := range []TLS{{Cert: "c"}, {Key: "k"}, {ClientCA: "a"}} {
		if _, err := Listen(Options{Files: Files{TLS: x}}); err == nil || !strings.Contains(err.Error(), "cert and key together") {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

// stuck is a gRPC server whose calls end when they are cut off.
type stuck struct {
	begun, cut chan struct{}
	lame       atomic.Bool
}

func (s *stuck) Serve(net.Listener) error {
	close(s.begun)
	<-s.cut
	return nil
}
func (s *stuck) GracefulStop() { <-s.cut }
func (s *stuck) Stop()         { close(s.cut) }
func (s *stuck) LameDuck()     { s.lame.Store(true) }

// Shutting down cuts off what does not end, and returns the error of a listener that fails.
func TestShutdown(t *testing.T) {
	failed := make(chan error, 1)
	s, err := Listen(Options{HTTP: "127.0.0.1:0", GRPC: "127.0.0.1:0", Failed: func(err error) { failed <- err }})
	if err != nil {
		t.Fatal(err)
	}
	began, done := make(chan struct{}), make(chan struct{})
	s.AnswerHTTP(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { close(began); <-r.Context().Done() }), 0)
	g := &stuck{begun: make(chan struct{}), cut: make(chan struct{})}
	s.AnswerGRPC(g)
	go func() {
		defer close(done)
		if got := status(t, "http://"+s.HTTP(), ""); got != 0 {
			t.Errorf("a request that was cut off is answered: %d", got)
		}
	}()
	<-began
	<-g.begun
	s.LameDuck()
	if !g.lame.Load() || !s.Leaving() {
		t.Error("gRPC is not told")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); err == nil || !strings.Contains(err.Error(), "over HTTP were cut off") || !strings.Contains(err.Error(), "over gRPC were cut off") {
		t.Errorf("%v", err)
	}
	<-done
	s.Close()
	if len(failed) != 0 {
		t.Error(<-failed)
	}
	s, err = Listen(Options{HTTP: "127.0.0.1:0", Failed: func(err error) { failed <- err }})
	if err != nil {
		t.Fatal(err)
	}
	s.AnswerHTTP(http.NotFoundHandler(), 0)
	if status(t, "http://"+s.HTTP(), "") != 404 {
		t.Error("no answer")
	}
	s.http.Close()
	if err := <-failed; !errors.Is(err, net.ErrClosed) || !strings.HasPrefix(err.Error(), "HTTP: ") {
		t.Error(err)
	}
	s.Close()
}

func TestAddresses(t *testing.T) {
	n := 0
	for address, want := range sorted.All(map[string]string{"0.0.0.0:80": "tcp4", "127.0.0.1:80": "tcp4", "[::]:80": "tcp", ":80": "tcp", "[::1]:80": "tcp", "localhost:80": "tcp", "[::ffff:1.2.3.4]:80": "tcp"}) {
		if got := family(address); got != want {
			t.Errorf("%s: %s, expected %s", address, got, want)
		}
		n++
	}
	if n != 7 {
		t.Error(n)
	}
	for address, want := range sorted.All(map[string]string{":80": "127.0.0.1:80", "[::]:80": "[::]:80", "box:0": "box:0", "80": ""}) {
		if got, err := Local(address); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v, expected %s", address, got, err, want)
		}
	}
	for address, want := range sorted.All(map[string]string{":80": "", "nowhere": "is no address", "a:b": "has no port", "a:70000": "has no port"}) {
		if err := CheckAddress(address); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", address, err)
		}
	}
}
