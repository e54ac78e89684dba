package onnx

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx/schema"
)

// changedOperator returns the first operator of a domain, among nodes and their sub-graphs, that
// means something else, or nothing, at another opset version than the one it was written for; ""
// when there is none.
func changedOperator(nodes []*Node, domain string, from, to int) string {
	for _, n := range nodes {
		if NormalizeDomain(n.Domain) == domain && !portable(n, domain, from, to) {
			return n.OpType
		}
		for _, s := range n.Subgraphs() {
			if op := changedOperator(s.Node, domain, from, to); op != "" {
				return op
			}
		}
	}
	return ""
}

// portable reports whether a node written for one opset version means the same at another: the
// operator is the same version, or the versions agree in everything the node uses. What a newer
// version adds must be optional; the standard then keeps the old meaning as the default, with the
// exceptions in reinterpreted.
func portable(n *Node, domain string, from, to int) bool {
	a, ok1 := schema.Lookup(domain, n.OpType, from)
	b, ok2 := schema.Lookup(domain, n.OpType, to)
	if !ok1 || !ok2 || b.Deprecated {
		return false
	}
	if a.Since == b.Since {
		return true
	}
	older, newer := min(a.Since, b.Since), max(a.Since, b.Since)
	for _, v := range reinterpreted[n.OpType] {
		if older < v && newer >= v {
			return false
		}
	}
	if len(n.Input) < b.MinInputs || b.MaxInputs >= 0 && len(n.Input) > b.MaxInputs || len(n.Output) > len(b.Outputs) && b.MaxOutputs == len(b.Outputs) {
		return false
	}
	for i := range n.Input {
		p, _ := a.Input(i)
		q, ok := b.Input(i)
		// Two versions that call the same input differently gave it another role.
		if !ok || p.Option == schema.Variadic != (q.Option == schema.Variadic) {
			return false
		}
	}
	for _, x := range a.Attributes {
		y, ok := b.Attr(x.Name)
		switch given := n.Has(x.Name); {
		case !ok && (given || x.Default != nil):
			// An attribute that vanished became an input, or its default became a question.
			return false
		case ok && (x.Type != y.Type || !given && fmt.Sprint(x.Default) != fmt.Sprint(y.Default)):
			return false
		}
	}
	for _, y := range b.Attributes {
		if y.Required && !n.Has(y.Name) {
			return false
		}
	}
	return true
}

// reinterpreted lists the versions at which an operator began to mean something else although its
// interface can be read as the same. Binary operators had another broadcasting before 7. Softmax
// and its kin flattened their input to two axes before 13. BatchNormalization and Dropout
// recognised training by other means before 14 and 12. Upsample became Resize at 10, whose inputs
// moved and whose coordinates changed at 11. RoiAlign aligned pixels otherwise before 16. Split
// must say into how many parts from 18. GridSample and DFT changed their defaults at 20.
// GroupNormalization scaled each group before 21.
var reinterpreted = map[string][]int{"Softmax": {13}, "LogSoftmax": {13}, "Hardmax": {13}, "GroupNormalization": {21}, "BatchNormalization": {7, 9, 14}, "RoiAlign": {16},
	"Dropout": {7, 10, 12}, "Add": {7}, "Sub": {7}, "Mul": {7}, "Div": {7}, "Pow": {7}, "And": {7}, "Or": {7}, "Xor": {7}, "Equal": {7}, "Less": {7}, "Greater": {7},
	"Upsample": {9, 10}, "Resize": {11}, "Split": {18}, "GridSample": {20}, "DFT": {20}, "Scan": {9}, "PRelu": {7}, "Gemm": {7}}
