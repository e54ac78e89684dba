package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/guard"
	"github.com/onnxrl/onnxrl/export/serve/tracing"
	"github.com/onnxrl/onnxrl/export/serve/traffic"
)

// Defaults of Options.
const (
	DefaultMaxBody       = 64 << 20
	DefaultMaxBuffered   = 1 << 30
	DefaultMaxConcurrent = 1024
)

// Options of a handler.
type Options struct {
	// Name and Version are what the server calls itself.
	Name, Version string
	// MaxBody is the most bytes of a body, compressed or not; MaxBuffered the most of all bodies at
	// once; MaxConcurrent the most inferences at once. 0 stands for the defaults.
	MaxBody, MaxBuffered int64
	MaxConcurrent        int
	// Timeout bounds every inference; a request's own timeout can only be shorter. 0 means none.
	Timeout time.Duration
	// Guard says which requests are answered; nil is one without tokens, which keeps other sites'
	// pages out.
	Guard *guard.Guard
	// Metrics answers /metrics, Page everything outside the protocol; either may be nil.
	Metrics, Page http.Handler
	// Open reports whether a path of Page needs no token; nil for none.
	Open func(path string) bool
	// Leaving reports whether connections are to end after their next answer, so that clients make
	// their next ones elsewhere; nil for never.
	Leaving func() bool
	// Traffic records answers; nil is a recorder that nobody reads.
	Traffic *traffic.Recorder
	// Tracer makes the spans of requests; nil makes none.
	Tracer *tracing.Tracer
	// Log gets failures of the server itself; nil drops them.
	Log *slog.Logger
}

type handler struct {
	Options
	service  serve.Service
	running  atomic.Int64
	buffered atomic.Int64
	calls    sync.Pool // *call
	answers  sync.Pool // *answer
}

// New returns the handler of a service.
func New(s serve.Service, o Options) http.Handler {
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
	if o.MaxBuffered <= 0 {
		o.MaxBuffered = DefaultMaxBuffered
	}
	if o.MaxConcurrent <= 0 {
		o.MaxConcurrent = DefaultMaxConcurrent
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Guard == nil {
		o.Guard = guard.New(guard.Tokens{})
	}
	if o.Leaving == nil {
		o.Leaving = func() bool { return false }
	}
	if o.Traffic == nil {
		o.Traffic = traffic.New(nil)
	}
	if o.Open == nil {
		o.Open = func(string) bool { return false }
	}
	return &handler{Options: o, service: s, calls: sync.Pool{New: func() any { return new(call) }}, answers: sync.Pool{New: func() any { return new(answer) }}}
}

// status is an error with a status that no class of package serve has.
type status struct {
	code int
	text string
}

func (e *status) Error() string { return e.text }

func statusf(code int, format string, args ...any) error {
	return &status{code, fmt.Sprintf(format, args...)}
}

// answer is a response whose status and size are remembered.
type answer struct {
	http.ResponseWriter
	status int
	bytes  int64
	err    error
	span   trace.Span
}

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if status >= 200 {
		a.status = cmp.Or(a.status, status)
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	a.status = cmp.Or(a.status, http.StatusOK)
	n, err := a.ResponseWriter.Write(p)
	a.bytes += int64(n)
	return n, err
}

// Unwrap lets http.ResponseController reach what is below.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

var closeConnection = []string{"close"}

// ServeHTTP answers a request and records the answer.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := h.answers.Get().(*answer)
	*a = answer{ResponseWriter: w}
	var begin time.Time
	if h.Traffic.Logs() {
		begin = time.Now()
	}
	defer func() {
		status := cmp.Or(a.status, http.StatusOK)
		h.Traffic.HTTP(status)
		tracing.EndHTTP(a.span, status, a.err)
		if h.Traffic.Logs() {
			h.Traffic.Log(r.Context(), traffic.Entry{
				Protocol: "http", Remote: r.RemoteAddr, Method: r.Method, Path: r.URL.Path, Status: status, Bytes: a.bytes, Took: time.Since(begin), RequestID: w.Header().Get("X-Request-Id"), Span: a.span, Err: a.err,
			})
		}
		*a = answer{}
		h.answers.Put(a)
	}()
	h.serve(a, r)
}

