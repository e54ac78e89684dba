package onnx

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx/schema"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// MinUpgrade is the oldest opset of the standard domain that [Upgrade] starts from: the one that
// gave binary operators their present broadcasting.
const MinUpgrade = 7

// Upgrade returns a copy of m that imports a newer opset of the standard domain and computes the
// same. Each node is taken through every version at which its operator changed. Versions that agree
// in what the node uses are passed over, and known changes are rewritten (attributes that became
// inputs, Softmax's axes before 13, Upsample, Scatter, …). Anything else is an error naming the
// node and the version. Functions are inlined first. Files of IR 3 no longer list initializers
// among the inputs afterwards. An older opset than m's is an error. Weights are shared with m.
func Upgrade(m *Model, opset int) (*Model, error) {
	c, err := upgrade(m, opset)
	if err != nil {
		return nil, fmt.Errorf("upgrade graph %q to opset %d: %w", m.GetGraph().GetName(), opset, err)
	}
	return c, nil
}

func upgrade(m *Model, opset int) (*Model, error) {
	from := m.Opset(DomainStandard)
	switch {
	case opset < schema.MinUnderstood || opset > schema.MaxUnderstood:
		return nil, fmt.Errorf("versions %d to %d can be asked for", schema.MinUnderstood, schema.MaxUnderstood)
	case from > opset:
		return nil, fmt.Errorf("the model imports opset %d, and there is no way back", from)
	case from < MinUpgrade:
		return nil, fmt.Errorf("the model imports opset %d; %d is the oldest that is understood", from, MinUpgrade)
	}
	c, err := InlineFunctions(m)
	if err != nil {
		return nil, err
	}
	if from == opset {
		return c, nil
	}
	if c.IrVersion < 4 {
		c.Graph.Input = c.Graph.Inputs()
	}
	c.IrVersion = max(c.IrVersion, DefaultIR)
	u := &upgrader{names: newNamer(c), types: DeclaredTypes(c.Graph)}
	if err := u.graph(c.Graph, from, opset); err != nil {
		return nil, err
	}
	c.SetOpset(DomainStandard, opset)
	return c, nil
}

// upgrader carries what the rewriting of one node needs.
type upgrader struct {
	names *namer
	types Types
	home  *Graph
	out   []*Node
}

func (u *upgrader) graph(g *Graph, from, to int) error {
	for _, n := range g.Node {
		for _, s := range n.Subgraphs() {
			if err := u.graph(s, from, to); err != nil {
				return fmt.Errorf("%s: %w", n.Describe(), err)
			}
		}
	}
	inner := &upgrader{names: u.names, types: u.types, home: g}
	for _, n := range g.Node {
		if NormalizeDomain(n.Domain) == DomainStandard {
			if err := inner.node(n, from, to); err != nil {
				return err
			}
		} else {
			inner.out = append(inner.out, n)
		}
	}
	g.Node = inner.out
	return nil
}

// node takes one node through the versions after from, and appends it and what its rewriting added.
func (u *upgrader) node(n *Node, from, to int) error {
	if _, ok := schema.Lookup(DomainStandard, n.OpType, from); !ok {
		return fmt.Errorf("%s: there is no such operator at opset %d", n.Describe(), from)
	}
	var after []*Node
	for v := from + 1; v <= to; v++ {
		if portable(n, DomainStandard, v-1, v) {
			continue
		}
		rule := upgradeRules[upgradeKey{n.OpType, v}]
		if rule == nil {
			return fmt.Errorf("%s: the change of the operator at opset %d is not supported", n.Describe(), v)
		}
		more, err := rule(u, n)
		if err != nil {
			return fmt.Errorf("%s: change at opset %d: %w", n.Describe(), v, err)
		}
		after = append(after, more...)
	}
	u.out = append(append(u.out, n), after...)
	return nil
}

// before appends a node of one output in front of the one being rewritten and returns that output.
func (u *upgrader) before(of *Node, op string, in []string, attrs ...*Attribute) string {
	out := u.names.fresh(firstOutput(of) + "/" + op)
	u.out = append(u.out, &Node{OpType: op, Name: out, Input: in, Output: []string{out}, Attribute: attrs})
	return out
}

// constant adds an initializer next to the node and returns its name.
func (u *upgrader) constant(of *Node, hint string, t *tensor.Tensor) string {
	name := u.names.fresh(firstOutput(of) + "/" + hint)
	u.home.Initializer = append(u.home.Initializer, ProtoOf(name, t))
	return name
}

// number adds a rank-0 constant of the element type of a value, float32 when that is not known.
func (u *upgrader) number(of *Node, hint string, like Value, v float32) (string, error) {
	d := tensor.Float32
	if t, ok := u.types(like); ok && t.DType != tensor.Undefined {
		d = t.DType
	}
	switch d {
	case tensor.Float32:
		return u.constant(of, hint, tensor.Scalar(v)), nil
	case tensor.Float64:
		return u.constant(of, hint, tensor.Scalar(float64(v))), nil
	case tensor.Float16:
		t := tensor.New(d)
		tensor.Data[uint16](t)[0] = tensor.Float32ToFloat16(v)
		return u.constant(of, hint, t), nil
	}
	return "", fmt.Errorf("attribute %q cannot become an input of type %v", hint, d)
}

// setInput puts a value at input i, with absent inputs before it where needed.
func setInput(n *Node, i int, v string) {
	for len(n.Input) <= i {
		n.Input = append(n.Input, "")
	}
	n.Input[i] = v
}

// moveInts turns an integer-list attribute into input i; an absent attribute leaves the input
// absent.
func (u *upgrader) moveInts(n *Node, attr string, i int) {
	if !n.Has(attr) {
		return
	}
	v := n.Ints(attr)
	n.DelAttr(attr)
	setInput(n, i, u.constant(n, attr, tensor.Of(Int64s(v), len(v))))
}
