package app

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestLastSpansCostNoStatus: a service that has been told to end is not cut off, with another exit
// status, while it waits for a collector to take its last spans; and it waits less than the time
// that any command has to end.
func TestLastSpansCostNoStatus(t *testing.T) {
	if traceFlush >= stopGrace {
		t.Errorf("a collector that hangs delays the end by %v, expected less than %v", traceFlush, stopGrace)
	}
	a := newApp("onnxrl", strings.NewReader(""), io.Discard, io.Discard)
	asked, late := 0, false
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked++
		late = late || a.stop.late(time.Now().Add(-stopGrace-traceFlush/2))
	}))
	defer collector.Close()
	p, flush, err := a.spans(t.Context(), serveTrace{Endpoint: collector.URL, Ratio: 1}, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	_, span := p.Tracer("test").Start(t.Context(), "last")
	span.End()
	flush()
	if asked != 1 || late {
		t.Errorf("%d requests to the collector, cut off: %v", asked, late)
	}
}
