package grpcapi

import (
	"context"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/internal/oiptest"
)

// wavering is a service whose readiness changes.
type wavering struct {
	*oiptest.Service
	ready, known atomic.Bool
}

func (w *wavering) Ready() bool { return w.ready.Load() }

func (w *wavering) ModelReady(model, _ string) error {
	switch {
	case !w.known.Load():
		return &serve.Error{Code: serve.NotFound, Err: serve.UnknownModel(model)}
	case !w.ready.Load():
		return &serve.Error{Code: serve.NotReady, Err: io.EOF}
	}
	return nil
}

// Watchers receive the present state and every change of it, of the server and of a model that
// comes later, and end when the server does.
func TestHealthWatch(t *testing.T) {
	w := &wavering{Service: &oiptest.Service{}}
	server := NewServer(w, Options{})
	_, conn := clientOf(t, server)
	client := healthpb.NewHealthClient(conn)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var streams []healthpb.Health_WatchClient
	for _, name := range []string{"", "inference.GRPCInferenceService", "m"} {
		s, err := client.Watch(ctx, &healthpb.HealthCheckRequest{Service: name})
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, s)
	}
	n := 0
	expect := func(server, model healthpb.HealthCheckResponse_ServingStatus) {
		t.Helper()
		for i, s := range streams {
			want := server
			if i == 2 {
				want = model
			}
			if got, err := s.Recv(); err != nil || got.Status != want {
				t.Fatalf("watcher %d: %v, %v, expected %v", i, got, err, want)
			}
			n++
		}
	}
	const up, down, unknown = healthpb.HealthCheckResponse_SERVING, healthpb.HealthCheckResponse_NOT_SERVING, healthpb.HealthCheckResponse_SERVICE_UNKNOWN
	expect(down, unknown)
	w.known.Store(true)
	w.ready.Store(true)
	for { // the model may be seen between the two
		got, err := streams[2].Recv()
		if err != nil {
			t.Fatal(err)
		}
		if got.Status == up {
			break
		}
	}
	for _, s := range streams[:2] {
		if got, err := s.Recv(); err != nil || got.Status != up {
			t.Fatal(got, err)
		}
	}
	w.ready.Store(false)
	expect(down, down)
	w.ready.Store(true)
	expect(up, up)
	stopped := make(chan struct{})
	go func() {
		server.GracefulStop()
		close(stopped)
	}()
	expect(down, down)
	for _, s := range streams {
		if _, err := s.Recv(); status.Code(err) != codes.Unavailable {
			t.Error(err)
		}
	}
	<-stopped
	if n != 12 {
		t.Errorf("%d answers", n)
	}
}

// A watcher that leaves frees its handler, which start's cleanup waits for.
func TestHealthWatchersMayLeave(t *testing.T) {
	_, conn := start(t, &oiptest.Service{}, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	s, err := healthpb.NewHealthClient(conn).Watch(ctx, &healthpb.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := s.Recv(); status.Code(err) != codes.Canceled {
		t.Error(err)
	}
}

// lingering is a listener whose Close returns a while after Accept has.
type lingering struct{ *bufconn.Listener }

func (l lingering) Close() error {
	err := l.Listener.Close()
	time.Sleep(2 * time.Millisecond)
	return err
}

// However a listener says that it was closed, a server that was stopped has not failed.
func TestStopIsNoFailure(t *testing.T) {
	for i := range 50 {
		server := NewServer(&oiptest.Service{}, Options{})
		l := lingering{bufconn.Listen(1 << 10)}
		done := make(chan error, 1)
		go func() { done <- server.Serve(l) }()
		c, err := l.Dial() // the server accepts
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if i%2 == 0 {
			server.Stop()
		} else {
			server.GracefulStop()
		}
		if err := <-done; err != nil {
			t.Fatalf("stop %d: %v", i, err)
		}
	}
}
