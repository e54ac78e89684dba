package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/grpcapi/inference"
	"github.com/onnxrl/onnxrl/export/serve/guard"
	"github.com/onnxrl/onnxrl/export/serve/internal/oiptest"
	"github.com/onnxrl/onnxrl/export/serve/traffic"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func start(t testing.TB, s serve.Service, o Options) (inference.GRPCInferenceServiceClient, *grpc.ClientConn) {
	t.Helper()
	return clientOf(t, NewServer(s, o))
}

func clientOf(t testing.TB, server *Server) (inference.GRPCInferenceServiceClient, *grpc.ClientConn) {
	t.Helper()
	l := bufconn.Listen(1 << 20)
	done := make(chan error, 1)
	go func() { done <- server.Serve(l) }()
	c, err := grpc.NewClient("passthrough:///memory", grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return l.Dial() }), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		server.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return inference.NewGRPCInferenceServiceClient(c), c
}

type (
	message  = inference.ModelInferRequest
	input    = inference.ModelInferRequest_InferInputTensor
	contents = inference.InferTensorContents
)

func raw(v ...float32) []byte { return tensor.Of(v, len(v)).Bytes() }

func addition() *message {
	return &message{ModelName: "add", Id: "q", Inputs: []*input{{Name: "a", Datatype: "FP32", Shape: []int64{1, 2}}, {Name: "b", Datatype: "FP32", Shape: []int64{1, 2}}}, RawInputContents: [][]byte{raw(1, 2), raw(3, 4.5)}}
}

func TestInfer(t *testing.T) {
	client, _ := start(t, &oiptest.Service{}, Options{})
	m := addition()
	for _, opts := range [][]grpc.CallOption{nil, {grpc.UseCompressor(gzip.Name)}} {
		got, err := client.ModelInfer(t.Context(), m, opts...)
		if err != nil {
			t.Fatal(err)
		}
		want := &inference.ModelInferResponse{ModelName: "add", ModelVersion: "2", Id: "q", Outputs: []*inference.ModelInferResponse_InferOutputTensor{{Name: "sum", Datatype: "FP32", Shape: []int64{1, 2}}, {Name: "diff", Datatype: "FP32", Shape: []int64{1, 2}}}, RawOutputContents: [][]byte{raw(4, 6.5), raw(-2, -2.5)}}
		if !proto.Equal(got, want) {
			t.Errorf("got %v", got)
		}
	}
	m.ModelVersion, m.RawInputContents = "prod", nil
	m.Inputs[0].Contents, m.Inputs[1].Contents = &contents{Fp32Contents: []float32{1, 2}}, &contents{Fp32Contents: []float32{3, 4}}
	m.Outputs = []*inference.ModelInferRequest_InferRequestedOutputTensor{{Name: "diff"}}
	got, err := client.ModelInfer(t.Context(), m)
	if err != nil || got.ModelVersion != "1" || len(got.Outputs) != 1 || string(got.RawOutputContents[0]) != string(raw(-2, -2)) {
		t.Error(got, err)
	}
}

