package shape

import (
	"fmt"

	"onnxrl/runtime/onnx"
	"onnxrl/runtime/tensor"
)

// call is one application of a rule: the node, the facts of its inputs through env, and the outputs to fill.
type call struct {
	env  *Env
	node *onnx.Node
	out  []Fact
}

// rule infers the outputs of one operator.
type rule func(c *call) error

func (c *call) infer() error {
	r, ok := rules[opKey{onnx.NormalizeDomain(c.node.Domain), c.node.OpType}]
	if !ok {
		return fmt.Errorf("operator %s of domain %q is not known", c.node.OpType, c.node.Domain)
	}
	return r(c)
}

// in returns the fact of input i; the zero Fact when it is absent.
func (c *call) in(i int) Fact {
	v := c.node.In(i)
	if v == "" {
		return Fact{}
	}
	f, _ := c.env.Fact(v)
	return f
}

// typ returns the type of input i without decoding its content.
func (c *call) typ(i int) onnx.TensorType { return c.env.Type(c.node.In(i)) }

// set records output i; outputs that the node does not have are ignored.
func (c *call) set(i int, t onnx.TensorType) {
	if i < len(c.out) {
		c.out[i] = Fact{Type: t}
	}
}

type opKey struct{ domain, op string }

// broadcast combines two shapes by ONNX's multidirectional rule.
func broadcast(a, b onnx.TensorType) (onnx.TensorType, error) {
	if !a.Ranked || !b.Ranked {
		return onnx.TensorType{DType: a.DType}, nil
	}
	n := max(len(a.Dims), len(b.Dims))
	out := onnx.TensorType{DType: a.DType, Ranked: true, Dims: make([]onnx.Dim, n)}
	at := func(d []onnx.Dim, i int) onnx.Dim {
		if i -= n - len(d); i >= 0 {
			return d[i]
		}
		return onnx.Known(1)
	}
	for i := range n {
		x, y := at(a.Dims, i), at(b.Dims, i)
		switch {
		case x == y:
			out.Dims[i] = x
		case x == onnx.Known(1):
			out.Dims[i] = y
		case y == onnx.Known(1):
			out.Dims[i] = x
		case x.IsKnown() && y.IsKnown():
			return out, fmt.Errorf("shapes %v and %v do not broadcast", a, b)
		case x.IsKnown():
			out.Dims[i] = x
		case y.IsKnown():
			out.Dims[i] = y
		default:
			out.Dims[i] = onnx.Symbol("")
		}
	}
	return out, nil
}

func withDType(t onnx.TensorType, d tensor.DType) onnx.TensorType {
	t.DType = d
	return t
}
