package shape

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// call is one application of a rule: the node, the facts of its inputs, and the outputs to fill.
// Attribute accessors check the attribute's type and keep the first error, so that rules read
// attributes without checking each.
type call struct {
	env  *Env
	node *onnx.Node
	ins  []*Fact // nil where absent
	out  []Fact
	err  error
}

// rule infers the outputs of one operator.
type rule func(c *call) error

type opKey struct{ domain, op string }

// operator is one line of the table.
type operator struct {
	sig   signature
	since int // first opset that has the operator
	infer rule
	fold  rule // content of the outputs, where that of the inputs is known; nil when content is not followed
}

// start fills c for a node; the slices of an earlier call are used again.
func (c *call) start(e *Env, n *onnx.Node) error {
	c.env, c.node, c.err = e, n, nil
	c.ins = c.ins[:0]
	for i, name := range n.Input {
		if name == "" {
			c.ins = append(c.ins, nil)
			continue
		}
		f, _ := e.find(name)
		if f == nil {
			return fmt.Errorf("input %d %q is not defined before it is used", i, name)
		}
		c.ins = append(c.ins, f)
	}
	c.out = c.out[:0]
	for range n.Output {
		c.out = append(c.out, Fact{})
	}
	return nil
}

func (c *call) infer() error {
	if f := c.env.function(c.node); f != nil {
		return c.inferFunction(f)
	}
	dom := onnx.NormalizeDomain(c.node.Domain)
	op := operators[opKey{dom, c.node.OpType}]
	if op == nil {
		return fmt.Errorf("operator %s of domain %q is not known", c.node.OpType, c.node.Domain)
	}
	if dom == "" {
		if c.env.opset == 0 {
			return fmt.Errorf("the model imports no version of the standard operators")
		}
		if c.env.opset < op.since {
			return fmt.Errorf("operator %s exists from opset %d on, the model imports %d", c.node.OpType, op.since, c.env.opset)
		}
		if c.env.opset > newest {
			return fmt.Errorf("operator %s is known up to opset %d, the model imports %d", c.node.OpType, newest, c.env.opset)
		}
	}
	if err := op.sig.check(c); err != nil {
		return err
	}
	if err := c.extents(); err != nil {
		return err
	}
	if err := op.infer(c); err != nil {
		return err
	}
	if c.err == nil && op.fold != nil && c.foldable() {
		if err := op.fold(c); err != nil {
			return err
		}
	}
	return c.err
}