// Every datatype comes back as it was sent, from contents and from raw bytes.
func TestDatatypes(t *testing.T) {
	client, _ := start(t, &oiptest.Service{}, Options{})
	n := 0
	for _, c := range []struct {
		datatype string
		contents *contents
		raw      string
	}{
		{"BOOL", &contents{BoolContents: []bool{true, false}}, "\x01\x00"},
		{"INT8", &contents{IntContents: []int32{-128, 127}}, "\x80\x7f"},
		{"INT16", &contents{IntContents: []int32{-32768, 1}}, "\x00\x80\x01\x00"},
		{"INT32", &contents{IntContents: []int32{-1, 1}}, "\xff\xff\xff\xff\x01\x00\x00\x00"},
		{"INT64", &contents{Int64Contents: []int64{-1, 1}}, "\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00\x00\x00\x00\x00\x00"},
		{"UINT8", &contents{UintContents: []uint32{0, 255}}, "\x00\xff"},
		{"UINT16", &contents{UintContents: []uint32{65535, 1}}, "\xff\xff\x01\x00"},
		{"UINT32", &contents{UintContents: []uint32{1, 2}}, "\x01\x00\x00\x00\x02\x00\x00\x00"},
		{"UINT64", &contents{Uint64Contents: []uint64{1 << 63, 0}}, "\x00\x00\x00\x00\x00\x00\x00\x80\x00\x00\x00\x00\x00\x00\x00\x00"},
		{"FP16", nil, "\x00\x3c\x00\xbc"},
		{"BF16", nil, "\x80\x3f\x80\xbf"},
		{"FP32", &contents{Fp32Contents: []float32{1, -2}}, string(raw(1, -2))},
		{"FP64", &contents{Fp64Contents: []float64{0, 0}}, strings.Repeat("\x00", 16)},
		{"BYTES", &contents{BytesContents: [][]byte{[]byte("a"), []byte("\xff")}}, "\x01\x00\x00\x00a\x01\x00\x00\x00\xff"},
	} {
		for _, typed := range []bool{true, false} {
			m := &message{ModelName: "echo", Inputs: []*input{{Name: "x", Datatype: c.datatype, Shape: []int64{2, 1}}}}
			if typed {
				if m.Inputs[0].Contents = c.contents; c.contents == nil {
					if _, err := client.ModelInfer(t.Context(), m); status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "has no typed contents") {
						t.Errorf("%s: %v", c.datatype, err)
					}
					continue
				}
			} else {
				m.RawInputContents = [][]byte{[]byte(c.raw)}
			}
			got, err := client.ModelInfer(t.Context(), m)
			if err != nil || string(got.RawOutputContents[0]) != c.raw || got.Outputs[0].Datatype != c.datatype || len(got.Outputs[0].Shape) != 2 {
				t.Errorf("%s typed %v: %v %v", c.datatype, typed, got, err)
			}
			n++
		}
	}
	if n != 26 {
		t.Error(n)
	}
}

