package gradcheck

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// float32Only lists the inputs that the operator's specification fixes to float32 whatever type it
// computes in.
var float32Only = map[string]int{"Resize": 2, "Upsample": 1}

// Double returns a copy of m that computes in float64 where m computes in float32: inputs, outputs,
// initializers, constants and conversions are changed. The result need not be executable: an engine
// may lack the kernels.
func Double(m *onnx.Model) (*onnx.Model, error) {
	d := m.ShallowClone()
	fixed := map[string]bool{}
	err := d.EachGraph(func(g *onnx.Graph) error {
		for _, n := range g.Node {
			if i, ok := float32Only[n.OpType]; ok && n.In(i) != "" {
				fixed[string(n.In(i))] = true
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = d.EachGraph(func(g *onnx.Graph) error {
		for _, list := range [][]*onnx.ValueInfo{g.Input, g.Output, g.ValueInfo} {
			for i, v := range list {
				if t, ok := v.TensorType(); ok && t.DType == tensor.Float32 && !fixed[v.Name] {
					t.DType = tensor.Float64
					list[i] = onnx.NewValueInfo(onnx.Value(v.Name), t)
				}
			}
		}
		for i, p := range g.Initializer {
			if fixed[p.Name] {
				continue
			}
			w, err := doubleProto(p)
			if err != nil {
				return err
			}
			g.Initializer[i] = w
		}
		for _, n := range g.Node {
			if len(n.Output) > 0 && fixed[n.Output[0]] {
				continue
			}
			if err := doubleAttrs(n); err != nil {
				return fmt.Errorf("%s: %w", n.Describe(), err)
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("convert to float64: %w", err)
	}
	return d, nil
}

func doubleAttrs(n *onnx.Node) error {
	for _, a := range n.Attribute {
		switch {
		case a.T != nil && tensor.DType(a.T.DataType) == tensor.Float32:
			p, err := doubleProto(a.T)
			if err != nil {
				return err
			}
			n.SetAttr(&onnx.Attribute{Name: a.Name, Type: a.Type, T: p})
		case (a.Name == "to" || a.Name == "dtype" || a.Name == "output_datatype") && tensor.DType(a.I) == tensor.Float32:
			n.SetAttr(onnx.AttrInt(a.Name, int(tensor.Float64)))
		case a.Name == "value_float" && n.OpType == "Constant":
			n.Attribute = []*onnx.Attribute{onnx.AttrTensor("value", tensor.Scalar(float64(a.F)))}
			return nil
		case a.Name == "value_floats" && n.OpType == "Constant":
			n.Attribute = []*onnx.Attribute{onnx.AttrTensor("value", Widen(tensor.Of(a.Floats, len(a.Floats))))}
			return nil
		}
	}
	return nil
}

func doubleProto(p *onnx.TensorProto) (*onnx.TensorProto, error) {
	if tensor.DType(p.DataType) != tensor.Float32 {
		return p, nil
	}
	t, err := onnx.TensorOf(p)
	if err != nil {
		return nil, err
	}
	return onnx.ProtoOf(p.Name, Widen(t)), nil
}

// Widen returns t in float64 when it is float32, and t itself otherwise.
func Widen(t *tensor.Tensor) *tensor.Tensor {
	if t == nil || t.DType() != tensor.Float32 {
		return t
	}
	w := tensor.New(tensor.Float64, t.Shape()...)
	for i, v := range t.Float32s() {
		w.Float64s()[i] = float64(v)
	}
	return w
}
