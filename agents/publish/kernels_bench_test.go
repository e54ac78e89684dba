package publish

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// copies is how many copies of a node are timed at once.
const copies = 64

// kernels is the sum of what the nodes of a model take, in microseconds, each by itself: of the
// graph that the engine has optimised, so many copies of a node in one session on the values that a
// policy has at present, with what a session costs without them taken off.
func kernels(b *testing.B, c engine.Compiler, m *onnx.Model, p *served.Policy) float64 {
	b.Helper()
	one, err := onnx.BindDims(m, map[string]int{"batch": 1})
	if err != nil {
		b.Fatal(err)
	}
	path := filepath.Join(b.TempDir(), "optimized.onnx")
	s, err := c.Compile(one, engine.Options{Optimized: path})
	if err != nil {
		b.Fatal(err)
	}
	if err := s.Close(); err != nil {
		b.Fatal(err)
	}
	g, err := onnx.Load(path)
	if err != nil {
		b.Fatal(err)
	}
	env, err := shape.Infer(g, nil)
	if err != nil {
		b.Fatal(err)
	}
	values := map[string]*tensor.Tensor{}
	for _, t := range g.Graph.Initializer {
		if values[t.Name], err = onnx.TensorOf(t); err != nil {
			b.Fatal(err)
		}
	}
	for _, in := range g.Graph.Input {
		values[in.Name] = p.Input(in.Name)
	}
	sum := 0.0
	empty := math.Inf(1)
	for i, n := range append([]*onnx.Node{nil}, g.Graph.Node...) {
		took := node(b, c, g, env, n, values)
		if i == 0 {
			empty = took
			continue
		}
		sum += (took - empty) / copies
	}
	return sum
}

// node is the least time of a session of copies of a node, or of none, in microseconds; it adds the
// values of its outputs.
func node(b *testing.B, c engine.Compiler, g *onnx.Model, env *shape.Env, n *onnx.Node, values map[string]*tensor.Tensor) float64 {
	b.Helper()
	m := &onnx.Model{IrVersion: g.IrVersion, OpsetImport: g.OpsetImport, Graph: &onnx.Graph{Name: "node"}}
	x := tensor.New(tensor.Float32, 1)
	in := []*tensor.Tensor{x}
	m.Graph.Input = []*onnx.ValueInfo{onnx.NewValueInfo("x", onnx.TypeOf(tensor.Float32, 1))}
	m.Graph.Output = []*onnx.ValueInfo{onnx.NewValueInfo("y", onnx.TypeOf(tensor.Float32, 1))}
	m.Graph.Node = []*onnx.Node{{OpType: "Identity", Input: []string{"x"}, Output: []string{"y"}}}
	out := []*tensor.Tensor{tensor.New(tensor.Float32, 1)}
	if n != nil {
		constant := map[string]bool{}
		for _, t := range g.Graph.Initializer {
			constant[t.Name] = true
		}
		seen := map[string]bool{"": true}
		for _, name := range n.Input {
			if seen[name] {
				continue
			}
			seen[name] = true
			t := values[name]
			if constant[name] {
				m.Graph.Initializer = append(m.Graph.Initializer, onnx.ProtoOf(name, t))
				continue
			}
			m.Graph.Input = append(m.Graph.Input, onnx.NewValueInfo(onnx.Value(name), onnx.TypeOf(t.DType(), t.Shape()...)))
			in = append(in, t)
		}
		for k := range copies {
			dup := &onnx.Node{OpType: n.OpType, Domain: n.Domain, Name: fmt.Sprint("n", k), Input: n.Input, Attribute: n.Attribute}
			for _, o := range n.Output {
				name := fmt.Sprint(o, "#", k)
				if o == "" {
					name = ""
				} else {
					typ := env.Type(onnx.Value(o))
					m.Graph.Output = append(m.Graph.Output, onnx.NewValueInfo(onnx.Value(name), typ))
					out = append(out, tensor.New(typ.DType, typ.MustStatic()...))
					if k == 0 {
						values[o] = out[len(out)-1]
					}
				}
				dup.Output = append(dup.Output, name)
			}
			m.Graph.Node = append(m.Graph.Node, dup)
		}
	}
	s, err := c.Compile(m, engine.Options{Optimize: engine.OptNone})
	if err != nil {
		b.Fatal(n, err)
	}
	defer s.Close()
	bound, err := s.Bind(out, in)
	if err != nil {
		b.Fatal(n, err)
	}
	defer bound.Close()
	least := time.Duration(math.MaxInt64)
	for range 200 {
		at := time.Now()
		if err := bound.Run(); err != nil {
			b.Fatal(err)
		}
		least = min(least, time.Since(at))
	}
	return float64(least.Nanoseconds()) / 1e3
}
