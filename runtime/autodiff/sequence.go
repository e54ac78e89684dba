package autodiff

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
)

// sequences replaces operators on sequences by operators on tensors where the sequence's elements
// are known: exporters write torch.split and torch.stack that way. What it cannot replace stays as
// it is; a gradient that would have to pass through it is then an error of the usual kind.
type sequences struct {
	c *Context
	// elements holds the members of the sequences known so far.
	elements map[string][]onnx.Value
}

// lower appends the node, or what replaces it, to the graph.
func (s *sequences) lower(n *onnx.Node) {
	if onnx.NormalizeDomain(n.Domain) != onnx.DomainStandard || len(n.Output) == 0 || n.Output[0] == "" {
		s.c.b.Append(n)
		return
	}
	out := n.Output[0]
	known := func(i int) ([]onnx.Value, bool) {
		e, ok := s.elements[string(n.In(i))]
		return e, ok
	}
	position := func(i, length int) (int, bool) {
		if n.In(i) == "" {
			return length, true
		}
		at, ok := s.c.KnownInts(n.In(i))
		if !ok || len(at) != 1 {
			return 0, false
		}
		k := Axis(at[0], length)
		return k, k >= 0 && k <= length
	}
	s.c.b.SetScope(n.Label() + "/")
	switch n.OpType {
	case "SequenceEmpty":
		s.elements[out] = nil
	case "SequenceConstruct":
		e := make([]onnx.Value, len(n.Input))
		for i := range e {
			e[i] = n.In(i)
		}
		s.elements[out] = e
	case "SplitToSequence":
		if e, ok := s.split(n); ok {
			s.elements[out] = e
		}
	case "SequenceInsert":
		if e, ok := known(0); ok {
			if k, ok := position(2, len(e)); ok {
				s.elements[out] = slices.Insert(slices.Clone(e), k, n.In(1))
			}
		}
	case "SequenceErase":
		if e, ok := known(0); ok && len(e) > 0 {
			last := len(e) - 1
			if n.In(1) != "" {
				k, ok := position(1, len(e))
				if !ok || k > last {
					break
				}
				last = k
			}
			s.elements[out] = slices.Delete(slices.Clone(e), last, last+1)
		}
	case "SequenceAt":
		if e, ok := known(0); ok {
			if k, ok := position(1, len(e)); ok && k < len(e) {
				s.c.b.Append(&onnx.Node{Name: n.Name, OpType: "Identity", Input: []string{string(e[k])}, Output: []string{out}})
				return
			}
		}
	case "TopK":
		// PyTorch computes the count of a sort from shapes, which ONNX Runtime's strict inference
		// refuses.
		if k, ok := s.c.KnownInts(n.In(1)); ok && len(k) == 1 {
			n.Input[1] = string(s.c.b.Ints(k[0]))
		}
	case "ConcatFromSequence":
		if e, ok := known(0); ok && len(e) > 0 {
			s.join(n, e)
			return
		}
	}
	// A replaced sequence is kept for those who need the sequence itself; if nobody does, it is
	// pruned in the end.
	s.c.b.Append(n)
}

// split makes the elements of SplitToSequence by one Split.
func (s *sequences) split(n *onnx.Node) ([]onnx.Value, bool) {
	x := n.In(0)
	dims := s.c.Type(x).Dims
	if len(dims) == 0 {
		return nil, false
	}
	axis := Axis(n.Int("axis", 0), len(dims))
	if axis < 0 || axis >= len(dims) {
		return nil, false
	}
	size := 1
	var sizes []int
	if n.In(1) != "" {
		given, ok := s.c.KnownInts(n.In(1))
		if !ok || len(given) == 0 {
			return nil, false
		}
		if f, _ := s.c.env.Fact(n.In(1)); len(f.Type.Dims) == 1 {
			sizes = given
		}
		size = given[0]
	}
	if sizes == nil {
		if size <= 0 || !dims[axis].IsKnown() {
			return nil, false
		}
		for at := 0; at < dims[axis].Value; at += size {
			sizes = append(sizes, min(size, dims[axis].Value-at))
		}
	}
	if len(sizes) == 0 {
		return nil, false
	}
	e := s.c.Split(x, axis, sizes...)
	if n.In(1) == "" && n.Int("keepdims", 1) == 0 {
		for i, v := range e {
			e[i] = s.c.Op("Squeeze", two(v, s.c.b.Ints(axis)))
		}
	}
	return e, true
}

// join replaces ConcatFromSequence.
func (s *sequences) join(n *onnx.Node, e []onnx.Value) {
	axis := n.Int("axis", 0)
	node := &onnx.Node{Name: n.Name, OpType: "Concat", Output: []string{n.Output[0]}, Attribute: []*onnx.Attribute{onnx.AttrInt("axis", axis)}}
	for _, v := range e {
		if n.Int("new_axis", 0) != 0 {
			v = s.c.Op("Unsqueeze", two(v, s.c.b.Ints(axis)))
		}
		node.Input = append(node.Input, string(v))
	}
	s.c.b.Append(node)
}

// infer appends the model's nodes again, one by one, so that their types are known, and lowers
// sequences on the way.
func (p *pass) infer(env *shape.Env) error {
	nodes := p.model.Graph.Node
	p.model.Graph.Node = make([]*onnx.Node, 0, len(nodes))
	env.Track(p.c.b)
	s := &sequences{c: p.c, elements: map[string][]onnx.Value{}}
	for _, n := range nodes {
		s.lower(n)
	}
	return p.c.b.Err()
}
