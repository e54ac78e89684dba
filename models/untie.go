package models

import (
	"fmt"
	"github.com/onnxrl/onnxrl/runtime/glob"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// Shared lists the trainable parameters of a model that are used more than once, directly or
// through an Identity, in the order of specs. They are trained as one.
func Shared(m *onnx.Model, specs []Spec) []string {
	uses := usesOf(m.Graph)
	counts, root := map[string]int{}, map[string]string{}
	for _, s := range specs {
		counts[s.Name], root[s.Name] = uses[s.Name].nodes, s.Name
	}
	for _, n := range m.Graph.Node {
		if name := root[string(n.In(0))]; name != "" && standard(n, "Identity") {
			root[string(n.Out(0))] = name
			counts[name] += uses[string(n.Out(0))].nodes - 1
		}
	}
	var out []string
	for _, s := range specs {
		if s.Role == Trainable && counts[s.Name] > 1 {
			out = append(out, s.Name)
		}
	}
	return out
}

// Untie returns a copy of m in which each use of the initializers that match a pattern has an
// initializer of its own. The first use keeps the name, the others get name.2, name.3 and so on.
// Contents are shared with m. It is an error when a pattern matches no initializer that is used
// more than once.
func Untie(m *onnx.Model, patterns []string) (*onnx.Model, error) {
	if len(patterns) == 0 {
		return m, nil
	}
	c := m.ShallowClone()
	uses := usesOf(c.Graph)
	tied := map[string]*onnx.TensorProto{}
	for _, pat := range patterns {
		hit := false
		for _, t := range c.Graph.Initializer {
			if glob.Match(pat, t.Name) && uses[t.Name].nodes > 1 {
				tied[t.Name], hit = t, true
			}
		}
		if !hit {
			return nil, fmt.Errorf("untie %q: no initializer of that name is used more than once", pat)
		}
	}
	b := onnx.Extend(c)
	count := map[string]int{}
	err := eachInput(c.Graph, func(name *string) error {
		t := tied[*name]
		if t == nil {
			return nil
		}
		if count[t.Name]++; count[t.Name] == 1 {
			return nil
		}
		data, err := onnx.TensorOf(t)
		if err != nil {
			return err
		}
		*name = string(b.Initializer(fmt.Sprintf("%s.%d", t.Name, count[t.Name]), data))
		return nil
	})
	if err == nil {
		err = b.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("untie: %w", err)
	}
	return c, nil
}

// eachInput calls f for every input of every node whose content matters, sub-graphs included, in
// the order of the nodes.
func eachInput(g *onnx.Graph, f func(name *string) error) error {
	for _, n := range g.Node {
		for i := range n.Input {
			if typeOnly(n, i) {
				continue
			}
			if err := f(&n.Input[i]); err != nil {
				return err
			}
		}
		for _, s := range n.Subgraphs() {
			if err := eachInput(s, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// UntieStatistics returns a copy of m in which the running statistics of each BatchNormalization of
// the main graph are initializers of their own. PyTorch's TorchScript exporter merges initializers
// of equal content, for instance the scale of a layer that was never trained with its running
// variance, both ones. As one tensor, the variance would be trained with the scale and become
// negative. Where the exporter left an Identity that carries the parameter's name, the initializer
// gets that name. Contents are shared with m.
func UntieStatistics(m *onnx.Model) (*onnx.Model, error) {
	u := &statistics{model: m.ShallowClone(), initializers: map[string]*onnx.TensorProto{}, copies: map[string]*onnx.Node{}, taken: map[string]bool{}}
	g := u.model.Graph
	for _, t := range g.Initializer {
		u.initializers[t.Name] = t
	}
	for _, v := range slices.Concat(g.Input, g.Output) {
		// A default that a caller may override, and what callers ask for, stay as they are.
		delete(u.initializers, v.Name)
		u.taken[v.Name] = true
	}
	for _, n := range g.Node {
		if standard(n, "Identity") && u.initializers[string(n.In(0))] != nil && !u.taken[string(n.Out(0))] {
			u.copies[string(n.Out(0))] = n
		}
	}
	u.uses, u.b = usesOf(g), onnx.Extend(u.model)
	for _, n := range g.Node {
		if !standard(n, "BatchNormalization") {
			continue
		}
		for i := 3; i < len(n.Input); i++ {
			if err := u.own(&n.Input[i]); err != nil {
				return nil, fmt.Errorf("untie statistics: %s: %w", n.Describe(), err)
			}
		}
	}
	g.Node = slices.DeleteFunc(g.Node, func(n *onnx.Node) bool {
		return standard(n, "Identity") && u.copies[string(n.Out(0))] == nil && u.initializers[string(n.Out(0))] != nil
	})
	if err := u.b.Err(); err != nil {
		return nil, fmt.Errorf("untie statistics: %w", err)
	}
	return u.model, nil
}

// statistics is the work of [UntieStatistics].
type statistics struct {
	model        *onnx.Model
	initializers map[string]*onnx.TensorProto
	// copies maps the outputs of Identity nodes over initializers to these nodes; one that has
	// become an initializer is gone from it.
	copies map[string]*onnx.Node
	// taken holds the names that belong to a statistic already, or to the graph's interface.
	taken map[string]bool
	uses  map[string]use
	b     *onnx.Builder
}

// own makes the statistic that input names one that nothing else reads.
func (u *statistics) own(input *string) error {
	name := *input
	if id := u.copies[name]; id != nil {
		t, err := onnx.TensorOf(u.initializers[string(id.In(0))])
		if err != nil {
			return err
		}
		delete(u.copies, name)
		p := onnx.ProtoOf(name, t)
		u.model.Graph.Initializer, u.initializers[name] = append(u.model.Graph.Initializer, p), p
	}
	t := u.initializers[name]
	if t == nil {
		return nil
	}
	if !u.taken[name] && u.uses[name].nodes == u.uses[name].statistic {
		u.taken[name] = true
		return nil
	}
	data, err := onnx.TensorOf(t)
	if err != nil {
		return err
	}
	*input = string(u.b.Fresh(name + ".running"))
	u.model.Graph.Initializer = append(u.model.Graph.Initializer, onnx.ProtoOf(*input, data))
	return nil
}

func standard(n *onnx.Node, op string) bool {
	return n.OpType == op && onnx.NormalizeDomain(n.Domain) == onnx.DomainStandard
}
