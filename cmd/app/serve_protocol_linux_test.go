package app

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/export/serve/grpcapi/inference"
	"github.com/onnxrl/onnxrl/export/serve/oip"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// policyFile gives action = x for x float32[batch,2].
func policyFile(t *testing.T) string {
	t.Helper()
	ty := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(2)}}
	b := onnx.NewBuilder("policy", onnx.DefaultOpset)
	b.Output(b.Rename(b.Op("Identity", []onnx.Value{b.Input("x", ty)}), "action"), ty)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "policy.onnx")
	if err := onnx.Save(path, m, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

// dialed is a gRPC client of a server.
func dialed(t *testing.T, r *apptest.Server) inference.GRPCInferenceServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(r.First.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return inference.NewGRPCInferenceServiceClient(conn)
}

// rawRow is a row of float32 as the binary forms have it.
func rawRow(v ...float32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// inferBinary sends a row after its JSON and returns status and answer.
func inferBinary(t *testing.T, r *apptest.Server, model string, row []byte) (int, string) {
	t.Helper()
	head := fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":%d}}],"outputs":[{"name":"action","parameters":{"binary_data":true}}]}`, len(row))
	req, err := http.NewRequest(http.MethodPost, r.URL("/v2/models/"+model+"/infer"), bytes.NewReader(append([]byte(head), row...)))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(oip.HeaderLength, fmt.Sprint(len(head)))
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// NaN and infinities to a policy, over every form of the protocol, with the rule that holds by
// default and with the one that is asked for.
func TestServeRefusesNonFinite(t *testing.T) {
	cases := 0
	for _, allowed := range []bool{false, true} {
		args := []string{"--model", "p=" + policyFile(t), "--engine", "portable"}
		if allowed {
			args = append(args, "--allow-nonfinite")
		}
		r := apptest.StartServe(t, args...)
		client := dialed(t, r)
		for i, v := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
			says := fmt.Sprintf("element [0 1] is %v", float64(v))
			row := rawRow(1, v)
			code, answer := inferBinary(t, r, "p", row)
			input := &inference.ModelInferRequest_InferInputTensor{Name: "x", Datatype: "FP32", Shape: []int64{1, 2}}
			_, err := client.ModelInfer(t.Context(), &inference.ModelInferRequest{ModelName: "p", Inputs: []*inference.ModelInferRequest_InferInputTensor{input}, RawInputContents: [][]byte{row}})
			input = &inference.ModelInferRequest_InferInputTensor{Name: "x", Datatype: "FP32", Shape: []int64{1, 2}, Contents: &inference.InferTensorContents{Fp32Contents: []float32{1, v}}}
			_, typed := client.ModelInfer(t.Context(), &inference.ModelInferRequest{ModelName: "p", Inputs: []*inference.ModelInferRequest_InferInputTensor{input}})
			if allowed {
				if code != 200 || !strings.HasSuffix(answer, string(row)) || err != nil || typed != nil {
					t.Errorf("%v is allowed: %d %q, %v, %v", v, code, answer, err, typed)
				}
			} else {
				if code != 400 || !strings.Contains(answer, says) {
					t.Errorf("%v: %d %s", v, code, answer)
				}
				for _, err := range []error{err, typed} {
					if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), says) {
						t.Errorf("%v: %v", v, err)
					}
				}
				if text := r.Want(200, "/metrics", ""); !strings.Contains(text, fmt.Sprintf(`onnxrl_nonfinite_requests_total{model="p",version="1"} %d`, 3*(i+1))) {
					t.Errorf("not counted:\n%s", text)
				}
			}
			cases++
		}
		// JSON has no such numbers, so they are refused before any rule is asked.
		for _, number := range []string{"NaN", "Infinity", "-Infinity", "1e39", "null", `"NaN"`} {
			answer := r.Want(400, "/v2/models/p/infer", `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,`+number+`]}]}`)
			if !strings.Contains(answer, `\"x\"`) {
				t.Errorf("%s: %s", number, answer)
			}
			cases++
		}
		if code := r.Stop(); code != 0 {
			t.Errorf("status %d\n%s", code, r.Log)
		}
	}
	if cases != 18 {
		t.Errorf("%d cases", cases)
	}
}

