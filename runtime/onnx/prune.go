package onnx

import "fmt"

// Prune returns a copy of m without what does not contribute to the values in keep: nodes,
// initializers, declared types of vanished values, and functions that are no longer called, in
// sub-graphs too. keep must be outputs of the graph, and the other outputs are dropped; no keep
// means all outputs. Inputs stay, used or not, because they are the model's interface. Weights are
// shared with m.
func Prune(m *Model, keep ...Value) (*Model, error) {
	c := m.ShallowClone()
	if len(keep) > 0 {
		byName := map[Value]*ValueInfo{}
		for _, v := range c.Graph.Output {
			byName[Value(v.Name)] = v
		}
		c.Graph.Output = nil
		for _, k := range keep {
			v := byName[k]
			if v == nil {
				return nil, fmt.Errorf("prune: %q is not an output of graph %q", k, m.Graph.Name)
			}
			c.Graph.Output = append(c.Graph.Output, v)
		}
	}
	pruneGraph(c.Graph)
	pruneFunctions(c)
	return c, nil
}

func pruneGraph(g *Graph) {
	x := NewIndex(g)
	needed := map[Value]bool{}
	live := map[*Node]bool{}
	var todo []Value
	need := func(v Value) {
		if !needed[v] {
			needed[v] = true
			todo = append(todo, v)
		}
	}
	for _, v := range g.Output {
		need(Value(v.Name))
	}
	for len(todo) > 0 {
		v := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		n := x.Producer(v)
		if n == nil || live[n] {
			continue
		}
		live[n] = true
		// A sub-graph is pruned before its captures are read: what only its dead nodes use is not
		// needed.
		for _, s := range n.Subgraphs() {
			pruneGraph(s)
		}
		for _, r := range Reads(n) {
			need(r)
		}
	}
	nodes := g.Node[:0:0]
	present := map[Value]bool{}
	for _, n := range g.Node {
		if live[n] {
			nodes = append(nodes, n)
			for _, o := range n.Output {
				present[Value(o)] = true
			}
		}
	}
	g.Node = nodes
	var init []*TensorProto
	for _, t := range g.Initializer {
		// The default of an input belongs to the interface.
		if needed[Value(t.Name)] || x.Input(Value(t.Name)) != nil {
			init = append(init, t)
			present[Value(t.Name)] = true
		}
	}
	g.Initializer = init
	var sparse []*SparseTensorProto
	for _, t := range g.SparseInitializer {
		if v := Value(t.GetValues().GetName()); needed[v] || x.Input(v) != nil {
			sparse = append(sparse, t)
			present[v] = true
		}
	}
	g.SparseInitializer = sparse
	for _, v := range g.Input {
		present[Value(v.Name)] = true
	}
	var infos []*ValueInfo
	for _, v := range g.ValueInfo {
		if present[Value(v.Name)] {
			infos = append(infos, v)
		}
	}
	g.ValueInfo = infos
	var quant []*TensorAnnotation
	for _, q := range g.QuantizationAnnotation {
		if present[Value(q.TensorName)] {
			quant = append(quant, q)
		}
	}
	g.QuantizationAnnotation = quant
}

func pruneFunctions(m *Model) {
	if len(m.Functions) == 0 {
		return
	}
	byKey := map[functionKey]*Function{}
	for _, f := range m.Functions {
		byKey[keyOfFunction(f)] = f
	}
	called := map[*Function]bool{}
	var visit func(nodes []*Node)
	visit = func(nodes []*Node) {
		for _, n := range nodes {
			if f := byKey[keyOfCall(n)]; f != nil && !called[f] {
				called[f] = true
				visit(f.Node)
			}
			for _, s := range n.Subgraphs() {
				visit(s.Node)
			}
		}
	}
	visit(m.Graph.Node)
	for _, t := range m.TrainingInfo {
		visit(t.GetInitialization().GetNode())
		visit(t.GetAlgorithm().GetNode())
	}
	var fns []*Function
	for _, f := range m.Functions {
		if called[f] {
			fns = append(fns, f)
		}
	}
	m.Functions = fns
}

// functionKey identifies a model-local function, as a node calls it.
type functionKey struct{ domain, name, overload string }

func keyOfFunction(f *Function) functionKey {
	return functionKey{NormalizeDomain(f.Domain), f.Name, f.Overload}
}

func keyOfCall(n *Node) functionKey {
	return functionKey{NormalizeDomain(n.Domain), n.OpType, n.Overload}
}
