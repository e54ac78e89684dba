package flighturl_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/flightrpc/flighturl"
)

func TestCheck(t *testing.T) {
	for _, url := range []string{"", "grpc://", "grpc://host", "grpc://:1", "http://host:1", "host:1", "grpc://user@host:1", "grpc://host:1/path", "grpc+tls://host:port"} {
		if err := flighturl.Check(url); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("is %q, expected grpc://HOST:PORT", url)) {
			t.Errorf("%q: %v", url, err)
		}
	}
	for _, url := range []string{"grpc://host:1", "grpc+tls://[::1]:7071", "grpc+tcp://host:1"} {
		if err := flighturl.Check(url); err != nil {
			t.Errorf("%q: %v", url, err)
		}
	}
}
