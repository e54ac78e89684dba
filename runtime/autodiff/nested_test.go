package autodiff_test

import (
	"fmt"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// nest writes conditions inside conditions, on nodes that need floats, integers and booleans of the
// forward pass for their gradients.
type nest struct {
	// both says that the second branch of a condition holds further ones too, not only the first.
	both bool
	// where computes both branches and chooses between their values, without any If: the reference.
	where bool
	// weights is the number of different weights.
	weights int
}

// branch returns nodes that compute a value of the shape of x, and its name.
func (s nest) branch(depth int, x string, count *int) (nodes []*onnx.Node, out string) {
	*count++
	tag := fmt.Sprint(*count)
	add := func(op, name string, in []string, attrs ...*onnx.Attribute) string {
		name += tag
		nodes = append(nodes, &onnx.Node{OpType: op, Name: name, Input: in, Output: []string{name}, Attribute: attrs})
		return name
	}
	h := add("Tanh", "tanh", []string{add("Mul", "scaled", []string{x, fmt.Sprintf("w%d", depth%s.weights)})})
	// Sorting hands the gradient on by indices.
	nodes = append(nodes, &onnx.Node{OpType: "TopK", Name: "sorted" + tag, Input: []string{h, "three"}, Output: []string{"sorted" + tag, "order" + tag}})
	h = "sorted" + tag
	if depth == 0 {
		return nodes, h
	}
	small := add("Less", "small", []string{add("ReduceMax", "top", []string{h}, onnx.AttrInt("keepdims", 0)), "two"})
	cond := add("And", "cond", []string{fmt.Sprintf("c%d", depth), small})
	other := 0
	if s.both {
		other = depth - 1
	}
	first, a := s.branch(depth-1, h, count)
	second, b := s.branch(other, h, count)
	if s.where {
		nodes = append(append(nodes, first...), second...)
		h = add("Where", "y", []string{cond, a, b})
	} else {
		graph := func(nodes []*onnx.Node, out string) *onnx.Graph {
			return &onnx.Graph{Name: "branch", Node: nodes, Output: []*onnx.ValueInfo{onnx.NewValueInfo(onnx.Value(out), f32(3))}}
		}
		h = add("If", "y", []string{cond}, onnx.AttrGraph("then_branch", graph(first, a)), onnx.AttrGraph("else_branch", graph(second, b)))
	}
	return nodes, add("Tanh", "z", []string{h})
}

func (s nest) model(t *testing.T, depth int) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("nest", 18)
	b.Input("x", f32(3))
	for d := range s.weights {
		b.Initializer(fmt.Sprintf("w%d", d), random(uint64(d), 3))
	}
	b.Initializer("three", tensor.Of([]int64{3}, 1))
	b.Initializer("two", tensor.Scalar(float32(2)))
	for d := 1; d <= depth; d++ {
		b.Input(fmt.Sprintf("c%d", d), onnx.TypeOf(tensor.Bool))
	}
	nodes, out := s.branch(depth, "x", new(int))
	for _, n := range nodes {
		b.Append(n)
	}
	b.Output(b.Rename(onnx.Value(out), "y"), f32(3))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestNestedIf compares gradients of nested conditions with those of the same graph without any,
// for every path through them, and of two objectives that share the forward pass.
func TestNestedIf(t *testing.T) {
	longtest.Slow(t)
	const depth = 3
	o := autodiff.Options{Objectives: []autodiff.Objective{
		{Name: "a", Losses: []autodiff.Loss{{Value: "y"}}, Wrt: []string{"x", "w*"}},
		{Name: "b", Losses: []autodiff.Loss{{Value: "y", Weight: -2}}, Wrt: []string{"w1"}},
	}}
	for _, c := range engines(t) {
		compared := 0
		for _, both := range []bool{false, true} {
			ifs, where := nest{both: both, weights: 4}, nest{both: both, where: true, weights: 4}
			for path := range 1 << depth {
				in := map[string]*tensor.Tensor{"x": random(9, 3)}
				for d := 1; d <= depth; d++ {
					in[fmt.Sprintf("c%d", d)] = tensor.Scalar(path>>(d-1)&1 == 1)
				}
				want := runs(t, c, where.model(t, depth), o, in)
				for name, got := range sorted.All(runs(t, c, ifs.model(t, depth), o, in)) {
					near(t, fmt.Sprintf("path %b: %s", path, name), got.Float32s(), want[name].Float32s(), 1e-6)
					compared++
				}
			}
		}
		if compared != 2*(1<<depth)*7 {
			t.Errorf("%s: %d values compared", c.Name(), compared)
		}
	}
}

// size counts the nodes of a graph with those of its sub-graphs.
func size(g *onnx.Graph) int {
	n := len(g.Node)
	for _, node := range g.Node {
		for _, s := range node.Subgraphs() {
			n += size(s)
		}
	}
	return n
}

// TestNestedIfSize: every further condition adds about the same number of nodes and bytes.
func TestNestedIfSize(t *testing.T) {
	measure := func(s nest, depth int) (forward, nodes, bytes int) {
		m := s.model(t, depth)
		g, err := autodiff.Grad(m, wrt("y", "x", "w*"))
		if err != nil {
			t.Fatal(err)
		}
		data, err := onnx.Marshal(g.Model)
		if err != nil {
			t.Fatal(err)
		}
		return size(m.Graph), size(g.Model.Graph), len(data)
	}
	for _, shared := range []bool{false, true} {
		var nodes, bytes []int
		for _, depth := range []int{4, 8, 12, 16, 20}[:longtest.Cases(t, 5, 3)] {
			weights := depth + 1
			if shared {
				weights = 1
			}
			_, n, b := measure(nest{weights: weights}, depth)
			nodes, bytes = append(nodes, n), append(bytes, b)
		}
		for _, list := range [][]int{nodes, bytes} {
			for i := 2; i < len(list); i++ {
				if step, first := float64(list[i]-list[i-1]), float64(list[1]-list[0]); step > 1.15*first {
					t.Errorf("shared weights %v, at depths 4, 8, …: %d", shared, list)
				}
			}
		}
		t.Logf("shared weights %v: nodes %d, bytes %d", shared, nodes, bytes)
	}
	// With conditions in both branches the gradient stays in proportion to the graph.
	forward3, nodes3, _ := measure(nest{both: true, weights: 1}, 3)
	forward8, nodes8, _ := measure(nest{both: true, weights: 1}, 8)
	if a, b := float64(nodes3)/float64(forward3), float64(nodes8)/float64(forward8); b > 1.2*a {
		t.Errorf("%d nodes of gradients for %d, %d for %d", nodes3, forward3, nodes8, forward8)
	}
	t.Logf("%d nodes for %d, %d for %d", nodes3, forward3, nodes8, forward8)
}
