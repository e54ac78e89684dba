package bake

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// MetaScales is the metadata key under which [Agent] lists the inputs that have an [Affine],
// separated by commas: those that environments show scaled and the model scales itself.
const MetaScales = MetaPrefix + "scales"

// oldestOpset is the first that [Agent] tries: the one at which the axes of sums became inputs, as
// scalings use them.
const oldestOpset = 13

// format is a version of the file format and the newest opset that was released with it, by the
// table of the ONNX specification.
type format struct {
	opset int
	ir    int64
}

var formats = []format{{14, 7}, {18, 8}, {20, 9}, {22, 10}, {23, 11}}

// Wrapper is something that a served model does with one of its inputs before the network is given
// it, [Affine], [Normal], [Frames] or [Fixed], or with an output, [Bounds] or
// [Simplex]; [Start] is of either.
type Wrapper interface {
	// wrap puts it between the model and its input or output, which keeps its name and its place.
	wrap(m *onnx.Model) (*onnx.Model, error)
}

// Agent returns a policy as one model from observations as they come to actions: the network with
// the given parameter values as initializers, adapters merged, and wrappers around it, each outside
// of those that are listed before it. states are those of the network, to which wrappers may add
// theirs. The model imports the oldest opset that expresses it and has the format version of that
// opset, because runtimes refuse by number what they could run. Values are shared with what value
// returns.
//
// [Sample] and [SampleGaussian] let it draw actions as well.
func Agent(net *models.Network, value func(name string) *tensor.Tensor, states []models.State, wrappers ...Wrapper) (*onnx.Model, error) {
	m, err := agent(net, value, states, wrappers)
	if err != nil {
		return nil, fmt.Errorf("bake agent: %w", err)
	}
	return m, nil
}

func agent(net *models.Network, value func(name string) *tensor.Tensor, states []models.State, wrappers []Wrapper) (*onnx.Model, error) {
	m, err := net.Bake(value)
	if err != nil {
		return nil, err
	}
	if m, err = lora.Merge(m); err != nil {
		return nil, err
	}
	if len(states) > 0 {
		m = m.ShallowClone()
		if err := models.AddStates(m, states); err != nil {
			return nil, err
		}
		if _, err := models.States(m); err != nil {
			return nil, err
		}
	}
	var scales []string
	for _, f := range wrappers {
		if m, err = f.wrap(m); err != nil {
			return nil, err
		}
		if a, ok := f.(*Affine); ok {
			scales = append(scales, a.Input)
		}
	}
	if m, err = onnx.Prune(m); err != nil {
		return nil, err
	}
	m = widest(m)
	if len(scales) > 0 {
		m.SetMeta(MetaScales, strings.Join(scales, ","))
	}
	if err := onnx.Check(m); err != nil {
		return nil, err
	}
	types, err := shape.Infer(m, nil)
	if err != nil {
		return nil, err
	}
	for _, v := range m.Graph.Output {
		if t := types.Type(onnx.Value(v.Name)); len(t.Dims) == 0 || t.Dims[0].IsKnown() {
			return nil, fmt.Errorf("output %q is %v: a served model needs a symbolic batch in front", v.Name, t)
		}
	}
	return m, nil
}

// widest returns m with the oldest opset that expresses it, and the format version of that opset.
// Functions, and element types younger than the formats in question, keep the version that they
// came with.
func widest(m *onnx.Model) *onnx.Model {
	have := m.Opset(onnx.DomainStandard)
	for v := oldestOpset; v < have; v++ {
		if l := onnx.Lowered(m, v); l.Opset(onnx.DomainStandard) == v {
			m = l
			break
		}
	}
	young := len(m.Functions) > 0
	// The walk itself never fails, because this function does not.
	_ = m.EachTensor(func(t *onnx.TensorProto) error {
		young = young || tensor.DType(t.DataType) > tensor.BFloat16
		return nil
	})
	i := slices.IndexFunc(formats, func(f format) bool { return m.Opset(onnx.DomainStandard) <= f.opset })
	if young || i < 0 || m.IrVersion == formats[i].ir {
		return m
	}
	m = m.ShallowClone()
	m.IrVersion = formats[i].ir
	return m
}
