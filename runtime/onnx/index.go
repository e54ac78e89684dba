package onnx

// Index answers who produces and who consumes the values of one graph. It is a snapshot: it does
// not follow later changes of the graph.
type Index struct {
	graph     *Graph
	position  map[*Node]int
	producer  map[Value]*Node
	consumers map[Value][]*Node
	inputs    map[Value]*ValueInfo
	outputs   map[Value]*ValueInfo
	init      map[Value]*TensorProto
	sparse    map[Value]*SparseTensorProto
}

// NewIndex reads a graph once. A node counts as a consumer of what it names as inputs and of what
// its sub-graphs capture, once for each value.
func NewIndex(g *Graph) *Index {
	x := &Index{graph: g, position: map[*Node]int{}, producer: map[Value]*Node{}, consumers: map[Value][]*Node{},
		inputs: map[Value]*ValueInfo{}, outputs: map[Value]*ValueInfo{}, init: map[Value]*TensorProto{}, sparse: map[Value]*SparseTensorProto{}}
	for _, v := range g.GetInput() {
		x.inputs[Value(v.Name)] = v
	}
	for _, v := range g.GetOutput() {
		x.outputs[Value(v.Name)] = v
	}
	for _, t := range g.GetInitializer() {
		x.init[Value(t.Name)] = t
	}
	for _, t := range g.GetSparseInitializer() {
		x.sparse[Value(t.GetValues().GetName())] = t
	}
	for i, n := range g.GetNode() {
		x.position[n] = i
		for _, o := range n.Output {
			if o != "" {
				x.producer[Value(o)] = n
			}
		}
		for _, v := range Reads(n) {
			x.consumers[v] = append(x.consumers[v], n)
		}
	}
	return x
}

// Producer returns the node that computes v, or nil when v is an input, an initializer or unknown.
func (x *Index) Producer(v Value) *Node { return x.producer[v] }

// Consumers returns the nodes that read v, in the graph's order. The list is shared and must not be
// changed.
func (x *Index) Consumers(v Value) []*Node { return x.consumers[v] }

// Position returns the place of a node of the graph in its node list, or -1.
func (x *Index) Position(n *Node) int {
	if i, ok := x.position[n]; ok {
		return i
	}
	return -1
}

// Input returns the declaration of v when it is a graph input, or nil.
func (x *Index) Input(v Value) *ValueInfo { return x.inputs[v] }

// Output returns the declaration of v when it is a graph output, or nil.
func (x *Index) Output(v Value) *ValueInfo { return x.outputs[v] }

// Initializer returns the dense initializer of that name, or nil.
func (x *Index) Initializer(v Value) *TensorProto { return x.init[v] }

// IsInitializer reports whether v is a dense or sparse initializer.
func (x *Index) IsInitializer(v Value) bool { return x.init[v] != nil || x.sparse[v] != nil }

// Defined reports whether the graph itself defines v, as an input, an initializer or the output of
// a node.
func (x *Index) Defined(v Value) bool {
	return x.producer[v] != nil || x.inputs[v] != nil || x.IsInitializer(v)
}

// Reads returns every value of the enclosing graph that a node needs: its inputs that are present,
// then what its sub-graphs capture, each value once.
func Reads(n *Node) []Value {
	var out []Value
	seen := make(map[Value]bool, len(n.GetInput()))
	for _, in := range n.GetInput() {
		if v := Value(in); v != "" && !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	for _, v := range Captures(n) {
		if !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	return out
}

// Captures returns the values of enclosing graphs that a node's sub-graphs use, in order of first
// use, each once. It is nil for nodes without sub-graphs. Values that a sub-graph returns directly
// without computing them count as used.
func Captures(n *Node) []Value {
	subs := n.Subgraphs()
	if len(subs) == 0 {
		return nil
	}
	c := capturer{seen: map[Value]bool{}}
	for _, g := range subs {
		c.graph(g, nil)
	}
	return c.out
}

type capturer struct {
	seen map[Value]bool
	out  []Value
}

// scope is a chain of the names that the graphs around a node define.
type scope struct {
	parent *scope
	names  map[string]bool
}

func (s *scope) has(name string) bool {
	for ; s != nil; s = s.parent {
		if s.names[name] {
			return true
		}
	}
	return false
}

// enter returns the scope of g's own names: all of them, because names are unique in a graph
// wherever they are defined.
func (s *scope) enter(g *Graph) *scope {
	in := &scope{parent: s, names: map[string]bool{}}
	for _, v := range g.Input {
		in.names[v.Name] = true
	}
	for _, t := range g.Initializer {
		in.names[t.Name] = true
	}
	for _, t := range g.SparseInitializer {
		in.names[t.GetValues().GetName()] = true
	}
	for _, n := range g.Node {
		for _, o := range n.Output {
			in.names[o] = true
		}
	}
	return in
}

func (c *capturer) graph(g *Graph, outer *scope) {
	s := outer.enter(g)
	use := func(name string) {
		if name != "" && !s.has(name) && !c.seen[Value(name)] {
			c.seen[Value(name)] = true
			c.out = append(c.out, Value(name))
		}
	}
	for _, n := range g.Node {
		for _, in := range n.Input {
			use(in)
		}
		for _, sub := range n.Subgraphs() {
			c.graph(sub, s)
		}
	}
	for _, v := range g.Output {
		use(v.Name)
	}
}
