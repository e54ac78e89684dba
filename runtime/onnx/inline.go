package onnx

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/onnxrl/onnxrl/runtime/onnx/schema"
)

// InlineFunctions returns a copy of m in which every call of a model-local function, in sub-graphs
// and in other functions too, is replaced by the function's body, and which has no functions left.
// New values and nodes are called <call>/<name in the body>, where <call> is the calling node's
// name. References to the caller's attributes take the caller's value, else the function's default,
// else vanish. A function that calls itself, directly or not, and one written for another opset
// under which one of its operators means something else, are errors naming the call.
func InlineFunctions(m *Model) (*Model, error) {
	if len(m.GetFunctions()) == 0 {
		return m.ShallowClone(), nil
	}
	byKey := map[functionKey]*Function{}
	for _, f := range m.Functions {
		k := keyOfFunction(f)
		if byKey[k] != nil {
			return nil, fmt.Errorf("inline functions: %s.%s is defined twice", f.Domain, f.Name)
		}
		byKey[k] = f
		if err := shadows(f); err != nil {
			return nil, fmt.Errorf("inline functions: function %s: %w", describeFunction(f), err)
		}
	}
	c, err := Expand(m, func(n *Node, _ int) (*Function, error) { return byKey[keyOfCall(n)], nil })
	if err != nil {
		return nil, fmt.Errorf("inline functions: %w", err)
	}
	c.Functions = nil
	// Imports of domains that existed only for the functions would make the model look as if it
	// needed them.
	used := map[string]bool{DomainStandard: true}
	if err := c.EachGraph(func(g *Graph) error {
		for _, n := range g.Node {
			used[NormalizeDomain(n.Domain)] = true
		}
		return nil
	}); err != nil {
		return nil, err
	}
	c.OpsetImport = slices.DeleteFunc(c.OpsetImport, func(o *OperatorSet) bool { return !used[NormalizeDomain(o.Domain)] })
	return c, nil
}

// shadows is an error for a function that is called like an operator of the standard: some engines
// take the one, some the other.
func shadows(f *Function) error {
	if NormalizeDomain(f.GetDomain()) == DomainStandard && len(schema.Versions(DomainStandard, f.GetName())) > 0 {
		return fmt.Errorf("it is called like the operator %s of ai.onnx, and engines differ in which of the two they take; expected another name or a domain of its own", f.GetName())
	}
	return nil
}

