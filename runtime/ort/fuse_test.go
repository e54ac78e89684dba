//go:build cgo

package ort_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// chains makes graphs of element-wise nodes by chance.
type chains struct {
	*rng.Stream
	b      *onnx.Builder
	env    map[onnx.Value][]int
	values []onnx.Value
	in     []*tensor.Tensor
}

func (c *chains) add(v onnx.Value, dims []int) {
	c.env[v] = dims
	c.values = append(c.values, v)
}

func (c *chains) input(dims []int) {
	x := tensor.New(tensor.Float32, dims...)
	c.FillNormal32(x.Float32s(), 0, 1)
	if data := x.Float32s(); len(data) > 3 {
		data[0], data[1], data[2] = 0, float32(math.Copysign(0, -1)), float32(math.Inf(1))
	}
	c.in = append(c.in, x)
	c.add(c.b.Input(fmt.Sprintf("x%d", len(c.in)), onnx.TypeOf(tensor.Float32, dims...)), dims)
}

// broadcast returns the shape of two values together, and whether there is one.
func broadcast(a, b []int) ([]int, bool) {
	out := make([]int, max(len(a), len(b)))
	for i := range out {
		x, y := 1, 1
		if j := i - len(out) + len(a); j >= 0 {
			x = a[j]
		}
		if j := i - len(out) + len(b); j >= 0 {
			y = b[j]
		}
		if x != y && x != 1 && y != 1 {
			return nil, false
		}
		out[i] = max(x, y)
	}
	return out, true
}

func (c *chains) node() {
	a := c.values[c.IntN(len(c.values))]
	switch c.IntN(8) {
	case 0:
		op := []string{"Neg", "Abs", "Relu"}[c.IntN(3)]
		c.add(c.b.Op(op, []onnx.Value{a}), c.env[a])
	case 1:
		c.add(c.b.Op("HardSigmoid", []onnx.Value{a}, onnx.AttrFloat("alpha", 0.3), onnx.AttrFloat("beta", 0.4)), c.env[a])
	case 2:
		k := c.b.Float(float32(c.IntN(5)) - 2)
		args := []onnx.Value{a, k}
		if c.IntN(2) == 0 {
			args = []onnx.Value{k, a}
		}
		c.add(c.b.Op([]string{"Add", "Sub", "Mul", "Div"}[c.IntN(4)], args), c.env[a])
	case 3: // one that is never part of a chain
		c.add(c.b.Op("Softplus", []onnx.Value{a}), c.env[a])
	default:
		// The newest values are chosen more often: chains are long.
		b := c.values[len(c.values)-1-c.IntN(min(3, len(c.values)))]
		dims, ok := broadcast(c.env[a], c.env[b])
		if !ok {
			return
		}
		op := []string{"Add", "Sub", "Mul", "Div", "Sum"}[c.IntN(5)]
		args := []onnx.Value{a, b}
		if op == "Sum" && c.IntN(2) == 0 {
			args = append(args, c.b.Float(2.5), a)
		}
		c.add(c.b.Op(op, args), dims)
	}
}

