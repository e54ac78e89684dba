package tracing_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	grpccodes "google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/tracing"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

const (
	traceID     = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID      = "00f067aa0ba902b7"
	traceparent = "00-" + traceID + "-" + spanID + "-01"
)

// recorder returns a tracer and where its spans go when they end.
func recorder() (*tracing.Tracer, *tracetest.SpanRecorder) {
	r := tracetest.NewSpanRecorder()
	return tracing.New(sdk.NewTracerProvider(sdk.WithSpanProcessor(r))), r
}

func attributes(s sdk.ReadOnlySpan) map[string]string {
	m := map[string]string{}
	for _, a := range s.Attributes() {
		m[string(a.Key)] = a.Value.String()
	}
	return m
}

func check(t *testing.T, s sdk.ReadOnlySpan, name string, kind trace.SpanKind, status codes.Code, want map[string]string) {
	t.Helper()
	if s.Name() != name || s.SpanKind() != kind || s.Status().Code != status {
		t.Errorf("%q %v %v, expected %q %v %v", s.Name(), s.SpanKind(), s.Status(), name, kind, status)
	}
	got := attributes(s)
	for key, value := range sorted.All(want) {
		if got[key] != value {
			t.Errorf("%s: attribute %s is %q, expected %q", name, key, got[key], value)
		}
	}
}

// A request's span belongs to the trace that its client names, and is described by the semantic
// conventions.
func TestHTTP(t *testing.T) {
	tracer, spans := recorder()
	r := httptest.NewRequest("POST", "/v2/models/m/infer", nil)
	r.Header.Set("Traceparent", traceparent)
	r.Header.Set("Tracestate", "vendor=1")
	traced, span := tracer.HTTP(r, "/v2/models/{model}/infer")
	if trace.SpanFromContext(traced.Context()) != span {
		t.Error("the request does not carry its span")
	}
	tracing.EndHTTP(span, 200, nil)
	_, span = tracer.HTTP(&http.Request{Method: "BREW", URL: &url.URL{Path: "/\xff"}}, "")
	tracing.EndHTTP(span, 404, errors.New("nothing there"))
	_, span = tracer.HTTP(httptest.NewRequest("GET", "/v2", nil), "/v2")
	tracing.EndHTTP(span, 500, errors.New("broken \xff"))
	list := spans.Ended()
	if len(list) != 3 {
		t.Fatalf("%d spans", len(list))
	}
	check(t, list[0], "POST /v2/models/{model}/infer", trace.SpanKindServer, codes.Unset, map[string]string{
		"http.request.method": "POST", "http.route": "/v2/models/{model}/infer", "url.path": "/v2/models/m/infer", "url.scheme": "http", "http.response.status_code": "200", "client.address": "192.0.2.1", "client.port": "1234", "network.protocol.version": "1.1",
	})
	if c := list[0].SpanContext(); c.TraceID().String() != traceID || list[0].Parent().SpanID().String() != spanID || c.TraceState().String() != "vendor=1" || c.SpanID().String() == spanID {
		t.Errorf("trace %v of parent %v", c, list[0].Parent())
	}
	check(t, list[1], "HTTP", trace.SpanKindServer, codes.Unset, map[string]string{"http.request.method": "_OTHER", "error.type": "404", "url.path": "/\uFFFD"})
	check(t, list[2], "GET /v2", trace.SpanKindServer, codes.Error, map[string]string{"error.type": "500"})
	if d := list[2].Status().Description; d != "broken \uFFFD" {
		t.Errorf("%q", d)
	}
	if list[1].Parent().IsValid() {
		t.Error("a request without a trace has a parent")
	}
}

// incoming is the context of a call with metadata.
func incoming(t *testing.T, pairs ...string) context.Context {
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs(pairs...))
	return peer.NewContext(ctx, &peer.Peer{Addr: &net.TCPAddr{IP: net.IPv6loopback, Port: 7}})
}

func TestGRPC(t *testing.T) {
	tracer, spans := recorder()
	ctx, span := tracer.GRPC(incoming(t, "traceparent", traceparent), "/inference.GRPCInferenceService/ModelInfer")
	if trace.SpanFromContext(ctx) != span {
		t.Error("the context does not carry its span")
	}
	tracing.EndGRPC(span, nil)
	for _, err := range []error{status.Error(grpccodes.NotFound, "none"), status.Error(grpccodes.Internal, "broken"), status.Error(99, "unheard of")} {
		_, span := tracer.GRPC(incoming(t), "")
		tracing.EndGRPC(span, err)
	}
	list := spans.Ended()
	if len(list) != 4 {
		t.Fatalf("%d spans", len(list))
	}
	check(t, list[0], "inference.GRPCInferenceService/ModelInfer", trace.SpanKindServer, codes.Unset, map[string]string{"rpc.system.name": "grpc", "rpc.method": "inference.GRPCInferenceService/ModelInfer", "rpc.response.status_code": "OK", "client.address": "::1", "client.port": "7"})
	if list[0].SpanContext().TraceID().String() != traceID || list[0].Parent().SpanID().String() != spanID {
		t.Error("not of the client's trace")
	}
	check(t, list[1], "_OTHER", trace.SpanKindServer, codes.Unset, map[string]string{"rpc.response.status_code": "NOT_FOUND", "error.type": "NOT_FOUND"})
	check(t, list[2], "_OTHER", trace.SpanKindServer, codes.Error, map[string]string{"rpc.response.status_code": "INTERNAL", "error.type": "INTERNAL"})
	check(t, list[3], "_OTHER", trace.SpanKindServer, codes.Unset, map[string]string{"rpc.response.status_code": "UNKNOWN"})
}

