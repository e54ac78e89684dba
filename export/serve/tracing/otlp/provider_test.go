package otlp_test

import (
	"context"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/export/serve/tracing"
	"github.com/onnxrl/onnxrl/export/serve/tracing/otlp"
	"github.com/onnxrl/onnxrl/export/serve/tracing/otlp/otlptest"
)

// environment clears what OpenTelemetry reads, so that only a test's own settings count.
func environment(t *testing.T) {
	for _, name := range []string{"OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_TRACES_SAMPLER"} {
		t.Setenv(name, "") // so that it is put back
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
}

// send makes the spans of requests and waits until they are gone.
func send(t *testing.T, o otlp.Options, paths ...string) (failures []string) {
	t.Helper()
	var mu sync.Mutex
	o.Name, o.Version = "server", "v9"
	o.Failed = func(err error) {
		mu.Lock()
		defer mu.Unlock()
		failures = append(failures, err.Error())
	}
	p, err := otlp.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	tracer := tracing.New(p)
	for _, path := range paths {
		r := httptest.NewRequest("GET", "/", nil)
		r.URL.Path = path
		_, span := tracer.HTTP(r, "/v2")
		tracing.EndHTTP(span, 200, nil)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.Shutdown(ctx); err != nil {
		o.Failed(err)
	}
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(failures)
}

// Spans arrive, whatever clients have sent: texts that are not UTF-8, or very long, do not keep a
// batch back.
func TestSend(t *testing.T) {
	environment(t)
	c := otlptest.New(t)
	if f := send(t, otlp.Options{Endpoint: c.URL, Ratio: 1}, "/a", "/\xff", "/"+strings.Repeat("x", 1<<20)); len(f) > 0 {
		t.Fatal(f)
	}
	spans := c.Spans()
	if len(spans) != 3 || !slices.Equal(c.Paths(), []string{"/v1/traces"}) {
		t.Fatalf("%d spans at %q", len(spans), c.Paths())
	}
	for i, want := range []int{len("/a"), len("/\uFFFD"), 1024} {
		if s := spans[i]; s.Name != "GET /v2" || len(s.Attributes["url.path"]) != want || s.Resource["service.name"] != "server" || s.Resource["service.version"] != "v9" || s.Resource["telemetry.sdk.language"] != "go" {
			t.Errorf("%.200v", s)
		}
	}
}

// The environment says where spans go, whose they are and which, unless the options do.
func TestEnvironment(t *testing.T) {
	environment(t)
	if otlp.Enabled() {
		t.Error("enabled without an endpoint")
	}
	c, other := otlptest.New(t), otlptest.New(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.URL+"/below")
	t.Setenv("OTEL_SERVICE_NAME", "mine")
	if !otlp.Enabled() {
		t.Error("not enabled")
	}
	if f := send(t, otlp.Options{Ratio: 1}, "/"); len(f) > 0 {
		t.Fatal(f)
	}
	if s := c.Spans(); len(s) != 1 || s[0].Resource["service.name"] != "mine" || !slices.Equal(c.Paths(), []string{"/below/v1/traces"}) {
		t.Errorf("%v at %q", s, c.Paths())
	}
	if f := send(t, otlp.Options{Endpoint: other.URL + "/as/it/is", Ratio: 1}, "/"); len(f) > 0 || len(c.Spans()) != 1 || !slices.Equal(other.Paths(), []string{"/as/it/is"}) {
		t.Errorf("%v, %q", f, other.Paths())
	}
	t.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	if f := send(t, otlp.Options{Endpoint: other.URL, Ratio: 1}, "/"); len(f) > 0 || len(other.Spans()) != 1 {
		t.Errorf("%v, %d spans", f, len(other.Spans()))
	}
	for _, v := range [][2]string{{"OTEL_SDK_DISABLED", "true"}, {"OTEL_TRACES_EXPORTER", "none"}} {
		t.Run(v[0], func(t *testing.T) {
			t.Setenv(v[0], v[1])
			if otlp.Enabled() {
				t.Error("enabled")
			}
		})
	}
	for _, v := range [][2]string{{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}, {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "localhost:4318"}} {
		t.Run(v[0], func(t *testing.T) {
			t.Setenv(v[0], v[1])
			if _, err := otlp.New(t.Context(), otlp.Options{Ratio: 1}); err == nil || !strings.Contains(err.Error(), v[0]) || !strings.Contains(err.Error(), v[1]) {
				t.Error(err)
			}
		})
	}
}

// A share of the requests is traced.
func TestRatio(t *testing.T) {
	environment(t)
	const requests = 1000
	for _, v := range []struct {
		ratio     float64
		low, high int
	}{{0, 0, 0}, {0.5, 350, 650}, {1, requests, requests}} {
		c := otlptest.New(t)
		if f := send(t, otlp.Options{Endpoint: c.URL, Ratio: v.ratio}, slices.Repeat([]string{"/"}, requests)...); len(f) > 0 {
			t.Fatal(f)
		}
		if n := len(c.Spans()); n < v.low || n > v.high {
			t.Errorf("ratio %v: %d of %d requests", v.ratio, n, requests)
		}
	}
}

// The refusal of a collector is reported.
func TestRefused(t *testing.T) {
	environment(t)
	c := otlptest.New(t)
	c.Status = 404
	if f := send(t, otlp.Options{Endpoint: c.URL, Ratio: 1}, "/"); len(f) == 0 || !strings.Contains(f[0], "404") {
		t.Errorf("%q", f)
	}
}