// TestFuseElementwise compares graphs of element-wise nodes by chance, fused and not, bit for bit.
func TestFuseElementwise(t *testing.T) {
	e := open(t)
	defer e.Close()
	shapes := [][]int{{3, 4, 5}, {4, 5}, {5}, {4, 1}, {3, 1, 1}, {1, 4, 1}, {1}, {}, {3, 1, 5}, {3, 4, 1}}
	large := [][]int{{40, 2000}, {2000}, {40, 1}, {1, 1}}
	fused, elements, nodes := 0, 0, [2]int{}
	seeds := longtest.Cases(t, 300, 60)
	for seed := range uint64(seeds) {
		c := &chains{Stream: rng.New(seed).Stream(), b: onnx.NewBuilder("chain", 17), env: map[onnx.Value][]int{}}
		list := shapes
		if seed%30 == 0 {
			list = large
		}
		for range 2 + c.IntN(3) {
			c.input(list[c.IntN(len(list))])
		}
		for range 4 + c.IntN(30) {
			c.node()
		}
		// Some values in between are outputs, too.
		for i, v := range c.values[len(c.in):] {
			if i == len(c.values)-len(c.in)-1 || c.IntN(9) == 0 {
				c.b.Output(v, onnx.TypeOf(tensor.Float32, c.env[v]...))
			}
		}
		m, err := c.b.Model()
		if err != nil {
			continue // a value twice among the outputs
		}
		env, err := shape.Infer(m, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := ort.FuseElementwise(m, env)
		nodes[0] += len(m.Graph.Node)
		nodes[1] += len(f.Graph.Node)
		if f != m {
			fused++
		}
		threads := 1 + int(seed%60)/30
		want, got := ran(t, e, m, engine.Options{Optimize: engine.OptNone}, c.in), ran(t, e, m, engine.Options{Training: true, Threads: threads}, c.in)
		for k := range want {
			for i, w := range want[k].Float32s() {
				if g := got[k].Float32s()[i]; g != w && (g == g || w == w) {
					t.Fatalf("seed %d: output %d, element %d is %v fused, expected %v", seed, k, i, g, w)
				}
				elements++
			}
		}
	}
	if fused < seeds*2/3 || nodes[1] > nodes[0]*17/20 || elements < seeds*longtest.Cases(t, 2000, 300)/3 {
		t.Errorf("%d graphs fused, %d nodes have become %d, %d elements compared", fused, nodes[0], nodes[1], elements)
	}
}

// ran returns the outputs of a model.
func ran(t *testing.T, e engine.Compiler, m *onnx.Model, o engine.Options, in []*tensor.Tensor) []*tensor.Tensor {
	t.Helper()
	s, err := e.Compile(m, o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	out := make([]*tensor.Tensor, len(s.Outputs()))
	if err := s.Run(t.Context(), out, in); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFuseElementwiseLeaves names what is no chain, or what ONNX Runtime joins itself.
func TestFuseElementwiseLeaves(t *testing.T) {
	known := onnx.TypeOf(tensor.Float32, 4, 8)
	for _, k := range []struct {
		name  string
		fused bool
		make  func(b *onnx.Builder, x onnx.Value) onnx.Value
		typ   onnx.TensorType
	}{
		{"two", true, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("Neg", []onnx.Value{b.Op("Mul", []onnx.Value{x, x})})
		}, known},
		{"one", false, func(b *onnx.Builder, x onnx.Value) onnx.Value { return b.Op("Neg", []onnx.Value{x}) }, known},
		{"an extent that is not known", false, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("Neg", []onnx.Value{b.Op("Mul", []onnx.Value{x, x})})
		}, onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Known(8)}}},
		{"another type", false, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("Neg", []onnx.Value{b.Op("Mul", []onnx.Value{x, x})})
		}, onnx.TypeOf(tensor.Float64, 4, 8)},
		{"a value with two uses", false, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			y := b.Op("Mul", []onnx.Value{x, x})
			return b.Op("MatMul", []onnx.Value{b.Op("Neg", []onnx.Value{y}), b.Op("Transpose", []onnx.Value{y}, onnx.AttrInts("perm", 1, 0))})
		}, known},
		{"a product's bias", false, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			y := b.Op("MatMul", []onnx.Value{x, b.Initializer("w", tensor.New(tensor.Float32, 8, 8))})
			return b.Op("Neg", []onnx.Value{b.Op("Add", []onnx.Value{y, b.Initializer("b", tensor.New(tensor.Float32, 8))})})
		}, known},
	} {
		b := onnx.NewBuilder("chain", 17)
		m := finished(t, b, k.make(b, b.Input("x", k.typ)))
		env, err := shape.Infer(m, nil)
		if err != nil {
			t.Fatal(err)
		}
		before := len(m.Graph.Node)
		f := ort.FuseElementwise(m, env)
		ours := slices.ContainsFunc(f.Graph.Node, func(n *onnx.Node) bool { return n.Domain != "" })
		if ours != k.fused || len(m.Graph.Node) != before {
			t.Errorf("%s: fused %v, expected %v; %d nodes, %d before", k.name, ours, k.fused, len(m.Graph.Node), before)
		}
	}
}

