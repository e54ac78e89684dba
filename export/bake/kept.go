package bake

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Kept is a float32 weight that a model of lower precision keeps as it is.
type Kept struct {
	Name     string `json:"name"`
	Elements int    `json:"elements"`
	// Why says what was in the way.
	Why string `json:"why"`
}

// KeptFloat lists the larger float32 weights of m, of at least 1,024 elements, that low, which
// [Float16] or [Int8] has made of it, keeps in float32. small counts the smaller ones, which are
// always kept.
func KeptFloat(m, low *onnx.Model) (list []Kept, small int) {
	kept := map[string]bool{}
	for _, p := range low.Graph.Initializer {
		kept[p.Name] = tensor.DType(p.DataType) == tensor.Float32
	}
	readers := map[string][]*onnx.Node{}
	for _, n := range m.Graph.Node {
		for _, v := range onnx.Reads(n) {
			readers[string(v)] = append(readers[string(v)], n)
		}
	}
	int8 := false
	if v, _ := low.Meta(metaWeights); v == "int8" {
		int8 = true
	}
	for _, p := range m.Graph.Initializer {
		n := 1
		for _, d := range p.Dims {
			n *= int(d)
		}
		switch {
		case tensor.DType(p.DataType) != tensor.Float32 || !kept[p.Name]:
		case n < SmallestWeight:
			small++
		default:
			list = append(list, Kept{p.Name, n, whyKept(m, p, readers[p.Name], int8)})
		}
	}
	for _, n := range m.Graph.Node {
		if a := n.Attr("value"); n.OpType == "Constant" && a != nil && tensor.DType(a.T.GetDataType()) == tensor.Float32 {
			if t, err := onnx.TensorOf(a.T); err == nil && t.Len() >= SmallestWeight {
				list = append(list, Kept{n.Output[0], t.Len(), "it is the value of a node and no initializer"})
			}
		}
	}
	return list, small
}

func whyKept(m *onnx.Model, p *onnx.TensorProto, readers []*onnx.Node, int8 bool) string {
	if isInput(m.Graph, p.Name) {
		return "it is the default of an input"
	}
	if !int8 {
		if len(p.Dims) < 2 {
			return "it is a vector"
		}
		return "float16 does not hold its numbers"
	}
	var others []string
	for _, n := range readers {
		product := n.OpType == "MatMul" || n.OpType == "Gemm" || n.OpType == "Conv"
		if (!product || n.In(1) != onnx.Value(p.Name)) && !slices.Contains(others, n.OpType) {
			others = append(others, n.OpType)
		}
	}
	switch n := first(readers); {
	case len(others) > 0:
		slices.Sort(others)
		return "it is read by " + strings.Join(others, ", ") + ", not only as the weight of MatMul, Gemm or Conv"
	case n == nil:
		return "nothing reads it"
	case n.OpType != "Conv" && len(p.Dims) != 2:
		return fmt.Sprintf("it has %d axes, and the weight of a product in int8 has 2", len(p.Dims))
	case n.OpType == "Gemm" && (n.Int("transA", 0) != 0 || n.Float("alpha", 1) != 1 || n.Float("beta", 1) != 1):
		return "its Gemm has transA, alpha or beta"
	case onnx.NormalizeDomain(n.Domain) != onnx.DomainStandard:
		return "its operator is of the domain " + n.Domain
	}
	return "it holds numbers that are not finite"
}

func first(list []*onnx.Node) *onnx.Node {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}