// Answers that Triton's clients compare, on a repository in mode explicit: the server's name, the
// texts of what is refused, what is loaded at the start; and HTTP/2 without encryption, and a
// watcher of health whom a server that ends does not wait for.
func TestServeSpeaksTriton(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"one", "two"} {
		folder := filepath.Join(dir, name, "1")
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(scaledFile(t, 2), filepath.Join(folder, "net.onnx")); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "config.pbtxt"), []byte(`max_batch_size: 4 default_model_filename: "net.onnx"`), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	apptest.Refuse(t, []string{"serve", "--repository", dir, "--load-model", "one"}, "expected mode explicit")
	apptest.Refuse(t, []string{"serve", "--http", "127.0.0.1:0", "--grpc", "", "--repository", dir, "--mode", "explicit", "--load-model", "none"}, "failed to load 'none', failed to poll from model repository")
	all := apptest.StartServe(t, "--repository", dir, "--mode", "explicit", "--load-model", "*", "--server-name", "mine", "--engine", "portable")
	for _, m := range all.First.Models {
		if m.State != "READY" {
			t.Errorf("%+v", m)
		}
	}
	if a := all.Want(200, "/v2", ""); !strings.Contains(a, `"name":"mine"`) || len(all.First.Models) != 2 {
		t.Errorf("%s, %d models", a, len(all.First.Models))
	}
	all.Stop()

	r := apptest.StartServe(t, "--repository", dir, "--mode", "explicit", "--load-model", "one", "--engine", "portable")
	if a := r.Want(200, "/v2", ""); !strings.Contains(a, `"name":"triton"`) {
		t.Error(a)
	}
	var index []struct{ Name, State string }
	if err := json.Unmarshal([]byte(r.Want(200, "/v2/repository/index", "{}")), &index); err != nil || len(index) != 2 || index[0].State != "READY" || index[1].State != "UNAVAILABLE" {
		t.Errorf("%+v, %v", index, err)
	}
	r.Want(200, "/v2/models/one/infer", scaledRequest)
	r.Want(503, "/v2/models/two/infer", scaledRequest)
	for path, body := range sorted.All(map[string]string{"/v2/models/none/infer": scaledRequest, "/v2/models/none": ""}) {
		var refusal struct{ Error string }
		if err := json.Unmarshal([]byte(r.Want(404, path, body)), &refusal); err != nil || !strings.HasPrefix(refusal.Error, "Request for unknown model: 'none'") {
			t.Errorf("%s: %q, %v", path, refusal.Error, err)
		}
	}
	if a := r.Want(404, "/v2/repository/models/none/load", "{}"); !strings.Contains(a, "failed to load 'none', failed to poll from model repository") {
		t.Error(a)
	}
	if a := r.Want(400, "/v2/repository/models/one/load", `{"parameters":{"config":"rubbish"}}`); !strings.Contains(a, "failed to load 'one'") {
		t.Error(a)
	}
	r.Want(200, "/v2/repository/models/one/load", `{"parameters":{"config":"{\"max_batch_size\":\"16\",\"default_model_filename\":\"net.onnx\"}"}}`)
	if a := r.Want(200, "/v2/models/one/config", ""); !strings.Contains(a, `"max_batch_size":16`) {
		t.Error(a)
	}
	client := dialed(t, r)
	_, err := client.RepositoryModelLoad(t.Context(), &inference.RepositoryModelLoadRequest{ModelName: "one", Parameters: map[string]*inference.ModelRepositoryParameter{
		"config":                           {ParameterChoice: &inference.ModelRepositoryParameter_StringParam{StringParam: "{}"}},
		"file:" + strings.Repeat("A", 256): {ParameterChoice: &inference.ModelRepositoryParameter_BytesParam{BytesParam: []byte("a")}},
	}})
	if status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "failed to poll from model repository") {
		t.Error(err)
	}
	if _, err := client.ModelMetadata(t.Context(), &inference.ModelMetadataRequest{Name: "none"}); status.Code(err) != codes.NotFound || !strings.Contains(err.Error(), "Request for unknown model") {
		t.Error(err)
	}

	var only http.Protocols
	only.SetUnencryptedHTTP2(true)
	h2c := &http.Client{Transport: &http.Transport{Protocols: &only}}
	resp, err := h2c.Post(r.URL("/v2/models/one/infer"), "application/json", strings.NewReader(scaledRequest))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	if err != nil || resp.ProtoMajor != 2 || resp.StatusCode != 200 || !strings.Contains(string(text), scaledAnswer(2)) {
		t.Errorf("%s %d %s, %v", resp.Proto, resp.StatusCode, text, err)
	}
	h2c.CloseIdleConnections()

	conn, err := grpc.NewClient(r.First.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	watch, err := healthpb.NewHealthClient(conn).Watch(t.Context(), &healthpb.HealthCheckRequest{Service: "one"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := watch.Recv(); err != nil || got.Status != healthpb.HealthCheckResponse_SERVING {
		t.Error(got, err)
	}
	if code := r.Stop(); code != 0 || strings.Contains(r.Log.String(), "cut off") {
		t.Errorf("status %d\n%s", code, r.Log)
	}
	if got, err := watch.Recv(); err != nil || got.Status != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Error(got, err)
	}
}