func TestErrors(t *testing.T) {
	client, _ := start(t, &oiptest.Service{}, Options{})
	str := func(s string) *inference.InferParameter {
		return &inference.InferParameter{ParameterChoice: &inference.InferParameter_StringParam{StringParam: s}}
	}
	number := func(n int64) *inference.InferParameter {
		return &inference.InferParameter{ParameterChoice: &inference.InferParameter_Int64Param{Int64Param: n}}
	}
	model := func(name string) func(*message) { return func(m *message) { m.ModelName = name } }
	x := func(edit func(*input)) func(*message) {
		return func(m *message) {
			m.RawInputContents, m.Inputs[1].Contents = nil, &contents{Fp32Contents: []float32{1, 2}}
			edit(m.Inputs[0])
		}
	}
	param := func(name string, p *inference.InferParameter) func(*message) {
		return func(m *message) { m.Parameters = map[string]*inference.InferParameter{name: p} }
	}
	cases := []struct {
		edit func(*message)
		code codes.Code
		want string
	}{
		{model(""), codes.InvalidArgument, `model ""`}, {model("../x"), codes.InvalidArgument, `model "../x"`}, {model("none"), codes.NotFound, `Request for unknown model: 'none' is not found`},
		{model("broken"), codes.Internal, "it is broken"}, {model("full"), codes.Unavailable, "the queue is full: 1024 requests wait"}, {model("loading"), codes.Unavailable, "it is loading"}, {model("drifted"), codes.FailedPrecondition, "observations have drifted"}, {model("panic"), codes.Internal, "internal error"},
		{func(m *message) { m.ModelName = "slow"; param("timeout", number(1))(m) }, codes.DeadlineExceeded, "deadline"},
		{func(m *message) { m.ModelVersion = "9" }, codes.NotFound, `unknown version "9"`},
		{func(m *message) { m.RawInputContents = m.RawInputContents[:1] }, codes.InvalidArgument, "raw_input_contents has 1 entries for 2 inputs"},
		{func(m *message) { m.RawInputContents[1] = m.RawInputContents[1][:7] }, codes.InvalidArgument, `input "b": FP32 of shape [1 2] takes 8 bytes, got 7`},
		{func(m *message) { m.Inputs[0].Contents = &contents{} }, codes.InvalidArgument, `input "a": it has contents, but the request has raw_input_contents`},
		{func(m *message) { m.Inputs[1].Name = "a" }, codes.InvalidArgument, `input "a" is there twice`},
		{func(m *message) { m.Inputs[1].Name = "" }, codes.InvalidArgument, `inputs[1]: a name is missing`},
		{func(m *message) { m.Inputs[0].Datatype = "float" }, codes.InvalidArgument, `input "a": unknown datatype "float"`},
		{func(m *message) { m.Inputs[0].Shape = []int64{-1, 2} }, codes.InvalidArgument, `input "a": extent 0 of the shape is -1`},
		{func(m *message) { m.Inputs[0].Shape = []int64{1 << 40, 1 << 40} }, codes.InvalidArgument, "too many elements"},
		{func(m *message) { m.Inputs[0].Shape = []int64{1 << 40} }, codes.InvalidArgument, `got 8`},
		{func(m *message) { m.Inputs[0].Datatype = "BYTES" }, codes.InvalidArgument, `input "a": element 0: its length is`},
		{func(m *message) {
			m.Inputs[0].Parameters = map[string]*inference.InferParameter{"shared_memory_region": str("r")}
		}, codes.InvalidArgument, "shared memory is not supported"},
		{x(func(*input) {}), codes.InvalidArgument, `input "a": fp32_contents has 0 elements, but shape [1 2] has 2`},
		{x(func(i *input) { i.Shape = []int64{1 << 50}; i.Contents = &contents{} }), codes.InvalidArgument, `fp32_contents has 0 elements`},
		{x(func(i *input) { i.Contents = &contents{Fp64Contents: []float64{1, 2}, Fp32Contents: []float32{1, 2}} }), codes.InvalidArgument, `fp64_contents has elements, but FP32 lie in fp32_contents`},
		{x(func(i *input) { i.Datatype = "INT8"; i.Contents = &contents{IntContents: []int32{1, 200}} }), codes.InvalidArgument, `element 1 is 200, which is not within int8`},
		{x(func(i *input) { i.Datatype = "UINT16"; i.Contents = &contents{UintContents: []uint32{1, 65536}} }), codes.InvalidArgument, `element 1 is 65536`},
		{param("sequence_id", &inference.InferParameter{}), codes.InvalidArgument, "parameter sequence_id"},
		{param("sequence_start", number(1)), codes.InvalidArgument, "parameter sequence_start: expected a boolean"},
		{param("timeout", str("1")), codes.InvalidArgument, "parameter timeout: expected an integer"},
		{param("timeout", number(-1)), codes.InvalidArgument, "parameter timeout is -1"},
	}
	for i, c := range cases {
		m := addition()
		c.edit(m)
		if _, err := client.ModelInfer(t.Context(), m); status.Code(err) != c.code || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d: %v, expected %v %s", i, err, c.code, c.want)
		}
	}
	if len(cases) != 30 {
		t.Errorf("%d cases", len(cases))
	}
	// The caller's own deadline.
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	m := addition()
	m.ModelName = "slow"
	if _, err := client.ModelInfer(ctx, m); status.Code(err) != codes.DeadlineExceeded {
		t.Error(err)
	}
}