// TestFusedNodeRefuses: attributes that would make a node read or write what is not its own.
func TestFusedNodeRefuses(t *testing.T) {
	e := open(t)
	defer e.Close()
	ints := onnx.AttrInts
	good := func() []*onnx.Attribute {
		return []*onnx.Attribute{ints("shape", 4, 8), ints("extents", 1, 32), onnx.AttrFloats("constants", 1), ints("steps", 0, 0, 0, 1, 2, 0, 2, 0)}
	}
	if err := ort.CompileKernel(e, ort.FusedName, []tensor.DType{tensor.Float32}, []int{4, 8}, good()); err != nil {
		t.Fatal(err)
	}
	n := 0
	for i, list := range [][]*onnx.Attribute{
		0: {ints("shape", 4, 0), ints("shape", 4, -8), ints("shape", 1<<40, 1<<40), ints("shape", 1, 1, 1, 1, 1, 1, 1, 1, 1)},
		1: {ints("extents", 0, 32), ints("extents", 1, 0), ints("extents", 2, 32), ints("extents", 1), ints("extents", 1, 32, 1, 32)},
		2: {onnx.AttrFloats("constants", make([]float32, 33)...)},
		3: {
			ints("steps", 99, 0, 0, 0), ints("steps", -1, 0, 0, 0), ints("steps", 0, 12, 0, 0), ints("steps", 0, -1, 0, 0), ints("steps", 0, 0, 0),
			ints("steps", 0, 0, 0, 2), ints("steps", 0, 0, 14, 0), ints("steps", 0, 0, -1, 0), ints("steps", 0, 0, 1, 1), ints("steps", 4, 0, 1, 0),
		},
	} {
		for _, a := range list {
			bad := good()
			bad[i] = a
			if err := ort.CompileKernel(e, ort.FusedName, []tensor.DType{tensor.Float32}, []int{4, 8}, bad); err == nil {
				t.Errorf("%v is accepted", a)
			}
			n++
		}
		missing := slices.Delete(good(), i, i+1)
		if err := ort.CompileKernel(e, ort.FusedName, []tensor.DType{tensor.Float32}, []int{4, 8}, missing); err == nil {
			t.Errorf("a node without attribute %d is accepted", i)
		}
		n++
	}
	if n != 24 {
		t.Errorf("%d nodes", n)
	}
}

// BenchmarkFuse is a gradient of tanh with 64 rows of 64, as three nodes and as one.
func BenchmarkFuse(b *testing.B) {
	for _, fuse := range []bool{false, true} {
		b.Run(fmt.Sprintf("fuse=%v", fuse), func(b *testing.B) {
			e := open(b)
			defer e.Close()
			g := onnx.NewBuilder("tanh", 17)
			y, d := g.Input("y", onnx.TypeOf(tensor.Float32, 64, 64)), g.Input("d", onnx.TypeOf(tensor.Float32, 64, 64))
			out := g.Op("Mul", []onnx.Value{d, g.Op("Sub", []onnx.Value{g.Float(1), g.Op("Mul", []onnx.Value{y, y})})})
			g.Output(out, onnx.TypeOf(tensor.Float32, 64, 64))
			m, err := g.Model()
			if err != nil {
				b.Fatal(err)
			}
			s, err := e.Compile(m, engine.Options{Training: fuse})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			x := func() *tensor.Tensor { return tensor.New(tensor.Float32, 64, 64) }
			bound, err := s.Bind([]*tensor.Tensor{x()}, []*tensor.Tensor{x(), x()})
			if err != nil {
				b.Fatal(err)
			}
			defer bound.Close()
			b.ReportAllocs()
			for b.Loop() {
				if err := bound.Run(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
