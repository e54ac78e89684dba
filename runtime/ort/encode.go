//go:build cgo

package ort

import (
	"fmt"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/ort/internal/capi"
)

// Models whose initializers hold more bytes than handOverTotal give ONNX Runtime each
// initializer of at least handOverEach by its address, beside the encoded graph. Encoding
// would cost another copy of all weights, and protobuf ends at 2 GiB. Variables for
// tests.
var (
	handOverTotal = 64 << 20
	handOverEach  = 64 << 10
)

// encoded is a model as ONNX Runtime takes it.
type encoded struct {
	bytes   []byte
	names   []string
	values  []capi.Handle
	holder  holder
	cNames  capi.Names
	kernels bool // the model has nodes of our own operators
	// found is what the checks of data find, for runError.
	found []finding
}

// encode makes the bytes of a model, whose types env has, to be compiled with the options. The
// model is not changed.
func encode(m *onnx.Model, env *shape.Env, memory capi.Handle, o engine.Options) (*encoded, error) {
	e := &encoded{}
	from := m
	if !unguarded {
		var err error
		if m, e.found, err = checkData(m, env); err != nil {
			return nil, err
		}
	}
	m = exactPools(m, from, env)
	m = copyStatistics(guardLabels(nameSplits(lowerIR(onnx.Lowered(productsForConvs(m, env, o.Optimize), newestOpset)))))
	if o.Training && o.Optimize == engine.OptAll {
		ours := poolsWithIndices(fuseElementwise(m, env), env)
		e.kernels, m = ours != m, ours
	}
	total := 0
	for _, t := range m.Graph.Initializer {
		total += len(t.RawData)
	}
	if total > handOverTotal {
		m = m.ShallowClone()
		for i, t := range m.Graph.Initializer {
			if len(t.RawData) < handOverEach {
				continue
			}
			var err error
			if m.Graph.Initializer[i], err = e.handOver(t, memory); err != nil {
				e.release()
				return nil, fmt.Errorf("initializer %q: %w", t.Name, err)
			}
		}
	}
	var err error
	if e.bytes, err = onnx.Marshal(m); err != nil {
		e.release()
		return nil, err
	}
	return e, nil
}

// handOver keeps the value of t for ONNX Runtime, and returns what stands for t
// in the encoded model.
func (e *encoded) handOver(t *onnx.TensorProto, memory capi.Handle) (*onnx.TensorProto, error) {
	data, err := onnx.TensorOf(t) // checks the size, and aligns where needed
	if err != nil {
		return nil, err
	}
	dtype, ok := elementType(data.DType())
	if !ok {
		return nil, fmt.Errorf("element type %v", data.DType())
	}
	addr, err := e.holder.hold(engine.Port{Name: t.Name}, data, false)
	if err != nil {
		return nil, err
	}
	value, err := capi.NewValue(memory, addr, len(data.Bytes()), onnx.Int64s(data.Shape()), dtype)
	if err != nil {
		return nil, err
	}
	e.names = append(e.names, t.Name)
	e.values = append(e.values, value)
	// The location is never opened: the value replaces it before.
	return &onnx.TensorProto{
		Name: t.Name, DataType: t.DataType, Dims: t.Dims, DataLocation: onnx.TensorProto_EXTERNAL,
		ExternalData: []*onnx.StringStringEntryProto{
			{Key: "location", Value: "memory"},
			{Key: "offset", Value: "0"},
			{Key: "length", Value: fmt.Sprint(len(data.Bytes()))},
		},
	}, nil
}

// attach gives the options what the bytes need beside them: initializers and our own
// operators.
func (e *encoded) attach(so *onnxruntime.SessionOptions) error {
	if e.kernels {
		if err := capi.AddKernels(optionsHandle(so)); err != nil {
			return fmt.Errorf("add the operators of our own: %w", err)
		}
	}
	if len(e.values) == 0 {
		return nil
	}
	e.cNames = capi.NewNames(e.names)
	if err := capi.AddExternal(optionsHandle(so), e.cNames, e.values); err != nil {
		return fmt.Errorf("hand over initializers: %w", err)
	}
	return nil
}

func (e *encoded) release() {
	for _, v := range e.values {
		capi.Release(v)
	}
	e.values = nil
	e.cNames.Free()
	e.holder.release()
}
