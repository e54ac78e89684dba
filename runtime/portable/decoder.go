package portable

import (
	"errors"
	"fmt"

	onnxgo "github.com/owulveryck/onnx-go"
	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/iterator"
	"google.golang.org/protobuf/proto"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// vertex is one value of the decoded graph. It carries a name and, on purpose, no tensor: a node
// that is not an onnx-go DataCarrier makes the decoder skip element types, shapes and weights,
// which it would narrow or refuse.
type vertex struct {
	id   int64
	name string
}

func (v *vertex) ID() int64        { return v.id }
func (v *vertex) SetName(s string) { v.name = s }
func (v *vertex) GetName() string  { return v.name }

// arc is the edge from an operation's result to one of its operands; the weight is the operand's
// position.
type arc struct {
	from, to *vertex
	weight   float64
}

func (a arc) From() graph.Node         { return a.from }
func (a arc) To() graph.Node           { return a.to }
func (a arc) ReversedEdge() graph.Edge { return arc{a.to, a.from, a.weight} }
func (a arc) Weight() float64          { return a.weight }

// recorder is the backend that onnx-go decodes into. It keeps every edge in the order of arrival,
// repeated ones included, and turns each ApplyOperation into a node again. That order is the
// contract it relies on: the decoder sets the edges of one operation, for each result in turn and
// for each operand in turn, directly before it applies the operation.
type recorder struct {
	vertices []*vertex
	arcs     []arc
	taken    int // how many arcs belong to operations applied already
	nodes    []*onnx.Node
	carried  []*onnx.Attribute
}

var _ onnxgo.Backend = (*recorder)(nil)

// decodeStructure sends a lowered graph through onnx-go and returns what arrived: the nodes in
// order, and the names of the inputs and outputs.
func decodeStructure(l *lowered) (nodes []*onnx.Node, in, out []string, err error) {
	b, err := proto.Marshal(l.proto)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("encode the lowered graph: %w", err)
	}
	r := &recorder{carried: l.carried}
	m := onnxgo.NewModel(r)
	if err := m.UnmarshalBinary(b); err != nil {
		return nil, nil, nil, fmt.Errorf("decode with onnx-go: %w", err)
	}
	name := func(ids []int64) ([]string, error) {
		s := make([]string, len(ids))
		for i, id := range ids {
			if id < 0 || id >= int64(len(r.vertices)) {
				return nil, fmt.Errorf("decode with onnx-go: unknown value %d", id)
			}
			s[i] = r.vertices[id].name
		}
		return s, nil
	}
	if in, err = name(m.Input); err != nil {
		return nil, nil, nil, err
	}
	if out, err = name(m.Output); err != nil {
		return nil, nil, nil, err
	}
	return r.nodes, in, out, nil
}

// ApplyOperation implements onnxgo.Backend.
func (r *recorder) ApplyOperation(op onnxgo.Operation, results ...graph.Node) error {
	arcs := r.arcs[r.taken:]
	r.taken = len(r.arcs)
	n := &onnx.Node{OpType: op.Name}
	for _, v := range results {
		n.Output = append(n.Output, v.(*vertex).name)
	}
	if len(results) == 0 {
		return fmt.Errorf("operation %s has no result", op.Name)
	}
	// Every result repeats the same operands, so the first result's run of edges is the operand
	// list. Counting is what tells the runs apart, since several results may share the empty name
	// and therefore one vertex.
	if len(arcs)%len(results) != 0 {
		return fmt.Errorf("operation %s: %d edges for %d results", op.Name, len(arcs), len(results))
	}
	for i, a := range arcs[:len(arcs)/len(results)] {
		if int(a.weight) != i || a.from.name != n.Output[0] {
			return fmt.Errorf("operation %s: operand %d arrived as number %v of %q", op.Name, i, a.weight, a.from.name)
		}
		n.Input = append(n.Input, a.to.name)
	}
	for name, v := range op.Attributes {
		a, err := r.attribute(name, v)
		if err != nil {
			return fmt.Errorf("operation %s: %w", op.Name, err)
		}
		n.Attribute = append(n.Attribute, a)
	}
	r.nodes = append(r.nodes, n)
	return nil
}

