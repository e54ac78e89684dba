package onnx

import (
	"cmp"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Stats are the figures of one model. Nodes of sub-graphs are counted once, however often they run.
type Stats struct {
	Nodes int `json:"nodes"`
	// Ops counts nodes per operator, domains other than the standard one in front.
	Ops map[string]int `json:"ops"`
	// Parameters counts the elements of initializers of floating-point type; ParameterBytes is the
	// size of all initializers.
	Parameters     int64 `json:"parameters"`
	ParameterBytes int64 `json:"parameter_bytes"`
	// FLOPs is the sum over the nodes whose cost is known, a multiplication and an addition
	// counting as two.
	FLOPs int64 `json:"flops"`
	// PeakActivationBytes is the most memory that inputs and computed values of the main graph take
	// at once. Each is kept from where it is made to where it is last used, and nothing is computed
	// in place.
	PeakActivationBytes int64 `json:"peak_activation_bytes"`
	// PeakAt is the node at which that happens.
	PeakAt string `json:"peak_at"`
	// UnknownFLOPs and UnknownBytes list nodes and values whose cost or size is not known, because
	// a type is not static or there is no formula.
	UnknownFLOPs []string    `json:"unknown_flops,omitempty"`
	UnknownBytes []string    `json:"unknown_bytes,omitempty"`
	PerNode      []NodeStats `json:"per_node"`
}

// NodeStats are the figures of one node.
type NodeStats struct {
	Name string `json:"name"`
	Op   string `json:"op"`
	// Output is the type of the first output, as text.
	Output string `json:"output"`
	// FLOPs is -1 when it is not known.
	FLOPs int64 `json:"flops"`
	// ParameterBytes is the size of the initializers that the node reads.
	ParameterBytes int64 `json:"parameter_bytes"`
}

// OpCounts returns Ops as a list, most frequent first.
func (s *Stats) OpCounts() []OpCount {
	var out []OpCount
	for op, n := range s.Ops {
		out = append(out, OpCount{op, n})
	}
	slices.SortFunc(out, func(a, b OpCount) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Op, b.Op)) })
	return out
}

// OpCount is one line of [Stats.OpCounts].
type OpCount struct {
	Op    string `json:"op"`
	Count int    `json:"count"`
}

// NewStats measures a model. types gives the types of values, nil means those the model declares;
// costs are known only where types are static.
func NewStats(m *Model, types Types) *Stats {
	if types == nil {
		types = DeclaredTypes(m.GetGraph())
	}
	s := &Stats{Ops: map[string]int{}}
	s.graph(m.GetGraph(), types)
	s.liveness(m.GetGraph(), types)
	return s
}

func (s *Stats) graph(g *Graph, types Types) {
	size := map[string]int64{}
	for _, t := range g.GetInitializer() {
		_, n, err := protoShape(t)
		if err != nil {
			continue
		}
		size[t.Name] = int64(dtypeOf(t).ByteLen(n))
		s.ParameterBytes += size[t.Name]
		if dtypeOf(t).IsFloat() {
			s.Parameters += int64(n)
		}
	}
	for _, n := range g.GetNode() {
		op := n.QualifiedOp()
		s.Nodes++
		s.Ops[op]++
		e := NodeStats{Name: n.Name, Op: op, FLOPs: -1}
		if e.Name == "" {
			e.Name = firstOutput(n)
		}
		if t, ok := types(n.Out(0)); ok {
			e.Output = t.String()
		}
		for _, v := range n.Input {
			e.ParameterBytes += size[v]
		}
		if f, ok := FLOPs(n, types); ok {
			e.FLOPs = f
			s.FLOPs += f
		} else {
			s.UnknownFLOPs = append(s.UnknownFLOPs, e.Name)
		}
		s.PerNode = append(s.PerNode, e)
		for _, sub := range n.Subgraphs() {
			s.graph(sub, types)
		}
	}
}

// liveness walks the main graph in order and keeps the sum of what is alive.
func (s *Stats) liveness(g *Graph, types Types) {
	last := map[Value]int{}
	for i, n := range g.GetNode() {
		for _, v := range Reads(n) {
			last[v] = i
		}
	}
	for _, v := range g.GetOutput() {
		last[Value(v.Name)] = len(g.Node)
	}
	bytes := func(v Value) int64 {
		t, known := types(v)
		shape, static := t.Static()
		if !known || !static || t.DType.Bits() == 0 {
			s.UnknownBytes = append(s.UnknownBytes, string(v))
			return 0
		}
		n, err := tensor.Len(shape)
		if err != nil {
			s.UnknownBytes = append(s.UnknownBytes, string(v))
			return 0
		}
		return int64(t.DType.ByteLen(n))
	}
	// A value that nothing reads is freed by the node that made it.
	freed := make([][]int64, len(g.GetNode()))
	var now int64
	for _, v := range g.Inputs() {
		b := bytes(Value(v.Name))
		now += b
		if end, read := last[Value(v.Name)]; read && end < len(freed) {
			freed[end] = append(freed[end], b)
		}
	}
	s.PeakActivationBytes, s.PeakAt = now, "inputs"
	for i, n := range g.GetNode() {
		for _, o := range n.Output {
			if o == "" {
				continue
			}
			b := bytes(Value(o))
			now += b
			if end, read := last[Value(o)]; !read {
				freed[i] = append(freed[i], b)
			} else if end < len(freed) {
				freed[end] = append(freed[end], b)
			}
		}
		if now > s.PeakActivationBytes {
			s.PeakActivationBytes, s.PeakAt = now, n.Describe()
		}
		for _, b := range freed[i] {
			now -= b
		}
	}
}
