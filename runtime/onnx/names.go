package onnx

import "strconv"

// namer hands out names that nothing in a model uses: values, nodes and symbolic extents share one
// set, which costs nothing and avoids confusion.
type namer struct {
	used map[string]bool
	next map[string]int
}

func newNamer(m *Model) *namer {
	n := &namer{used: map[string]bool{}, next: map[string]int{}}
	n.graph(m.GetGraph())
	return n
}

func (n *namer) graph(g *Graph) {
	for _, v := range g.GetInput() {
		n.used[v.Name] = true
	}
	for _, v := range g.GetOutput() {
		n.used[v.Name] = true
	}
	for _, t := range g.GetInitializer() {
		n.used[t.Name] = true
	}
	for _, t := range g.GetSparseInitializer() {
		n.used[t.GetValues().GetName()] = true
	}
	for _, d := range g.GetNode() {
		n.used[d.Name] = true
		// Inputs too: a name that is only read is an error elsewhere, but must not become right by
		// accident here.
		for _, v := range d.Input {
			n.used[v] = true
		}
		for _, v := range d.Output {
			n.used[v] = true
		}
		for _, s := range d.Subgraphs() {
			n.graph(s)
		}
	}
}

// fresh returns hint when it is free, else hint_1, hint_2, …, and takes it.
func (n *namer) fresh(hint string) string {
	name := hint
	for n.used[name] || name == "" {
		n.next[hint]++
		name = hint + "_" + strconv.Itoa(n.next[hint])
	}
	n.used[name] = true
	return name
}
