package app

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/export/serve/grpcapi/inference"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// scaledMessage is scaledRequest over gRPC.
func scaledMessage() *inference.ModelInferRequest {
	return &inference.ModelInferRequest{ModelName: "m", Inputs: []*inference.ModelInferRequest_InferInputTensor{{Name: "x", Datatype: "FP32", Shape: []int64{1, 2}, Contents: &inference.InferTensorContents{Fp32Contents: []float32{1, 2}}}}}
}

// Requests beyond --max-concurrent are refused, and the metrics count each of them, as they do what
// is wrong.
func TestServeCountsRefusals(t *testing.T) {
	r := apptest.StartServe(t, "--engine", portable.Name, "--model", "m="+scaledFile(t, 2), "--max-concurrent", "1", "--max-batch", "8", "--max-delay", "300ms", "--access-log")
	conn, err := grpc.NewClient(r.First.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	rpc := inference.NewGRPCInferenceServiceClient(conn)
	var refusedHTTP, refusedGRPC, answered, other atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			switch status, _, err := apptest.Call(r.URL("/v2/models/m/infer"), scaledRequest); {
			case err == nil && status == 200:
				answered.Add(1)
			case err == nil && status == 429:
				refusedHTTP.Add(1)
			default:
				other.Add(1)
			}
		})
		wg.Go(func() {
			switch _, err := rpc.ModelInfer(t.Context(), scaledMessage()); status.Code(err) {
			case codes.OK:
				answered.Add(1)
			case codes.Unavailable:
				refusedGRPC.Add(1)
			default:
				other.Add(1)
			}
		})
	}
	wg.Wait()
	if answered.Load() == 0 || refusedHTTP.Load() == 0 || refusedGRPC.Load() == 0 || other.Load() > 0 {
		t.Errorf("%d answered, %d and %d refused, %d others", answered.Load(), refusedHTTP.Load(), refusedGRPC.Load(), other.Load())
	}
	r.Want(404, "/v2/models/none/infer", scaledRequest)
	r.Want(400, "/v2/models/m/infer", "{")
	n := 0
	for _, line := range []string{
		fmt.Sprintf(`{code="429",protocol="http",reason="overloaded"} %d`, refusedHTTP.Load()), fmt.Sprintf(`{code="Unavailable",protocol="grpc",reason="overloaded"} %d`, refusedGRPC.Load()),
		`{code="404",protocol="http",reason="not found"} 1`, `{code="400",protocol="http",reason="invalid argument"} 1`, `{code="500",protocol="http",reason="internal"} 0`,
	} {
		// An answer is counted just after it has gone out.
		for deadline := time.Now().Add(time.Minute); !strings.Contains(r.Want(200, "/metrics", ""), "onnxrl_responses_total"+line); {
			if time.Now().After(deadline) {
				t.Fatalf("no %s in\n%s", line, r.Want(200, "/metrics", ""))
			}
		}
		n++
	}
	if n != 5 {
		t.Error(n)
	}
	// Both protocols have their lines in the request log.
	for _, line := range []string{"protocol=http remote=127.0.0.1:", "method=POST path=/v2/models/m/infer status=429", "protocol=grpc remote=127.0.0.1:", "path=/inference.GRPCInferenceService/ModelInfer code=Unavailable"} {
		r.Says(line)
	}
	if code := r.Stop(); code != 0 {
		t.Errorf("exit status %d\n%s", code, r.Log)
	}
}
