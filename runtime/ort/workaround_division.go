//go:build cgo

package ort

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	"onnxrl/runtime/onnx"
	"onnxrl/runtime/onnx/shape"
	"onnxrl/runtime/tensor"
)

// guardDivisions makes ONNX Runtime report an integer division by zero, sub-graphs included:
// ONNX Runtime 1.27 lets the processor trap, which ends the process, and so does the smallest
// number divided by −1, whose quotient is that number again in two's complement. Divisions by
// constants without zeros and −1 stay as they are. env holds the types of m, which is copied when
// something has to change. divisors is for runError.
func guardDivisions(m *onnx.Model, env *shape.Env) (guarded *onnx.Model, divisors []string, err error) {
	if slices.ContainsFunc(m.Functions, func(f *onnx.Function) bool { return slices.ContainsFunc(f.Node, divides) }) {
		// Only calls give the values of a function types.
		if m, err = onnx.InlineFunctions(m); err != nil {
			return nil, nil, err
		}
		if env, err = shape.Infer(m, nil); err != nil {
			return nil, nil, err
		}
	}
	d := &divisions{}
	if !d.needed(m.Graph, env) {
		return m, nil, nil
	}
	c := m.ShallowClone()
	d.guard(c.Graph, m.Graph, env)
	return c, d.found, nil
}

func divides(n *onnx.Node) bool {
	return onnx.NormalizeDomain(n.Domain) == onnx.DomainStandard && (n.OpType == "Div" || n.OpType == "Mod") && len(n.Input) == 2
}

// divisions guards the divisions of a model, and keeps the descriptions of those whose divisors may
// be zero, in the order of the guards' indices from divisorIndex on.
type divisions struct {
	count int
	found []string
}

// needed reports whether a graph or one below it divides integers by what is not known.
func (d *divisions) needed(g *onnx.Graph, env *shape.Env) bool {
	for _, n := range g.Node {
		if zero, minus := dangers(n, env); zero || minus {
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

// dangers reports whether a node divides integers by what may be zero, and whether by what may be
// −1 where the quotient may overflow.
func dangers(n *onnx.Node, env *shape.Env) (zero, minus bool) {
	if !divides(n) {
		return false, false
	}
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

// guard puts guards before the divisions of a graph, and of those below it. from is the graph whose
// types env has, of which g is a copy.
func (d *divisions) guard(g, from *onnx.Graph, env *shape.Env) {
	var nodes []*onnx.Node
	for i, n := range g.Node {
		if zero, minus := dangers(n, env); zero || minus {
			nodes = append(nodes, d.before(n, env.Type(onnx.Value(n.Input[1])).DType, zero, minus)...)
		}
		inner := from.Node[i].Subgraphs()
		for k, s := range n.Subgraphs() {
			if body := env.Body(inner[k]); body != nil {
				d.guard(s, inner[k], body)
			}
		}
		nodes = append(nodes, n)
	}
	g.Node = nodes
}

// before returns the nodes of one division's guard, and gives the division their result.
func (d *divisions) before(n *onnx.Node, dtype tensor.DType, zero, minus bool) []*onnx.Node {
	d.count++
	prefix := "onnxrl/division/" + strconv.Itoa(d.count) + "/"
	var nodes []*onnx.Node
	op := func(kind string, in []string, attrs ...*onnx.Attribute) string {
		out := prefix + kind + strconv.Itoa(len(nodes))
		nodes = append(nodes, &onnx.Node{OpType: kind, Name: out, Input: in, Output: []string{out}, Attribute: attrs})
		return out
	}
	number := func(v int64) string { return op("Constant", nil, onnx.AttrTensor("value", tensor.Scalar(v))) }
	cast := func(v string, to tensor.DType) string {
		return op("Cast", []string{v}, onnx.AttrInt("to", int(to)))
	}
	a, b := n.Input[0], n.Input[1]
	if zero {
		// An index beyond the only zero is an error of the run, and the zero that is gathered
		// otherwise changes nothing when it is added. Numbers of fewer than 32 bits have no kernels
		// for that.
		bad := cast(op("Not", []string{cast(b, tensor.Bool)}), tensor.Int64)
		none := op("Gather", []string{
			op("Constant", nil, onnx.AttrTensor("value", tensor.Of([]int64{0}, 1))), op("Mul", []string{bad, number(divisorIndex + int64(len(d.found)))}),
		})
		d.found = append(d.found, n.Describe())
		switch dtype {
		case tensor.Int64:
			b = op("Add", []string{b, none})
		case tensor.Uint64, tensor.Uint32:
			b = op("Max", []string{b, cast(none, dtype)})
		case tensor.Int32:
			b = op("Add", []string{b, cast(none, dtype)})
		default:
			b = cast(op("Add", []string{cast(b, tensor.Int64), none}), dtype)
		}
	}
	if minus {
		// The smallest number is divided by 1 instead, which gives the same.
		least, minusOne := number(math.MinInt64), number(-1)
		if dtype == tensor.Int32 {
			least, minusOne = cast(number(math.MinInt32), dtype), cast(minusOne, dtype)
		}
		over := op("And", []string{op("Equal", []string{a, least}), op("Equal", []string{b, minusOne})})
		one := cast(over, dtype)
		b = op("Add", []string{op("Add", []string{b, one}), one})
	}
	n.Input[1] = b
	return nodes
}
