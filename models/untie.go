package models

import (
	"fmt"

	"onnxrl/runtime/autodiff"
	"onnxrl/runtime/onnx"
)

// Shared lists the trainable parameters of a model that are used more than once, in the order of specs. Some are tied on purpose. Exporters also merge parameters that
// happened to have equal content, such as the fresh scales of all normalisation layers; these are then trained as one until [Untie] separates them.
func Shared(m *onnx.Model, specs []Spec) []string {
	uses := usesOf(m.Graph)
	var out []string
	for _, s := range specs {
		if s.Role == Trainable && uses[s.Name].nodes > 1 {
			out = append(out, s.Name)
		}
	}
	return out
}

// Untie returns a copy of m in which each use of the initializers that match a pattern has an initializer of its own: the first use keeps the name, the others get
// name.2, name.3 and so on. Contents are shared with m. It is an error when a pattern matches no initializer that is used more than once.
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
			if autodiff.Match(pat, t.Name) && uses[t.Name].nodes > 1 {
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

// eachInput calls f for every input of every node, sub-graphs included, in the order of the nodes.
func eachInput(g *onnx.Graph, f func(name *string) error) error {
	for _, n := range g.Node {
		for i := range n.Input {
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
