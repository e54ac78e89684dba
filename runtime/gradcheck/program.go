package gradcheck

import (
	"context"
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// program is a session called by names.
type program struct {
	session engine.Session
	// shapes holds the shape of each output after the first run.
	shapes map[string][]int
}

func compile(c engine.Compiler, m *onnx.Model, o engine.Options) (*program, error) {
	s, err := c.Compile(m, o)
	if err != nil {
		return nil, err
	}
	return &program{session: s, shapes: map[string][]int{}}, nil
}

// run executes the model on a point, converting float32 to what the inputs ask for.
func (p *program) run(ctx context.Context, point map[string]*tensor.Tensor) (map[string]*tensor.Tensor, error) {
	ports := p.session.Inputs()
	in := make([]*tensor.Tensor, len(ports))
	for i, port := range ports {
		t := point[port.Name]
		if t == nil {
			return nil, fmt.Errorf("input %q is not given", port.Name)
		}
		if in[i] = t; t.DType() != port.DType {
			var err error
			if in[i], err = convert(t, port.DType); err != nil {
				return nil, fmt.Errorf("input %q: %w", port.Name, err)
			}
		}
	}
	out, err := engine.Run(ctx, p.session, in...)
	if err != nil {
		return nil, err
	}
	named := map[string]*tensor.Tensor{}
	for i, port := range p.session.Outputs() {
		named[port.Name] = out[i]
		p.shapes[port.Name] = out[i].Shape()
	}
	return named, nil
}

func convert(t *tensor.Tensor, d tensor.DType) (*tensor.Tensor, error) {
	switch {
	case t.DType() == tensor.Float32 && d == tensor.Float64:
		return Widen(t), nil
	case t.DType() == tensor.Float64 && d == tensor.Float32:
		n := tensor.New(d, t.Shape()...)
		for i, v := range t.Float64s() {
			n.Float32s()[i] = float32(v)
		}
		return n, nil
	}
	return nil, fmt.Errorf("%v is not %v", t, d)
}

// floats returns the elements of a float tensor as float64.
func floats(t *tensor.Tensor) ([]float64, error) {
	switch t.DType() {
	case tensor.Float64:
		return t.Float64s(), nil
	case tensor.Float32:
		v := make([]float64, t.Len())
		for i, x := range t.Float32s() {
			v[i] = float64(x)
		}
		return v, nil
	}
	return nil, fmt.Errorf("%v is not a floating-point tensor of 32 or 64 bits", t)
}

func length(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// moved runs the model at point + h·t and returns the outputs that enter the loss. In float32 the
// point that is really reached differs from the wanted one by rounding, which is far below the
// step.
func (k *checker) moved(t map[string][]float64, h float64) (map[string][]float64, error) {
	at := map[string]*tensor.Tensor{}
	for name, v := range k.point {
		at[name] = v
	}
	wide := k.res.Level != SingleLevel
	for w, dir := range t {
		x := k.point[w]
		v, err := floats(x)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", w, err)
		}
		if wide {
			m := tensor.New(tensor.Float64, x.Shape()...)
			for i := range dir {
				m.Float64s()[i] = v[i] + h*dir[i]
			}
			at[w] = m
			continue
		}
		m := tensor.New(tensor.Float32, x.Shape()...)
		for i := range dir {
			m.Float32s()[i] = float32(v[i] + h*dir[i])
		}
		at[w] = m
	}
	out, err := k.f.run(k.ctx, at)
	if err != nil {
		return nil, err
	}
	res := map[string][]float64{}
	for _, o := range k.outs {
		if res[o], err = floats(out[o]); err != nil {
			return nil, fmt.Errorf("output %q: %w", o, err)
		}
	}
	return res, nil
}

// Run compiles a model, runs it once on named inputs and returns the outputs by name. float32
// inputs are widened where the model asks for float64.
func Run(ctx context.Context, c engine.Compiler, m *onnx.Model, in map[string]*tensor.Tensor) (map[string]*tensor.Tensor, error) {
	out, err := RunAll(ctx, c, m, []map[string]*tensor.Tensor{in})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// RunAll compiles a model once and runs it on several lists of inputs, in order.
func RunAll(ctx context.Context, c engine.Compiler, m *onnx.Model, in []map[string]*tensor.Tensor) ([]map[string]*tensor.Tensor, error) {
	p, err := compile(c, m, engine.Options{})
	if err != nil {
		return nil, err
	}
	defer p.session.Close()
	out := make([]map[string]*tensor.Tensor, len(in))
	for i := range in {
		if out[i], err = p.run(ctx, in[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}
