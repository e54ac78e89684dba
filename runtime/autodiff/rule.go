package autodiff

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// VJP builds the vector-Jacobian product of a node: g[i] is the gradient of output i, absent when
// no loss depends on it, and at least one is present. The result holds one gradient per input of
// the node, absent where none flows, followed, for nodes with sub-graphs, by one per captured outer
// value in the order of [Context.Captures]. A gradient may have the shape of its input or the
// node's broadcast shape.
type VJP func(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error)

// Expand builds the same outputs as the node out of other operators, which have rules of their own.
// It returns one value per output of the node; an absent value is allowed only for outputs that
// nothing uses. Returning no values at all leaves the node as it is, for the rule's VJP to
// differentiate.
type Expand func(c *Context, n *onnx.Node) ([]onnx.Value, error)

// Rule says how one operator is differentiated: by VJP, by Expand, by Expand for some attributes
// and by VJP for the others, or not at all (Zero).
type Rule struct {
	Op, Domain string
	// Since and Until bound the opset versions that the rule is written for; Until 0 means no upper
	// bound.
	Since, Until int
	VJP          VJP
	Expand       Expand
	// Zero marks operators through which no gradient flows by definition: integer, logical, shape
	// and piecewise constant ones.
	Zero bool
}

// ruleTable indexes rules by domain and operator.
type ruleTable map[[2]string][]Rule

func indexRules(lists ...[]Rule) ruleTable {
	t := ruleTable{}
	for _, l := range lists {
		for _, r := range l {
			k := [2]string{r.Domain, r.Op}
			t[k] = append(t[k], r)
		}
	}
	return t
}

// find returns the rule for an operator in the given opset of its domain, or nil.
func (t ruleTable) find(domain, op string, opset int) *Rule {
	for i, r := range t[[2]string{onnx.NormalizeDomain(domain), op}] {
		if opset >= r.Since && (r.Until == 0 || opset <= r.Until) {
			return &t[[2]string{onnx.NormalizeDomain(domain), op}][i]
		}
	}
	return nil
}
