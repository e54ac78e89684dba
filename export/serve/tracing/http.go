package tracing

import (
	"net/http"
	"slices"
	"strconv"

	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
)

// methods are those that semantic conventions know.
var methods = []string{"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE"}

// HTTP begins the span of a request; route is its path with names in place of what differs, such as
// /v2/models/{model}/infer, and empty for paths that nobody knows. The request that is returned
// carries the span. Without tracer and without a client's trace it is the same one, and the span
// nil.
func (t *Tracer) HTTP(r *http.Request, route string) (*http.Request, trace.Span) {
	p := parentOf(r.Header["Traceparent"], r.Header["Tracestate"])
	if t == nil {
		if p.traceparent == "" {
			return r, nil
		}
		_, span := t.start(r.Context(), p, "", nil)
		return r, span
	}
	method, name := semconv.HTTPRequestMethodKey.String(r.Method), r.Method
	if !slices.Contains(methods, r.Method) {
		method, name = semconv.HTTPRequestMethodOther, "HTTP"
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	attrs := append(remote(r.RemoteAddr), method, semconv.URLScheme(scheme), semconv.URLPath(text(r.URL.Path)), semconv.NetworkProtocolVersion(strconv.Itoa(r.ProtoMajor)+"."+strconv.Itoa(r.ProtoMinor)))
	if route != "" {
		name += " " + route
		attrs = append(attrs, semconv.HTTPRoute(route))
	}
	ctx, span := t.start(r.Context(), p, name, trace.WithAttributes(attrs...))
	return r.WithContext(ctx), span
}

// EndHTTP ends the span of a request that was answered with a status, and with an error where it
// has one.
func EndHTTP(span trace.Span, status int, err error) {
	if span == nil || !span.IsRecording() {
		return
	}
	span.SetAttributes(semconv.HTTPResponseStatusCode(status))
	if status >= 400 {
		span.SetAttributes(semconv.ErrorTypeKey.String(strconv.Itoa(status)))
	}
	if status >= 500 { // others are the client's
		failed(span, err)
	}
	span.End()
}
