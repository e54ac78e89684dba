//go:build cgo

package ort

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/ort/internal/capi"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// fuseElementwise returns m with chains of element-wise nodes on float32 as one node of our own
// each (capi.FusedName). A small node costs ONNX Runtime about a microsecond whatever it does, a
// large one a pass through memory. Only operations that round exactly are taken, so the results are
// those of the chain bit for bit. A chain is a node with those before it that nothing else uses and
// that have as many elements. What ONNX Runtime joins with a product or a convolution itself is
// left to it. m is not changed; env has its types.
func fuseElementwise(m *onnx.Model, env *shape.Env) *onnx.Model {
	if env == nil || m.Opset(onnx.DomainStandard) < 13 {
		return m
	}
	f := newFuser(m, env)
	if f == nil {
		return m
	}
	c := m.ShallowClone()
	c.Graph.Node = nil
	taken := map[*onnx.Node]bool{}
	fused := map[*onnx.Node]*onnx.Node{}
	for i := len(m.Graph.Node) - 1; i >= 0; i-- {
		sink := m.Graph.Node[i]
		if taken[sink] || !f.takes(sink) {
			continue
		}
		chain := f.chain(sink, taken)
		n, ok := f.emit(chain)
		if len(chain) < 2 || !ok {
			continue
		}
		for _, each := range chain {
			taken[each] = true
		}
		fused[sink] = n
		t := env.Type(sink.Out(0))
		c.Graph.ValueInfo = slices.DeleteFunc(slices.Clone(c.Graph.ValueInfo), func(v *onnx.ValueInfo) bool { return v.Name == sink.Output[0] })
		c.Graph.ValueInfo = append(c.Graph.ValueInfo, onnx.NewValueInfo(sink.Out(0), t))
	}
	if len(fused) == 0 {
		return m
	}
	for _, n := range m.Graph.Node {
		switch {
		case fused[n] != nil:
			c.Graph.Node = append(c.Graph.Node, fused[n])
		case !taken[n]:
			c.Graph.Node = append(c.Graph.Node, n)
		}
	}
	return withKernels(c)
}

// operations are the operators that a chain may have, and what each is made of; those of two inputs
// or more are applied from the left.
var operations = map[string]capi.FusedOp{
	"Add": capi.FusedAdd, "Sum": capi.FusedAdd, "Sub": capi.FusedSub, "Mul": capi.FusedMul, "Div": capi.FusedDiv,
	"Neg": capi.FusedNeg, "Abs": capi.FusedAbs, "Relu": capi.FusedRelu, "HardSigmoid": capi.FusedClamp,
}

// fuser finds chains in a graph.
type fuser struct {
	env   *shape.Env
	maker map[string]*onnx.Node
	uses  map[string]int
	// numbers are the constants of one element; made is whatever is made of constants alone, which
	// ONNX Runtime folds.
	numbers map[string]float32
	made    constants
	order   map[*onnx.Node]int
}

// newFuser returns nil for a graph whose nodes are not all in sight, which is one with sub-graphs.
func newFuser(m *onnx.Model, env *shape.Env) *fuser {
	f := &fuser{env: env, maker: map[string]*onnx.Node{}, uses: map[string]int{}, numbers: map[string]float32{}, made: constants{made: map[string]bool{}}, order: map[*onnx.Node]int{}}
	number := func(name string, t *onnx.TensorProto) {
		if v, err := onnx.TensorOf(t); err == nil && v.DType() == tensor.Float32 && v.Len() == 1 {
			f.numbers[name] = v.Float32s()[0]
		}
	}
	for _, t := range m.Graph.Initializer {
		f.made.made[t.Name] = true
		number(t.Name, t)
	}
	for _, v := range m.Graph.Input {
		delete(f.made.made, v.Name)
		delete(f.numbers, v.Name)
	}
	for i, n := range m.Graph.Node {
		if len(n.Subgraphs()) > 0 {
			return nil
		}
		f.order[n] = i
		for _, out := range n.Output {
			f.maker[out] = n
		}
		for _, in := range n.Input {
			f.uses[in]++
		}
		f.made.see(n)
		if a := n.Attr("value"); n.OpType == "Constant" && a != nil && a.T != nil {
			number(n.Output[0], a.T)
		}
	}
	for _, v := range m.Graph.Output {
		f.uses[v.Name]++
	}
	return f
}

