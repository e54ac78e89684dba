package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/export/serve/grpcapi/inference"
	"github.com/onnxrl/onnxrl/export/serve/tracing/otlp/otlptest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

const clientSpan = "00f067aa0ba902b7"

// clientTrace is a traceparent of the n-th trace.
func clientTrace(n int, sampled string) (id, traceparent string) {
	id = fmt.Sprintf("4bf92f3577b34da6a3ce929d0e0e%04x", n)
	return id, "00-" + id + "-" + clientSpan + "-" + sampled
}

// tracedRequests sends an inference over HTTP as part of trace 1, over gRPC as part of 2, in a
// stream as part of 3, one that its client does not trace as part of 4, and one to no model as part
// of 5.
func tracedRequests(t *testing.T, r *apptest.Server) {
	t.Helper()
	web := func(n int, sampled, model string, want int) {
		t.Helper()
		req, err := http.NewRequest("POST", r.URL("/v2/models/"+model+"/infer"), strings.NewReader(scaledRequest))
		if err != nil {
			t.Fatal(err)
		}
		_, parent := clientTrace(n, sampled)
		req.Header.Set("traceparent", parent)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Fatalf("status %d, expected %d", resp.StatusCode, want)
		}
	}
	web(1, "01", "m", 200)
	conn, err := grpc.NewClient(r.First.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	rpc := inference.NewGRPCInferenceServiceClient(conn)
	_, parent := clientTrace(2, "01")
	if _, err := rpc.ModelInfer(metadata.AppendToOutgoingContext(t.Context(), "traceparent", parent), scaledMessage()); err != nil {
		t.Fatal(err)
	}
	_, parent = clientTrace(3, "01")
	stream, err := rpc.ModelStreamInfer(metadata.AppendToOutgoingContext(t.Context(), "traceparent", parent))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := stream.Send(scaledMessage()); err != nil {
			t.Fatal(err)
		}
		if m, err := stream.Recv(); err != nil || m.GetErrorMessage() != "" {
			t.Fatal(m, err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != io.EOF {
		t.Fatal(err)
	}
	web(4, "00", "m", 200)
	web(5, "01", "none", 404)
	r.Want(200, "/v2/health/ready", "")
	r.Want(200, "/metrics", "")
}

// Requests become spans of their clients' traces, over HTTP and gRPC, with what took their time,
// and the request log names them.
func TestServeTraces(t *testing.T) {
	c := otlptest.New(t)
	t.Setenv("OTEL_SERVICE_NAME", "policies")
	r := apptest.StartServe(t, "--engine", portable.Name, "--model", "m="+scaledFile(t, 2), "--access-log", "--trace-endpoint", c.URL, "--trace-ratio", "0")
	tracedRequests(t, r)
	if code := r.Stop(); code != 0 {
		t.Fatalf("exit status %d\n%s", code, r.Log)
	}
	tree := map[string][]string{}
	of := map[string]otlptest.Span{}
	for _, s := range c.Spans() {
		of[s.SpanID] = s
	}
	for _, s := range c.Spans() {
		line := s.Name
		for p := of[s.Parent]; p.SpanID != ""; p = of[p.Parent] {
			line = p.Name + " > " + line
		}
		tree[s.TraceID] = append(tree[s.TraceID], line)
		switch s.Name {
		case "InferRequest":
			// The model that is not there fails, and its version is what was asked for.
			if bad := s.Attributes["triton.model_name"] == "none"; s.Failed != bad || !bad && (s.Attributes["triton.model_name"] != "m" || s.Attributes["triton.model_version"] != "1") {
				t.Errorf("%v", s)
			}
		case "compute_infer":
			if !strings.Contains(s.Attributes["batch_size"], "1") {
				t.Errorf("%v", s)
			}
		}
		if s.Resource["service.name"] != "policies" || s.End < s.Begin {
			t.Errorf("%v", s)
		}
	}
	for _, list := range sorted.All(tree) {
		slices.Sort(list)
	}
	inference := func(root string, n int) string {
		list := []string{root}
		for _, name := range []string{"", " > compute_infer", " > compute_input", " > compute_output", " > queue"} {
			list = append(list, slices.Repeat([]string{root + " > InferRequest" + name}, n)...)
		}
		return strings.Join(list, "\n")
	}
	const web, rpc = "POST /v2/models/{model}/infer", "inference.GRPCInferenceService/"
	for n, want := range []string{1: inference(web, 1), 2: inference(rpc+"ModelInfer", 1), 3: inference(rpc+"ModelStreamInfer", 2), 4: "", 5: web + "\n" + web + " > InferRequest"} {
		id, _ := clientTrace(n, "")
		if got := strings.Join(tree[id], "\n"); got != want {
			t.Errorf("trace %d is\n%s\nexpected\n%s", n, got, want)
		}
		delete(tree, id)
	}
	if len(tree) > 0 {
		t.Errorf("probes are traced: %v", tree)
	}
	// The log has the server's own spans.
	logged := 0
	for line := range strings.Lines(r.Log.String()) {
		_, text, ok := strings.Cut(line, " trace_id=")
		if !ok {
			continue
		}
		id, span, _ := strings.Cut(strings.Fields(text)[0]+strings.Fields(text)[1], "span_id=")
		if s, ok := of[span]; ok && (s.TraceID != id || s.Parent != clientSpan) || span == clientSpan {
			t.Errorf("%s", line)
		}
		logged++
	}
	if logged != 5 {
		t.Errorf("%d lines with a trace\n%s", logged, r.Log)
	}
}

// Without a collector the request log still names the traces of clients, in JSON too.
func TestServeTraceIDsInLogs(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			r := apptest.StartServe(t, "--log-format", format, "--engine", portable.Name, "--model", "m="+scaledFile(t, 2), "--access-log")
			tracedRequests(t, r)
			if code := r.Stop(); code != 0 {
				t.Fatalf("exit status %d\n%s", code, r.Log)
			}
			for n := 1; n <= 5; n++ {
				id, _ := clientTrace(n, "")
				found := false
				for line := range strings.Lines(r.Log.String()) {
					if format == "text" {
						found = found || strings.Contains(line, "trace_id="+id+" span_id="+clientSpan)
						continue
					}
					var v struct {
						TraceID string `json:"trace_id"`
						SpanID  string `json:"span_id"`
						Time    string
						Level   string
					}
					if err := json.Unmarshal([]byte(line), &v); err != nil || v.Time == "" || v.Level == "" {
						t.Errorf("%v: %s", err, line)
					}
					found = found || v.TraceID == id && v.SpanID == clientSpan
				}
				if !found {
					t.Errorf("trace %d is in no line\n%s", n, r.Log)
				}
			}
		})
	}
}

// A collector that cannot be reached costs a warning, and neither requests nor the end of the
// server.
func TestServeWithoutCollector(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	r := apptest.StartServe(t, "--log-format", "json", "--engine", portable.Name, "--model", "m="+scaledFile(t, 2))
	tracedRequests(t, r)
	if code := r.Stop(); code != 0 {
		t.Errorf("exit status %d\n%s", code, r.Log)
	}
	if text := r.Log.String(); !strings.Contains(text, "traces: ") || !strings.Contains(text, `"level":"WARN"`) || !strings.Contains(text, "127.0.0.1:1") {
		t.Errorf("%s", text)
	}
	for _, v := range [][2]string{{"--trace-endpoint=localhost:4318", "expected one such as http://localhost:4318"}, {"--trace-ratio=2", "trace.ratio"}} {
		out, err := apptest.Program(t, "serve", "--engine", portable.Name, "--model", "m="+scaledFile(t, 2), "--http", "127.0.0.1:0", "--grpc", "", v[0]).CombinedOutput()
		if err == nil || !strings.Contains(string(out), v[1]) {
			t.Errorf("%s: %v\n%s", v[0], err, out)
		}
	}
}