// Without a tracer a client's trace is there for logs, a wrong or doubled one is none, and a
// request without one costs nothing.
func TestNoTracer(t *testing.T) {
	var tracer *tracing.Tracer
	r := httptest.NewRequest("POST", "/v2", nil)
	ctx := incoming(t)
	if n := testing.AllocsPerRun(100, func() {
		same, span := tracer.HTTP(r, "/v2")
		tracing.EndHTTP(span, 200, nil)
		if same != r || span != nil || tracing.Attrs(span) != nil {
			t.Error("a span out of nothing")
		}
	}); n != 0 {
		t.Errorf("%v allocations over HTTP", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		same, span := tracer.GRPC(ctx, "/s/M")
		tracing.EndGRPC(span, nil)
		if same != ctx || span != nil {
			t.Error("a span out of nothing")
		}
	}); n != 0 {
		t.Errorf("%v allocations over gRPC", n)
	}
	for _, v := range []struct {
		sent []string
		want bool
	}{
		{[]string{traceparent}, true}, {[]string{"00-" + traceID + "-" + spanID + "-00"}, true},
		{[]string{traceparent, traceparent}, false}, {[]string{"00-" + strings.Repeat("0", 32) + "-" + spanID + "-01"}, false}, {[]string{"ff-" + traceID + "-" + spanID + "-01"}, false}, {[]string{"x\ny"}, false}, {[]string{""}, false},
	} {
		r := httptest.NewRequest("GET", "/v2", nil)
		r.Header["Traceparent"] = v.sent
		_, web := tracer.HTTP(r, "/v2")
		var pairs []string
		for _, s := range v.sent {
			pairs = append(pairs, "traceparent", s)
		}
		_, rpc := tracer.GRPC(incoming(t, pairs...), "/s/M")
		for _, span := range []trace.Span{web, rpc} {
			attrs := tracing.Attrs(span)
			if got := len(attrs) == 2 && attrs[0].String() == "trace_id="+traceID && attrs[1].String() == "span_id="+spanID; got != v.want || !v.want && len(attrs) > 0 {
				t.Errorf("%q: %v", v.sent, attrs)
			}
		}
		tracing.EndHTTP(web, 200, nil)
		tracing.EndGRPC(rpc, nil)
	}
}

// answers is a service whose inferences take what timing says.
type answers struct {
	serve.Service
	timing serve.Timing
	err    error
}

func (a answers) Infer(_ context.Context, req *serve.Request, resp *serve.Response) error {
	resp.Model, resp.Version, resp.Timing = req.Model, "3", a.timing
	return a.err
}

func TestService(t *testing.T) {
	tracer, spans := recorder()
	timing := serve.Timing{Queue: time.Second, Input: 2 * time.Second, Infer: 3 * time.Second, Output: 4 * time.Second, Rows: 5}
	req := &serve.Request{ID: "q\xff", Model: "m\xff", Version: "latest", Sequence: serve.Sequence{ID: "9\xff"}}
	var resp serve.Response
	if err := tracer.Service(answers{timing: timing}).Infer(t.Context(), req, &resp); err != nil || len(spans.Ended()) > 0 {
		t.Fatalf("%v, %d spans without one of a request", err, len(spans.Ended()))
	}
	ctx, root := tracer.GRPC(incoming(t), "/s/M")
	if err := tracer.Service(answers{timing: timing}).Infer(ctx, req, &resp); err != nil {
		t.Fatal(err)
	}
	broken := &serve.Error{Code: serve.Internal, Err: errors.New("broken")}
	if err := tracer.Service(answers{timing: timing, err: broken}).Infer(ctx, req, &resp); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	list := spans.Ended()
	if len(list) != 6 {
		t.Fatalf("%d spans", len(list))
	}
	whole := list[4]
	check(t, whole, "InferRequest", trace.SpanKindInternal, codes.Unset, map[string]string{"triton.model_name": "m\uFFFD", "triton.model_version": "3", "triton.request_id": "q\uFFFD", "sequence_id": "9\uFFFD"})
	at := whole.StartTime()
	for i, want := range []struct {
		name string
		took time.Duration
	}{{"queue", timing.Queue}, {"compute_input", timing.Input}, {"compute_infer", timing.Infer}, {"compute_output", timing.Output}} {
		s := list[i]
		if s.Name() != want.name || !s.StartTime().Equal(at) || s.EndTime().Sub(at) != want.took || s.Parent().SpanID() != whole.SpanContext().SpanID() {
			t.Errorf("%s from %v to %v, expected %s from %v for %v", s.Name(), s.StartTime(), s.EndTime(), want.name, at, want.took)
		}
		at = s.EndTime()
	}
	if !slices.Contains(list[2].Attributes(), attribute.Int("batch_size", 5)) {
		t.Errorf("%v", list[2].Attributes())
	}
	check(t, list[5], "InferRequest", trace.SpanKindInternal, codes.Error, map[string]string{"error.type": "internal", "triton.model_version": "latest"})
	if whole.Parent().SpanID() != root.SpanContext().SpanID() {
		t.Error("not within the request's span")
	}
	same := answers{}
	if got := (*tracing.Tracer)(nil).Service(same); got != serve.Service(same) {
		t.Error("another service without a tracer")
	}
}
