package onnx

import (
	"fmt"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"
)

// ComposeOptions say how two models are joined.
type ComposeOptions struct {
	// PrefixA and PrefixB are put before every value and node name of the two models first; see
	// [Prefix]. Wires are given in the names before that.
	PrefixA, PrefixB string
	// KeepOutputs lists outputs of the first model that stay outputs although they feed the second.
	// Outputs that feed nothing always stay.
	KeepOutputs []Value
	// Name is the new graph's name; empty means <a>+<b>.
	Name string
}

// Compose joins two models into one that runs a and then b. wires maps each input of b that a feeds
// to the output of a that feeds it; several inputs may take one output. The new inputs are a's,
// then b's others; the new outputs are a's that feed nothing, then b's. It is an error when a
// wire's ends do not exist or cannot have one type, and when a name is used by both. It is also an
// error when both import a domain at different versions (see [Upgrade]), and when a metadata key or
// a function has two contents. Weights are shared with a and b.
func Compose(a, b *Model, wires map[Value]Value, o ComposeOptions) (*Model, error) {
	m, err := compose(a, b, wires, o)
	if err != nil {
		return nil, fmt.Errorf("compose graphs %q and %q: %w", a.GetGraph().GetName(), b.GetGraph().GetName(), err)
	}
	return m, nil
}