// takes reports whether a node may be part of a chain.
func (f *fuser) takes(n *onnx.Node) bool {
	if _, ok := operations[n.OpType]; !ok || onnx.NormalizeDomain(n.Domain) != "" || f.made.made[n.Output[0]] {
		return false
	}
	out, ok := f.extents(n.Out(0))
	if !ok {
		return false
	}
	if n.OpType == "Sum" && (len(n.Input) == 1 || f.isNumber(n.Input[0])) {
		return false
	}
	vectors := 0
	for i, in := range n.Input {
		x, ok := f.extents(n.In(i))
		if !ok {
			return false
		}
		_, count, ok := spread(x, out)
		if !ok || n.OpType == "Sum" && i == 0 && count == 1 {
			return false
		}
		if !f.isNumber(in) {
			vectors++
		}
	}
	return vectors > 0 && !f.joined(n)
}

func (f *fuser) isNumber(name string) bool {
	_, ok := f.numbers[name]
	return ok
}

// joined reports whether ONNX Runtime makes a node part of a product or a convolution: the sum with
// a bias, an activation behind one, a number that a factor or a product is multiplied by.
func (f *fuser) joined(n *onnx.Node) bool {
	for i, in := range n.Input {
		from := f.maker[in]
		if from == nil || f.uses[in] != 1 {
			continue
		}
		switch from.OpType {
		case "Conv", "Gemm":
			if n.OpType == "Relu" || n.OpType == "HardSigmoid" {
				return true
			}
		}
		if from.OpType == "Conv" || from.OpType == "MatMul" {
			if f.isNumber(n.Input[len(n.Input)-1-i]) {
				return true
			}
			if t, ok := f.extents(n.In(len(n.Input) - 1 - i)); n.OpType == "Add" && ok && len(t) == 1 {
				return true
			}
		}
	}
	return false
}

// extents returns the shape of a float32 value of which all is known and which has elements.
func (f *fuser) extents(v onnx.Value) ([]int, bool) {
	t := f.env.Type(v)
	if v == "" || t.DType != tensor.Float32 || !t.Ranked || len(t.Dims) > capi.FusedRank {
		return nil, false
	}
	out := make([]int, len(t.Dims))
	for i, d := range t.Dims {
		if !d.IsKnown() || d.Value < 1 {
			return nil, false
		}
		out[i] = d.Value
	}
	return out, true
}

// spread says how a value is broadcast to a shape: element i of the shape uses element
// i / inner % count of the value. ok is false where its extents above 1 do not lie side by side.
func spread(x, to []int) (inner, count int, ok bool) {
	pad := len(to) - len(x)
	if pad < 0 {
		return 0, 0, false
	}
	total, lo, hi := 1, len(to), -1
	for i, d := range to {
		total *= d
		if i >= pad && x[i-pad] > 1 {
			lo, hi = min(lo, i), i
		}
	}
	inner, count = 1, 1
	for i, d := range to {
		switch {
		case i > hi:
			inner *= d
		case i >= lo:
			if i < pad || x[i-pad] != d {
				return 0, 0, false
			}
			count *= d
		}
	}
	if count == total {
		inner = 1
	}
	return inner, count, true
}

// chain returns a node and those before it that only it uses, in the order of the graph.
func (f *fuser) chain(sink *onnx.Node, taken map[*onnx.Node]bool) []*onnx.Node {
	shape, _ := f.extents(sink.Out(0))
	in := []*onnx.Node{sink}
	within := map[*onnx.Node]bool{sink: true}
	used := map[string]int{}
	for i := 0; i < len(in); i++ {
		for _, name := range in[i].Input {
			used[name]++
			from := f.maker[name]
			if from == nil || within[from] || taken[from] || used[name] != f.uses[name] || !f.takes(from) || len(in) == capi.FusedSteps/4 {
				continue
			}
			if s, _ := f.extents(from.Out(0)); !slices.Equal(s, shape) {
				continue
			}
			within[from] = true
			in = append(in, from)
		}
	}
	slices.SortFunc(in, func(a, b *onnx.Node) int { return f.order[a] - f.order[b] })
	return in
}

