package gradcheck

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func newChecker(ctx context.Context, c engine.Compiler, p Problem, o Options) (*checker, error) {
	k := &checker{ctx: ctx, o: o, rng: rand.New(rand.NewPCG(o.Seed, 0x9e3779b97f4a7c15))}
	m, point, err := promote(p)
	if err != nil {
		return nil, err
	}
	k.point, k.wrt, k.prefix = point, p.Wrt, autodiff.Prefix(autodiff.Order(p.Model)+1)
	if p.Name != "" {
		k.prefix += p.Name + "/"
	}
	if k.outs = p.Outputs; k.outs == nil {
		for _, v := range m.Graph.Output {
			if t, ok := v.TensorType(); ok && t.DType.IsFloat() {
				k.outs = append(k.outs, v.Name)
			}
		}
	}
	ok := false
	defer func() {
		if !ok {
			k.close()
		}
	}()
	if m, err = onnx.Prune(m, values(k.outs)...); err != nil {
		return nil, err
	}
	gm, err := gradient(m, p, k.outs)
	if err != nil {
		return nil, err
	}
	if k.g32, err = compile(c, gm, o.Compile); err != nil {
		return nil, err
	}
	if !o.SingleOnly {
		// An engine that lacks a float64 kernel refuses to compile or to run, and inference may
		// refuse operators that are float32 only; the check then falls back.
		k.double(c, m, p)
	}
	if k.f == nil {
		k.res.Level = SingleLevel
		if err := k.forward(c, m, gm); err != nil {
			return nil, err
		}
	}
	k.alone = func(w string) (*program, error) {
		p.Wrt = []string{w}
		g, err := gradient(m, p, k.outs)
		if err != nil {
			return nil, err
		}
		return compile(c, g, o.Compile)
	}
	ok = true
	return k, nil
}

// double tries to set up the check in float64.
func (k *checker) double(c engine.Compiler, m *onnx.Model, p Problem) {
	m64, err := Double(m)
	if err != nil {
		return
	}
	g64, gradErr := gradient(m64, p, k.outs)
	if gradErr != nil {
		g64 = nil
	}
	if k.forward(c, m64, g64) != nil {
		return
	}
	k.res.Level = MixedLevel
	if g64 == nil {
		return
	}
	if k.g64, err = compile(c, g64, k.o.Compile); err != nil {
		return
	}
	// A kernel may still refuse when it runs.
	if _, err := k.read(k.g64, k.withOnes(), k.wrt...); err != nil {
		k.g64.session.Close()
		k.g64 = nil
		return
	}
	k.res.Level = DoubleLevel
}

// withOnes returns the point with cotangents of ones.
func (k *checker) withOnes() map[string]*tensor.Tensor {
	in := map[string]*tensor.Tensor{}
	for name, t := range k.point {
		in[name] = t
	}
	for _, out := range k.outs {
		ones := make([]float64, length(k.f.shapes[out]))
		for i := range ones {
			ones[i] = 1
		}
		in[cotangent(out)] = k.like(out, ones)
	}
	return in
}

// forward compiles the model that differences are taken of and runs it once, which tells the shapes
// of its outputs. An engine that does not have an operator can still run the model as the
// differentiation expanded it; then the gradient is compared with that.
func (k *checker) forward(c engine.Compiler, m, grad *onnx.Model) error {
	p, err := compile(c, m, k.o.Compile)
	unsupported := (*engine.UnsupportedError)(nil)
	if k.o.OwnForward && err == nil {
		p.session.Close()
	}
	if grad != nil && (k.o.OwnForward || errors.As(err, &unsupported)) {
		if m, err = onnx.Prune(grad, values(k.outs)...); err != nil {
			return err
		}
		m.Graph.Input = slices.DeleteFunc(m.Graph.Input, func(v *onnx.ValueInfo) bool {
			return slices.Contains(k.outs, strings.TrimPrefix(v.Name, cotangent("")))
		})
		p, err = compile(c, m, k.o.Compile)
	}
	if err != nil {
		return err
	}
	if _, err := p.run(k.ctx, k.point); err != nil {
		p.session.Close()
		return err
	}
	k.f = p
	return nil
}

// promote turns the initializers among Wrt into graph inputs, so that the checker can move them.
func promote(p Problem) (*onnx.Model, map[string]*tensor.Tensor, error) {
	m := p.Model.ShallowClone()
	point := map[string]*tensor.Tensor{}
	for name, t := range p.Inputs {
		point[name] = t
	}
	move := map[string]bool{}
	for _, w := range p.Wrt {
		move[w] = point[w] == nil
	}
	init := m.Graph.Initializer[:0:0]
	for _, t := range m.Graph.Initializer {
		if !move[t.Name] {
			init = append(init, t)
			continue
		}
		v, err := onnx.TensorOf(t)
		if err != nil {
			return nil, nil, err
		}
		point[t.Name] = v
		declared := false
		for _, in := range m.Graph.Input {
			declared = declared || in.Name == t.Name
		}
		if !declared {
			m.Graph.Input = append(m.Graph.Input, onnx.NewValueInfo(onnx.Value(t.Name), onnx.TypeOf(v.DType(), v.Shape()...)))
		}
	}
	m.Graph.Initializer = init
	for _, w := range p.Wrt {
		if point[w] == nil {
			return nil, nil, fmt.Errorf("check gradient: %q is neither an input that is given nor an initializer", w)
		}
	}
	return m, point, nil
}

func values(names []string) []onnx.Value {
	out := make([]onnx.Value, len(names))
	for i, n := range names {
		out[i] = onnx.Value(n)
	}
	return out
}

func cotangent(out string) string { return "cotangent/" + out }

// gradient differentiates the sum of outputs weighted by cotangent inputs.
func gradient(m *onnx.Model, p Problem, outs []string) (*onnx.Model, error) {
	obj := autodiff.Objective{Name: p.Name, Wrt: p.Wrt, Stop: p.Stop}
	for _, out := range outs {
		obj.Losses = append(obj.Losses, autodiff.Loss{Value: out, Cotangent: cotangent(out)})
	}
	g, err := autodiff.Grad(m, autodiff.Options{Objectives: []autodiff.Objective{obj}})
	if err != nil {
		return nil, err
	}
	return g.Model, nil
}
