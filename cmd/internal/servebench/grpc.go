package servebench

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/onnxrl/onnxrl/export/serve/grpcapi/inference"
)

// grpcCaller goes through grpc-go's client, as any Go program would; its allocations are counted
// with the server's.
type grpcCaller struct {
	conn    *grpc.ClientConn
	client  inference.GRPCInferenceServiceClient
	request *inference.ModelInferRequest
	ctx     context.Context
	// check, if set, judges an answer, which has an output.
	check func(m *inference.ModelInferResponse) error
}

func dialGRPC(address, model string, inputs []port) dialer {
	req := &inference.ModelInferRequest{ModelName: model}
	for _, p := range inputs {
		shape := make([]int64, len(p.Shape))
		for i, n := range p.Shape {
			shape[i] = int64(n)
		}
		req.Inputs = append(req.Inputs, &inference.ModelInferRequest_InferInputTensor{Name: p.Name, Datatype: p.Datatype, Shape: shape})
		req.RawInputContents = append(req.RawInputContents, p.raw)
	}
	return func(ctx context.Context) (caller, error) {
		// A connection for each caller, as the HTTP callers have.
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			return nil, err
		}
		return &grpcCaller{conn: conn, client: inference.NewGRPCInferenceServiceClient(conn), request: req, ctx: ctx}, nil
	}
}

func (c *grpcCaller) call() error {
	ctx, cancel := context.WithTimeout(c.ctx, patience)
	defer cancel()
	resp, err := c.client.ModelInfer(ctx, c.request)
	switch {
	case err != nil:
		return err
	case len(resp.Outputs) == 0 || len(resp.RawOutputContents) == 0:
		return errors.New("an answer without outputs")
	case c.check != nil:
		return c.check(resp)
	}
	return nil
}

func (c *grpcCaller) close() error { return c.conn.Close() }
