package servebench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/onnxrl/onnxrl/export/serve/grpcapi"
	"github.com/onnxrl/onnxrl/export/serve/grpcapi/inference"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// plain sends messages as they are, each a list of parts, whatever the protocol's are, and reads
// none.
type plain struct{}

func (plain) Name() string { return "proto" }

func (plain) Marshal(v any) (mem.BufferSlice, error) {
	var parts mem.BufferSlice
	for _, part := range v.([][]byte) {
		parts = append(parts, mem.SliceBuffer(part))
	}
	return parts, nil
}

func (plain) Unmarshal(mem.BufferSlice, any) error { return nil }

// rpcHostiles makes bad traffic over gRPC, each kind on a connection of its own.
type rpcHostiles struct {
	address string
	conns   []*grpc.ClientConn
	list    []hostile
}

func (h *rpcHostiles) close() error {
	var errs []error
	for _, c := range h.conns {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// add adds a kind whose calls must end with one of the codes. Only what the kind does by itself
// ends a call: the end of the soak does not.
func (h *rpcHostiles) add(name string, call func(ctx context.Context, conn *grpc.ClientConn, s *rng.Stream) error, want ...codes.Code) error {
	conn, err := grpc.NewClient(h.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	h.conns = append(h.conns, conn)
	h.list = append(h.list, hostile{"grpc " + name, func(ctx context.Context, s *rng.Stream) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		err := call(ctx, conn, s)
		if code := status.Code(err); !slices.Contains(want, code) {
			return fmt.Errorf("%v (%v), expected one of %v", code, err, want)
		}
		return nil
	}})
	return nil
}

// inferring is an inference request of some rows of the policy's inputs, or of the large network's.
func inferring(model string, rows, width int) *inference.ModelInferRequest {
	x := floats(rows, width)
	return &inference.ModelInferRequest{ModelName: model, Inputs: []*inference.ModelInferRequest_InferInputTensor{{Name: x.Name, Datatype: x.Datatype, Shape: []int64{int64(rows), int64(width)}}}, RawInputContents: [][]byte{x.raw}}
}

// hostilesGRPC connects what sends bad traffic to a gRPC address. The caller closes it.
func hostilesGRPC(address string) (_ *rpcHostiles, err error) {
	h := &rpcHostiles{address: address}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	var errs []error
	// refused edits a good request so that it is none.
	refused := func(name string, edit func(m *inference.ModelInferRequest, s *rng.Stream), want ...codes.Code) {
		errs = append(errs, h.add(name, func(ctx context.Context, conn *grpc.ClientConn, s *rng.Stream) error {
			m := inferring(policyName, 1, policyInputs)
			edit(m, s)
			_, err := inference.NewGRPCInferenceServiceClient(conn).ModelInfer(ctx, m)
			return err
		}, want...))
	}
	refused("unknown model", func(m *inference.ModelInferRequest, _ *rng.Stream) { m.ModelName = "nobody" }, codes.NotFound)
	refused("unknown version", func(m *inference.ModelInferRequest, _ *rng.Stream) { m.ModelVersion = "999999999" }, codes.NotFound)
	refused("path traversal", func(m *inference.ModelInferRequest, s *rng.Stream) {
		m.ModelName = []string{"../../etc/passwd", "..", "/", "a/../b", "", "a\x00b"}[s.IntN(6)]
	}, codes.InvalidArgument, codes.NotFound)
	refused("wrong raw sizes", func(m *inference.ModelInferRequest, s *rng.Stream) {
		n := s.IntN(8 * policyInputs)
		if n == 4*policyInputs {
			n++
		}
		m.RawInputContents[0] = make([]byte, n)
	}, codes.InvalidArgument)
	refused("wrong raw numbers", func(m *inference.ModelInferRequest, s *rng.Stream) {
		switch raw := m.RawInputContents[0]; s.IntN(4) {
		case 0:
			m.RawInputContents = nil
		case 1:
			m.RawInputContents = [][]byte{raw, raw}
		case 2:
			m.Inputs[0].Contents = &inference.InferTensorContents{Fp32Contents: observations(1, policyInputs)}
		case 3:
			m.RawInputContents = nil
			m.Inputs[0].Contents = &inference.InferTensorContents{Fp32Contents: observations(1, policyInputs), Int64Contents: []int64{1}}
		}
	}, codes.InvalidArgument)
	refused("lying shapes", func(m *inference.ModelInferRequest, s *rng.Stream) {
		m.Inputs[0].Shape = [][]int64{{int64(2 + s.IntN(1000)), policyInputs}, {1, policyInputs - 1}, {policyInputs}, {1, 1, policyInputs}, {policyInputs, 1}, {0, policyInputs}, {}, nil}[s.IntN(8)]
	}, codes.InvalidArgument)
	refused("huge shapes", func(m *inference.ModelInferRequest, s *rng.Stream) {
		m.Inputs[0].Shape = [][]int64{{1 << 32, 1 << 32}, {math.MaxInt64, math.MaxInt64, 9}, {math.MinInt64, policyInputs}, {-1, policyInputs}, {1 << 62, 4}, {1_000_000_000, policyInputs}}[s.IntN(6)]
	}, codes.InvalidArgument)
	refused("wrong types", func(m *inference.ModelInferRequest, s *rng.Stream) {
		m.Inputs[0].Datatype = []string{"INT8", "INT32", "fp32", "", "BYTES", "FP32\x00"}[s.IntN(6)]
	}, codes.InvalidArgument)
	refused("wrong names", func(m *inference.ModelInferRequest, s *rng.Stream) {
		switch s.IntN(3) {
		case 0:
			m.Inputs[0].Name = "nothing"
		case 1:
			m.Inputs, m.RawInputContents = append(m.Inputs, m.Inputs[0]), append(m.RawInputContents, m.RawInputContents[0])
		case 2:
			m.Outputs = []*inference.ModelInferRequest_InferRequestedOutputTensor{{Name: "nothing"}}
		}
	}, codes.InvalidArgument)
	errs = append(errs, h.add("noise", func(ctx context.Context, conn *grpc.ClientConn, s *rng.Stream) error {
		// A field that says it is longer than the message, and whatever. What is no message fails
		// as gRPC says it must, with INTERNAL.
		noise := binary.AppendUvarint([]byte{5<<3 | 2}, 1<<20)
		for range s.IntN(4096) {
			noise = append(noise, byte(s.IntN(256)))
		}
		return conn.Invoke(ctx, inference.GRPCInferenceService_ModelInfer_FullMethodName, [][]byte{noise}, nil, grpc.ForceCodecV2(plain{}))
	}, codes.Internal))
	// One part many times over: the message needs no memory, so that none of it is taken for the
	// server's.
	part := make([]byte, 1<<20)
	large := [][]byte{{0}}
	for range grpcapi.DefaultMaxMessage / len(part) {
		large = append(large, part)
	}
	errs = append(errs, h.add("large messages", func(ctx context.Context, conn *grpc.ClientConn, _ *rng.Stream) error {
		// The server looks at the length and not at the rest.
		return conn.Invoke(ctx, inference.GRPCInferenceService_ModelInfer_FullMethodName, large, nil, grpc.ForceCodecV2(plain{}))
	}, codes.ResourceExhausted))
	errs = append(errs, h.add("unknown methods", func(ctx context.Context, conn *grpc.ClientConn, _ *rng.Stream) error {
		return conn.Invoke(ctx, "/inference.GRPCInferenceService/Nothing", [][]byte{}, nil, grpc.ForceCodecV2(plain{}))
	}, codes.Unimplemented))
	h.addEnding(&errs)
	errs = append(errs, h.add("bad streams", badStream, codes.OK))
	h.addRaw()
	return h, errors.Join(errs...)
}

// slowRows is what keeps the large network busy for longer than the callers wait.
const slowRows = 16

// addEnding adds calls that end before their answer. Some are answered in time, which is right.
func (h *rpcHostiles) addEnding(errs *[]error) {
	infer := func(ctx context.Context, conn *grpc.ClientConn, m *inference.ModelInferRequest) error {
		_, err := inference.NewGRPCInferenceServiceClient(conn).ModelInfer(ctx, m)
		return err
	}
	moment := func(s *rng.Stream) time.Duration { return time.Duration(s.IntN(5000)) * time.Microsecond }
	*errs = append(*errs,
		h.add("cancelled calls", func(ctx context.Context, conn *grpc.ClientConn, s *rng.Stream) error {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			defer time.AfterFunc(moment(s), cancel).Stop()
			return infer(ctx, conn, inferring(wideName, slowRows, wideInputs))
		}, codes.OK, codes.Canceled),
		h.add("deadlines", func(ctx context.Context, conn *grpc.ClientConn, s *rng.Stream) error {
			ctx, cancel := context.WithTimeout(ctx, moment(s))
			defer cancel()
			return infer(ctx, conn, inferring(wideName, slowRows, wideInputs))
		}, codes.OK, codes.DeadlineExceeded),
		h.add("timeouts", func(ctx context.Context, conn *grpc.ClientConn, s *rng.Stream) error {
			// The server's own deadline, of which the client's library knows nothing.
			m := inferring(wideName, slowRows, wideInputs)
			m.Parameters = map[string]*inference.InferParameter{"timeout": {ParameterChoice: &inference.InferParameter_Int64Param{Int64Param: int64(1 + s.IntN(5000))}}}
			return infer(ctx, conn, m)
		}, codes.OK, codes.DeadlineExceeded),
		h.add("disconnects", func(ctx context.Context, _ *grpc.ClientConn, s *rng.Stream) error {
			conn, err := grpc.NewClient(h.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				return err
			}
			stop := time.AfterFunc(moment(s), func() { conn.Close() })
			err = infer(ctx, conn, inferring(wideName, slowRows, wideInputs))
			stop.Stop()
			// It may be closed already.
			_ = conn.Close()
			return err
		}, codes.OK, codes.Canceled, codes.Unavailable),
	)
}

// badStream asks for nonsense and then for something good on one stream: the first must be refused
// by a message, and the second answered.
func badStream(ctx context.Context, conn *grpc.ClientConn, _ *rng.Stream) error {
	stream, err := inference.NewGRPCInferenceServiceClient(conn).ModelStreamInfer(ctx)
	if err != nil {
		return err
	}
	for _, model := range []string{"nobody", policyName} {
		if err := stream.Send(inferring(model, 1, policyInputs)); err != nil {
			return err
		}
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if refused := m.GetErrorMessage() != ""; refused != (model == "nobody") {
			return fmt.Errorf("a stream's answer about %q has the error message %q", model, m.GetErrorMessage())
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("a stream did not end: %w", err)
	}
	return nil
}

// preface is what a connection of HTTP/2 begins with.
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// refusal is how long the server may take to end a connection on which nothing good comes; it is
// more than it gives a handshake.
const refusal = 20 * time.Second

// addRaw adds what speaks no gRPC at all.
func (h *rpcHostiles) addRaw() {
	// closed sends bytes and waits until the server ends the connection.
	closed := func(ctx context.Context, request []byte) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", h.address)
		if err != nil {
			return nil // the soak has ended
		}
		defer conn.Close()
		// The soak does not wait for the server's limits, only the server's clients do.
		defer context.AfterFunc(ctx, func() { conn.Close() })()
		if err := conn.SetDeadline(time.Now().Add(refusal)); err != nil && ctx.Err() == nil {
			return err
		}
		_, _ = conn.Write(request)
		var timeout net.Error
		if _, err := io.Copy(io.Discard, conn); errors.As(err, &timeout) && timeout.Timeout() {
			return fmt.Errorf("the connection was open after %v", refusal)
		}
		return nil
	}
	noise := func(s *rng.Stream, n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(s.IntN(256))
		}
		return b
	}
	h.list = append(h.list,
		hostile{"grpc garbage", func(ctx context.Context, s *rng.Stream) error {
			switch s.IntN(3) {
			case 0:
				return closed(ctx, noise(s, len(preface)+s.IntN(4096)))
			case 1:
				// Settings must come first.
				return closed(ctx, append([]byte(preface), noise(s, 64+s.IntN(4096))...))
			default:
				return closed(ctx, []byte("POST /v2/models/"+policyName+"/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"))
			}
		}},
		hostile{"grpc broken frames", func(ctx context.Context, s *rng.Stream) error {
			// Good settings, then a frame larger than was agreed, headers that no table has, data
			// of a stream that is not there, or an update of the window by nothing.
			settings := []byte{0, 0, 0, 4, 0, 0, 0, 0, 0}
			frame := [][]byte{
				{0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1},
				{0, 0, 4, 1, 4, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0x7f},
				{0, 0, 1, 0, 0, 0, 0, 0, 0, 0},
				{0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0},
			}[s.IntN(4)]
			return closed(ctx, slices.Concat([]byte(preface), settings, frame))
		}},
		hostile{"grpc half-open", func(ctx context.Context, s *rng.Stream) error {
			return closed(ctx, []byte(preface[:s.IntN(len(preface))]))
		}})
}
