// Package otlp sends the spans of package tracing to a collector, by OTLP over HTTP with protobuf.
package otlp
