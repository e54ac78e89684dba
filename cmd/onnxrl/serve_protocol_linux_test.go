package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"onnxrl/export/serve/grpcapi/inference"
	"onnxrl/export/serve/oip"
	"onnxrl/runtime/onnx"
	"onnxrl/runtime/tensor"
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
func dialed(t *testing.T, r *running) inference.GRPCInferenceServiceClient {
	t.Helper()
	conn, err := grpc.NewClient(r.first.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
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
func (r *running) inferBinary(model string, row []byte) (int, string) {
	r.t.Helper()
	head := fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"parameters":{"binary_data_size":%d}}],"outputs":[{"name":"action","parameters":{"binary_data":true}}]}`, len(row))
	req, err := http.NewRequest(http.MethodPost, r.url("/v2/models/"+model+"/infer"), bytes.NewReader(append([]byte(head), row...)))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set(oip.HeaderLength, fmt.Sprint(len(head)))
	req.Header.Set("Content-Type", "application/octet-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// NaN and infinities to a policy, over every form of the protocol, with the rule that holds by default and with the one that is asked for.
func TestServeRefusesNonFinite(t *testing.T) {
	cases := 0
	for _, allowed := range []bool{false, true} {
		args := []string{"--model", "p=" + policyFile(t), "--engine", "portable"}
		if allowed {
			args = append(args, "--allow-nonfinite")
		}
		r := startServe(t, args...)
		client := dialed(t, r)
		for i, v := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
			says := fmt.Sprintf("element [0 1] is %v", float64(v))
			row := rawRow(1, v)
			code, answer := r.inferBinary("p", row)
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
				if text := r.want(200, "/metrics", ""); !strings.Contains(text, fmt.Sprintf(`onnxrl_nonfinite_requests_total{model="p",version="1"} %d`, 3*(i+1))) {
					t.Errorf("not counted:\n%s", text)
				}
			}
			cases++
		}
		// JSON has no such numbers, so they are refused before any rule is asked.
		for _, number := range []string{"NaN", "Infinity", "-Infinity", "1e39", "null", `"NaN"`} {
			answer := r.want(400, "/v2/models/p/infer", `{"inputs":[{"name":"x","datatype":"FP32","shape":[1,2],"data":[1,`+number+`]}]}`)
			if !strings.Contains(answer, `\"x\"`) {
				t.Errorf("%s: %s", number, answer)
			}
			cases++
		}
		if code := r.stop(); code != 0 {
			t.Errorf("status %d\n%s", code, r.errs)
		}
	}
	if cases != 18 {
		t.Errorf("%d cases", cases)
	}
}
