package hostile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Base is a model with the inputs of one run, which follow the model's Graph.Inputs.
type Base struct {
	Name   string
	Model  *onnx.Model
	Inputs []*tensor.Tensor
	// Of names the element type where it is not the one that the operator mostly has.
	Of string
}

// Variant is a base with something hostile in one place.
type Variant struct {
	// Base names what was changed.
	Base string
	// Op is the operator, with its domain where that is not the standard's, and the element type
	// where that is not the one that it mostly has.
	Op string
	// Site is "attribute NAME", "input I", "constant I" or "shape of input I".
	Site string
	// Value says what was put there.
	Value string
	// Form is what else a kernel may depend on: the attributes of the operator's node.
	Form string
	// Make builds the model and the inputs of a run.
	Make func() (*onnx.Model, []*tensor.Tensor, error)
}

// Key names an operator, place and value, whatever model they were found in.
func (v Variant) Key() string { return v.Op + "\t" + v.Site + "\t" + v.Value }

// Variants lists everything hostile that can be done to a base.
func Variants(b Base) []Variant {
	list := slices.Concat(attributes(b), contents(b), shapes(b))
	if b.Of != "" {
		for i := range list {
			list[i].Op += " of " + b.Of
		}
	}
	return list
}

// reader is the operator that reads a value, at which input, and its form.
func reader(m *onnx.Model, value string) (op string, at int, form string) {
	for _, n := range m.Graph.Node {
		if i := slices.Index(n.Input, value); i >= 0 {
			return n.QualifiedOp(), i, formOf(n)
		}
	}
	return "graph", 0, ""
}

// formOf lists the numbers and words among a node's attributes, and the inputs that it has.
func formOf(n *onnx.Node) string {
	var b strings.Builder
	for _, a := range n.Attribute {
		fmt.Fprint(&b, a.Name, " ", a.I, a.Ints, a.F, string(a.S), "; ")
	}
	for _, v := range n.Input {
		fmt.Fprint(&b, v != "")
	}
	return b.String()
}

// contents puts hostile numbers into inputs.
func contents(b Base) []Variant {
	var out []Variant
	for i, t := range b.Inputs {
		if t == nil || t.Len() == 0 || t.DType() == tensor.String {
			continue
		}
		port := b.Model.Graph.Inputs()[i]
		op, at, form := reader(b.Model, port.Name)
		for _, f := range fills(t) {
			out = append(out, Variant{b.Name, op, fmt.Sprintf("input %d", at), f.name, form, func() (*onnx.Model, []*tensor.Tensor, error) {
				in := slices.Clone(b.Inputs)
				in[i] = f.apply(t)
				m := b.Model.ShallowClone()
				m.Graph = forgetOutputs(m.Graph)
				return m, in, nil
			}})
			out = append(out, Variant{b.Name, op, fmt.Sprintf("constant %d", at), f.name, form, func() (*onnx.Model, []*tensor.Tensor, error) {
				m := b.Model.ShallowClone()
				m.Graph = forgetOutputs(m.Graph)
				m.Graph.Input = slices.DeleteFunc(slices.Clone(m.Graph.Input), func(v *onnx.ValueInfo) bool { return v.Name == port.Name })
				m.Graph.Initializer = append(slices.Clip(m.Graph.Initializer), onnx.ProtoOf(port.Name, f.apply(t)))
				return m, slices.Delete(slices.Clone(b.Inputs), i, i+1), nil
			}})
		}
	}
	return out
}

// shapes gives inputs extents that the model does not expect, after making the model forget what
// it declares of them.
func shapes(b Base) []Variant {
	var out []Variant
	for i, t := range b.Inputs {
		if t == nil || t.DType() == tensor.String {
			continue
		}
		port := b.Model.Graph.Inputs()[i]
		op, at, form := reader(b.Model, port.Name)
		for _, s := range hostileShapes(t.Shape()) {
			out = append(out, Variant{b.Name, op, fmt.Sprintf("shape of input %d", at), shapeChange(t.Shape(), s), form, func() (*onnx.Model, []*tensor.Tensor, error) {
				in := slices.Clone(b.Inputs)
				in[i] = repeated(t, s)
				return forgetful(b.Model), in, nil
			}})
		}
	}
	return out
}

// forgetful drops what a model declares of the shapes of inputs, outputs and values.
func forgetful(m *onnx.Model) *onnx.Model {
	c := m.ShallowClone()
	unranked := func(list []*onnx.ValueInfo) []*onnx.ValueInfo {
		out := slices.Clone(list)
		for i, v := range out {
			if t, ok := v.TensorType(); ok {
				out[i] = onnx.NewValueInfo(onnx.Value(v.Name), onnx.TensorType{DType: t.DType})
			}
		}
		return out
	}
	c.Graph.Input, c.Graph.Output, c.Graph.ValueInfo = unranked(m.Graph.Input), unranked(m.Graph.Output), nil
	return c
}

