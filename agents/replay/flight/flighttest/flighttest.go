// Package flighttest gives tests a replay server in their own process.
package flighttest

import (
	"log/slog"
	"net"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/agents/replay/flight"
	"github.com/onnxrl/onnxrl/runtime/flightrpc"
)

// Open opens tables that are kept in dir or, where that is empty, in memory.
func Open(t testing.TB, dir string, tables map[string]flight.TableConfig) *flight.Server {
	t.Helper()
	s, err := flight.Open(dir, tables, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Serve answers for a server at a host and port, of which a port 0 is one that is free, and returns
// its URL and what ends and closes it, which the end of the test does, too.
func Serve(t testing.TB, s *flight.Server, listen string) (url string, stop func()) {
	t.Helper()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		t.Fatal(err)
	}
	g := flightrpc.NewServer(s, nil, nil)
	go g.Serve(l)
	stop = sync.OnceFunc(func() {
		g.Stop()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return "grpc://" + l.Addr().String(), stop
}
