package servebench

import (
	"context"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// directCaller asks the server in its own process; request and response are reused.
type directCaller struct {
	service serve.Service
	ctx     context.Context
	req     serve.Request
	resp    serve.Response
	// check, if set, judges an answer.
	check func(resp *serve.Response) error
}

func dialDirect(s serve.Service, model string, rows, width int) dialer {
	return func(ctx context.Context) (caller, error) {
		return &directCaller{service: s, ctx: ctx, req: serve.Request{Model: model, Inputs: []serve.Tensor{{Name: "x", Value: tensor.Of(observations(rows, width), rows, width)}}}}, nil
	}
}

func (c *directCaller) call() error {
	if err := c.service.Infer(c.ctx, &c.req, &c.resp); err != nil || c.check == nil {
		return err
	}
	return c.check(&c.resp)
}

func (c *directCaller) close() error { return nil }

// boundToServer runs the model on buffers of its own, which is what a live system does.
type boundToServer struct {
	caller *serve.Caller
	ctx    context.Context
}

func dialCaller(s *serve.Server, model string, width int) dialer {
	return func(ctx context.Context) (caller, error) {
		c, err := s.Client().Caller(model, "", 1)
		if err != nil {
			return nil, err
		}
		copy(c.Inputs()[0].Value.Float32s(), observations(1, width))
		return &boundToServer{c, ctx}, nil
	}
}

func (c *boundToServer) call() error { return c.caller.Run(c.ctx) }

func (c *boundToServer) close() error { return c.caller.Close() }