// emit returns the node in the place of a chain. ok is false where the chain has more inputs or
// values at a time than a node may have.
func (f *fuser) emit(chain []*onnx.Node) (n *onnx.Node, ok bool) {
	sink := chain[len(chain)-1]
	out, _ := f.extents(sink.Out(0))
	p := fusing{inputs: map[string]int{}, constants: map[float32]int{}, slots: map[string]int{}, left: map[string]int{}}
	within := map[string]bool{}
	for _, n := range chain {
		within[n.Output[0]] = true
	}
	var names []string
	var extents []int
	for _, n := range chain {
		for i, in := range n.Input {
			p.left[in]++
			if within[in] || f.isNumber(in) {
				continue
			}
			if _, known := p.inputs[in]; !known {
				x, _ := f.extents(n.In(i))
				inner, count, _ := spread(x, out)
				p.inputs[in] = len(names)
				names, extents = append(names, in), append(extents, inner, count)
			}
		}
	}
	operand := func(name string) ref {
		if v, number := f.numbers[name]; number {
			return p.number(v)
		}
		if i, input := p.inputs[name]; input {
			return ref{'i', i}
		}
		return ref{'s', p.slots[name]}
	}
	for _, n := range chain {
		op := operations[n.OpType]
		a := operand(n.Input[0])
		result := -1
		switch {
		case n.OpType == "HardSigmoid":
			result = p.step(capi.FusedMul, result, a, p.number(n.Float("alpha", 0.2)))
			result = p.step(capi.FusedAdd, result, ref{'s', result}, p.number(n.Float("beta", 0.5)))
			result = p.step(op, result, ref{'s', result}, ref{'s', result})
		case len(n.Input) == 1:
			result = p.step(op, result, a, a)
		default:
			for _, in := range n.Input[1:] {
				result = p.step(op, result, a, operand(in))
				a = ref{'s', result}
			}
		}
		p.slots[n.Output[0]] = result
		for _, in := range n.Input {
			if p.left[in]--; p.left[in] == 0 && within[in] {
				p.free(p.slots[in])
			}
		}
	}
	if len(names) > capi.FusedInputs || len(p.list) > capi.FusedConstants || len(p.steps) > capi.FusedSteps || p.most > capi.FusedSlots {
		return nil, false
	}
	if len(p.list) == 0 {
		p.list = []float32{0} // an attribute is never empty
	}
	var steps []int
	for _, s := range p.steps {
		steps = append(steps, int(s.op), s.dst, s.a.index(len(names), len(p.list)), s.b.index(len(names), len(p.list)))
	}
	return &onnx.Node{
		OpType: capi.FusedName, Domain: capi.Domain, Name: sink.Name, Input: names, Output: sink.Output[:1],
		Attribute: []*onnx.Attribute{onnx.AttrInts("shape", out...), onnx.AttrInts("extents", extents...), onnx.AttrFloats("constants", p.list...), onnx.AttrInts("steps", steps...)},
	}, true
}

// ref is an operand: input, constant or slot.
type ref struct {
	kind byte
	n    int
}

func (r ref) index(inputs, constants int) int {
	switch r.kind {
	case 'c':
		return inputs + r.n
	case 's':
		return inputs + constants + r.n
	}
	return r.n
}

type fusedStep struct {
	op   capi.FusedOp
	dst  int
	a, b ref
}

// fusing is a node that is being made.
type fusing struct {
	inputs    map[string]int
	constants map[float32]int
	list      []float32
	slots     map[string]int
	left      map[string]int // uses of a value that are still to come
	steps     []fusedStep
	busy      []bool
	most      int
}

// number returns a constant.
func (p *fusing) number(v float32) ref {
	i, known := p.constants[v]
	if !known || v == 0 { // zeros of both signs are one key
		i = len(p.list)
		p.constants[v], p.list = i, append(p.list, v)
	}
	return ref{'c', i}
}

// step appends a step that writes slot into, or one of its own where into is negative, and returns
// the slot.
func (p *fusing) step(op capi.FusedOp, into int, a, b ref) int {
	if into < 0 {
		if into = slices.Index(p.busy, false); into < 0 {
			into = len(p.busy)
			p.busy = append(p.busy, false)
		}
		p.busy[into] = true
		p.most = max(p.most, len(p.busy))
	}
	p.steps = append(p.steps, fusedStep{op, into, a, b})
	return into
}

func (p *fusing) free(slot int) { p.busy[slot] = false }
