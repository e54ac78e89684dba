package lora

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/glob"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// constPrefix begins the names of what the builder of a network has for constants.
const constPrefix = "const/"

// weight is the initializer behind a node's operand.
type weight struct {
	// input is the operand's position in the node.
	input int
	// name is the initializer's name, aliases are those of the values on the way from it: exporters
	// put a Transpose between a layer's weight and its MatMul, and an Identity where they merged
	// weights of equal content.
	name    string
	aliases []string
	// transposed says that the node sees the initializer's transpose.
	transposed bool
	dims       []int64
}

// weightOf returns the weight of a node, or false when the node cannot be adapted.
func (r *rewriter) weightOf(n *onnx.Node) (weight, bool) {
	if onnx.NormalizeDomain(n.Domain) != "" {
		return weight{}, false
	}
	switch n.OpType {
	case "MatMul":
		if w, ok := r.operand(n, 1); ok && len(w.dims) == 2 {
			return w, true
		}
		w, ok := r.operand(n, 0)
		return w, ok && len(w.dims) == 2 && !w.transposed
	case "Gemm":
		w, ok := r.operand(n, 1)
		return w, ok && len(w.dims) == 2 && n.Int("transA", 0) == 0
	case "Conv":
		w, ok := r.operand(n, 1)
		return w, ok && len(w.dims) >= 3 && !w.transposed
	}
	return weight{}, false
}

// operand follows an operand through Identity and matrix transposes to a float32 initializer.
func (r *rewriter) operand(n *onnx.Node, i int) (weight, bool) {
	w := weight{input: i, name: string(n.In(i))}
	for {
		p := r.x.Producer(onnx.Value(w.name))
		if p == nil {
			break
		}
		if !passes(p) {
			return weight{}, false
		}
		if p.OpType == "Transpose" {
			w.transposed = !w.transposed
		}
		w.aliases = append(w.aliases, w.name)
		w.name = p.Input[0]
	}
	t := r.x.Initializer(onnx.Value(w.name))
	if t == nil || tensor.DType(t.DataType) != tensor.Float32 || strings.HasPrefix(t.Name, constPrefix) {
		return weight{}, false
	}
	w.dims = t.Dims
	return w, true
}

// passes reports whether a node hands on a weight as it is or as a transposed matrix.
func passes(n *onnx.Node) bool {
	if onnx.NormalizeDomain(n.Domain) != "" {
		return false
	}
	perm := n.Ints("perm")
	return n.OpType == "Identity" || n.OpType == "Transpose" && (perm == nil || slices.Equal(perm, []int{1, 0}))
}

// matches reports whether a pattern names the weight, a value on the way from it, or the node.
func (w weight) matches(pattern string, n *onnx.Node) bool {
	if glob.Match(pattern, w.name) || n.Name != "" && glob.Match(pattern, n.Name) {
		return true
	}
	return slices.ContainsFunc(w.aliases, func(a string) bool { return glob.Match(pattern, a) })
}

// kindWeight is the kind of an adapter that is added to its weight.
const kindWeight = "weight"

// shaped returns the weights of two or more axes of which nodes make, of nothing but initializers,
// what MatMul, Gemm or Conv read: parts of a split weight, or the sum of several kernels.
func (r *rewriter) shaped(nodes []*onnx.Node, weights []*onnx.TensorProto) map[string]bool {
	fixed := map[*onnx.Node]bool{}
	r.fixed = fixed
	for _, n := range nodes {
		fixed[n] = len(n.Subgraphs()) == 0 && !slices.ContainsFunc(n.Input, func(v string) bool {
			p := r.x.Producer(onnx.Value(v))
			return v != "" && r.x.Initializer(onnx.Value(v)) == nil && (p == nil || !fixed[p])
		})
	}
	list := map[string]bool{}
	for _, t := range weights {
		if len(t.Dims) < 2 || tensor.DType(t.DataType) != tensor.Float32 || strings.HasPrefix(t.Name, constPrefix) {
			continue
		}
		if layers, direct := r.feeds(onnx.Value(t.Name), fixed); layers && !direct {
			list[t.Name] = true
		}
	}
	return list
}

// feeds reports whether a value that depends on initializers alone ends up in weights of layers and
// nowhere else, and whether these have it as it is or transposed.
func (r *rewriter) feeds(v onnx.Value, fixed map[*onnx.Node]bool) (layers, direct bool) {
	consumers := r.x.Consumers(v)
	if r.captured[string(v)] || r.x.Output(v) != nil || len(consumers) == 0 {
		return false, false
	}
	direct = true
	for _, n := range consumers {
		switch {
		case n.OpType == "CastLike" && n.In(0) != v, n.OpType == "Shape":
			// These look at the type only.
		case fixed[n]:
			direct = direct && passes(n)
			for i := range n.Output {
				if n.Output[i] == "" {
					continue
				}
				ok, d := r.feeds(n.Out(i), fixed)
				if !ok {
					return false, false
				}
				direct = direct && d
			}
		case onnx.NormalizeDomain(n.Domain) == "" && slices.Contains([]string{"MatMul", "Gemm", "Conv"}, n.OpType) && (n.In(0) == v || n.In(1) == v):
			_, ok := r.weightOf(n)
			direct = direct && ok
		default:
			return false, false
		}
	}
	return true, direct
}

// checkUses refuses a weight that something else than its adapter's nodes reads: merging would
// change that too.
func (r *rewriter) checkUses(ad *Adapter, value onnx.Value) error {
	if r.captured[string(value)] || r.x.Output(value) != nil {
		return fmt.Errorf("weight %q is also used by a sub-graph or an output; exclude it from the targets", ad.Weight)
	}
	for _, n := range r.x.Consumers(value) {
		switch {
		case passes(n):
			if err := r.checkUses(ad, n.Out(0)); err != nil {
				return err
			}
		case n.OpType == "CastLike" && n.In(0) != value, n.OpType == "Shape":
			// These look at the type only.
		case !r.adapted[n]:
			return fmt.Errorf("weight %q is also used by %s, which is not adapted, and merging would change both; target both, exclude the weight, "+
				"or give each its own where an exporter merged weights that were equal (package models: Untie; onnxrl fit: untie)", ad.Weight, n.Describe())
		}
	}
	return nil
}

// captures collects the names that sub-graphs of nodes read.
func captures(g *onnx.Graph, into map[string]bool) {
	for _, n := range g.Node {
		for _, s := range n.Subgraphs() {
			s.Reads(into)
		}
	}
}