func (c *call) failf(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// opset is the version of the standard domain.
func (c *call) opset() int { return c.env.opset }

// in returns the fact of input i, nil when it is absent. Its content may not be loaded; see loaded.
func (c *call) in(i int) *Fact {
	if i < len(c.ins) {
		return c.ins[i]
	}
	return nil
}

// loaded returns the fact of input i with its content decoded, nil when it is absent.
func (c *call) loaded(i int) *Fact {
	f := c.in(i)
	if f != nil && f.Const == nil {
		name := c.node.Input[i]
		if _, s := c.env.find(name); s != nil {
			s.load(name, f)
		}
	}
	return f
}

func (c *call) has(i int) bool { return c.in(i) != nil }

// typ returns the type of input i, the zero type when it is absent.
func (c *call) typ(i int) onnx.TensorType {
	if f := c.in(i); f != nil {
		return f.Type
	}
	return onnx.TensorType{}
}

func (c *call) dtype(i int) tensor.DType { return c.typ(i).DType }

// dims returns the extents of input i; nil, false when its rank is not known.
func (c *call) dims(i int) ([]onnx.Dim, bool) {
	t := c.typ(i)
	return t.Dims, t.Ranked
}

// set records output i; outputs that the node does not have are ignored.
func (c *call) set(i int, t onnx.TensorType) {
	if i < len(c.out) {
		c.out[i] = Fact{Type: t}
	}
}

// setDims records output i of a known rank.
func (c *call) setDims(i int, d tensor.DType, dims ...onnx.Dim) {
	if i < len(c.out) {
		c.out[i] = Fact{Type: onnx.TensorType{DType: d, Ranked: true, Dims: dims}}
	}
}

// setUnranked records output i of a known element type.
func (c *call) setUnranked(i int, d tensor.DType) { c.set(i, onnx.TensorType{DType: d}) }

// attr returns an attribute after checking its type; files that leave the type out are accepted.
func (c *call) attr(name string, want onnx.AttributeProto_AttributeType) *onnx.Attribute {
	a := c.node.Attr(name)
	if a == nil {
		return nil
	}
	if a.GetType() != want && a.GetType() != onnx.AttributeProto_UNDEFINED {
		c.failf("attribute %q is of type %v, want %v", name, a.GetType(), want)
		return nil
	}
	return a
}

// int returns an integer attribute of moderate size, so that sums of several cannot overflow.
func (c *call) int(name string, def int) int {
	a := c.attr(name, onnx.AttributeProto_INT)
	if a == nil {
		return def
	}
	return c.moderate(name, a.I)
}

func (c *call) moderate(name string, v int64) int {
	if v > maxMagnitude || v < -maxMagnitude {
		c.failf("attribute %q: %d is out of range", name, v)
		return 0
	}
	return int(v)
}

// ints returns an integer-list attribute, nil when it is absent.
func (c *call) ints(name string) []int {
	a := c.attr(name, onnx.AttributeProto_INTS)
	if a == nil {
		return nil
	}
	out := make([]int, len(a.Ints))
	for i, v := range a.Ints {
		out[i] = c.moderate(name, v)
	}
	return out
}

func (c *call) floats(name string) []float32 {
	if a := c.attr(name, onnx.AttributeProto_FLOATS); a != nil {
		return a.Floats
	}
	return nil
}

func (c *call) str(name, def string) string {
	if a := c.attr(name, onnx.AttributeProto_STRING); a != nil {
		return string(a.S)
	}
	return def
}

// hasAttr reports whether an attribute is present.
func (c *call) hasAttr(name string) bool { return c.node.Attr(name) != nil }

// ranked returns the extents of input i, and an error when it has a known rank below least. ok is
// false when the rank is not known.
func (c *call) ranked(i, least int) (dims []onnx.Dim, ok bool, err error) {
	t := c.typ(i)
	if t.Ranked && len(t.Dims) < least {
		return nil, false, fmt.Errorf("input %d %q is %v, want at least rank %d", i, c.node.In(i), t, least)
	}
	return t.Dims, t.Ranked, nil
}

// rankIs returns an error when input i has a known rank other than n.
func (c *call) rankIs(i, n int) error {
	if t := c.typ(i); c.has(i) && t.Ranked && len(t.Dims) != n {
		return fmt.Errorf("input %d %q is %v, want rank %d", i, c.node.In(i), t, n)
	}
	return nil
}

// agree merges two extents that must be equal.
func agree(x, y onnx.Dim, what string) (onnx.Dim, error) {
	d, ok := mergeDim(x, y)
	if !ok {
		return d, fmt.Errorf("%s: %v and %v must be equal", what, x, y)
	}
	return d, nil
}

// broadcast combines two shapes by ONNX's multidirectional rule, keeping a's element type.
func broadcast(a, b onnx.TensorType) (onnx.TensorType, error) {
	if !a.Ranked || !b.Ranked {
		return onnx.TensorType{DType: a.DType}, nil
	}
	// The result is most often one of the two shapes; then its extents are shared.
	if sameDims(a.Dims, b.Dims) || len(b.Dims) == 0 {
		return a, nil
	}
	n := max(len(a.Dims), len(b.Dims))
	out := onnx.TensorType{DType: a.DType, Ranked: true, Dims: make([]onnx.Dim, n)}
	for i := range n {
		x, y := onnx.Known(1), onnx.Known(1)
		if j := i - n + len(a.Dims); j >= 0 {
			x = a.Dims[j]
		}
		if j := i - n + len(b.Dims); j >= 0 {
			y = b.Dims[j]
		}
		d, ok := broadcastDim(x, y)
		if !ok {
			return out, fmt.Errorf("shapes %v and %v do not broadcast: axis %d is %v and %v", a, b, i, x, y)
		}
		out.Dims[i] = d
	}
	return out, nil
}

// broadcastDim combines two extents; ok is false when they are different numbers and neither is 1.
func broadcastDim(x, y onnx.Dim) (d onnx.Dim, ok bool) {
	switch {
	case x == y, y == onnx.Known(1):
		return x, true
	case x == onnx.Known(1):
		return y, true
	case x.IsKnown() && y.IsKnown():
		return x, false
	case x.IsKnown():
		// The other is 1 or the same number.
		return x, true
	case y.IsKnown():
		return y, true
	}
	return onnx.Symbol(""), true
}

// sameDims reports whether the lists are equal and free of unknown extents, two of which may
// differ.
func sameDims(a, b []onnx.Dim) bool {
	if len(a) != len(b) {
		return false
	}
	for i, x := range a {
		if x != b[i] || !x.IsKnown() && x.Param == "" {
			return false
		}
	}
	return true
}

func withDType(t onnx.TensorType, d tensor.DType) onnx.TensorType {
	t.DType = d
	return t
}
