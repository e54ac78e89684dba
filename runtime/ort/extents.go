//go:build cgo

package ort

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// extents checks the shapes of a run where a model leaves extents open. The types of a model whose
// batch or length is free say nothing of a batch of 0 or of a length below that of a kernel. ONNX
// Runtime's kernels divide by such extents and index with them. So each combination of shapes is
// inferred through the whole graph before its first run. Safe for concurrent use.
type extents struct {
	model *onnx.Model // structure and small constants, without declared shapes
	// contents says that the numbers of small integer inputs matter too.
	contents bool
	seed     maphash.Seed
	seen     atomic.Pointer[map[uint64]struct{}] // hashes of what was accepted; replaced as a whole
}

const (
	// maxSeen is how many combinations are remembered; with more, all are forgotten.
	maxSeen = 4096
	// maxKeptFloats is the most numbers of a floating-point constant that may bear on a shape, as
	// the scales of Resize do.
	maxKeptFloats = 64
)

// newExtents returns nil where every extent of every input is known, and every number that kernels
// trust, since then there is nothing that a run could bring. env has the types of m.
func newExtents(m *onnx.Model, env *shape.Env, in []engine.Port) *extents {
	contents := env != nil && foreknown(m.Graph, env) != nil
	free := contents
	for _, p := range in {
		free = free || p.Shape == nil
		for _, d := range p.Shape {
			free = free || d < 0
		}
	}
	if !free {
		return nil
	}
	c := m.ShallowClone()
	// The walk never fails, because this function does not.
	_ = c.EachGraph(func(g *onnx.Graph) error {
		for i, t := range g.Initializer {
			n := 1
			for _, d := range t.Dims {
				n *= int(min(d, shape.MaxConst+1))
				n = min(n, shape.MaxConst+1)
			}
			if n > shape.MaxConst || n > maxKeptFloats && tensor.DType(t.DataType).IsFloat() {
				g.Initializer[i] = &onnx.TensorProto{Name: t.Name, DataType: t.DataType, Dims: t.Dims}
			}
		}
		return nil
	})
	e := &extents{model: c, contents: contents, seed: maphash.MakeSeed()}
	e.seen.Store(&map[uint64]struct{}{})
	return e
}

// undeclared returns a model with the nodes of m, other inputs and initializers, and nothing
// declared of the shapes of computed values.
func undeclared(m *onnx.Model, inputs []*onnx.ValueInfo, initializers []*onnx.TensorProto) *onnx.Model {
	g := &onnx.Graph{Name: m.Graph.Name, Node: m.Graph.Node, Initializer: initializers, SparseInitializer: m.Graph.SparseInitializer, Input: inputs}
	for _, v := range m.Graph.Output {
		if t, ok := v.TensorType(); ok {
			v = onnx.NewValueInfo(onnx.Value(v.Name), onnx.TensorType{DType: t.DType})
		}
		g.Output = append(g.Output, v)
	}
	return &onnx.Model{IrVersion: m.IrVersion, OpsetImport: m.OpsetImport, Functions: m.Functions, Graph: g}
}

// accept is an error where the shapes of in do not fit the model.
func (e *extents) accept(in []*tensor.Tensor) error {
	if e == nil || unguarded {
		return nil
	}
	var buffer [256]byte
	key := buffer[:0]
	for _, t := range in {
		key = append(key, byte(t.Rank()))
		for _, d := range t.Shape() {
			key = binary.AppendUvarint(key, uint64(d))
		}
		if e.constant(t) {
			key = append(key, t.Bytes()...)
		}
	}
	hash := maphash.Bytes(e.seed, key)
	if _, ok := (*e.seen.Load())[hash]; ok {
		return nil
	}
	if err := e.infer(in); err != nil {
		return err
	}
	for {
		old := e.seen.Load()
		grown := maps.Clone(*old)
		if len(grown) >= maxSeen {
			grown = map[uint64]struct{}{}
		}
		grown[hash] = struct{}{}
		if e.seen.CompareAndSwap(old, &grown) {
			return nil
		}
	}
}

// constant reports whether the numbers of an input bear on what the check finds.
func (e *extents) constant(t *tensor.Tensor) bool {
	return e.contents && t.DType().IsInteger() && t.Len() <= maxKeptFloats
}

// infer follows the shapes through the graph.
func (e *extents) infer(in []*tensor.Tensor) error {
	g := e.model.Graph
	given := map[string]*tensor.Tensor{}
	for i, v := range g.Inputs() {
		given[v.Name] = in[i]
	}
	var inputs []*onnx.ValueInfo
	constants := slices.Clip(g.Initializer)
	for _, v := range g.Input {
		switch t := given[v.Name]; {
		case t == nil:
			inputs = append(inputs, v)
		case e.constant(t):
			constants = append(constants, onnx.ProtoOf(v.Name, t))
		default:
			inputs = append(inputs, onnx.NewValueInfo(onnx.Value(v.Name), onnx.TypeOf(t.DType(), t.Shape()...)))
		}
	}
	env, err := shape.Infer(undeclared(e.model, inputs, constants), nil)
	if err == nil {
		err = foreknown(g, env)
	}
	if err == nil {
		return nil
	}
	shapes := make([]string, len(in))
	for i, v := range g.Inputs() {
		shapes[i] = fmt.Sprintf("%q %v", v.Name, in[i])
	}
	out := &engine.ShapeError{Inputs: strings.Join(shapes, ", "), Err: err}
	if at := new(shape.Error); errors.As(err, &at) {
		out.Node, out.Err = at.Node, at.Err
	}
	return out
}
