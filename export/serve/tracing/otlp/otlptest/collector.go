// Package otlptest has a collector of OpenTelemetry for tests.
package otlptest

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"
)

// Span is one that a collector was sent. IDs are hexadecimal; Parent is empty where it has none.
type Span struct {
	TraceID, SpanID, Parent, Name string
	// Begin and End are Unix nanoseconds.
	Begin, End uint64
	// Attributes are the span's, Resource those of the service, both as text.
	Attributes, Resource map[string]string
	Failed               bool
}

// Collector takes spans over HTTP at URL, and answers with Status where that is not 0.
type Collector struct {
	URL    string
	Status int

	mu    sync.Mutex
	spans []Span
	paths []string
}

// New starts a collector that ends with the test.
func New(t testing.TB) *Collector {
	c := &Collector{}
	s := httptest.NewServer(c)
	t.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

// Spans are those that have arrived.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans)
}

// Paths are those of the requests that have arrived.
func (c *Collector) Paths() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.paths)
}

// ServeHTTP implements http.Handler.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paths = append(c.paths, r.URL.Path)
	if c.Status != 0 {
		w.WriteHeader(c.Status)
		return
	}
	body, err := io.ReadAll(r.Body)
	m := new(collector.ExportTraceServiceRequest)
	if err == nil {
		err = proto.Unmarshal(body, m)
	}
	if err != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "expected spans in protobuf", http.StatusBadRequest)
		return
	}
	for _, of := range m.GetResourceSpans() {
		about := texts(of.GetResource().GetAttributes())
		for _, scope := range of.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, Span{
					TraceID: hex.EncodeToString(s.GetTraceId()), SpanID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()), Name: s.GetName(),
					Begin: s.GetStartTimeUnixNano(), End: s.GetEndTimeUnixNano(), Attributes: texts(s.GetAttributes()), Resource: about, Failed: s.GetStatus().GetCode() == 2,
				})
			}
		}
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func texts(list []*common.KeyValue) map[string]string {
	m := map[string]string{}
	for _, a := range list {
		switch v := a.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			m[a.GetKey()] = v.StringValue
		default:
			m[a.GetKey()] = a.GetValue().String()
		}
	}
	return m
}
