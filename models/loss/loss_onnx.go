package loss

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// align returns a copy of m and the loss graphs of the terms, by index, all at the newest opset
// among them and with functions inlined.
func align(m *onnx.Model, terms []Term) (*onnx.Model, []*onnx.Model, error) {
	graphs := make([]*onnx.Model, len(terms))
	opset := m.Opset(onnx.DomainStandard)
	for i, t := range terms {
		if t.Kind != "onnx" {
			continue
		}
		g := t.Model
		var err error
		if g == nil {
			if g, err = onnx.Load(t.Path); err != nil {
				return nil, nil, fmt.Errorf("term %d: %w", i, err)
			}
		}
		if graphs[i], err = onnx.InlineFunctions(g); err != nil {
			return nil, nil, fmt.Errorf("term %d: loss graph: %w", i, err)
		}
		opset = max(opset, g.Opset(onnx.DomainStandard))
	}
	raise := func(m *onnx.Model) (*onnx.Model, error) {
		if m.Opset(onnx.DomainStandard) == opset {
			return m.ShallowClone(), nil
		}
		return onnx.Upgrade(m, opset)
	}
	out, err := raise(m)
	if err != nil {
		return nil, nil, err
	}
	for i, g := range graphs {
		if g == nil {
			continue
		}
		if graphs[i], err = raise(g); err != nil {
			return nil, nil, fmt.Errorf("term %d: loss graph: %w", i, err)
		}
		for _, o := range g.OpsetImport {
			if d := onnx.NormalizeDomain(o.Domain); d != onnx.DomainStandard {
				if v := out.Opset(d); v != 0 && v != int(o.Version) {
					return nil, nil, fmt.Errorf("term %d: the loss graph uses version %d of domain %q, the model version %d", i, o.Version, d, v)
				}
				out.SetOpset(d, int(o.Version))
			}
		}
	}
	return out, graphs, nil
}

// custom splices a loss graph of the user's own behind the prediction. Its inputs are "prediction"
// and "target"; its one output is float32[batch] or a scalar. Its initializers are constants: they
// are not trained.
func custom(b *builder) (onnx.Value, map[string]onnx.Value, error) {
	m := b.graph
	bind := map[string]onnx.Value{"prediction": b.y}
	for _, v := range m.Graph.Inputs() {
		switch v.Name {
		case "prediction":
		case "target":
			t, ok := v.TensorType()
			if !ok || !t.Ranked || len(t.Dims) == 0 {
				return "", nil, fmt.Errorf("input \"target\" of the loss graph has no tensor type with a batch extent")
			}
			t.Dims = append([]onnx.Dim{b.batch}, t.Dims[1:]...)
			if b.term.TargetShape != nil {
				t.Dims = t.Dims[:1]
				for _, d := range b.term.TargetShape {
					t.Dims = append(t.Dims, onnx.Known(d))
				}
			}
			bind["target"] = b.declare(t)
		default:
			return "", nil, fmt.Errorf("the loss graph has an input %q; expected \"prediction\" and \"target\" only", v.Name)
		}
	}
	if b.target == "" || len(m.Graph.Output) != 1 {
		return "", nil, fmt.Errorf("the loss graph must have inputs \"prediction\" and \"target\" and exactly one output")
	}
	out, err := b.splice(m, bind)
	if err != nil {
		return "", nil, err
	}
	t := b.env.Type(out)
	if t.DType != tensor.Float32 || !t.Ranked || len(t.Dims) > 1 {
		return "", nil, fmt.Errorf("the loss graph's output is %v, expected float32[batch] or a scalar", t)
	}
	return out, nil, nil
}

// splice copies the nodes of m, with all names prefixed, and returns its first output.
func (b *builder) splice(m *onnx.Model, bind map[string]onnx.Value) (onnx.Value, error) {
	c := m.Clone()
	prefix := fmt.Sprintf("loss/%d/", b.index)
	rename := map[string]string{}
	for from, to := range bind {
		rename[from] = string(to)
	}
	name := func(old string) string {
		if old == "" {
			return ""
		}
		if _, ok := rename[old]; !ok {
			rename[old] = prefix + old
		}
		return rename[old]
	}
	for _, t := range c.Graph.Initializer {
		data, err := onnx.TensorOf(t)
		if err != nil {
			return "", err
		}
		b.Initializer(name(t.Name), data)
	}
	var walk func(g *onnx.Graph)
	walk = func(g *onnx.Graph) {
		for _, n := range g.Node {
			for i := range n.Input {
				n.Input[i] = name(n.Input[i])
			}
			for i := range n.Output {
				n.Output[i] = name(n.Output[i])
			}
			n.Name = prefix + n.Name
			for _, s := range n.Subgraphs() {
				for _, v := range s.Input {
					v.Name = name(v.Name)
				}
				for _, t := range s.Initializer {
					t.Name = name(t.Name)
				}
				walk(s)
				for _, v := range s.Output {
					v.Name = name(v.Name)
				}
			}
		}
	}
	walk(c.Graph)
	for _, n := range c.Graph.Node {
		b.Append(n)
	}
	return onnx.Value(name(c.Graph.Output[0].Name)), b.Err()
}