// InlineBody returns a copy of m in which one node, of the main graph or of a sub-graph, is
// replaced by a function's body. That can be the one the ONNX standard gives for the operator; see
// [SchemaBody].
func InlineBody(m *Model, n *Node, body *Function) (*Model, error) {
	at, found := 0, -1
	if err := eachGraph(m.GetGraph(), func(g *Graph) error {
		for _, d := range g.Node {
			if d == n {
				found = at
			}
			at++
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if found < 0 {
		return nil, fmt.Errorf("inline the body of %s: the model has no such node", n.Describe())
	}
	// Expand works on a clone, so the node is found again by its place in the same walk.
	c := m.ShallowClone()
	var target *Node
	at = 0
	if err := eachGraph(c.Graph, func(g *Graph) error {
		for _, d := range g.Node {
			if at == found {
				target = d
			}
			at++
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if err := expand(c, func(d *Node, _ int) (*Function, error) {
		if d == target {
			return body, nil
		}
		return nil, nil
	}); err != nil {
		return nil, fmt.Errorf("inline the body of %s: %w", n.Describe(), err)
	}
	return c, nil
}

// maxInlined bounds the nodes that expansion may create: functions that call each other twice grow
// exponentially with their number. maxCallDepth catches bodies that keep producing their own
// operator through fresh Function values.
const (
	maxInlined   = 1 << 18
	maxCallDepth = 256
)

// Expand returns a copy of m in which every node that f gives a body for is replaced by it. f is
// asked again for the nodes of the bodies, and is given the opset version that the model imports of
// the node's domain. The model's own functions are kept and not expanded. Nodes that f returns nil
// for stay.
func Expand(m *Model, f func(n *Node, opset int) (*Function, error)) (*Model, error) {
	c := m.ShallowClone()
	return c, expand(c, f)
}

func expand(c *Model, f func(n *Node, opset int) (*Function, error)) error {
	e := &expander{model: c, body: f, names: newNamer(c), left: maxInlined}
	return e.graph(c.Graph, nil)
}

type expander struct {
	model *Model
	body  func(*Node, int) (*Function, error)
	names *namer
	left  int
}

// graph expands the nodes of one graph in place. stack holds the functions being expanded around
// it.
func (e *expander) graph(g *Graph, stack []*Function) error {
	nodes, infos, err := e.nodes(g.Node, stack)
	if err != nil {
		return err
	}
	g.Node = nodes
	g.ValueInfo = append(g.ValueInfo, infos...)
	return nil
}

func (e *expander) nodes(in []*Node, stack []*Function) ([]*Node, []*ValueInfo, error) {
	var out []*Node
	var infos []*ValueInfo
	for _, n := range in {
		f, err := e.body(n, e.model.Opset(n.Domain))
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", n.Describe(), err)
		}
		if f == nil {
			for _, s := range n.Subgraphs() {
				if err := e.graph(s, stack); err != nil {
					return nil, nil, err
				}
			}
			out = append(out, n)
			continue
		}
		if slices.Contains(stack, f) || len(stack) > maxCallDepth {
			return nil, nil, fmt.Errorf("%s: function %s calls itself", n.Describe(), describeFunction(f))
		}
		if e.left -= len(f.Node); e.left < 0 {
			return nil, nil, fmt.Errorf("%s: expansion exceeds %d nodes", n.Describe(), maxInlined)
		}
		body, vi, err := e.call(n, f)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", n.Describe(), err)
		}
		nodes, more, err := e.nodes(body, append(slices.Clip(stack), f))
		if err != nil {
			return nil, nil, err
		}
		out = append(out, nodes...)
		infos = append(append(infos, vi...), more...)
	}
	return out, infos, nil
}

func describeFunction(f *Function) string {
	s := f.Name
	if f.Domain != "" {
		s = f.Domain + "." + s
	}
	if f.Overload != "" {
		s += ":" + f.Overload
	}
	return s
}

// call instantiates a body for one call.
func (e *expander) call(n *Node, f *Function) ([]*Node, []*ValueInfo, error) {
	if len(n.Input) > len(f.Input) || len(n.Output) > len(f.Output) {
		return nil, nil, fmt.Errorf("function %s takes %d inputs and gives %d outputs, the call has %d and %d",
			describeFunction(f), len(f.Input), len(f.Output), len(n.Input), len(n.Output))
	}
	if err := e.imports(f); err != nil {
		return nil, nil, err
	}
	call := n.Name
	if call == "" {
		call = string(n.Out(0))
	}
	if call == "" {
		call = n.OpType
	}
	b := &binding{names: e.names, prefix: call + "/", values: map[string]string{}, attrs: map[string]*Attribute{}}
	for _, a := range f.AttributeProto {
		b.attrs[a.Name] = a
	}
	for _, a := range f.Attribute {
		b.attrs[a] = nil
	}
	for _, a := range n.Attribute {
		b.attrs[a.Name] = a
	}
	for i, v := range f.Input {
		b.values[v] = string(n.In(i))
	}
	// An output that is an input passed through, or one value returned twice, needs a node of its
	// own to carry the caller's name.
	var copies []*Node
	for i, v := range f.Output {
		o := string(n.Out(i))
		if _, taken := b.values[v]; !taken {
			if o == "" {
				o = e.names.fresh(b.prefix + v)
			}
			b.values[v] = o
		} else if o != "" {
			if b.values[v] == "" {
				return nil, nil, fmt.Errorf("output %q of function %s is an input that the call leaves out", v, describeFunction(f))
			}
			copies = append(copies, &Node{OpType: "Identity", Name: e.names.fresh(b.prefix + "Identity"), Input: []string{b.values[v]}, Output: []string{o}})
		}
	}
	nodes := make([]*Node, 0, len(f.Node)+len(copies))
	for _, d := range f.Node {
		// Everything a body defines is named before anything is renamed: sub-graphs may come before
		// the names they would collide with.
		b.define(d.Output)
	}
	for _, d := range f.Node {
		c, err := b.node(d)
		if err != nil {
			return nil, nil, err
		}
		// The call site's metadata says where in the user's program this came from; the body's own
		// entries win.
		for _, p := range n.MetadataProps {
			if !slices.ContainsFunc(c.MetadataProps, func(q *MetadataProp) bool { return q.Key == p.Key }) {
				c.MetadataProps = append(c.MetadataProps, p)
			}
		}
		nodes = append(nodes, c)
	}
	var infos []*ValueInfo
	for _, v := range f.ValueInfo {
		if slices.Contains(f.Input, v.Name) || slices.Contains(f.Output, v.Name) || b.values[v.Name] == "" {
			continue
		}
		v = proto.Clone(v).(*ValueInfo)
		v.Name = b.values[v.Name]
		infos = append(infos, v)
	}
	return append(nodes, copies...), infos, nil
}

// imports makes the model import what the body imports, or says why it cannot.
func (e *expander) imports(f *Function) error {
	for _, o := range f.OpsetImport {
		have := e.model.Opset(o.Domain)
		switch {
		case have == 0:
			e.model.SetOpset(o.Domain, int(o.Version))
		case have != int(o.Version):
			if op := changedOperator(f.Node, NormalizeDomain(o.Domain), int(o.Version), have); op != "" {
				return fmt.Errorf("function %s is written for opset %d of domain %q and the model imports %d: %s changed between them",
					describeFunction(f), o.Version, o.Domain, have, op)
			}
		}
	}
	return nil
}

// binding maps the names of a body to those of one call.
type binding struct {
	names  *namer
	prefix string
	values map[string]string
	attrs  map[string]*Attribute
}

// define gives fresh names to values that a graph of the body defines.
func (b *binding) define(names []string) {
	for _, v := range names {
		if _, ok := b.values[v]; !ok && v != "" {
			b.values[v] = b.names.fresh(b.prefix + v)
		}
	}
}

func (b *binding) value(v string) (string, error) {
	if v == "" {
		return "", nil
	}
	t, ok := b.values[v]
	if !ok {
		return "", fmt.Errorf("the body uses %q, which it does not define", v)
	}
	return t, nil
}

func (b *binding) node(n *Node) (*Node, error) {
	c := n.ShallowClone()
	if c.Name != "" {
		c.Name = b.names.fresh(b.prefix + c.Name)
	}
	for _, list := range [][]string{c.Input, c.Output} {
		for i, v := range list {
			t, err := b.value(v)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", n.Describe(), err)
			}
			list[i] = t
		}
	}
	// An input that the caller left out leaves a trailing "" that some checkers count as given.
	for len(c.Input) > 0 && c.Input[len(c.Input)-1] == "" {
		c.Input = c.Input[:len(c.Input)-1]
	}
	attrs := c.Attribute[:0:0]
	for _, a := range c.Attribute {
		a, err := b.attribute(a)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.Describe(), err)
		}
		if a != nil {
			attrs = append(attrs, a)
		}
	}
	c.Attribute = attrs
	return c, nil
}

// attribute resolves a reference to the caller's attribute, nil when the caller and the function
// leave it out, and renames inside sub-graphs.
func (b *binding) attribute(a *Attribute) (*Attribute, error) {
	if ref := a.RefAttrName; ref != "" {
		given, declared := b.attrs[ref]
		if !declared {
			return nil, fmt.Errorf("attribute %q refers to %q, which the function does not declare", a.Name, ref)
		}
		if given == nil {
			return nil, nil
		}
		if given.Type != a.Type && a.Type != AttributeProto_UNDEFINED {
			return nil, fmt.Errorf("attribute %q is %v, the call's %q is %v", a.Name, typeName(a.Type), ref, typeName(given.Type))
		}
		c := (&Node{Attribute: []*Attribute{given}}).ShallowClone().Attribute[0]
		if c == given {
			c = sharedAttribute(given)
		}
		c.Name, c.RefAttrName = a.Name, ""
		return c, nil
	}
	// The node is a shallow clone: graphs are its own.
	for _, g := range append([]*Graph{a.G}, a.Graphs...) {
		if g == nil {
			continue
		}
		if err := b.graph(g); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// sharedAttribute copies an attribute's message and shares its lists and tensors.
func sharedAttribute(a *Attribute) *Attribute {
	return &Attribute{Name: a.Name, Type: a.Type, DocString: a.DocString, F: a.F, I: a.I, S: a.S, T: a.T, SparseTensor: a.SparseTensor, Tp: a.Tp, Floats: a.Floats,
		Ints: a.Ints, Strings: a.Strings, Tensors: a.Tensors, SparseTensors: a.SparseTensors, TypeProtos: a.TypeProtos}
}

func (b *binding) graph(g *Graph) error {
	inner := &binding{names: b.names, prefix: b.prefix, values: make(map[string]string, len(b.values)), attrs: b.attrs}
	for k, v := range b.values {
		inner.values[k] = v
	}
	own := func(name string) string {
		t := inner.names.fresh(inner.prefix + name)
		inner.values[name] = t
		return t
	}
	for _, v := range g.Input {
		v.Name = own(v.Name)
	}
	for i, t := range g.Initializer {
		// An old file's initializer gives an input its default, and has its name.
		if name, ok := inner.values[t.Name]; ok && slices.ContainsFunc(g.Input, func(v *ValueInfo) bool { return v.Name == name }) {
			g.Initializer[i] = renamedTensor(t, name)
			continue
		}
		g.Initializer[i] = renamedTensor(t, own(t.Name))
	}
	for i, s := range g.SparseInitializer {
		g.SparseInitializer[i] = &SparseTensorProto{Values: renamedTensor(s.GetValues(), own(s.GetValues().GetName())), Indices: s.Indices, Dims: s.Dims}
	}
	for _, n := range g.Node {
		for _, o := range n.Output {
			if o != "" {
				own(o)
			}
		}
	}
	for i, n := range g.Node {
		c, err := inner.node(n)
		if err != nil {
			return err
		}
		g.Node[i] = c
	}
	for _, v := range g.Output {
		t, err := inner.value(v.Name)
		if err != nil {
			return err
		}
		if t == "" {
			return errors.New("a sub-graph returns an input that the call leaves out")
		}
		v.Name = t
	}
	var infos []*ValueInfo
	for _, v := range g.ValueInfo {
		if t := inner.values[v.Name]; t != "" {
			v.Name = t
			infos = append(infos, v)
		}
	}
	g.ValueInfo = infos
	return nil
}

// typeName prints an attribute type as the specification writes it, in lower case.
func typeName(t AttributeProto_AttributeType) string { return strings.ToLower(t.String()) }
