package onnx

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
)

// Short names of the generated messages; they are the same types.
type (
	Model        = ModelProto
	Graph        = GraphProto
	Node         = NodeProto
	Function     = FunctionProto
	Attribute    = AttributeProto
	ValueInfo    = ValueInfoProto
	OperatorSet  = OperatorSetIdProto
	MetadataProp = StringStringEntryProto
)

// Value names one value (an edge) of a graph. The empty Value is an absent optional input or
// output.
type Value string

// Domains of operators. The standard domain is written as the empty string; "ai.onnx" in a file
// means the same.
const (
	DomainStandard = ""
	DomainML       = "ai.onnx.ml"
	DomainMS       = "com.microsoft"
	DomainPreview  = "ai.onnx.preview.training"
)

// NormalizeDomain maps "ai.onnx" to the empty string and leaves every other domain as it is.
func NormalizeDomain(d string) string {
	if d == "ai.onnx" {
		return DomainStandard
	}
	return d
}

// Opset returns the version that the model imports of a domain, or 0 when it imports none.
func (m *ModelProto) Opset(domain string) int { return opsetOf(m.GetOpsetImport(), domain) }

// SetOpset sets the imported version of a domain, adding the import when it is missing.
func (m *ModelProto) SetOpset(domain string, version int) {
	for _, o := range m.OpsetImport {
		if NormalizeDomain(o.Domain) == NormalizeDomain(domain) {
			o.Version = int64(version)
			return
		}
	}
	m.OpsetImport = append(m.OpsetImport, &OperatorSet{Domain: domain, Version: int64(version)})
}

func opsetOf(imports []*OperatorSet, domain string) int {
	for _, o := range imports {
		if NormalizeDomain(o.GetDomain()) == NormalizeDomain(domain) {
			return int(o.GetVersion())
		}
	}
	return 0
}

// Meta returns the value of a metadata property and whether it is present.
func (m *ModelProto) Meta(key string) (string, bool) {
	for _, p := range m.GetMetadataProps() {
		if p.Key == key {
			return p.Value, true
		}
	}
	return "", false
}

// SetMeta sets a metadata property, replacing an earlier value.
func (m *ModelProto) SetMeta(key, value string) {
	for _, p := range m.MetadataProps {
		if p.Key == key {
			p.Value = value
			return
		}
	}
	m.MetadataProps = append(m.MetadataProps, &MetadataProp{Key: key, Value: value})
}

// Clone returns a deep copy of the model, initializer bytes included. Use [Model.ShallowClone]
// where only the graph's structure changes.
func (m *ModelProto) Clone() *Model { return proto.Clone(m).(*Model) }

// ShallowClone returns a copy whose graph, node list, value lists and nodes are new, and whose
// initializers' contents, attributes holding tensors and functions are shared with m. It is what
// graph rewrites start from: weights are never copied. Neither model's tensors may be changed in
// place afterwards.
func (m *ModelProto) ShallowClone() *Model {
	c := &Model{
		IrVersion: m.IrVersion, ProducerName: m.ProducerName, ProducerVersion: m.ProducerVersion, Domain: m.Domain,
		ModelVersion: m.ModelVersion, DocString: m.DocString, TrainingInfo: slices.Clone(m.TrainingInfo),
		Functions: slices.Clone(m.Functions), Configuration: slices.Clone(m.Configuration),
	}
	for _, o := range m.OpsetImport {
		c.OpsetImport = append(c.OpsetImport, &OperatorSet{Domain: o.Domain, Version: o.Version})
	}
	for _, p := range m.MetadataProps {
		c.MetadataProps = append(c.MetadataProps, &MetadataProp{Key: p.Key, Value: p.Value})
	}
	c.ProtoReflect().SetUnknown(m.ProtoReflect().GetUnknown())
	c.Graph = m.GetGraph().ShallowClone()
	return c
}

// ShallowClone copies a graph's structure and shares its tensors; see [Model.ShallowClone].
func (g *GraphProto) ShallowClone() *Graph {
	if g == nil {
		return nil
	}
	c := &Graph{
		Name: g.Name, DocString: g.DocString,
		Initializer: slices.Clone(g.Initializer), SparseInitializer: slices.Clone(g.SparseInitializer),
		QuantizationAnnotation: slices.Clone(g.QuantizationAnnotation), MetadataProps: slices.Clone(g.MetadataProps),
		Input: cloneInfos(g.Input), Output: cloneInfos(g.Output), ValueInfo: cloneInfos(g.ValueInfo),
	}
	c.ProtoReflect().SetUnknown(g.ProtoReflect().GetUnknown())
	c.Node = make([]*Node, len(g.Node))
	for i, n := range g.Node {
		c.Node[i] = n.ShallowClone()
	}
	return c
}