func TestStream(t *testing.T) {
	client, _ := start(t, &oiptest.Service{}, Options{})
	stream, err := client.ModelStreamInfer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const steps = 20
	for i := range steps {
		m := &message{ModelName: "seq", Id: fmt.Sprint(i), Parameters: map[string]*inference.InferParameter{
			"sequence_id":    {ParameterChoice: &inference.InferParameter_Uint64Param{Uint64Param: 5}},
			"sequence_start": {ParameterChoice: &inference.InferParameter_BoolParam{BoolParam: i == 0}},
			"sequence_end":   {ParameterChoice: &inference.InferParameter_BoolParam{BoolParam: i == steps-1}},
		}}
		if i == 7 {
			m.ModelName = "broken"
		}
		if err := stream.Send(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	for i := range steps {
		got, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		r, want := got.GetInferResponse(), i+1
		if i > 7 {
			want--
		}
		switch {
		case r.GetId() != fmt.Sprint(i):
			t.Errorf("%d: %v", i, got)
		case i == 7 && !strings.Contains(got.GetErrorMessage(), "it is broken"), i != 7 && (got.GetErrorMessage() != "" || int(r.GetRawOutputContents()[0][0]) != want):
			t.Errorf("%d: %v", i, got)
		}
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestDescriptions(t *testing.T) {
	s := &oiptest.Service{}
	client, conn := start(t, s, Options{Name: "onnxrl", Version: "1.2"})
	ctx := t.Context()
	n := 0
	text := func(m proto.Message, err error, want string) {
		t.Helper()
		n++
		got := strings.Join(strings.Fields(fmt.Sprint(m)), " ") // protobuf's text varies its spaces on purpose
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("got %s %v, expected %s", got, err, want)
		}
	}
	live, err := client.ServerLive(ctx, nil)
	text(live, err, "live:true")
	ready, err := client.ServerReady(ctx, nil)
	text(ready, err, "ready:true")
	for name, want := range sorted.All(map[string]bool{"add": true, "loading": false, "none": false}) {
		r, err := client.ModelReady(ctx, &inference.ModelReadyRequest{Name: name})
		if n++; err != nil || r.GetReady() != want {
			t.Error(name, r, err)
		}
	}
	server, err := client.ServerMetadata(ctx, nil)
	text(server, err, `name:"onnxrl" version:"1.2" extensions:"binary_tensor_data"`)
	meta, err := client.ModelMetadata(ctx, &inference.ModelMetadataRequest{Name: "add"})
	text(meta, err, `name:"add" versions:"1" versions:"2" platform:"onnxruntime_onnx" inputs:{name:"a" datatype:"FP32" shape:-1 shape:2}`)
	config, err := client.ModelConfig(ctx, &inference.ModelConfigRequest{Name: "add"})
	text(config, err, `max_batch_size:8 input:{name:"a" data_type:TYPE_FP32 dims:2}`)
	text(config, err, `instance_group:{count:2 kind:KIND_CPU} dynamic_batching:{preferred_batch_size:4 max_queue_delay_microseconds:100}`)
	text(config, err, `version_policy:{latest:{num_versions:1}}`)
	config, err = client.ModelConfig(ctx, &inference.ModelConfigRequest{Name: "seq"})
	text(config, err, `sequence_batching:{max_sequence_idle_microseconds:60000000 control_input:{name:"start" control:{int32_false_true:0 int32_false_true:1}} control_input:{name:"id" control:{kind:CONTROL_SEQUENCE_CORRID data_type:TYPE_UINT64}} direct:{} state:{input_name:"h" output_name:"h_next" data_type:TYPE_FP32 dims:4 initial_state:{data_type:TYPE_FP32 dims:4 zero_data:true name:"h"}}}`)
	meta, err = client.ModelMetadata(ctx, &inference.ModelMetadataRequest{Name: "seq"})
	text(meta, err, `inputs:{name:"x" datatype:"FP32" shape:-1 shape:3} outputs:{name:"y"`)
	stats, err := client.ModelStatistics(ctx, nil)
	text(stats, err, `name:"add" version:"1" last_inference:1700000000000 inference_count:5 execution_count:3 inference_stats:{success:{count:3 ns:3000000}`)
	index, err := client.RepositoryIndex(ctx, &inference.RepositoryIndexRequest{})
	text(index, err, `models:{name:"bad" version:"1" state:"UNAVAILABLE" reason:"golden output differs"}`)
	load, err := client.RepositoryModelLoad(ctx, &inference.RepositoryModelLoadRequest{ModelName: "m", Parameters: map[string]*inference.ModelRepositoryParameter{
		"config":            {ParameterChoice: &inference.ModelRepositoryParameter_StringParam{StringParam: "{}"}},
		"file:1/model.onnx": {ParameterChoice: &inference.ModelRepositoryParameter_BytesParam{BytesParam: []byte("ABC")}},
	}})
	text(load, err, "")
	unload, err := client.RepositoryModelUnload(ctx, &inference.RepositoryModelUnloadRequest{ModelName: "add"})
	text(unload, err, "")
	if got := strings.Join(s.Loaded(), "; "); got != "load m {} 3; unload add" {
		t.Error(got)
	}
	check, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: "add"})
	text(check, err, "status:SERVING")

	failing := func(want codes.Code, err error) {
		t.Helper()
		if n++; status.Code(err) != want {
			t.Errorf("%v, expected %v", err, want)
		}
	}
	_, err = client.ModelMetadata(ctx, &inference.ModelMetadataRequest{Name: "none"})
	failing(codes.NotFound, err)
	_, err = client.ModelConfig(ctx, &inference.ModelConfigRequest{Name: "add", Version: "9"})
	failing(codes.NotFound, err)
	_, err = client.ModelStatistics(ctx, &inference.ModelStatisticsRequest{Name: "none"})
	failing(codes.NotFound, err)
	_, err = client.RepositoryModelLoad(ctx, &inference.RepositoryModelLoadRequest{ModelName: "fixed"})
	failing(codes.Unimplemented, err)
	_, err = client.RepositoryModelLoad(ctx, &inference.RepositoryModelLoadRequest{ModelName: "m", Parameters: map[string]*inference.ModelRepositoryParameter{"file:../x": {ParameterChoice: &inference.ModelRepositoryParameter_BytesParam{}}}})
	failing(codes.InvalidArgument, err)
	_, err = client.RepositoryModelUnload(ctx, &inference.RepositoryModelUnloadRequest{ModelName: "../x"})
	failing(codes.InvalidArgument, err)
	_, err = healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: "none"})
	failing(codes.NotFound, err)
	_, err = client.SystemSharedMemoryStatus(ctx, nil)
	failing(codes.Unimplemented, err)
	_, err = client.SystemSharedMemoryRegister(ctx, nil)
	failing(codes.Unimplemented, err)
	_, err = client.SystemSharedMemoryUnregister(ctx, nil)
	failing(codes.Unimplemented, err)
	_, err = client.CudaSharedMemoryStatus(ctx, nil)
	failing(codes.Unimplemented, err)
	_, err = client.CudaSharedMemoryRegister(ctx, nil)
	failing(codes.Unimplemented, err)
	_, err = client.CudaSharedMemoryUnregister(ctx, nil)
	failing(codes.Unimplemented, err)
	_, err = client.TraceSetting(ctx, nil)
	failing(codes.Unimplemented, err)
	_, err = client.LogSettings(ctx, nil)
	failing(codes.Unimplemented, err)
	if n != 32 {
		t.Errorf("%d answers", n)
	}
}

