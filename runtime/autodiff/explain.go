// Names of nodes tell which forward node produced which nodes of a gradient model.
//
// [Grad] names every node that it makes after the forward node that it belongs to:
// grad/<node>/…, or grad/<objective>/<node>/… for objectives with a name; nodes that a composite
// operator was expanded into are called <node>/…. [Explain] reads these names back, so it works on
// gradient models from files too. Nothing but names is used: a model whose nodes were renamed
// explains nothing.
//
// To add a role, extend [Role] and the end of (*Explanation).origin.

package autodiff

import (
	"strings"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// Role says what a gradient node is for.
type Role string

// The roles.
const (
	// RoleGradient is the gradient of a forward node.
	RoleGradient Role = "gradient"
	// RoleSeed starts the backward pass: the gradient of a loss with respect to itself, or the
	// cotangent scaled.
	RoleSeed Role = "seed"
	// RoleSum adds up, or publishes under its name, the gradient of a differentiated value.
	RoleSum Role = "sum"
	// RoleLost belongs to a forward node that the model does not hold any more.
	RoleLost Role = "lost"
)

// Origin is what one gradient node belongs to.
type Origin struct {
	Role Role
	// Objective is the name of the objective; empty when there is one without a name.
	Objective string
	// Forward is the name of the forward node, empty for seeds and sums.
	Forward string
}

// Line is one forward node with the gradient nodes it produced. The JSON keys are stable.
type Line struct {
	// Node and Op are those of the original model's node where that model was given, else those of
	// the gradient model's forward node.
	Node string `json:"node"`
	Op   string `json:"op"`
	// Expanded counts the forward nodes that the node was expanded into; 0 when it stayed as it is.
	Expanded int `json:"expanded"`
	// Gradients lists the gradient nodes in execution order, GradientOps their operators.
	Gradients   []string `json:"gradient_nodes"`
	GradientOps []string `json:"gradient_ops"`
	// ForwardFLOPs and GradientFLOPs are sums over the nodes whose cost is known.
	ForwardFLOPs  int64 `json:"forward_flops"`
	GradientFLOPs int64 `json:"gradient_flops"`
}

// Explanation ties a gradient model's nodes together. The JSON keys are stable.
type Explanation struct {
	// Forward lists forward nodes in execution order, those without a gradient included.
	Forward []Line `json:"forward"`
	// Seeds, Sums and Lost name gradient nodes of the other roles.
	Seeds []string `json:"seeds"`
	Sums  []string `json:"sums"`
	Lost  []string `json:"lost,omitempty"`
	// Objectives lists the names of objectives that were met, without the empty one.
	Objectives []string `json:"objectives,omitempty"`

	// prefix starts the name of every node that differentiation adds, with the exception of
	// expansions of forward nodes. Of a model that was differentiated twice, the first gradient is
	// part of what was differentiated.
	prefix     string
	names      map[string]bool
	objectives map[string]bool
}

// Explain explains a gradient model. original, which may be nil, is the model it was made from; with
// it, the nodes that an operator was expanded into count for that operator. types may be nil; where
// it knows a type, costs are counted.
func Explain(m, original *onnx.Model, types onnx.Types) *Explanation {
	e := &Explanation{prefix: Prefix(Order(m)), names: map[string]bool{}, objectives: map[string]bool{}, Seeds: []string{}, Sums: []string{}}
	if types == nil {
		types = onnx.DeclaredTypes(m.GetGraph())
	}
	for _, n := range m.GetGraph().GetNode() {
		e.names[n.Label()] = true
	}
	whole := map[string]bool{}
	lines := map[string]*Line{}
	var order []string
	line := func(name, op string) *Line {
		l := lines[name]
		if l == nil {
			l = &Line{Node: name, Op: op, Gradients: []string{}, GradientOps: []string{}}
			lines[name], order = l, append(order, name)
		}
		return l
	}
	for _, n := range original.GetGraph().GetNode() {
		e.names[n.Label()], whole[n.Label()] = true, true
		line(n.Label(), n.QualifiedOp())
	}
	// parent is the original node that a forward node was expanded from, or the node itself.
	parent := func(name string) string {
		if len(whole) > 0 && !whole[name] {
			if p := longest(whole, name); p != "" {
				return p
			}
		}
		return name
	}
	// The names of objectives are learnt from the gradients of known nodes and used for the other
	// nodes.
	for _, n := range m.GetGraph().GetNode() {
		if o, _ := e.Origin(n.Label()); o.Role == RoleGradient && o.Objective != "" && !e.objectives[o.Objective] {
			e.objectives[o.Objective] = true
			e.Objectives = append(e.Objectives, o.Objective)
		}
	}
	for _, n := range m.GetGraph().GetNode() {
		name := n.Label()
		cost, _ := onnx.FLOPs(n, types)
		o, is := e.Origin(name)
		if is && !whole[name] {
			switch o.Role {
			case RoleGradient:
				l := line(parent(o.Forward), "")
				l.Gradients, l.GradientOps = append(l.Gradients, name), append(l.GradientOps, n.QualifiedOp())
				l.GradientFLOPs += cost
			case RoleSeed:
				e.Seeds = append(e.Seeds, name)
			case RoleSum:
				e.Sums = append(e.Sums, name)
			case RoleLost:
				e.Lost = append(e.Lost, name)
			}
			continue
		}
		l := line(parent(name), n.QualifiedOp())
		if l.Node != name {
			l.Expanded++
		}
		l.ForwardFLOPs += cost
	}
	for _, name := range order {
		e.Forward = append(e.Forward, *lines[name])
	}
	return e
}

// Origin returns what a node of the gradient model belongs to; false for forward nodes. It takes
// the node's name (its first output's name where it has none).
func (e *Explanation) Origin(name string) (Origin, bool) {
	rest, ok := strings.CutPrefix(name, e.prefix)
	if !ok {
		return Origin{}, false
	}
	// An objective's name and a node's name may both hold slashes; the reading that explains most
	// of the name is the right one.
	best, length := Origin{}, 0
	if f := longest(e.names, rest); f != "" {
		best, length = Origin{Role: RoleGradient, Forward: f}, len(f)
	}
	for i := 0; i < len(rest); i++ {
		if rest[i] != '/' || i == 0 {
			continue
		}
		if f := longest(e.names, rest[i+1:]); f != "" && i+1+len(f) > length {
			best, length = Origin{Role: RoleGradient, Objective: rest[:i], Forward: f}, i+1+len(f)
		}
	}
	if length > 0 {
		return best, true
	}
	return e.other(rest), true
}

// other is the origin of a node that no forward node explains.
func (e *Explanation) other(rest string) Origin {
	scope, _, nested := cutLast(rest)
	switch {
	case !nested:
		return Origin{Role: RoleSum}
	case scope == "loss":
		return Origin{Role: RoleSeed}
	case strings.HasSuffix(scope, "/loss"):
		return Origin{Role: RoleSeed, Objective: strings.TrimSuffix(scope, "/loss")}
	case e.objectives[scope], !strings.Contains(scope, "/"):
		return Origin{Role: RoleSum, Objective: scope}
	}
	return Origin{Role: RoleLost, Forward: scope}
}

// longest returns the longest of names that is followed by a slash at the start of s, or "".
func longest(names map[string]bool, s string) string {
	for i := len(s) - 1; i > 0; i-- {
		if s[i] == '/' && names[s[:i]] {
			return s[:i]
		}
	}
	return ""
}

func cutLast(s string) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return "", s, false
	}
	return s[:i], s[i+1:], true
}
