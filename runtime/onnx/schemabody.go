package onnx

import (
	"fmt"
	"sync"

	"onnxrl/runtime/onnx/schema"
)

var schemaBodies sync.Map // of bodyKey to *Function

type bodyKey struct {
	domain, op string
	opset      int
}

// SchemaBody returns the function by which the ONNX standard defines a composite operator at an opset version, or nil when it gives none that holds for every
// node. The result is shared and must not be changed. [InlineBody] and [Expand] instantiate it.
func SchemaBody(domain, op string, opset int) *Function {
	k := bodyKey{NormalizeDomain(domain), op, opset}
	if f, ok := schemaBodies.Load(k); ok {
		return f.(*Function)
	}
	b := schema.Body(domain, op, opset)
	if b == nil {
		return nil
	}
	f := &Function{}
	if err := decodeFunction(f, b); err != nil {
		panic(fmt.Sprintf("onnx: the embedded body of %s: %v", op, err))
	}
	got, _ := schemaBodies.LoadOrStore(k, f)
	return got.(*Function)
}

// changedOperator returns the first operator of a domain, among nodes and their sub-graphs, whose meaning may differ between two opset versions, or "".
func changedOperator(nodes []*Node, domain string, from, to int) string {
	for _, n := range nodes {
		if NormalizeDomain(n.Domain) == domain {
			a, ok1 := schema.Lookup(domain, n.OpType, from)
			b, ok2 := schema.Lookup(domain, n.OpType, to)
			if !ok1 || !ok2 || a.Since != b.Since && !sameMeaning(a, b) {
				return n.OpType
			}
		}
		for _, s := range n.Subgraphs() {
			if op := changedOperator(s.Node, domain, from, to); op != "" {
				return op
			}
		}
	}
	return ""
}

// sameMeaning reports whether two versions of an operator have the same parameters and attributes and differ in the types they allow at most. The standard changes
// an operator's meaning without changing its interface in a few places, which are listed.
func sameMeaning(a, b *schema.Operator) bool {
	if a.Since > b.Since {
		a, b = b, a
	}
	if v, ok := reinterpreted[a.Name]; ok && a.Since < v && b.Since >= v {
		return false
	}
	if len(a.Inputs) != len(b.Inputs) || len(a.Outputs) != len(b.Outputs) || len(a.Attributes) != len(b.Attributes) || b.Deprecated {
		return false
	}
	for i, p := range a.Inputs {
		if q := b.Inputs[i]; p.Option != q.Option || p.MinArity != q.MinArity {
			return false
		}
	}
	for i, x := range a.Attributes {
		y := b.Attributes[i]
		if x.Name != y.Name || x.Type != y.Type || x.Required != y.Required || fmt.Sprint(x.Default) != fmt.Sprint(y.Default) {
			return false
		}
	}
	return true
}

// reinterpreted maps operators to the version from which the same interface means something else: Softmax and its kin flattened their input to two axes before 13;
// GroupNormalization scaled per group before 21; Resize 11 to 19 changed defaults only together with attributes, which the comparison sees.
var reinterpreted = map[string]int{"Softmax": 13, "LogSoftmax": 13, "Hardmax": 13, "GroupNormalization": 21}
