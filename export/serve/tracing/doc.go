// Package tracing makes spans of OpenTelemetry for the requests of a server, and takes over the
// traces that clients name by W3C's traceparent, in a header of HTTP or in gRPC's metadata.
//
// A request is a span of kind server, named and described by OpenTelemetry's semantic conventions
// of HTTP and RPC. In it each inference is a span InferRequest, Triton's name, with the attributes
// triton.model_name, triton.model_version and triton.request_id, and in that what took its time:
// queue, compute_input, compute_infer and compute_output, Triton's statistics. What health probes,
// metrics and the page ask is no span.
//
// It needs OpenTelemetry's API alone; package otlp has a provider that sends spans to a collector.
package tracing
