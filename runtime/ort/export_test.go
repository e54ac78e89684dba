//go:build cgo

package ort

import (
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/ort/internal/capi"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// SetHandOver makes models hand over their initializers from these sizes on, until
// the test ends.
func SetHandOver(t *testing.T, total, each int) {
	oldTotal, oldEach := handOverTotal, handOverEach
	handOverTotal, handOverEach = total, each
	t.Cleanup(func() { handOverTotal, handOverEach = oldTotal, oldEach })
}

// CloseBindings closes the bindings that nobody else can reach any more, and
// returns how many there were.
func CloseBindings(t *testing.T) int {
	bound.mu.Lock()
	lost := slices.Collect(maps.Keys(bound.open))
	bound.mu.Unlock()
	for _, b := range lost {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
	return len(lost)
}

var CheckLayout = checkLayout

// Accept is what stands before ONNX Runtime.
func Accept(m *onnx.Model) error {
	_, err := accept(m)
	return err
}

// Unguarded hands models and data to ONNX Runtime as they are. Only a process that may die should
// ask for it.
func Unguarded(on bool) { unguarded = on }

var ProductsForConvs = productsForConvs

var (
	FuseElementwise  = fuseElementwise
	PoolsWithIndices = poolsWithIndices
)

// CompileKernel makes a session of one node of our own, whose input is float32 of the shape.
func CompileKernel(e engine.Compiler, op string, outputs []tensor.DType, shape []int, attributes []*onnx.Attribute) error {
	b := onnx.NewBuilder("kernel", 17)
	n := &onnx.Node{OpType: op, Domain: capi.Domain, Input: []string{string(b.Input("x", onnx.TypeOf(tensor.Float32, shape...)))}, Attribute: attributes}
	for i, t := range outputs {
		n.Output = append(n.Output, "y"+strconv.Itoa(i))
		b.Output(n.Out(i), onnx.TensorType{DType: t})
	}
	b.Append(n)
	m, err := b.Model()
	if err != nil {
		return err
	}
	bytes, err := onnx.Marshal(withKernels(m))
	if err != nil {
		return err
	}
	options, err := sessionOptions(engine.Options{}, true)
	if err != nil {
		return err
	}
	defer options.Destroy()
	if err := (&encoded{kernels: true}).attach(options); err != nil {
		return err
	}
	s, err := createSession(bytes, options, false)
	if err != nil {
		return err
	}
	return s.Destroy()
}

// The names of our own operators.
const (
	FusedName   = capi.FusedName
	MaxPoolName = capi.MaxPoolName
)
