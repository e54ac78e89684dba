package autodiff

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// maxExpansion bounds the nodes that expanding one model may add, so that a hostile trip count
// cannot fill the memory.
const maxExpansion = 200_000

// normalize copies the model's structure and removes what rules should not have to know:
// model-local functions and old opsets.
func normalize(m *onnx.Model) (*onnx.Model, error) {
	if m.Opset("") < MinOpset {
		return onnx.Upgrade(m, MinOpset)
	}
	return onnx.InlineFunctions(m)
}

// expand replaces the composite operators that lie on a path of any objective by operators that
// have rules.
func (p *pass) expand() error {
	old := p.model.Graph.Node
	on := map[*onnx.Node]bool{}
	for _, obj := range p.objectives {
		k := p.mark(obj, old)
		for _, n := range old {
			if k.on(n) {
				on[n] = true
			}
		}
	}
	p.model.Graph.Node = make([]*onnx.Node, 0, len(old))
	for _, n := range old {
		if p.c.grown {
			// The values of an expansion may be known more precisely than those that they replace,
			// such as the extent of an unrolled loop's output.
			if err := p.c.env.Apply(n); err != nil {
				return err
			}
		}
		if !on[n] {
			p.model.Graph.Node = append(p.model.Graph.Node, n)
			continue
		}
		if err := p.expandNode(n, 0); err != nil {
			return err
		}
	}
	return nil
}

// expandNode appends n, or what n expands to, to the graph. Expansions may contain further
// composite operators.
func (p *pass) expandNode(n *onnx.Node, depth int) error {
	r := p.ruleOf(n)
	if r == nil || r.Expand == nil {
		p.model.Graph.Node = append(p.model.Graph.Node, n)
		return nil
	}
	if depth > 16 || len(p.model.Graph.Node) > maxExpansion {
		return fmt.Errorf("expand %s: the expansion does not end within %d nodes", n.Describe(), maxExpansion)
	}
	mark := len(p.model.Graph.Node)
	p.c.b.SetScope(n.Label() + "/")
	p.c.node, p.c.mark = n, mark
	outs, err := r.Expand(p.c, n)
	if err == nil {
		err = p.c.b.Err()
	}
	if err != nil {
		return fmt.Errorf("expand %s: %w", n.Describe(), err)
	}
	if len(outs) == 0 {
		p.model.Graph.Node = append(p.model.Graph.Node[:mark:mark], n)
		return nil
	}
	if len(outs) > len(n.Output) {
		outs = outs[:len(n.Output)]
	}
	for i, v := range outs {
		if want := n.Output[i]; want != "" && v != "" {
			p.alias(mark, v, want)
		}
	}
	if err := p.c.b.Err(); err != nil {
		return fmt.Errorf("expand %s: %w", n.Describe(), err)
	}
	p.c.grown = true
	made := p.model.Graph.Node[mark:]
	p.model.Graph.Node = p.model.Graph.Node[:mark:mark]
	for _, m := range made {
		if err := p.expandNode(m, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// alias gives the value v, made by the nodes since mark, the name that the expanded node's output
// had.
func (p *pass) alias(mark int, v onnx.Value, want string) {
	made := p.model.Graph.Node[mark:]
	for _, m := range made {
		for _, o := range m.Output {
			if o == string(v) {
				renameValue(made, o, want)
				f, _ := p.c.env.Fact(v)
				p.c.env.Set(onnx.Value(want), f)
				return
			}
		}
	}
	p.c.b.Append(&onnx.Node{OpType: "Identity", Name: want, Input: []string{string(v)}, Output: []string{want}})
}