func (r *recorder) attribute(name string, v any) (*onnx.Attribute, error) {
	a := &onnx.Attribute{Name: name}
	switch x := v.(type) {
	case int64:
		a.Type, a.I = onnx.AttributeProto_INT, x
		if key, ok := carriedName(name); ok {
			if x < 0 || x >= int64(len(r.carried)) {
				return nil, fmt.Errorf("attribute %q: key %d is not carried", key, x)
			}
			return r.carried[x], nil
		}
	case float32:
		a.Type, a.F = onnx.AttributeProto_FLOAT, x
	case string:
		a.Type, a.S = onnx.AttributeProto_STRING, []byte(x)
	case []int64:
		a.Type, a.Ints = onnx.AttributeProto_INTS, x
	case []float32:
		a.Type, a.Floats = onnx.AttributeProto_FLOATS, x
	case []string:
		a = onnx.AttrStrs(name, x...)
	default:
		return nil, fmt.Errorf("attribute %q decoded as %T", name, v)
	}
	return a, nil
}

// NewNode implements graph.NodeAdder.
func (r *recorder) NewNode() graph.Node { return &vertex{id: int64(len(r.vertices))} }

// AddNode implements graph.NodeAdder.
func (r *recorder) AddNode(n graph.Node) { r.vertices = append(r.vertices, n.(*vertex)) }

// NewWeightedEdge implements graph.WeightedEdgeAdder.
func (r *recorder) NewWeightedEdge(from, to graph.Node, w float64) graph.WeightedEdge {
	return arc{from.(*vertex), to.(*vertex), w}
}

// SetWeightedEdge implements graph.WeightedEdgeAdder. Unlike a simple graph it keeps repeated edges
// and loops.
func (r *recorder) SetWeightedEdge(e graph.WeightedEdge) { r.arcs = append(r.arcs, e.(arc)) }

// Node implements graph.Graph.
func (r *recorder) Node(id int64) graph.Node {
	if id < 0 || id >= int64(len(r.vertices)) {
		return nil
	}
	return r.vertices[id]
}

// Nodes implements graph.Graph.
func (r *recorder) Nodes() graph.Nodes {
	all := make([]graph.Node, len(r.vertices))
	for i, v := range r.vertices {
		all[i] = v
	}
	return iterator.NewOrderedNodes(all)
}

// From implements graph.Graph.
func (r *recorder) From(id int64) graph.Nodes {
	return r.ends(func(a arc) (graph.Node, bool) { return a.to, a.from.id == id })
}

// To implements graph.Directed.
func (r *recorder) To(id int64) graph.Nodes {
	return r.ends(func(a arc) (graph.Node, bool) { return a.from, a.to.id == id })
}

func (r *recorder) ends(pick func(arc) (graph.Node, bool)) graph.Nodes {
	var out []graph.Node
	seen := map[int64]bool{}
	for _, a := range r.arcs {
		if n, ok := pick(a); ok && !seen[n.ID()] {
			seen[n.ID()] = true
			out = append(out, n)
		}
	}
	return iterator.NewOrderedNodes(out)
}

// HasEdgeBetween implements graph.Graph.
func (r *recorder) HasEdgeBetween(x, y int64) bool {
	return r.HasEdgeFromTo(x, y) || r.HasEdgeFromTo(y, x)
}

// HasEdgeFromTo implements graph.Directed.
func (r *recorder) HasEdgeFromTo(u, v int64) bool { return r.Edge(u, v) != nil }

// Edge implements graph.Graph. Of repeated edges it returns the first.
func (r *recorder) Edge(u, v int64) graph.Edge {
	for _, a := range r.arcs {
		if a.from.id == u && a.to.id == v {
			return a
		}
	}
	return nil
}

var errNoOutput = errors.New("the graph has no outputs")
