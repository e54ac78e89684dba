package portable

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// Attributes that lowering adds to a node, because the decoder passes on neither of the fields they
// stand for. The prefix is that of attributes whose value is an index into the table carried beside
// the encoded graph.
const (
	attrDomain    = "onnxrl.domain"
	attrName      = "onnxrl.name"
	attrOpset     = "onnxrl.opset"
	carriedPrefix = "onnxrl.carried/"
)

func carriedName(attr string) (string, bool) { return strings.CutPrefix(attr, carriedPrefix) }

// lowered is one graph in the form that onnx-go decodes without loss, and what travels beside it.
type lowered struct {
	proto   *onnx.Model
	carried []*onnx.Attribute
	// inputs and outputs are the true ports of the graph, in order. outputs[i] is produced under
	// the lowered name lowOut[i].
	inputs, outputs []*onnx.ValueInfo
	weights         []*onnx.TensorProto
	sparse          []*onnx.SparseTensorProto
}

// lowerGraph rewrites a graph of a model for the decoder. body says that it is a sub-graph of a
// node.
func lowerGraph(g *onnx.Graph, model *onnx.Model, body bool) (*lowered, error) {
	l := &lowered{outputs: g.Output, weights: g.Initializer, sparse: g.SparseInitializer}
	low := &onnx.Graph{Name: "lowered"}
	l.proto = &onnx.Model{IrVersion: onnx.DefaultIR, Graph: low, OpsetImport: []*onnx.OperatorSet{{Version: 1}}}
	if len(g.Output) == 0 {
		return nil, errNoOutput
	}
	weight := map[string]bool{}
	for _, t := range g.Initializer {
		weight[t.Name] = true
		// Weights stay where they are; the decoder sees their names.
		low.Initializer = append(low.Initializer, &onnx.TensorProto{Name: t.Name, DataType: 1, Dims: []int64{0}})
	}
	for _, t := range g.SparseInitializer {
		name := t.GetValues().GetName()
		weight[name] = true
		low.Initializer = append(low.Initializer, &onnx.TensorProto{Name: name, DataType: 1, Dims: []int64{0}})
	}
	for _, in := range g.Input {
		// A value that is input and initializer has a default, which is what this engine uses.
		// Inside a body all inputs are given by the node.
		if weight[in.Name] && !body {
			continue
		}
		l.inputs = append(l.inputs, in)
		low.Input = append(low.Input, &onnx.ValueInfo{Name: in.Name})
	}
	made := map[string]bool{}
	for i, n := range g.Node {
		d, err := l.lowerNode(n, model)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.Describe(), err)
		}
		if len(d.Output) == 0 || !slices.ContainsFunc(d.Output, func(s string) bool { return s != "" }) {
			return nil, fmt.Errorf("node %d, %s, has no outputs", i, n.Describe())
		}
		low.Node = append(low.Node, d)
		for _, o := range n.Output {
			made[o] = true
		}
	}
	// An output that no node makes, or that is listed twice, is passed through an Identity: the
	// decoder gives each output one value of its own and refuses graphs without nodes.
	seen := map[string]bool{}
	for i, out := range g.Output {
		name := out.Name
		if !made[name] || seen[name] {
			name = fmt.Sprintf("onnxrl.output/%d", i)
			low.Node = append(low.Node, &onnx.Node{OpType: "Identity", Input: []string{out.Name}, Output: []string{name},
				Attribute: []*onnx.Attribute{onnx.AttrStr(attrName, "output "+out.Name), onnx.AttrInt(attrOpset, 21)}})
		}
		seen[name] = true
		low.Output = append(low.Output, &onnx.ValueInfo{Name: name})
	}
	return l, nil
}

func (l *lowered) lowerNode(n *onnx.Node, model *onnx.Model) (*onnx.Node, error) {
	domain := onnx.NormalizeDomain(n.Domain)
	opset := model.Opset(domain)
	if opset == 0 {
		return nil, fmt.Errorf("the model imports no opset of domain %q", domain)
	}
	m := &onnx.Node{OpType: n.OpType, Input: n.Input, Output: n.Output}
	if len(m.Input) == 0 {
		// The decoder would invent a named input; an absent one says the same and is its own
		// inverse below.
		m.Input = []string{""}
	}
	seen := map[string]bool{}
	for _, a := range n.Attribute {
		if seen[a.Name] {
			return nil, fmt.Errorf("attribute %q is given twice", a.Name)
		}
		seen[a.Name] = true
		if strings.HasPrefix(a.Name, "onnxrl.") {
			return nil, fmt.Errorf("attribute name %q is reserved", a.Name)
		}
		if a.RefAttrName != "" {
			return nil, fmt.Errorf("attribute %q refers to %q outside a function", a.Name, a.RefAttrName)
		}
		switch a.Type {
		case onnx.AttributeProto_INT, onnx.AttributeProto_FLOAT, onnx.AttributeProto_STRING,
			onnx.AttributeProto_INTS, onnx.AttributeProto_FLOATS, onnx.AttributeProto_STRINGS:
			m.Attribute = append(m.Attribute, a)
		default:
			m.Attribute = append(m.Attribute, onnx.AttrInt(carriedPrefix+a.Name, len(l.carried)))
			l.carried = append(l.carried, a)
		}
	}
	m.Attribute = append(m.Attribute, onnx.AttrInt(attrOpset, opset))
	if domain != "" {
		m.Attribute = append(m.Attribute, onnx.AttrStr(attrDomain, domain))
	}
	if n.Name != "" {
		m.Attribute = append(m.Attribute, onnx.AttrStr(attrName, n.Name))
	}
	return m, nil
}

// raise undoes lowerNode on a decoded node: domain and name return to their fields, absent trailing
// inputs go.
func raise(n *onnx.Node) (opset int) {
	opset = n.Int(attrOpset, 0)
	n.Domain = n.Str(attrDomain, "")
	n.Name = n.Str(attrName, "")
	n.Attribute = slices.DeleteFunc(n.Attribute, func(a *onnx.Attribute) bool { return strings.HasPrefix(a.Name, "onnxrl.") })
	slices.SortFunc(n.Attribute, func(a, b *onnx.Attribute) int { return strings.Compare(a.Name, b.Name) })
	for len(n.Input) > 0 && n.Input[len(n.Input)-1] == "" {
		n.Input = n.Input[:len(n.Input)-1]
	}
	return opset
}
