package portable

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Name is the engine's name, as --engine takes it.
const Name = "portable"

// Compiler compiles models for the pure-Go engine. Its zero value is not usable; see [New].
type Compiler struct{ closed atomic.Bool }

var _ engine.Compiler = (*Compiler)(nil)

// New returns a compiler. Closing it does not close its sessions.
func New() engine.Compiler { return &Compiler{} }

// Name implements engine.Compiler.
func (c *Compiler) Name() string { return Name }

// Close implements engine.Compiler.
func (c *Compiler) Close() error {
	if c.closed.Swap(true) {
		return fmt.Errorf("close compiler: %w", engine.ErrClosed)
	}
	return nil
}

// Compile implements engine.Compiler. Of the options it honours Threads; the others name things
// that this engine does not have. A node without a kernel, or whose kernel does not take the types of
// its inputs, is an [engine.UnsupportedError].
func (c *Compiler) Compile(m *onnx.Model, o engine.Options) (engine.Session, error) {
	if c.closed.Load() {
		return nil, fmt.Errorf("compile: %w", engine.ErrClosed)
	}
	if m == nil || m.Graph == nil {
		return nil, fmt.Errorf("compile: the model has no graph")
	}
	s, err := compile(m, o, true)
	if err != nil {
		return nil, fmt.Errorf("compile graph %q: %w", m.Graph.Name, err)
	}
	return s, nil
}

// compile makes a session. With probes, it finds out what each kernel refuses.
func compile(m *onnx.Model, o engine.Options, probes bool) (*session, error) {
	m, err := inlined(m)
	if err != nil {
		return nil, err
	}
	g := m.Graph
	var hint sizeHint
	if probes {
		// A model whose types cannot be inferred runs as well without.
		if env, err := shape.Infer(m, nil); err == nil {
			if err := probe(g, env); err != nil {
				return nil, err
			}
			hint = sizesOf(m, env)
		}
	}
	p, err := compileGraph(g, m, nil, hint)
	if err != nil {
		return nil, err
	}
	s := &session{prog: p, shared: &shared{workers: newWorkers(o.Threads)}}
	for _, v := range g.Inputs() {
		port, err := portOf(v)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", v.Name, err)
		}
		s.in = append(s.in, port)
	}
	for _, v := range g.Output {
		port, err := portOf(v)
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", v.Name, err)
		}
		s.out = append(s.out, port)
	}
	return s, nil
}

// inlined returns the model with its own functions inlined, and every operator that has no kernel
// but is defined by the standard in terms of others replaced by that definition.
func inlined(m *onnx.Model) (*onnx.Model, error) {
	m, err := onnx.InlineFunctions(m)
	if err != nil {
		return nil, err
	}
	return onnx.Expand(m, func(n *onnx.Node, opset int) (*onnx.Function, error) {
		if op, _ := findOperator(n, opset); op != nil {
			return nil, nil
		}
		return onnx.SchemaBody(n.Domain, n.OpType, opset), nil
	})
}

// sizesOf are the sizes of values as far as they are known, symbols counting as 1.
func sizesOf(m *onnx.Model, env *shape.Env) sizeHint {
	if len(m.Graph.Node) < minHinted {
		return nil
	}
	return func(name string) int {
		n := 1
		for _, d := range env.Type(onnx.Value(name)).Dims {
			if d.Value > 0 && n < maxValueBytes/d.Value {
				n *= d.Value
			}
		}
		return n
	}
}

// minHinted is the number of nodes below which there is nothing to plan.
const minHinted = 8

func portOf(v *onnx.ValueInfo) (engine.Port, error) {
	p := engine.Port{Name: v.Name}
	if v.GetType() == nil {
		return p, nil
	}
	t, ok := v.TensorType()
	if !ok {
		return p, unsupported("values that are not tensors cannot enter or leave a graph")
	}
	p.DType = t.DType
	if t.Ranked {
		p.Shape = make([]int, len(t.Dims))
		for i, d := range t.Dims {
			p.Shape[i] = d.Value
			if !d.IsKnown() {
				p.Shape[i] = -1
			}
		}
	}
	return p, nil
}

// Eval computes one node of the given opset. in follows the node's inputs, nil for absent ones; the
// result follows its outputs, nil where the node has none. It serves constant folding and tests;
// models run faster through [New].
func Eval(n *onnx.Node, opset int, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
	out, err := eval(n, opset, in)
	if err != nil {
		return nil, fmt.Errorf("evaluate %s: %w", n.Describe(), err)
	}
	return out, nil
}

func eval(n *onnx.Node, opset int, in []*tensor.Tensor) ([]*tensor.Tensor, error) {
	m := &onnx.Model{IrVersion: onnx.DefaultIR, Graph: &onnx.Graph{Name: n.OpType}, OpsetImport: []*onnx.OperatorSet{{Domain: n.Domain, Version: int64(opset)}}}
	e := &onnx.Node{Name: n.Name, OpType: n.OpType, Domain: n.Domain, Overload: n.Overload, Attribute: n.Attribute}
	var args []*tensor.Tensor
	for i := range n.Input {
		if i >= len(in) || in[i] == nil {
			e.Input = append(e.Input, "")
			continue
		}
		name := fmt.Sprintf("in/%d", i)
		e.Input = append(e.Input, name)
		m.Graph.Input = append(m.Graph.Input, onnx.NewValueInfo(onnx.Value(name), onnx.TypeOf(in[i].DType(), in[i].Shape()...)))
		args = append(args, in[i])
	}
	for i, o := range n.Output {
		if o == "" {
			e.Output = append(e.Output, "")
			continue
		}
		name := fmt.Sprintf("out/%d", i)
		e.Output = append(e.Output, name)
		m.Graph.Output = append(m.Graph.Output, &onnx.ValueInfo{Name: name})
	}
	m.Graph.Node = []*onnx.Node{e}
	s, err := compile(m, engine.Options{}, false)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	got := make([]*tensor.Tensor, len(s.out))
	if err := s.Run(context.Background(), got, args); err != nil {
		return nil, err
	}
	out := make([]*tensor.Tensor, len(n.Output))
	for i, o := range n.Output {
		if o != "" {
			out[i], got = got[0], got[1:]
		}
	}
	return out, nil
}
