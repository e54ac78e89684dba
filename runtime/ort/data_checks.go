//go:build cgo

package ort

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// checkData makes ONNX Runtime report, as errors of the run, what the data of a run may bring and
// what it would end the process with, sub-graphs included. It puts nodes before others:
//
//   - Before integer divisions by what may hold zeros. ONNX Runtime 1.27 lets the processor trap.
//     The smallest number divided by −1, whose quotient in two's complement is that number again,
//     traps as well and is divided by 1 instead. Constants without zeros and −1 need no check.
//   - Before operators that divide by an extent or read a first element, where the extent follows
//     from data, as those behind NonZero do. What follows from the shapes of inputs is checked
//     before the run; see extents.
//   - Before operators that divide by a number among their inputs.
//   - Before Trilu, whose kernel adds the extents to the diagonal's number, whatever that is: it is
//     brought into the range of diagonals far outside of any matrix.
//
// env holds the types of m, which is copied when something has to change. found is for runError.
func checkData(m *onnx.Model, env *shape.Env) (checked *onnx.Model, found []finding, err error) {
	if slices.ContainsFunc(m.Functions, func(f *onnx.Function) bool { return slices.ContainsFunc(f.Node, delicate) }) {
		// Only calls give the values of a function types.
		if m, err = onnx.InlineFunctions(m); err != nil {
			return nil, nil, err
		}
		if env, err = shape.Infer(m, nil); err != nil {
			return nil, nil, err
		}
	}
	if slices.ContainsFunc(m.Graph.Node, func(n *onnx.Node) bool { return len(filled(n)) > 0 }) && len(m.Graph.ValueInfo) > 0 {
		// A name that a file gives an extent does not say that it follows from shapes.
		if env, err = shape.Infer(undeclared(m, m.Graph.Input, m.Graph.Initializer), nil); err != nil {
			return nil, nil, err
		}
	}
	d := &dataChecks{opset: m.Opset(onnx.DomainStandard)}
	if !d.needed(m.Graph, env) {
		return m, nil, nil
	}
	c := m.ShallowClone()
	d.graph(c.Graph, m.Graph, env)
	return c, d.found, nil
}

// dataChecks puts checks into a model. What they find is listed in the order of their indices,
// which begin with checkIndex.
type dataChecks struct {
	opset int
	count int
	found []finding
}

func divides(n *onnx.Node) bool {
	return onnx.NormalizeDomain(n.Domain) == onnx.DomainStandard && (n.OpType == "Div" || n.OpType == "Mod") && len(n.Input) == 2
}

// diagonal reports whether a node takes the number of a diagonal.
func diagonal(n *onnx.Node) bool { return n.OpType == "Trilu" && builtIn(n) && n.In(1) != "" }

// filled lists the inputs of a node that must have elements.
func filled(n *onnx.Node) []shape.Filled {
	if !builtIn(n) {
		return nil
	}
	return shape.FilledInputs(n)
}

// positive lists the inputs of a node that must be at least 1.
func positive(n *onnx.Node) []int {
	if !builtIn(n) {
		return nil
	}
	return shape.PositiveInputs(n.OpType)
}

// delicate reports whether a node may need a check.
func delicate(n *onnx.Node) bool {
	return divides(n) || diagonal(n) || len(filled(n)) > 0 || len(positive(n)) > 0
}

// danger is what may be wrong with a node's inputs.
type danger struct {
	zero  bool // a divisor may be zero
	minus bool // a divisor may be −1 where the quotient may overflow
	far   bool // a diagonal may be further away than maxDiagonal
	empty []shape.Filled
	below []int // inputs that may be below 1
}

// maxDiagonal is far outside of any matrix, and nothing that is added to it overflows.
const maxDiagonal = 1 << 40

func (d danger) any() bool { return d.zero || d.minus || d.far || len(d.empty) > 0 || len(d.below) > 0 }