// ShallowClone copies a node; attributes that hold sub-graphs are copied in the same way, all
// others are shared.
func (n *NodeProto) ShallowClone() *Node {
	c := &Node{
		Name: n.Name, OpType: n.OpType, Domain: n.Domain, Overload: n.Overload, DocString: n.DocString,
		Input: slices.Clone(n.Input), Output: slices.Clone(n.Output), Attribute: slices.Clone(n.Attribute),
		MetadataProps: slices.Clone(n.MetadataProps), DeviceConfigurations: slices.Clone(n.DeviceConfigurations),
	}
	c.ProtoReflect().SetUnknown(n.ProtoReflect().GetUnknown())
	for i, a := range c.Attribute {
		if a.G == nil && len(a.Graphs) == 0 {
			continue
		}
		b := &Attribute{Name: a.Name, Type: a.Type, DocString: a.DocString, RefAttrName: a.RefAttrName, G: a.G.ShallowClone()}
		for _, g := range a.Graphs {
			b.Graphs = append(b.Graphs, g.ShallowClone())
		}
		b.ProtoReflect().SetUnknown(a.ProtoReflect().GetUnknown())
		c.Attribute[i] = b
	}
	return c
}

func cloneInfos(vs []*ValueInfo) []*ValueInfo {
	out := make([]*ValueInfo, len(vs))
	for i, v := range vs {
		out[i] = proto.Clone(v).(*ValueInfo)
	}
	return out
}

// FindInitializer returns the initializer of that name, or nil. It scans; build a map where many
// are looked up.
func (g *GraphProto) FindInitializer(name string) *TensorProto {
	for _, t := range g.GetInitializer() {
		if t.Name == name {
			return t
		}
	}
	return nil
}

// Inputs returns the graph's true inputs: those that no initializer gives a default to. Old files
// (IR 3) list every initializer among the inputs.
func (g *GraphProto) Inputs() []*ValueInfo {
	init := make(map[string]bool, len(g.Initializer))
	for _, t := range g.Initializer {
		init[t.Name] = true
	}
	for _, t := range g.SparseInitializer {
		init[t.GetValues().GetName()] = true
	}
	var in []*ValueInfo
	for _, v := range g.Input {
		if !init[v.Name] {
			in = append(in, v)
		}
	}
	return in
}

// Subgraphs returns the graphs held by a node's attributes, in attribute order.
func (n *NodeProto) Subgraphs() []*Graph {
	var gs []*Graph
	for _, a := range n.GetAttribute() {
		if a.G != nil {
			gs = append(gs, a.G)
		}
		gs = append(gs, a.Graphs...)
	}
	return gs
}

// In returns input i, or the absent Value when the node has fewer.
func (n *NodeProto) In(i int) Value {
	if i < len(n.GetInput()) {
		return Value(n.Input[i])
	}
	return ""
}

// Out returns output i, or the absent Value when the node has fewer.
func (n *NodeProto) Out(i int) Value {
	if i < len(n.GetOutput()) {
		return Value(n.Output[i])
	}
	return ""
}

// QualifiedOp is the operator with its domain where that is not the standard's: Gemm, or
// com.microsoft.Gelu.
func (n *NodeProto) QualifiedOp() string {
	if d := NormalizeDomain(n.Domain); d != "" {
		return d + "." + n.OpType
	}
	return n.OpType
}

// Label is the node's name, or its first output when it has none.
func (n *NodeProto) Label() string {
	if n.Name != "" {
		return n.Name
	}
	for _, o := range n.Output {
		if o != "" {
			return o
		}
	}
	return n.OpType
}

// Reads adds the names of all values that the graph's nodes, those of sub-graphs included, and its
// outputs read.
func (g *GraphProto) Reads(names map[string]bool) {
	for _, n := range g.Node {
		for _, in := range n.Input {
			names[in] = true
		}
		for _, s := range n.Subgraphs() {
			s.Reads(names)
		}
	}
	for _, o := range g.Output {
		names[o.Name] = true
	}
}

// Describe names the node for an error message: its name when it has one, its operator, and its
// first output.
func (n *NodeProto) Describe() string {
	op := n.GetOpType()
	if d := NormalizeDomain(n.GetDomain()); d != "" {
		op = d + "." + op
	}
	if n.GetName() != "" {
		return fmt.Sprintf("node %q (%s)", n.Name, op)
	}
	return fmt.Sprintf("node %s -> %q", op, n.Out(0))
}
