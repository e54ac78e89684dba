package traffic_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/traffic"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func counts(r *traffic.Recorder) map[string]uint64 {
	m := map[string]uint64{}
	for _, c := range r.Counts() {
		m[c.Protocol+" "+c.Code+" "+c.Reason] += c.N
	}
	return m
}

func TestCounts(t *testing.T) {
	r := traffic.New(nil)
	before := counts(r)
	for _, name := range []string{"http 200 ok", "http 400 invalid argument", "http 401 unauthenticated", "http 429 overloaded", "http 500 internal", "http 503 not ready", "http 422 drifted", "grpc FailedPrecondition drifted", "grpc OK ok", "grpc Unavailable overloaded", "grpc Unavailable not ready", "grpc InvalidArgument invalid argument"} {
		if n, ok := before[name]; !ok || n != 0 {
			t.Errorf("%s is not there from the beginning", name)
		}
	}
	if len(before) != 2*(1+serve.Codes) {
		t.Errorf("%d codes from the beginning", len(before))
	}
	for _, s := range []int{200, 200, 413, 429, 429, 304, -1, 700} {
		r.HTTP(s)
	}
	full := fmt.Errorf("wrapped: %w", &serve.Error{Code: serve.Overloaded, Err: errors.New("full")})
	for _, err := range []error{nil, status.Error(codes.ResourceExhausted, "large"), status.Error(codes.Code(99), "x")} {
		r.GRPC(err)
	}
	r.GRPC(wire{full})
	want := map[string]uint64{"http 200 ok": 2, "http 304 ok": 1, "http 413 request entity too large": 1, "http 429 overloaded": 2, "grpc OK ok": 1, "grpc ResourceExhausted other": 1, "grpc Unknown other": 1, "grpc Unavailable overloaded": 1}
	for name, n := range sorted.All(counts(r)) {
		if n != want[name] {
			t.Errorf("%s: %d, expected %d", name, n, want[name])
		}
		delete(want, name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	if n := testing.AllocsPerRun(100, func() { r.HTTP(200); r.GRPC(nil) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// wire is an error as package grpcapi sends it.
type wire struct{ error }

func (w wire) GRPCStatus() *status.Status { return status.New(codes.Unavailable, w.Error()) }
func (w wire) Unwrap() error              { return w.error }

func TestLog(t *testing.T) {
	var text strings.Builder
	r := traffic.New(slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})))
	r.Log(t.Context(), traffic.Entry{Protocol: "http", Remote: "1.2.3.4:5", Method: "GET", Path: "/a\nlevel=ERROR", Status: 404, Bytes: 3, Took: time.Second, RequestID: "q", Err: errors.New("no such endpoint")})
	r.Log(t.Context(), traffic.Entry{Protocol: "grpc", Remote: "1.2.3.4:5", Path: "/s/M", Code: "OK", Took: time.Second})
	const want = "level=INFO msg=request protocol=http remote=1.2.3.4:5 method=GET path=\"/a\\nlevel=ERROR\" status=404 bytes=3 took=1s request_id=q error=\"no such endpoint\"\n" +
		"level=INFO msg=request protocol=grpc remote=1.2.3.4:5 path=/s/M code=OK took=1s\n"
	if text.String() != want {
		t.Errorf("got\n%s", text.String())
	}
	if !r.Logs() || traffic.New(nil).Logs() {
		t.Error("which recorders log")
	}
}
