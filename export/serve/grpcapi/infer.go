package grpcapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/grpcapi/inference"
	"github.com/onnxrl/onnxrl/export/serve/oip"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func bad(format string, args ...any) error {
	return &serve.Error{Code: serve.InvalidArgument, Err: fmt.Errorf(format, args...)}
}

// ModelInfer answers an inference.
func (s *service) ModelInfer(ctx context.Context, m *inference.ModelInferRequest) (*inference.ModelInferResponse, error) {
	resp, err := s.infer(ctx, m)
	return resp, toStatus(err)
}

// ModelStreamInfer answers requests one after another, so that the steps of a sequence keep their
// order.
func (s *service) ModelStreamInfer(stream inference.GRPCInferenceService_ModelStreamInferServer) error {
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		resp, err := s.infer(stream.Context(), m)
		s.Traffic.GRPC(toStatus(err))
		answer := &inference.ModelStreamInferResponse{InferResponse: resp}
		if err != nil {
			if cause := stream.Context().Err(); cause != nil {
				return status.FromContextError(cause).Err()
			}
			// The id says which of the requests it was.
			answer.ErrorMessage, answer.InferResponse = err.Error(), &inference.ModelInferResponse{}
			if bounded(m) == nil {
				answer.InferResponse = &inference.ModelInferResponse{ModelName: m.GetModelName(), ModelVersion: m.GetModelVersion(), Id: m.GetId()}
			}
		}
		if err := stream.Send(answer); err != nil {
			return err
		}
	}
}

