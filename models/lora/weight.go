package lora

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/glob"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

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
	if t == nil || tensor.DType(t.DataType) != tensor.Float32 {
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