// hostileShapes changes one axis at a time, and the rank.
func hostileShapes(s []int) [][]int {
	var out [][]int
	for i := range s {
		for _, d := range []int{0, 1, s[i] + 1, s[i] - 1, 2*s[i] + 1} {
			if d != s[i] && d >= 0 {
				c := slices.Clone(s)
				c[i] = d
				out = append(out, c)
			}
		}
		out = append(out, slices.Delete(slices.Clone(s), i, i+1))
	}
	zero := make([]int, len(s))
	out = append(out, append([]int{1}, s...), append(slices.Clone(s), 1), append(slices.Clone(s), 2), append([]int{0}, s...))
	if len(s) > 0 {
		out = append(out, zero, []int{}, []int{0})
	}
	return out
}

// shapeChange says what was done to a shape, for all bases alike.
func shapeChange(from, to []int) string {
	if len(from) != len(to) {
		n := 1
		for _, d := range to {
			n *= d
		}
		if n == 0 {
			return fmt.Sprintf("rank %+d, empty", len(to)-len(from))
		}
		return fmt.Sprintf("rank %+d", len(to)-len(from))
	}
	for i := range from {
		if from[i] != to[i] {
			switch {
			case to[i] <= 1:
				return fmt.Sprintf("axis %d is %d", i, to[i])
			case to[i] < from[i]:
				return fmt.Sprintf("axis %d is shorter", i)
			}
			return fmt.Sprintf("axis %d is longer", i)
		}
	}
	return "the same"
}

// repeated fills a shape with the elements of t, over and over.
func repeated(t *tensor.Tensor, shape []int) *tensor.Tensor {
	out := tensor.New(t.DType(), shape...)
	if src := t.Bytes(); len(src) > 0 {
		for at := 0; at < len(out.Bytes()); {
			at += copy(out.Bytes()[at:], src)
		}
	}
	return out
}

// Open returns the base with its initializers and the values of its Constant nodes as inputs, so
// that they are tried as contents too; ok is false where it has none.
func Open(b Base) (out Base, ok bool) {
	m := b.Model.ShallowClone()
	g := m.Graph
	out = Base{Name: b.Name, Model: m, Inputs: slices.Clip(b.Inputs), Of: b.Of}
	nodes, initializers := g.Node, g.Initializer
	g.Input = slices.Clip(g.Inputs())
	g.Node, g.Initializer = nil, nil
	open := func(name string, p *onnx.TensorProto) bool {
		t, err := onnx.TensorOf(p)
		if err != nil || t.DType() == tensor.String {
			return false
		}
		g.Input = append(g.Input, onnx.NewValueInfo(onnx.Value(name), onnx.TypeOf(t.DType(), t.Shape()...)))
		out.Inputs = append(out.Inputs, t)
		ok = true
		return true
	}
	for _, p := range initializers {
		if !open(p.Name, p) {
			g.Initializer = append(g.Initializer, p)
		}
	}
	for _, n := range nodes {
		if a := n.Attr("value"); n.OpType != "Constant" || a == nil || a.T == nil || !open(n.Output[0], a.T) {
			g.Node = append(g.Node, n)
		}
	}
	return out, ok
}

// Integers returns the base with every float32 input as numbers of an integer type, and ok false
// where there is none or the model holds other floating-point values. Many operators take both, and
// only integers trap.
func Integers(b Base, d tensor.DType) (out Base, ok bool) {
	m := b.Model.ShallowClone()
	out = Base{Name: b.Name, Model: m, Of: d.String()}
	for _, t := range m.Graph.Initializer {
		if tensor.DType(t.DataType).IsFloat() {
			return out, false
		}
	}
	types := map[string]bool{}
	for i, v := range b.Model.Graph.Inputs() {
		t := b.Inputs[i]
		if t == nil || t.DType() != tensor.Float32 {
			out.Inputs = append(out.Inputs, t)
			continue
		}
		c := tensor.New(d, t.Shape()...)
		size := d.Size()
		for k, x := range t.Float32s() {
			// Without zeros, so that it is known to work before something hostile is done to it.
			n := int64(x)
			if n == 0 {
				n = 1
			}
			for j := range size {
				c.Bytes()[k*size+j] = byte(n >> (8 * j))
			}
		}
		out.Inputs = append(out.Inputs, c)
		types[v.Name] = true
		ok = true
	}
	for i, v := range m.Graph.Input {
		if t, has := v.TensorType(); has && types[v.Name] {
			t.DType = d
			m.Graph.Input[i] = onnx.NewValueInfo(onnx.Value(v.Name), t)
		}
	}
	for i, v := range m.Graph.Output {
		if t, has := v.TensorType(); has && t.DType == tensor.Float32 {
			t.DType = d
			m.Graph.Output[i] = onnx.NewValueInfo(onnx.Value(v.Name), t)
		}
	}
	m.Graph.ValueInfo = nil
	return out, ok
}