func (s *service) infer(ctx context.Context, m *inference.ModelInferRequest) (*inference.ModelInferResponse, error) {
	req, timeout, err := decode(m)
	if err != nil {
		return nil, err
	}
	if s.running.Add(1) > int64(s.MaxConcurrent) {
		s.running.Add(-1)
		return nil, &serve.Error{Code: serve.Overloaded, Err: fmt.Errorf("%d inferences are running or waiting; try again later", s.MaxConcurrent)}
	}
	defer s.running.Add(-1)
	if s.Timeout > 0 && (timeout == 0 || s.Timeout < timeout) {
		timeout = s.Timeout
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	var resp serve.Response
	if err := s.service.Infer(ctx, req, &resp); err != nil {
		return nil, err
	}
	return encode(&resp), nil
}

// bounded refuses messages with more, or longer, names than a request may have.
func bounded(m *inference.ModelInferRequest) error {
	err := errors.Join(
		serve.CheckName("the request's id", m.GetId()), serve.CheckName("the model's name", m.GetModelName()), serve.CheckName("the version's name", m.GetModelVersion()),
		serve.CheckName("the sequence's id", m.GetParameters()["sequence_id"].GetStringParam()),
		serve.CheckPorts("inputs", len(m.GetInputs())), serve.CheckPorts("outputs", len(m.GetOutputs())))
	if err != nil {
		return bad("%w", err)
	}
	for _, in := range m.GetInputs() {
		if err := errors.Join(serve.CheckName("the name of an input", in.GetName()), serve.CheckRank(len(in.GetShape()))); err != nil {
			return bad("%w", err)
		}
	}
	for _, out := range m.GetOutputs() {
		if err := serve.CheckName("the name of an output", out.GetName()); err != nil {
			return err
		}
	}
	return nil
}

// decode turns a message into a request; tensors are views of the message's bytes where their
// alignment allows.
func decode(m *inference.ModelInferRequest) (*serve.Request, time.Duration, error) {
	if err := bounded(m); err != nil {
		return nil, 0, err
	}
	req := &serve.Request{ID: m.GetId(), Model: m.GetModelName(), Version: m.GetModelVersion(), Inputs: make([]serve.Tensor, 0, len(m.GetInputs()))}
	if err := oip.CheckModel(req.Model); err != nil {
		return nil, 0, err
	}
	timeout, err := parameters(req, m.GetParameters())
	if err != nil {
		return nil, 0, err
	}
	raw := m.GetRawInputContents()
	if len(raw) > 0 && len(raw) != len(m.GetInputs()) {
		return nil, 0, bad("raw_input_contents has %d entries for %d inputs, expected one for each", len(raw), len(m.GetInputs()))
	}
	for i, in := range m.GetInputs() {
		for _, before := range req.Inputs {
			if before.Name == in.GetName() {
				return nil, 0, bad("input %q is there twice", in.GetName())
			}
		}
		if in.GetName() == "" {
			return nil, 0, bad("inputs[%d]: a name is missing", i)
		}
		if in.GetParameters()["shared_memory_region"] != nil {
			return nil, 0, bad("input %q: shared memory is not supported; send the tensor in the message", in.GetName())
		}
		var v *tensor.Tensor
		var err error
		if len(raw) > 0 {
			if in.GetContents() != nil {
				return nil, 0, bad("input %q: it has contents, but the request has raw_input_contents", in.GetName())
			}
			v, err = fromRaw(in, raw[i])
		} else {
			v, err = fromContents(in)
		}
		if err != nil {
			return nil, 0, bad("input %q: %w", in.GetName(), err)
		}
		req.Inputs = append(req.Inputs, serve.Tensor{Name: in.GetName(), Value: v})
	}
	for i, out := range m.GetOutputs() {
		for _, before := range req.Outputs {
			if before == out.GetName() {
				return nil, 0, bad("output %q is there twice", before)
			}
		}
		if out.GetName() == "" {
			return nil, 0, bad("outputs[%d]: a name is missing", i)
		}
		if out.GetParameters()["shared_memory_region"] != nil {
			return nil, 0, bad("output %q: shared memory is not supported", out.GetName())
		}
		if p := out.GetParameters()["classification"]; p != nil && p.GetInt64Param() != 0 {
			return nil, 0, bad("output %q: classification is not supported", out.GetName())
		}
		req.Outputs = append(req.Outputs, out.GetName())
	}
	return req, timeout, nil
}

// parameters takes what the request's parameters say; what is not known is left to others, as the
// protocol asks.
func parameters(req *serve.Request, p map[string]*inference.InferParameter) (timeout time.Duration, err error) {
	flag := func(name string) bool {
		v, ok := p[name]
		if _, isBool := v.GetParameterChoice().(*inference.InferParameter_BoolParam); ok && !isBool && err == nil {
			err = bad("parameter %s: expected a boolean", name)
		}
		return v.GetBoolParam()
	}
	req.Sequence.Start, req.Sequence.End = flag("sequence_start"), flag("sequence_end")
	req.Sequence.Outcome = serve.Outcome{Terminated: flag("terminated"), Truncated: flag("truncated")}
	if v, ok := p["reward"]; ok {
		o := &req.Sequence.Outcome
		switch c := v.GetParameterChoice().(type) {
		case *inference.InferParameter_DoubleParam:
			o.Reward = c.DoubleParam
		case *inference.InferParameter_Int64Param:
			o.Reward = float64(c.Int64Param)
		default:
			return 0, bad("parameter reward: expected a number")
		}
		o.Given = true
	}
	if v, ok := p["sequence_id"]; ok {
		switch c := v.GetParameterChoice().(type) {
		case *inference.InferParameter_StringParam:
			req.Sequence.ID = c.StringParam
		case *inference.InferParameter_Int64Param:
			req.Sequence.ID = strconv.FormatInt(c.Int64Param, 10)
		case *inference.InferParameter_Uint64Param:
			req.Sequence.ID = strconv.FormatUint(c.Uint64Param, 10)
		default:
			return 0, bad("parameter sequence_id: expected an integer or a string")
		}
		if req.Sequence.ID == "0" {
			req.Sequence.ID = "" // Triton's number for no sequence
		}
	}
	if v, ok := p["timeout"]; ok {
		us := v.GetUint64Param()
		switch c := v.GetParameterChoice().(type) {
		case *inference.InferParameter_Int64Param:
			if c.Int64Param < 0 {
				return 0, bad("parameter timeout is %d, expected at least 0", c.Int64Param)
			}
			us = uint64(c.Int64Param)
		case *inference.InferParameter_Uint64Param:
		default:
			return 0, bad("parameter timeout: expected an integer")
		}
		timeout = time.Duration(min(us, uint64(24*time.Hour/time.Microsecond))) * time.Microsecond
	}
	return timeout, err
}

// described returns type and shape of an input.
func described(in *inference.ModelInferRequest_InferInputTensor) (tensor.DType, []int, error) {
	d, err := oip.ParseDatatype(in.GetDatatype())
	if err != nil {
		return d, nil, err
	}
	shape := make([]int, len(in.GetShape()))
	for i, v := range in.GetShape() {
		if v < 0 || v > math.MaxInt {
			return d, nil, fmt.Errorf("extent %d of the shape is %d, expected at least 0", i, v)
		}
		shape[i] = int(v)
	}
	return d, shape, nil
}

func fromRaw(in *inference.ModelInferRequest_InferInputTensor, raw []byte) (*tensor.Tensor, error) {
	d, shape, err := described(in)
	if err != nil {
		return nil, err
	}
	return oip.FromBytes(d, shape, raw)
}

func encode(resp *serve.Response) *inference.ModelInferResponse {
	m := &inference.ModelInferResponse{
		ModelName: resp.Model, ModelVersion: resp.Version, Id: resp.ID,
		Outputs: make([]*inference.ModelInferResponse_InferOutputTensor, 0, len(resp.Outputs)), RawOutputContents: make([][]byte, 0, len(resp.Outputs)),
	}
	for _, out := range resp.Outputs {
		shape := make([]int64, len(out.Value.Shape()))
		for i, d := range out.Value.Shape() {
			shape[i] = int64(d)
		}
		m.Outputs = append(m.Outputs, &inference.ModelInferResponse_InferOutputTensor{Name: out.Name, Datatype: oip.Datatype(out.Value.DType()), Shape: shape})
		raw := out.Value.Bytes() // the response is this call's own
		if out.Value.DType() == tensor.String {
			raw = oip.AppendBinary(make([]byte, 0, oip.BinarySize(out.Value)), out.Value)
		}
		m.RawOutputContents = append(m.RawOutputContents, raw)
	}
	return m
}

// notSupported answers the extensions that there are not.
func notSupported(what string) error {
	return status.Error(codes.Unimplemented, what+" is not supported by this server")
}