func TestLimits(t *testing.T) {
	s := &oiptest.Service{Slow: make(chan struct{})}
	client, conn := start(t, s, Options{Guard: guard.New(guard.Tokens{Use: []string{"secret"}, Admin: []string{"admin"}}), MaxMessage: 1 << 10, MaxConcurrent: 1})
	for token, want := range sorted.All(map[string]codes.Code{"": codes.Unauthenticated, "Bearer x": codes.Unauthenticated, "secret": codes.Unauthenticated, "Bearer secret": codes.OK}) {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", token)
		if _, err := client.ServerMetadata(ctx, nil); status.Code(err) != want {
			t.Errorf("%q: %v", token, err)
		}
		stream, err := client.ModelStreamInfer(ctx)
		if err == nil {
			err = stream.CloseSend()
		}
		if err == nil {
			if _, err = stream.Recv(); errors.Is(err, io.EOF) {
				err = nil
			}
		}
		if status.Code(err) != want {
			t.Errorf("%q: %v", token, err)
		}
	}
	for token, want := range sorted.All(map[string]codes.Code{"Bearer secret": codes.PermissionDenied, "Bearer admin": codes.OK, "Bearer x": codes.Unauthenticated, "": codes.Unauthenticated}) {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", token)
		_, load := client.RepositoryModelLoad(ctx, &inference.RepositoryModelLoadRequest{ModelName: "m"})
		_, unload := client.RepositoryModelUnload(ctx, &inference.RepositoryModelUnloadRequest{ModelName: "add"})
		if status.Code(load) != want || status.Code(unload) != want {
			t.Errorf("%q: %v, %v, expected %v", token, load, unload, want)
		}
		// The headers of a browser's call, as a proxy that translates passes them on.
		for _, page := range [][]string{{"origin", "https://evil.example"}, {"sec-fetch-site", "cross-site"}} {
			if _, err := client.ServerMetadata(metadata.AppendToOutgoingContext(ctx, page...), nil); status.Code(err) != codes.PermissionDenied {
				t.Errorf("%q: %v", page, err)
			}
		}
	}
	if _, err := client.ServerReady(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if _, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer secret")
	large := addition()
	large.RawInputContents[0] = make([]byte, 4096)
	for _, opts := range [][]grpc.CallOption{nil, {grpc.UseCompressor(gzip.Name)}} { // also when it is small only on the wire
		if _, err := client.ModelInfer(ctx, large, opts...); status.Code(err) != codes.ResourceExhausted {
			t.Error(err)
		}
	}
	// The only place is taken until its client goes away.
	slow, cancel := context.WithCancel(ctx)
	done := make(chan error)
	go func() {
		_, err := client.ModelInfer(slow, &message{ModelName: "slow"})
		done <- err
	}()
	<-s.Slow
	if _, err := client.ModelInfer(ctx, addition()); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "1 inferences are running or waiting") {
		t.Error(err)
	}
	cancel()
	if err := <-done; status.Code(err) != codes.Canceled {
		t.Error(err)
	}
	for {
		_, err := client.ModelInfer(ctx, addition())
		if err == nil {
			break
		}
		if status.Code(err) != codes.Unavailable {
			t.Fatal(err)
		}
	}
}

