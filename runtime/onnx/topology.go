package onnx

import (
	"cmp"
	"container/heap"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/iterator"
	"gonum.org/v1/gonum/graph/topo"
)

// ErrCycle is wrapped by the errors for graphs whose nodes depend on each other in a circle.
var ErrCycle = errors.New("nodes form a cycle")

// Topology is a graph's nodes as a directed graph of gonum: an edge leads from the producer of a
// value to each node that reads it, also through a sub-graph. Node identifiers are positions in the
// node list. It is a snapshot and implements graph.Directed, so gonum's graph algorithms apply.
type Topology struct {
	graph *Graph
	from  [][]int // successors, ascending, each once
	to    [][]int
}

var _ graph.Directed = (*Topology)(nil)

// NewTopology reads a graph.
func NewTopology(g *Graph) *Topology {
	t := &Topology{graph: g, from: make([][]int, len(g.GetNode())), to: make([][]int, len(g.GetNode()))}
	producer := map[Value]int{}
	for i, n := range g.GetNode() {
		for _, o := range n.Output {
			if o != "" {
				producer[Value(o)] = i
			}
		}
	}
	for i, n := range g.GetNode() {
		for _, v := range Reads(n) {
			if p, ok := producer[v]; ok {
				t.from[p] = append(t.from[p], i)
				t.to[i] = append(t.to[i], p)
			}
		}
	}
	for i := range t.to {
		slices.Sort(t.to[i])
		t.to[i] = slices.Compact(t.to[i])
		// Successors were appended in ascending order already.
		t.from[i] = slices.Compact(t.from[i])
	}
	return t
}

// TopologyNode is a node of a [Topology].
type TopologyNode struct {
	Node  *Node
	Index int
}

// ID returns the node's position in the graph's node list.
func (n TopologyNode) ID() int64 { return int64(n.Index) }

// Node returns the node with an identifier, or nil.
func (t *Topology) Node(id int64) graph.Node {
	if id < 0 || id >= int64(len(t.from)) {
		return nil
	}
	return TopologyNode{Node: t.graph.Node[id], Index: int(id)}
}

// Nodes returns all nodes in the graph's order.
func (t *Topology) Nodes() graph.Nodes {
	all := make([]int, len(t.from))
	for i := range all {
		all[i] = i
	}
	return t.list(all)
}

func (t *Topology) list(ids []int) graph.Nodes {
	if len(ids) == 0 {
		return graph.Empty
	}
	out := make([]graph.Node, len(ids))
	for i, id := range ids {
		out[i] = t.Node(int64(id))
	}
	return iterator.NewOrderedNodes(out)
}

// From returns the nodes that read an output of the node.
func (t *Topology) From(id int64) graph.Nodes { return t.list(t.from[id]) }

// To returns the nodes whose outputs the node reads.
func (t *Topology) To(id int64) graph.Nodes { return t.list(t.to[id]) }

// HasEdgeFromTo reports whether v reads an output of u.
func (t *Topology) HasEdgeFromTo(u, v int64) bool {
	_, ok := slices.BinarySearch(t.from[u], int(v))
	return ok
}

// HasEdgeBetween reports whether one of the two reads an output of the other.
func (t *Topology) HasEdgeBetween(x, y int64) bool {
	return t.HasEdgeFromTo(x, y) || t.HasEdgeFromTo(y, x)
}

// Edge returns the edge from u to v, or nil.
func (t *Topology) Edge(u, v int64) graph.Edge {
	if !t.HasEdgeFromTo(u, v) {
		return nil
	}
	return topologyEdge{t.Node(u), t.Node(v)}
}

type topologyEdge struct{ from, to graph.Node }

func (e topologyEdge) From() graph.Node         { return e.from }
func (e topologyEdge) To() graph.Node           { return e.to }
func (e topologyEdge) ReversedEdge() graph.Edge { return topologyEdge{e.to, e.from} }

// Cycle returns the nodes of one cycle in the order of the data's flow, nil when there is none. Of
// several, it is the one that contains the earliest node.
func (t *Topology) Cycle() []*Node {
	var first []graph.Node
	for _, c := range topo.TarjanSCC(t) {
		if len(c) == 1 && !t.HasEdgeFromTo(c[0].ID(), c[0].ID()) {
			continue
		}
		slices.SortFunc(c, func(a, b graph.Node) int { return cmp.Compare(a.ID(), b.ID()) })
		if first == nil || c[0].ID() < first[0].ID() {
			first = c
		}
	}
	if first == nil {
		return nil
	}
	// A breadth-first walk inside the component finds the shortest way back to its first node.
	in := map[int]bool{}
	for _, n := range first {
		in[int(n.ID())] = true
	}
	start := int(first[0].ID())
	prev := map[int]int{}
	queue := []int{start}
	for len(queue) > 0 {
		u := queue[0]
		queue = queue[1:]
		for _, v := range t.from[u] {
			if v == start {
				var cycle []*Node
				for ; u != start; u = prev[u] {
					cycle = append(cycle, t.graph.Node[u])
				}
				cycle = append(cycle, t.graph.Node[start])
				slices.Reverse(cycle)
				return cycle
			}
			if _, seen := prev[v]; in[v] && !seen {
				prev[v] = u
				queue = append(queue, v)
			}
		}
	}
	return nil
}

func cycleError(cycle []*Node) error {
	const most = 8
	var names []string
	for i, n := range cycle {
		if i == most {
			names = append(names, fmt.Sprintf("… %d more", len(cycle)-most))
			break
		}
		names = append(names, n.Describe())
	}
	return fmt.Errorf("%w: %s -> %s", ErrCycle, strings.Join(names, " -> "), cycle[0].Describe())
}

// Sort orders a graph's nodes, and those of its sub-graphs, in place so that every value is
// produced before it is read. Nodes that are in order already keep their places relative to each
// other. A cycle is an error listing its nodes ([ErrCycle]), and then the graph is unchanged.
func Sort(g *Graph) error {
	for _, n := range g.Node {
		for _, s := range n.Subgraphs() {
			if err := Sort(s); err != nil {
				return fmt.Errorf("%s: %w", n.Describe(), err)
			}
		}
	}
	t := NewTopology(g)
	missing := make([]int, len(g.Node))
	var ready intHeap
	for i := range g.Node {
		if missing[i] = len(t.to[i]); missing[i] == 0 {
			ready = append(ready, i)
		}
	}
	heap.Init(&ready)
	order := make([]*Node, 0, len(g.Node))
	for len(ready) > 0 {
		i := heap.Pop(&ready).(int)
		order = append(order, g.Node[i])
		for _, v := range t.from[i] {
			if missing[v]--; missing[v] == 0 {
				heap.Push(&ready, v)
			}
		}
	}
	if len(order) < len(g.Node) {
		return fmt.Errorf("sort graph %q: %w", g.Name, cycleError(t.Cycle()))
	}
	copy(g.Node, order)
	return nil
}

type intHeap []int

func (h intHeap) Len() int           { return len(h) }
func (h intHeap) Less(i, j int) bool { return h[i] < h[j] }
func (h intHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *intHeap) Push(x any)        { *h = append(*h, x.(int)) }
func (h *intHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}
