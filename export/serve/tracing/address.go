package tracing

import (
	"net"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
)

// remote describes the client at an address, with room for what else there is to say.
func remote(address string) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 8)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return append(attrs, semconv.ClientAddress(address))
	}
	attrs = append(attrs, semconv.ClientAddress(host))
	if n, err := strconv.Atoi(port); err == nil {
		attrs = append(attrs, semconv.ClientPort(n))
	}
	return attrs
}
