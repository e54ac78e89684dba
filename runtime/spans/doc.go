// Package spans makes OpenTelemetry's spans of work whose stages follow each other, such as the way
// from a bar to its orders: decoding, features, the policy, risk, sending.
//
// # Concepts
//
// A [Tracer] begins a [Trace] when something arrives, in the trace that its message names by W3C's
// traceparent, if it does. While the work goes on, [Trace.Mark] only notes the time at which a
// stage is over, in an array, without allocation; [Trace.End] makes the spans, one for the whole
// and one for each stage, when nobody waits any more. What is sent in between carries
// [Trace.Carrier], so that who receives it goes on with the same trace.
//
// A nil *Tracer traces nothing: its traces cost a comparison, and carry on the trace that they were
// given. Times are the caller's: nothing here reads a clock.
//
// It needs OpenTelemetry's API alone; export/serve/tracing/otlp has a provider that sends spans to
// a collector.
//
// # How to add a stage
//
// A constant with its name where the work is done, and a call of Mark after it.
package spans
