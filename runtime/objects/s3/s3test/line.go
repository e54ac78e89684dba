package s3test

import (
	"errors"
	"io"
	"log"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// Faults say how a line fails.
type Faults struct {
	// Seed chooses the faults. Which request gets which depends on their order, too.
	Seed uint64
	// Rate is the share of requests that fail.
	Rate float64
	// Slow is the longest wait before a request goes on.
	Slow time.Duration
	// Stale is the share of requests for objects, of those that do not fail, that are answered as
	// if what was written last were not there yet.
	Stale float64
}

// Line passes requests on to a server.
type Line struct {
	// Address is its host and port.
	Address string

	mu     sync.Mutex
	rand   *rand.Rand
	faults Faults
	done   map[string]int
	failed map[string]int
}

// NewLine opens a line to the server at an address, until the test ends.
func NewLine(t *testing.T, address string) *Line {
	t.Helper()
	l := &Line{done: map[string]int{}, failed: map[string]int{}}
	to := &url.URL{Scheme: "http", Host: address}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
			// The host is signed.
			r.Out.Host = r.In.Host
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { l.serve(proxy, w, r) }))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(s.Close)
	l.Address = strings.TrimPrefix(s.URL, "http://")
	return l
}

// Fail makes the line fail from now on.
func (l *Line) Fail(f Faults) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults, l.rand = f, rand.New(rand.NewPCG(f.Seed, 1))
}

// Done returns how often requests went well, and forgets it. One is named by its method and, behind
// a blank, bucket and key.
func (l *Line) Done() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	done := l.done
	l.done = map[string]int{}
	return done
}

// Failed returns how often each kind of fault happened.
func (l *Line) Failed() map[string]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	failed := map[string]int{}
	for k, n := range l.failed {
		failed[k] = n
	}
	return failed
}

// Kinds are those of faults.
var Kinds = []string{"500", "503", "hang up", "lost answer", "cut", "flipped bit"}

// stale is the kind of a fault that is not among Kinds: its answer is a valid one.
const stale = "stale"

// fault draws what becomes of a request, and a number in [0, 1).
func (l *Line) fault(method string) (kind string, wait time.Duration, u float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rand == nil {
		return "", 0, 0
	}
	if l.faults.Slow > 0 {
		wait = time.Duration(l.rand.Int64N(int64(l.faults.Slow)))
	}
	if l.rand.Float64() < l.faults.Rate {
		kind = Kinds[l.rand.IntN(len(Kinds))]
		l.failed[kind]++
	}
	if reads := method == http.MethodGet || method == http.MethodHead; kind == "" && reads && l.faults.Stale > 0 && l.rand.Float64() < l.faults.Stale {
		kind = stale
		l.failed[kind]++
	}
	return kind, wait, l.rand.Float64()
}

func (l *Line) serve(proxy http.Handler, w http.ResponseWriter, r *http.Request) {
	kind, wait, u := l.fault(r.Method)
	if wait > 0 {
		select {
		case <-time.After(wait):
		case <-r.Context().Done():
			return
		}
	}
	switch kind {
	case "500":
		refuse(w, http.StatusInternalServerError, "InternalError")
		return
	case "503":
		refuse(w, http.StatusServiceUnavailable, "SlowDown")
		return
	case stale:
		refuse(w, http.StatusNotFound, "NoSuchKey")
		return
	case "hang up":
		panic(http.ErrAbortHandler)
	case "lost answer", "cut", "flipped bit":
		answer := httptest.NewRecorder()
		proxy.ServeHTTP(answer, r)
		body := answer.Body.Bytes()
		if kind == "lost answer" || len(body) == 0 {
			panic(http.ErrAbortHandler)
		}
		at := int(u * float64(len(body)))
		for k, v := range answer.Header() {
			w.Header()[k] = v
		}
		w.WriteHeader(answer.Code)
		if kind == "cut" {
			_, _ = w.Write(body[:at])
			panic(http.ErrAbortHandler)
		}
		body[at] ^= 1
		_, _ = w.Write(body)
		return
	}
	seen := &status{ResponseWriter: w, code: http.StatusOK}
	proxy.ServeHTTP(seen, r)
	if seen.code < 300 && seen.err == nil {
		l.mu.Lock()
		l.done[r.Method+" "+strings.TrimPrefix(r.URL.Path, "/")]++
		l.mu.Unlock()
	}
}

// refuse answers as S3 does.
func refuse(w http.ResponseWriter, code int, name string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, "<Error><Code>"+name+"</Code><Message>by chance</Message></Error>")
}

// status remembers how a request was answered.
type status struct {
	http.ResponseWriter
	code int
	err  error
}

func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

func (s *status) Write(p []byte) (int, error) {
	n, err := s.ResponseWriter.Write(p)
	s.err = errors.Join(s.err, err)
	return n, err
}
