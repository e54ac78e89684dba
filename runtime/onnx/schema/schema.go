package schema

import "slices"

// Option tells how often a parameter may be given.
type Option int

// The options of a formal parameter.
const (
	Single   Option = iota // exactly once
	Optional               // once or not at all
	Variadic               // MinArity times or more; always the last parameter
)

// Param is one formal input or output.
type Param struct {
	Name string
	// Type is the name of a type parameter, a key of [Operator.Types].
	Type   string
	Option Option
	// Heterogeneous variadic parameters may have a type each.
	Heterogeneous bool
	MinArity      int
	// Differentiable says whether the standard marks it as such: 1 yes, -1 no, 0 not said (most
	// versions before opset 13).
	Differentiable int
}

// Attr is one formal attribute.
type Attr struct {
	Name string
	// Type is the attribute type as the format names it: FLOAT, INT, STRING, TENSOR, GRAPH,
	// SPARSE_TENSOR, TYPE_PROTO or a plural.
	Type     string
	Required bool
	// Default is nil, or a float64 (FLOAT and INT), string, or []any of those.
	Default any
}

// Operator is one version of one operator.
type Operator struct {
	Domain, Name string
	// Since is the opset version that introduced this version.
	Since int
	// Deprecated operators must not be used from Since on.
	Deprecated       bool
	Experimental     bool
	Nondeterministic bool
	// Bounds on the number of inputs and outputs; a maximum of -1 is none.
	MinInputs, MaxInputs, MinOutputs, MaxOutputs int
	Inputs, Outputs                              []Param
	// Types maps each type parameter to the types it may stand for, such as "tensor(float)".
	Types      map[string][]string
	Attributes []Attr
	// BodyOpsets lists the opset versions for which the standard gives a body that needs nothing
	// but the node's attributes; see [Body].
	BodyOpsets []int
	// ContextBody is set when the standard gives a body that depends on the node's types or on
	// which inputs are present; it is not in this table.
	ContextBody bool
}

// Attr returns the formal attribute of that name and whether there is one.
func (o *Operator) Attr(name string) (Attr, bool) {
	i := slices.IndexFunc(o.Attributes, func(a Attr) bool { return a.Name == name })
	if i < 0 {
		return Attr{}, false
	}
	return o.Attributes[i], true
}

// Input returns the formal parameter of input i: the last one also stands for every further input
// when it is variadic. ok is false beyond the last.
func (o *Operator) Input(i int) (p Param, ok bool) { return paramAt(o.Inputs, i) }

// Output is [Operator.Input] for outputs.
func (o *Operator) Output(i int) (p Param, ok bool) { return paramAt(o.Outputs, i) }

func paramAt(list []Param, i int) (Param, bool) {
	if i < len(list) {
		return list[i], true
	}
	if n := len(list); n > 0 && list[n-1].Option == Variadic {
		return list[n-1], true
	}
	return Param{}, false
}

// Version returns the version of an operator that is in force in an opset of its domain, the number
// of the opset that brought it. It is 1 where the table does not have the operator, as for other
// domains, and 0 where the opset is none or later than all that the table knows: what it means
// there nobody can tell.
func Version(domain, name string, opset int) int {
	if latest := Latest(domain); opset < 1 || latest > 0 && opset > latest {
		return 0
	}
	if op, ok := Lookup(domain, name, opset); ok {
		return op.Since
	}
	return 1
}
