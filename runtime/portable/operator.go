package portable

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/schema"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// operator is one line of the table: which nodes it serves and how their kernels are built.
type operator struct {
	name   string
	domain string
	// versions lists the versions of the operator that the kernel implements, as package schema
	// numbers them; others are refused. An operator whose meaning changed has several lines.
	versions []int
	// minIn and maxIn bound the number of inputs; the first minIn must be present. maxIn -1 is
	// variadic.
	minIn, maxIn int
	build        builder
	// alias says that output 0 may share input 0's memory, so that the input's memory must outlive
	// the output.
	alias bool
	// exact says that the kernel handles float16 and bfloat16 itself or does not care about element
	// types. All others get such inputs widened to float32 and their float32 outputs narrowed
	// again.
	exact bool
}

// builder reads a node's attributes once, when the model is compiled, and returns the function that
// every run calls.
type builder func(n *node) (kernel, error)

// kernel computes one node: it reads its inputs from the call and makes its outputs through it. It
// must check everything that depends on data.
type kernel func(c *call) error

// node is what a builder sees.
type node struct {
	*onnx.Node
	opset  int
	bodies []*program
	// constant returns the value of input i where it is known when the model is compiled, or nil.
	constant func(i int) *tensor.Tensor
	// compile compiles a sub-graph in the node's scope. It is a field, because the table of
	// operators may not refer to itself.
	compile func(*onnx.Graph) (*program, error)
}

// body compiles a sub-graph attribute.
func (n *node) body(attr string) (*program, error) {
	g := n.Body(attr)
	if g == nil {
		return nil, fmt.Errorf("attribute %q: a graph is required", attr)
	}
	p, err := n.compile(g)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", attr, err)
	}
	n.bodies = append(n.bodies, p)
	return p, nil
}

// want reports whether the node has output i.
func (n *node) want(i int) bool { return n.Out(i) != "" }

// unsupported makes the error for something valid that this engine does not do.
func unsupported(format string, args ...any) error {
	return &engine.UnsupportedError{Engine: Name, Reason: fmt.Sprintf(format, args...)}
}

// plain wraps a kernel that has nothing to read from its node.
func plain(k kernel) builder { return func(*node) (kernel, error) { return k, nil } }

type opKey struct{ domain, name string }

var operatorIndex = indexOperators()

func indexOperators() map[opKey][]*operator {
	m := map[opKey][]*operator{}
	for i := range operators {
		o := &operators[i]
		k := opKey{o.domain, o.name}
		m[k] = append(m[k], o)
	}
	return m
}

// findOperator returns the table's line for a node, or why there is none.
func findOperator(n *onnx.Node, opset int) (*operator, string) {
	lines := operatorIndex[opKey{onnx.NormalizeDomain(n.Domain), n.OpType}]
	if len(lines) == 0 {
		return nil, fmt.Sprintf("operator %s is not implemented", opName(n))
	}
	version := schema.Version(n.Domain, n.OpType, opset)
	if version == 0 {
		return nil, fmt.Sprintf("operator %s is not implemented for opset %d, the newest known is %d", opName(n), opset, schema.Latest(n.Domain))
	}
	var have []string
	for _, o := range lines {
		if slices.Contains(o.versions, version) {
			return o, ""
		}
		for _, v := range o.versions {
			have = append(have, fmt.Sprint(v))
		}
	}
	return nil, fmt.Sprintf("operator %s is not implemented in version %d, which opset %d has; versions %s are", opName(n), version, opset, strings.Join(have, ", "))
}

// Operators lists the operators that the engine has kernels for, in the table's order.
func Operators() []Operator {
	out := make([]Operator, len(operators))
	for i, o := range operators {
		out[i] = Operator{Domain: o.domain, Name: o.name, Versions: slices.Clone(o.versions)}
	}
	return out
}

// Operator names a kernel and the versions of the operator that it implements, as package schema
// numbers them.
type Operator struct {
	Domain, Name string
	Versions     []int
}
