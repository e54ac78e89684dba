package autodiff

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/schema"
)

// lowerOpset makes a model import the oldest opset of the standard domain, from MinOpset on, under
// which every node means what it means now. Expansion removes the newest operators; what is left
// then runs on engines that do not know the opset of the model it was made from.
func lowerOpset(m *onnx.Model) error {
	have := m.Opset("")
	need := MinOpset
	err := m.EachGraph(func(g *onnx.Graph) error {
		for _, n := range g.Node {
			if onnx.NormalizeDomain(n.Domain) != "" {
				continue
			}
			op, ok := schema.Lookup("", n.OpType, have)
			if !ok {
				need = have
				return nil
			}
			need = max(need, op.Since)
		}
		return nil
	})
	if err != nil || need >= have {
		return err
	}
	m.SetOpset("", need)
	return nil
}