func dangerOf(n *onnx.Node, env *shape.Env) (d danger) {
	if divides(n) {
		d.zero, d.minus = divisor(n, env)
	}
	if diagonal(n) {
		f, _ := env.Fact(onnx.Value(n.Input[1]))
		d.far = f.Const == nil || slices.ContainsFunc(f.Const.Int64s(), func(k int64) bool { return max(k, -k) > maxDiagonal || k == math.MinInt64 })
	}
	for _, f := range filled(n) {
		if v := n.In(f.Input); v != "" && mayBeEmpty(env.Type(onnx.Value(v)), f.From) {
			d.empty = append(d.empty, f)
		}
	}
	for _, i := range positive(n) {
		v := onnx.Value(n.In(i))
		f, _ := env.Fact(v)
		// A list has an element for each part, which may be empty.
		if list := f.Type.Ranked && len(f.Type.Dims) > 0 && n.OpType == "SplitToSequence"; v != "" && f.Const == nil && f.Ints == nil && !list {
			d.below = append(d.below, i)
		}
	}
	return d
}

// divisor reports what an integer divisor may hold.
func divisor(n *onnx.Node, env *shape.Env) (zero, minus bool) {
	dtype := env.Type(onnx.Value(n.Input[1])).DType
	if dtype.IsFloat() || dtype.Bits() == 0 {
		return false, false
	}
	wide := dtype == tensor.Int32 || dtype == tensor.Int64
	f, _ := env.Fact(onnx.Value(n.Input[1]))
	if f.Const == nil {
		return true, wide
	}
	size := dtype.Size()
	for element := range slices.Chunk(f.Const.Bytes(), max(size, 1)) {
		zero = zero || bytes.Count(element, []byte{0}) == size
		minus = minus || wide && bytes.Count(element, []byte{0xff}) == size
	}
	return zero, minus
}

// mayBeEmpty reports whether an extent from an axis on follows from data. Extents of the shapes of
// inputs are symbols here and numbers where a run is checked.
func mayBeEmpty(t onnx.TensorType, from int) bool {
	if !t.Ranked {
		return true
	}
	for a, d := range t.Dims {
		if a >= from && !d.IsKnown() && d.Param == "" {
			return true
		}
	}
	return false
}

// needed reports whether a graph or one below it needs checks.
func (d *dataChecks) needed(g *onnx.Graph, env *shape.Env) bool {
	for _, n := range g.Node {
		if dangerOf(n, env).any() {
			return true
		}
		for _, s := range n.Subgraphs() {
			if body := env.Body(s); body != nil && d.needed(s, body) {
				return true
			}
		}
	}
	return false
}

// graph puts checks before the nodes of a graph, and of those below it. from is the graph whose
// types env has, of which g is a copy.
func (d *dataChecks) graph(g, from *onnx.Graph, env *shape.Env) {
	var nodes []*onnx.Node
	for i, n := range g.Node {
		if what := dangerOf(n, env); what.any() {
			b := d.before(n)
			for _, f := range what.empty {
				b.filled(f)
			}
			for _, k := range what.below {
				b.positive(k, env.Type(onnx.Value(from.Node[i].In(k))).DType)
			}
			divisor := env.Type(onnx.Value(from.Node[i].In(1))).DType
			if what.zero {
				b.nonZero(divisor)
			}
			if what.minus {
				b.noOverflow(divisor)
			}
			if what.far {
				b.near()
			}
			nodes = append(nodes, b.nodes...)
		}
		inner := from.Node[i].Subgraphs()
		for k, s := range n.Subgraphs() {
			if body := env.Body(inner[k]); body != nil {
				d.graph(s, inner[k], body)
			}
		}
		nodes = append(nodes, n)
	}
	g.Node = nodes
}

// dataCheck collects the nodes before one node, whose inputs it replaces.
type dataCheck struct {
	*dataChecks
	node   *onnx.Node
	prefix string
	nodes  []*onnx.Node
}

func (d *dataChecks) before(n *onnx.Node) *dataCheck {
	d.count++
	return &dataCheck{dataChecks: d, node: n, prefix: "onnxrl/check/" + strconv.Itoa(d.count) + "/"}
}

func (g *dataCheck) op(kind string, in []string, attrs ...*onnx.Attribute) string {
	out := g.prefix + kind + strconv.Itoa(len(g.nodes))
	g.nodes = append(g.nodes, &onnx.Node{OpType: kind, Name: out, Input: in, Output: []string{out}, Attribute: attrs})
	return out
}

