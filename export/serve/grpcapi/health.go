package grpcapi

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/grpcapi/inference"
)

// health answers the standard health check: the server's, and by its name a model's.
type health struct {
	healthpb.UnimplementedHealthServer
	service serve.Service
	// interval is how often Watch looks; done ends it, because a server that stops gracefully waits
	// for whoever watches.
	interval time.Duration
	done     <-chan struct{}
}

// watchInterval is how soon a watcher receives a change.
const watchInterval = 100 * time.Millisecond

// status says SERVING for the whole server ("" or the service's name) when it is ready, and for a
// model when it takes requests; the error is about a model that there is not.
func (h *health) status(name string) (healthpb.HealthCheckResponse_ServingStatus, error) {
	ok := false
	switch name {
	case "", inference.GRPCInferenceService_ServiceDesc.ServiceName:
		ok = h.service.Ready()
	default:
		err := h.service.ModelReady(name, "")
		if err != nil && serve.CodeOf(err) == serve.NotFound {
			return healthpb.HealthCheckResponse_SERVICE_UNKNOWN, err
		}
		ok = err == nil
	}
	if ok {
		return healthpb.HealthCheckResponse_SERVING, nil
	}
	return healthpb.HealthCheckResponse_NOT_SERVING, nil
}

// Check answers once; a model that there is not is NOT_FOUND.
func (h *health) Check(_ context.Context, r *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	s, err := h.status(r.GetService())
	if err != nil {
		return nil, toStatus(err)
	}
	return &healthpb.HealthCheckResponse{Status: s}, nil
}

// Watch answers at once and again whenever the status changes; a model that there is not is
// SERVICE_UNKNOWN, and may come. When the server ends, the last word is NOT_SERVING.
func (h *health) Watch(r *healthpb.HealthCheckRequest, stream grpc.ServerStreamingServer[healthpb.HealthCheckResponse]) error {
	tick := time.NewTicker(h.interval)
	defer tick.Stop()
	said := healthpb.HealthCheckResponse_ServingStatus(-1)
	say := func(s healthpb.HealthCheckResponse_ServingStatus) error {
		if s == said {
			return nil
		}
		said = s
		return stream.Send(&healthpb.HealthCheckResponse{Status: s})
	}
	for {
		s, _ := h.status(r.GetService()) // what there is not is a status of its own here
		if err := say(s); err != nil {
			return err
		}
		select {
		case <-stream.Context().Done():
			return status.FromContextError(stream.Context().Err()).Err()
		case <-h.done:
			if err := say(healthpb.HealthCheckResponse_NOT_SERVING); err != nil {
				return err
			}
			return status.Error(codes.Unavailable, "the server ends")
		case <-tick.C:
		}
	}
}
