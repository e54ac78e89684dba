package shape

import "github.com/onnxrl/onnxrl/runtime/onnx"

// entry is one line of a family's table: inputs as a signature, the first opset that has the
// operator, the rule, and the fold function if any.
type entry struct {
	op    string
	sig   string
	since int
	infer rule
	fold  rule
}

// newest is the opset up to which every version of every operator here follows its rule.
const newest = 28

// family is a list of operators of one domain.
type family struct {
	domain string
	list   []entry
}

// operators is the whole list of operators whose types are known. It is filled in init, because
// rules with sub-graphs refer back to it.
var operators map[opKey]*operator

func init() {
	operators = map[opKey]*operator{}
	for _, f := range []family{
		{onnx.DomainStandard, elementwiseOps}, {onnx.DomainStandard, shapeOps}, {onnx.DomainStandard, indexOps}, {onnx.DomainStandard, reduceOps},
		{onnx.DomainStandard, matrixOps}, {onnx.DomainStandard, spatialOps}, {onnx.DomainStandard, normOps}, {onnx.DomainStandard, constantOps},
		{onnx.DomainStandard, controlOps}, {onnx.DomainStandard, sequenceOps}, {onnx.DomainStandard, textOps}, {onnx.DomainStandard, attentionOps},
		{onnx.DomainStandard, signalOps}, {onnx.DomainStandard, quantizeOps}, {onnx.DomainMS, microsoftOps},
	} {
		for _, e := range f.list {
			k := opKey{f.domain, e.op}
			if operators[k] != nil {
				panic("shape: operator " + e.op + " is listed twice")
			}
			operators[k] = &operator{sig: parseSignature(e.sig), since: e.since, infer: e.infer, fold: e.fold}
		}
	}
}

// Known reports whether the types of an operator can be inferred.
func Known(domain, op string) bool {
	return operators[opKey{onnx.NormalizeDomain(domain), op}] != nil
}