func (g *dataCheck) constant(t *tensor.Tensor) string {
	return g.op("Constant", nil, onnx.AttrTensor("value", t))
}

func (g *dataCheck) number(v int64) string { return g.constant(tensor.Scalar(v)) }

func (g *dataCheck) cast(v string, to tensor.DType) string {
	return g.op("Cast", []string{v}, onnx.AttrInt("to", int(to)))
}

// zeros returns int64 zeros of the shape of v, whose computation fails where v is zero. An index
// beyond the only element of a list is an error of the run, and it says which check it was.
func (g *dataCheck) zeros(v string, err error) string {
	bad := g.cast(g.op("Not", []string{g.cast(v, tensor.Bool)}), tensor.Int64)
	index := g.op("Mul", []string{bad, g.number(checkIndex + int64(len(g.found)))})
	g.found = append(g.found, finding{g.node.Describe(), err})
	return g.op("Gather", []string{g.constant(tensor.Of([]int64{0}, 1)), index})
}

// nonZero checks a divisor.
func (g *dataCheck) nonZero(dtype tensor.DType) {
	b := g.node.Input[1]
	zeros := g.zeros(b, engine.ErrDivideByZero)
	switch dtype {
	case tensor.Int64:
		b = g.op("Add", []string{b, zeros})
	case tensor.Int32:
		b = g.op("Add", []string{b, g.cast(zeros, dtype)})
	case tensor.Uint64, tensor.Uint32:
		// These have no kernel for Add in every release.
		b = g.op("Max", []string{b, g.cast(zeros, dtype)})
	default:
		b = g.cast(g.op("Add", []string{g.cast(b, tensor.Int64), zeros}), dtype)
	}
	g.node.Input[1] = b
}

// noOverflow divides the smallest number by 1 where it would be divided by −1.
func (g *dataCheck) noOverflow(dtype tensor.DType) {
	a, b := g.node.Input[0], g.node.Input[1]
	least, minusOne := g.number(math.MinInt64), g.number(-1)
	if dtype == tensor.Int32 {
		least, minusOne = g.cast(g.number(math.MinInt32), dtype), g.cast(minusOne, dtype)
	}
	over := g.op("And", []string{g.op("Equal", []string{a, least}), g.op("Equal", []string{b, minusOne})})
	one := g.cast(over, dtype)
	g.node.Input[1] = g.op("Add", []string{g.op("Add", []string{b, one}), one})
}

// near brings the number of a diagonal into range.
func (g *dataCheck) near() {
	k := g.node.Input[1]
	least, most := g.number(-maxDiagonal), g.number(maxDiagonal)
	k = g.op("Where", []string{g.op("Less", []string{k, least}), least, k})
	k = g.op("Where", []string{g.op("Greater", []string{k, most}), most, k})
	g.node.Input[1] = k
}

// positive checks an input that must be at least 1.
func (g *dataCheck) positive(i int, dtype tensor.DType) {
	v := g.node.Input[i]
	wide := v
	if dtype != tensor.Int64 {
		wide = g.cast(v, tensor.Int64)
	}
	least := g.op("Greater", []string{wide, g.number(0)})
	zeros := g.zeros(least, fmt.Errorf("input %d %q: %w", i, v, engine.ErrNotPositive))
	out := g.op("Add", []string{wide, zeros})
	if dtype != tensor.Int64 {
		out = g.cast(out, dtype)
	}
	g.node.Input[i] = out
}

// filled checks an input that must have elements.
func (g *dataCheck) filled(f shape.Filled) {
	v := g.node.Input[f.Input]
	extents := g.op("Shape", []string{v})
	if f.From > 0 && g.opset >= 10 {
		list := func(n int64) string { return g.constant(tensor.Of([]int64{n}, 1)) }
		extents = g.op("Slice", []string{extents, list(int64(f.From)), list(math.MaxInt32)})
	}
	count := g.op("ReduceProd", []string{extents}, onnx.AttrInt("keepdims", 0))
	zero := g.zeros(count, fmt.Errorf("input %d %q: %w", f.Input, v, engine.ErrNoElements))
	g.node.Input[f.Input] = g.op("Reshape", []string{v, g.op("Add", []string{g.op("Shape", []string{v}), zero})})
}
