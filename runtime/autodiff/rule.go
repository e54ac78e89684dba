package autodiff

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/schema"
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
	// Versions lists the versions of the operator that the rule is written for, as package schema
	// numbers them; others are refused.
	Versions []int
	VJP      VJP
	Expand   Expand
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
	domain = onnx.NormalizeDomain(domain)
	version := schema.Version(domain, op, opset)
	list := t[[2]string{domain, op}]
	for i, r := range list {
		if slices.Contains(r.Versions, version) {
			return &list[i]
		}
	}
	return nil
}

// versions lists the versions of an operator that have a rule.
func (t ruleTable) versions(domain, op string) []int {
	var out []int
	for _, r := range t[[2]string{onnx.NormalizeDomain(domain), op}] {
		out = append(out, r.Versions...)
	}
	return out
}
