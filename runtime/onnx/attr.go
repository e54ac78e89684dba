package onnx

import "github.com/onnxrl/onnxrl/runtime/tensor"

// Attr returns the attribute of that name, or nil.
func (n *NodeProto) Attr(name string) *Attribute {
	for _, a := range n.GetAttribute() {
		if a.Name == name {
			return a
		}
	}
	return nil
}

// Has reports whether the node carries the attribute.
func (n *NodeProto) Has(name string) bool { return n.Attr(name) != nil }

// Int returns an integer attribute or def when it is absent.
func (n *NodeProto) Int(name string, def int) int {
	if a := n.Attr(name); a != nil {
		return int(a.I)
	}
	return def
}

// Float returns a float attribute or def when it is absent.
func (n *NodeProto) Float(name string, def float32) float32 {
	if a := n.Attr(name); a != nil {
		return a.F
	}
	return def
}

// Str returns a string attribute or def when it is absent.
func (n *NodeProto) Str(name, def string) string {
	if a := n.Attr(name); a != nil {
		return string(a.S)
	}
	return def
}

// Ints returns an integer-list attribute, or nil when it is absent.
func (n *NodeProto) Ints(name string) []int {
	a := n.Attr(name)
	if a == nil {
		return nil
	}
	out := make([]int, len(a.Ints))
	for i, v := range a.Ints {
		out[i] = int(v)
	}
	return out
}

// Floats returns a float-list attribute, or nil when it is absent.
func (n *NodeProto) Floats(name string) []float32 {
	if a := n.Attr(name); a != nil {
		return a.Floats
	}
	return nil
}

// Strs returns a string-list attribute, or nil when it is absent.
func (n *NodeProto) Strs(name string) []string {
	a := n.Attr(name)
	if a == nil {
		return nil
	}
	out := make([]string, len(a.Strings))
	for i, s := range a.Strings {
		out[i] = string(s)
	}
	return out
}

// Body returns a graph attribute, or nil when it is absent.
func (n *NodeProto) Body(name string) *Graph {
	if a := n.Attr(name); a != nil {
		return a.G
	}
	return nil
}

// SetAttr replaces the attribute of a's name or appends a. The attribute list is copied first,
// because clones share it.
func (n *NodeProto) SetAttr(a *Attribute) {
	list := make([]*Attribute, 0, len(n.Attribute)+1)
	done := false
	for _, old := range n.Attribute {
		if old.Name == a.Name {
			old, done = a, true
		}
		list = append(list, old)
	}
	if !done {
		list = append(list, a)
	}
	n.Attribute = list
}

// DelAttr removes an attribute; it does nothing when the node has none of that name.
func (n *NodeProto) DelAttr(name string) {
	var list []*Attribute
	for _, a := range n.Attribute {
		if a.Name != name {
			list = append(list, a)
		}
	}
	n.Attribute = list
}

// Int64s widens a list of ints, as attributes and shape tensors need them.
func Int64s(v []int) []int64 {
	out := make([]int64, len(v))
	for i, x := range v {
		out[i] = int64(x)
	}
	return out
}

// AttrInt makes an integer attribute.
func AttrInt(name string, v int) *Attribute {
	return &Attribute{Name: name, Type: AttributeProto_INT, I: int64(v)}
}

// AttrFloat makes a float attribute.
func AttrFloat(name string, v float32) *Attribute {
	return &Attribute{Name: name, Type: AttributeProto_FLOAT, F: v}
}

// AttrStr makes a string attribute.
func AttrStr(name, v string) *Attribute {
	return &Attribute{Name: name, Type: AttributeProto_STRING, S: []byte(v)}
}

// AttrInts makes an integer-list attribute.
func AttrInts(name string, v ...int) *Attribute {
	return &Attribute{Name: name, Type: AttributeProto_INTS, Ints: Int64s(v)}
}

// AttrFloats makes a float-list attribute.
func AttrFloats(name string, v ...float32) *Attribute {
	return &Attribute{Name: name, Type: AttributeProto_FLOATS, Floats: v}
}

// AttrStrs makes a string-list attribute.
func AttrStrs(name string, v ...string) *Attribute {
	a := &Attribute{Name: name, Type: AttributeProto_STRINGS}
	for _, s := range v {
		a.Strings = append(a.Strings, []byte(s))
	}
	return a
}

// AttrTensor makes a tensor attribute.
func AttrTensor(name string, t *tensor.Tensor) *Attribute {
	return &Attribute{Name: name, Type: AttributeProto_TENSOR, T: ProtoOf("", t)}
}

// AttrGraph makes a graph attribute.
func AttrGraph(name string, g *Graph) *Attribute {
	return &Attribute{Name: name, Type: AttributeProto_GRAPH, G: g}
}
