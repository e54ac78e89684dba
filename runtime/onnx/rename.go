package onnx

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"
)

// Rename returns a copy of m with every value renamed by f: inputs, outputs, initializers, what
// nodes read and write, in sub-graphs too. Node names, operators and symbolic extents stay. The
// absent value is never given to f. It is an error when f maps two values of a graph to one name,
// or a value to the empty name. Weights are shared with m.
func Rename(m *Model, f func(Value) Value) (*Model, error) {
	c := m.ShallowClone()
	r := renamer{f: f, to: map[string]string{}, from: map[string]string{}}
	r.graph(c.Graph)
	// Training information refers to the main graph's values by name.
	for i, t := range c.TrainingInfo {
		t = proto.Clone(t).(*TrainingInfoProto)
		c.TrainingInfo[i] = t
		r.graph(t.Initialization)
		r.graph(t.Algorithm)
		for _, b := range slices.Concat(t.InitializationBinding, t.UpdateBinding) {
			b.Key, b.Value = r.name(b.Key), r.name(b.Value)
		}
	}
	if r.err != nil {
		return nil, fmt.Errorf("rename values of graph %q: %w", m.Graph.GetName(), r.err)
	}
	return c, nil
}

// Prefix returns a copy of m whose values and nodes, all of them, carry a prefix.
func Prefix(m *Model, prefix string) (*Model, error) {
	c, err := Rename(m, func(v Value) Value { return Value(prefix) + v })
	if err != nil {
		return nil, err
	}
	return c, eachGraph(c.Graph, func(g *Graph) error {
		for _, n := range g.Node {
			if n.Name != "" {
				n.Name = prefix + n.Name
			}
		}
		return nil
	})
}

type renamer struct {
	f        func(Value) Value
	to, from map[string]string
	err      error
}

// name maps one name. The mapping is kept in both directions: one to be asked only once, the other
// to notice collisions.
func (r *renamer) name(s string) string {
	if s == "" {
		return ""
	}
	if t, ok := r.to[s]; ok {
		return t
	}
	t := string(r.f(Value(s)))
	if t == "" && r.err == nil {
		r.err = fmt.Errorf("value %q would lose its name", s)
	}
	if old, ok := r.from[t]; ok && r.err == nil {
		r.err = fmt.Errorf("values %q and %q would both be called %q", old, s, t)
	}
	r.to[s], r.from[t] = t, s
	return t
}

func (r *renamer) names(list []string) {
	for i, s := range list {
		list[i] = r.name(s)
	}
}

// graph renames in a shallow clone: value infos, nodes and their name lists are its own, tensors
// are shared and so replaced by copies that share their data.
func (r *renamer) graph(g *Graph) {
	if g == nil {
		return
	}
	for _, list := range [][]*ValueInfo{g.Input, g.Output, g.ValueInfo} {
		for _, v := range list {
			v.Name = r.name(v.Name)
		}
	}
	for i, t := range g.Initializer {
		g.Initializer[i] = renamedTensor(t, r.name(t.Name))
	}
	for i, t := range g.SparseInitializer {
		v := t.GetValues()
		g.SparseInitializer[i] = &SparseTensorProto{Values: renamedTensor(v, r.name(v.GetName())), Indices: t.Indices, Dims: t.Dims}
	}
	for i, q := range g.QuantizationAnnotation {
		q = proto.Clone(q).(*TensorAnnotation)
		q.TensorName = r.name(q.TensorName)
		for _, p := range q.QuantParameterTensorNames {
			p.Value = r.name(p.Value)
		}
		g.QuantizationAnnotation[i] = q
	}
	for _, n := range g.Node {
		r.names(n.Input)
		r.names(n.Output)
		for _, s := range n.Subgraphs() {
			r.graph(s)
		}
	}
}

// renamedTensor copies a tensor's message under another name and shares its data.
func renamedTensor(t *TensorProto, name string) *TensorProto {
	c := &TensorProto{Name: name, DataType: t.GetDataType(), Dims: t.GetDims(), Segment: t.GetSegment(), FloatData: t.GetFloatData(), Int32Data: t.GetInt32Data(),
		StringData: t.GetStringData(), Int64Data: t.GetInt64Data(), RawData: t.GetRawData(), ExternalData: t.GetExternalData(), DataLocation: t.GetDataLocation(),
		DoubleData: t.GetDoubleData(), Uint64Data: t.GetUint64Data(), DocString: t.GetDocString(), MetadataProps: t.GetMetadataProps()}
	if u := t.ProtoReflect().GetUnknown(); len(u) > 0 {
		c.ProtoReflect().SetUnknown(u)
	}
	return c
}