// serve answers a request; what panics in it is an error of the server.
func (h *handler) serve(w *answer, r *http.Request) {
	defer func() {
		if v := recover(); v != nil {
			if v == http.ErrAbortHandler {
				panic(v)
			}
			h.broken(r.Context(), w, "a request panicked", slog.String("path", r.URL.Path), slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
			h.fail(w, statusf(http.StatusInternalServerError, "internal error"))
		}
	}()
	if h.Leaving() {
		// Over HTTP/2 net/http sends GOAWAY for it.
		w.Header()["Connection"] = closeConnection
	}
	if id := r.Header.Get("X-Request-Id"); id != "" && len(id) <= 256 {
		w.Header()["X-Request-Id"] = []string{id}
	}
	t, err := route(r)
	traced, span := h.begin(r, t)
	w.span = span
	if refused := h.admit(r, t); refused != nil {
		err = refused
	}
	if err != nil {
		h.fail(w, err)
		return
	}
	if r.Method == http.MethodOptions && t.allow != "" {
		w.Header().Set("Allow", t.allow)
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if t.allow != "" && !allowed(t.allow, r.Method) {
		w.Header().Set("Allow", t.allow)
		h.fail(w, statusf(http.StatusMethodNotAllowed, "%s is not a method of %s, expected %s", r.Method, r.URL.Path, t.allow))
		return
	}
	if err := h.dispatch(w, traced, t); err != nil {
		h.fail(w, err)
	}
}

func (h *handler) dispatch(w http.ResponseWriter, r *http.Request, t target) error {
	switch t.endpoint {
	case infer:
		return h.infer(w, r, t)
	case server:
		return h.server(w)
	case live:
		return h.health(w, "live", h.service.Live())
	case ready:
		return h.health(w, "ready", h.service.Ready())
	case metadata:
		return h.metadata(w, t)
	case modelReady:
		return h.modelReady(w, t)
	case config:
		return h.config(w, t)
	case stats:
		return h.stats(w, t)
	case index:
		return h.index(w, r)
	case load:
		return h.load(w, r, t)
	case unload:
		return h.unload(w, r, t)
	case metrics:
		if h.Metrics != nil {
			h.Metrics.ServeHTTP(w, r)
			return nil
		}
	case unsupported:
		return statusf(http.StatusNotImplemented, "%s: shared memory, tracing and logging settings are not supported", r.URL.Path)
	case page:
		if h.Page != nil {
			h.Page.ServeHTTP(w, r)
			return nil
		}
	}
	return statusf(http.StatusNotFound, "%s: there is no such endpoint", r.URL.Path)
}

// admit refuses what other sites' pages send, and what needs a token that it does not have.
func (h *handler) admit(r *http.Request, t target) error {
	if err := h.Guard.Sender(guard.SenderOf(r)); err != nil {
		return err
	}
	right := guard.Use
	switch t.endpoint {
	case live, ready:
		right = guard.Open
	case load, unload:
		right = guard.Administer
	case page:
		if h.Open(r.URL.Path) {
			right = guard.Open
		}
	}
	return h.Guard.Authorize(right, r.Header.Get("Authorization"))
}

// deliberate refuses a request that changes something unless its media type is one that a page
// cannot send without asking first. Programs may leave it out, as Triton's clients do.
func deliberate(r *http.Request, types ...string) error {
	media := r.Header.Get("Content-Type")
	if media == "" && !guard.SenderOf(r).Browser() {
		return nil
	}
	media, _, _ = strings.Cut(media, ";")
	media = strings.TrimSpace(media)
	for _, t := range types {
		if strings.EqualFold(media, t) {
			return nil
		}
	}
	return statusf(http.StatusUnsupportedMediaType, "a request that changes something has the media type %.80q, expected application/json (curl -H 'Content-Type: application/json')", media)
}

// begin begins the span of a request, unless a probe or the page asks.
func (h *handler) begin(r *http.Request, t target) (*http.Request, trace.Span) {
	tracer, pattern := h.Tracer, ""
	switch t.endpoint {
	case live, ready, metrics, page:
		tracer = nil
	}
	if tracer != nil { // the pattern is an allocation
		pattern = t.pattern()
	}
	return tracer.HTTP(r, pattern)
}

// broken logs a failure of the server itself.
func (h *handler) broken(ctx context.Context, w *answer, what string, attrs ...slog.Attr) {
	h.Log.LogAttrs(ctx, slog.LevelError, what, append(attrs, tracing.Attrs(w.span)...)...)
}

// fail answers with an error. Nothing has been written before.
func (h *handler) fail(w *answer, err error) {
	w.err = err
	code := 0
	var s *status
	if errors.As(err, &s) {
		code = s.code
	} else {
		code = serve.CodeOf(err).HTTPStatus()
	}
	switch code {
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case http.StatusTooManyRequests:
		w.Header().Set("Retry-After", "1")
	case http.StatusInternalServerError:
		h.broken(context.Background(), w, "a request failed", slog.Any("error", err))
	}
	body, jerr := json.Marshal(map[string]string{"error": err.Error()})
	if jerr != nil { // a string always encodes
		panic(jerr)
	}
	write(w, code, body)
}

// reply answers with a document.
func reply(w http.ResponseWriter, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	write(w, http.StatusOK, body)
	return nil
}

const mediaJSON, mediaBinary = "application/json", "application/octet-stream"

var typeJSON = []string{mediaJSON}

func write(w http.ResponseWriter, code int, body []byte) {
	header := w.Header()
	header["Content-Type"] = typeJSON
	header["Content-Length"] = []string{strconv.Itoa(len(body))}
	header["X-Content-Type-Options"] = []string{"nosniff"}
	w.WriteHeader(code)
	w.Write(body) //nolint:errcheck // the client is gone, and nobody is left to tell
}