// locked is a text that goroutines write while it is read.
type locked struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Every answer is counted once by its code, those included that no method has seen: too large, of a
// compression or a method that nobody knows, without a token. Messages of a stream count one by
// one.
func TestEveryAnswerIsCounted(t *testing.T) {
	text := &locked{}
	record := traffic.New(slog.New(slog.NewTextHandler(text, nil)))
	client, conn := start(t, &oiptest.Service{}, Options{Guard: guard.New(guard.Tokens{Use: []string{"use"}, Admin: []string{"admin"}}), MaxMessage: 1 << 10, Traffic: record})
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer use", "x-request-id", "q7")
	large := addition()
	large.RawInputContents[0] = make([]byte, 4096)
	infer := func(ctx context.Context, m *message) error {
		_, err := client.ModelInfer(ctx, m)
		return err
	}
	n := 0
	want := func(key string, times uint64, err error) {
		t.Helper()
		count := func() (n uint64) {
			for _, c := range record.Counts() {
				if c.Protocol == "grpc" && c.Code+" "+c.Reason == key {
					n = c.N
				}
			}
			return n
		}
		// The answer is counted after it has gone out.
		for deadline := time.Now().Add(time.Minute); count() < times && time.Now().Before(deadline); {
			runtime.Gosched()
		}
		if got := count(); got != times {
			t.Errorf("%s: counted %d times, expected %d: %v", key, got, times, err)
		}
		n++
	}
	want("OK ok", 1, infer(ctx, addition()))
	want("InvalidArgument invalid argument", 1, infer(ctx, &message{ModelName: "a/../b"}))
	want("NotFound not found", 1, infer(ctx, &message{ModelName: "none"}))
	want("Internal internal", 1, infer(ctx, &message{ModelName: "broken"}))
	want("Internal other", 1, infer(ctx, &message{ModelName: "panic"}))
	want("Unavailable overloaded", 1, infer(ctx, &message{ModelName: "full"}))
	want("Unavailable not ready", 1, infer(ctx, &message{ModelName: "loading"}))
	want("ResourceExhausted other", 1, infer(ctx, large))
	want("Unauthenticated unauthenticated", 1, infer(t.Context(), addition()))
	_, err := client.RepositoryModelLoad(ctx, &inference.RepositoryModelLoadRequest{ModelName: "m"})
	want("PermissionDenied permission denied", 1, err)
	want("Unimplemented other", 1, conn.Invoke(ctx, "/none.Service/Method", &message{}, &message{}))
	_, err = client.TraceSetting(ctx, nil)
	want("Unimplemented other", 2, err)
	stream, err := client.ModelStreamInfer(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []*message{addition(), {ModelName: "full"}, {ModelName: "full"}, addition()} {
		if err := stream.Send(m); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	want("OK ok", 3, nil)
	want("Unavailable overloaded", 3, nil)
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if _, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
	want("OK ok", 4, nil)
	if n != 15 {
		t.Error(n)
	}
	// Each call has its line, streams one.
	for deadline := time.Now().Add(time.Minute); strings.Count(text.String(), "\n") < 14 && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	for _, line := range []string{
		"protocol=grpc remote=", "path=/inference.GRPCInferenceService/ModelInfer code=OK took=", "request_id=q7", "path=/none.Service/Method code=Unimplemented", "path=/inference.GRPCInferenceService/ModelStreamInfer code=OK",
		"code=ResourceExhausted", "code=Unauthenticated", `code=Unavailable took=`, `error="model \"full\": the queue is full: 1024 requests wait`,
	} {
		if !strings.Contains(text.String(), line) {
			t.Errorf("no line has %s:\n%s", line, text.String())
		}
	}
	if lines := strings.Count(text.String(), "\n"); lines != 14 {
		t.Errorf("%d lines", lines)
	}
}

// FuzzDecode takes foreign messages.
func FuzzDecode(f *testing.F) {
	b, err := proto.Marshal(addition())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	typed := addition()
	typed.RawInputContents = nil
	typed.Inputs[0].Contents, typed.Inputs[1].Contents = &contents{Fp32Contents: []float32{1, 2}}, &contents{Fp32Contents: []float32{1, 2}}
	typed.Parameters = map[string]*inference.InferParameter{"sequence_id": {ParameterChoice: &inference.InferParameter_Int64Param{Int64Param: 4}}}
	if b, err = proto.Marshal(typed); err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var m message
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		req, _, err := decode(&m)
		if err != nil {
			if got := status.Code(toStatus(err)); got != codes.InvalidArgument {
				t.Fatal(got)
			}
			return
		}
		for i, in := range req.Inputs {
			if in.Value.DType() != tensor.String && len(in.Value.Bytes()) > 8*len(b) {
				t.Fatalf("input %d has %d bytes, the message %d", i, len(in.Value.Bytes()), len(b))
			}
		}
	})
}

// BenchmarkInfer is a call over loopback.
func BenchmarkInfer(b *testing.B) {
	client, _ := start(b, &oiptest.Service{}, Options{})
	v := make([]float32, 17)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	m := &message{ModelName: "echo", Inputs: []*input{{Name: "x", Datatype: "FP32", Shape: []int64{1, 17}}}, RawInputContents: [][]byte{raw(v...)}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := client.ModelInfer(b.Context(), m); err != nil {
			b.Fatal(err)
		}
	}
}