func compose(a, b *Model, wires map[Value]Value, o ComposeOptions) (*Model, error) {
	if err := checkWires(a, b, wires); err != nil {
		return nil, err
	}
	keep := map[string]bool{}
	for _, v := range o.KeepOutputs {
		if !slices.ContainsFunc(a.Graph.Output, func(i *ValueInfo) bool { return i.Name == string(v) }) {
			return nil, fmt.Errorf("output %q to keep is not an output of the first model", v)
		}
		keep[o.PrefixA+string(v)] = true
	}
	left, err := Prefix(a, o.PrefixA)
	if err != nil {
		return nil, err
	}
	// Wired inputs of b take their sources' names in the same pass as the prefix. Two inputs fed by
	// one output become one value, which Rename would refuse as a collision, so only the first is
	// renamed so and the rest are connected by Identity nodes.
	target := map[Value]Value{}
	taken := map[Value]bool{}
	var doubled []Value
	for _, in := range b.Graph.Input {
		v := Value(in.Name)
		src, ok := wires[v]
		switch {
		case !ok:
		case taken[src]:
			doubled = append(doubled, v)
		default:
			taken[src] = true
			target[v] = Value(o.PrefixA) + src
		}
	}
	right, err := Rename(b, func(v Value) Value {
		if t, ok := target[v]; ok {
			return t
		}
		return Value(o.PrefixB) + v
	})
	if err != nil {
		return nil, err
	}
	if err := eachGraph(right.Graph, func(g *Graph) error {
		for _, n := range g.Node {
			if n.Name != "" {
				n.Name = o.PrefixB + n.Name
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if err := checkDisjoint(left, right, wires, o.PrefixA); err != nil {
		return nil, err
	}
	if err := mergeModels(left, right); err != nil {
		return nil, err
	}
	fed := map[string]bool{}
	for _, src := range wires {
		fed[o.PrefixA+string(src)] = true
	}
	wired := map[string]bool{}
	for in := range target {
		wired[string(target[in])] = true
	}
	for _, v := range doubled {
		wired[o.PrefixB+string(v)] = true
	}
	g, h := left.Graph, right.Graph
	g.Name = o.Name
	if g.Name == "" {
		g.Name = a.Graph.Name + "+" + b.Graph.Name
	}
	// The type of a fed value is still worth knowing when it is no longer an output.
	var outputs []*ValueInfo
	for _, v := range g.Output {
		if fed[v.Name] && !keep[v.Name] {
			g.ValueInfo = append(g.ValueInfo, v)
		} else {
			outputs = append(outputs, v)
		}
	}
	g.Output = append(outputs, h.Output...)
	for _, v := range h.Input {
		if !wired[v.Name] {
			g.Input = append(g.Input, v)
		}
	}
	for _, v := range doubled {
		g.Node = append(g.Node, &Node{OpType: "Identity", Name: o.PrefixB + string(v), Input: []string{o.PrefixA + string(wires[v])}, Output: []string{o.PrefixB + string(v)}})
	}
	g.Node = append(g.Node, h.Node...)
	g.Initializer = append(g.Initializer, slices.DeleteFunc(h.Initializer, func(t *TensorProto) bool { return wired[t.Name] })...)
	g.SparseInitializer = append(g.SparseInitializer, h.SparseInitializer...)
	g.ValueInfo = append(g.ValueInfo, h.ValueInfo...)
	g.QuantizationAnnotation = append(g.QuantizationAnnotation, h.QuantizationAnnotation...)
	for _, p := range h.MetadataProps {
		if !slices.ContainsFunc(g.MetadataProps, func(q *MetadataProp) bool { return q.Key == p.Key }) {
			g.MetadataProps = append(g.MetadataProps, p)
		}
	}
	return left, nil
}

func checkWires(a, b *Model, wires map[Value]Value) error {
	outs, ins := map[Value]*ValueInfo{}, map[Value]*ValueInfo{}
	for _, v := range a.Graph.Output {
		outs[Value(v.Name)] = v
	}
	for _, v := range b.Graph.Input {
		ins[Value(v.Name)] = v
	}
	for _, in := range slices.Sorted(maps.Keys(wires)) {
		src := wires[in]
		if ins[in] == nil {
			return fmt.Errorf("wire %q <- %q: the second model has no input %q", in, src, in)
		}
		if outs[src] == nil {
			return fmt.Errorf("wire %q <- %q: the first model has no output %q", in, src, src)
		}
		x, ok1 := outs[src].TensorType()
		y, ok2 := ins[in].TensorType()
		if ok1 != ok2 || ok1 && !compatible(x, y) {
			return fmt.Errorf("wire %q <- %q: the output is %v, the input %v", in, src, x, y)
		}
	}
	return nil
}

// compatible reports whether a value can have both types: extents that are known on both sides must
// be equal.
func compatible(x, y TensorType) bool {
	if x.DType != y.DType {
		return false
	}
	if !x.Ranked || !y.Ranked {
		return true
	}
	return slices.EqualFunc(x.Dims, y.Dims, func(d, e Dim) bool { return !d.IsKnown() || !e.IsKnown() || d == e })
}

// checkDisjoint refuses names that both graphs define. Names of sub-graphs count: shadowing is an
// error in ONNX.
func checkDisjoint(left, right *Model, wires map[Value]Value, prefixA string) error {
	fed := map[string]bool{}
	for _, src := range wires {
		fed[prefixA+string(src)] = true
	}
	l, r := definedNames(left.Graph), definedNames(right.Graph)
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if l[name] && !fed[name] {
			return fmt.Errorf("both define %q: give one of them a prefix", name)
		}
	}
	// A wired name may be an input of b only, never also something b computes.
	for _, n := range right.Graph.Node {
		for _, o := range n.Output {
			if fed[o] {
				return fmt.Errorf("both define %q: give one of them a prefix", o)
			}
		}
	}
	return nil
}

func definedNames(g *Graph) map[string]bool {
	out := map[string]bool{}
	// The callback never fails.
	_ = eachGraph(g, func(g *Graph) error {
		for name := range (*scope)(nil).enter(g).names {
			if name != "" {
				out[name] = true
			}
		}
		return nil
	})
	return out
}

// mergeModels merges what lies outside the graphs into left.
func mergeModels(left, right *Model) error {
	left.IrVersion = max(left.IrVersion, right.IrVersion)
	for _, o := range right.OpsetImport {
		switch have := left.Opset(o.Domain); {
		case have == 0:
			left.SetOpset(o.Domain, int(o.Version))
		case have != int(o.Version):
			return fmt.Errorf("they import opsets %d and %d of domain %q: upgrade one of them first", have, o.Version, o.Domain)
		}
	}
	for _, p := range right.MetadataProps {
		if v, ok := left.Meta(p.Key); ok && v != p.Value {
			return fmt.Errorf("metadata %q is %q in one and %q in the other", p.Key, v, p.Value)
		}
		left.SetMeta(p.Key, p.Value)
	}
	for _, f := range right.Functions {
		i := slices.IndexFunc(left.Functions, func(h *Function) bool { return keyOfFunction(h) == keyOfFunction(f) })
		switch {
		case i < 0:
			left.Functions = append(left.Functions, f)
		case !proto.Equal(left.Functions[i], f):
			return fmt.Errorf("function %s has two definitions: inline them first", describeFunction(f))
		}
	}
	if len(left.TrainingInfo) > 0 || len(right.TrainingInfo) > 0 {
		return fmt.Errorf("training information cannot be joined: remove it first")
	}
	return nil
}
