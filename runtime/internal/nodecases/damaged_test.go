package nodecases_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/internal/nodecases"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// damage returns a tensor like t with another type, shape or content.
func damage(r *rand.Rand, t *tensor.Tensor) *tensor.Tensor {
	shape := slices.Clone(t.Shape())
	switch k := r.IntN(5); {
	case k == 0:
		types := []tensor.DType{tensor.Float32, tensor.Float64, tensor.Int64, tensor.Int32, tensor.Uint8, tensor.Bool, tensor.Float16, tensor.String, tensor.Int4}
		return tensor.New(types[r.IntN(len(types))], shape...)
	case k == 1 && len(shape) > 0:
		shape[r.IntN(len(shape))] = r.IntN(4)
	case k == 2:
		shape = append(shape, 1+r.IntN(2))
	case k == 3 && len(shape) > 0:
		shape = shape[1:]
	default:
		c := t.Clone()
		if c.Len() == 0 {
			return c
		}
		i := r.IntN(c.Len())
		switch c.DType() {
		case tensor.Int64:
			c.Int64s()[i] = []int64{-1, math.MaxInt64, math.MinInt64, 1 << 40, 0, 7}[r.IntN(6)]
		case tensor.Int32:
			c.Int32s()[i] = []int32{-1, math.MaxInt32, math.MinInt32, 0, 7}[r.IntN(5)]
		case tensor.Float32:
			c.Float32s()[i] = []float32{float32(math.NaN()), float32(math.Inf(1)), -1e30, 0}[r.IntN(4)]
		}
		return c
	}
	c := tensor.New(t.DType(), shape...)
	for i := range c.Bytes() {
		if t.Len() == 0 {
			break
		}
		c.Bytes()[i] = t.Bytes()[i%max(1, t.Len()*max(1, t.DType().Size()))]
	}
	return c
}

// TestDamagedInputs gives every operator of our own cases inputs of wrong types, shapes and
// contents, in graphs that declare no shapes. A run may succeed or fail, but a failure names the
// node, and a session still works after it.
func TestDamagedInputs(t *testing.T) {
	cases, err := nodecases.Open(filepath.Join("testdata", "own.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	e := portable.New()
	defer e.Close()
	r := rand.New(rand.NewPCG(51, 6))
	runs, failed := 0, 0
	panics := map[string]string{}
	for _, c := range cases {
		m, err := onnx.Unmarshal(c.Model)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range append(slices.Clone(m.Graph.Input), m.Graph.Output...) {
			v.Type = nil
		}
		s, err := e.Compile(m, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var in []*tensor.Tensor
		for _, b := range c.Sets[0].Inputs {
			p, err := onnx.UnmarshalTensor(b)
			if err != nil {
				t.Fatal(err)
			}
			x, err := onnx.TensorOf(p)
			if err != nil {
				t.Fatal(err)
			}
			in = append(in, x)
		}
		for range 100 {
			bad := slices.Clone(in)
			k := r.IntN(len(bad))
			bad[k] = damage(r, bad[k])
			runs++
			err := s.Run(t.Context(), make([]*tensor.Tensor, len(s.Outputs())), bad)
			if err == nil {
				continue
			}
			failed++
			var re *engine.RunError
			var ue *engine.UnsupportedError
			if !errors.As(err, &re) && !errors.As(err, &ue) || !strings.Contains(err.Error(), m.Graph.Node[0].OpType) {
				t.Errorf("%s: %v does not name the node", c.Name, err)
			}
			if strings.Contains(err.Error(), "internal error") {
				panics[m.Graph.Node[0].OpType] = err.Error()
			}
		}
		if err := s.Run(t.Context(), make([]*tensor.Tensor, len(s.Outputs())), in); err != nil {
			t.Errorf("%s: after failed runs: %v", c.Name, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	for op, msg := range sorted.All(panics) {
		t.Errorf("%s checks its inputs too late: %s", op, msg)
	}
	if runs != 100*ownCases || failed < runs/4 {
		t.Errorf("%d runs, %d of them failed", runs, failed)
	}
}

// TestDamagedModels compiles models with flipped bits. A model may be refused or compile; nothing
// may panic, and no message may be about the engine's inside.
func TestDamagedModels(t *testing.T) {
	cases, err := nodecases.Open(filepath.Join("testdata", "own.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	e := portable.New()
	defer e.Close()
	r := rand.New(rand.NewPCG(7, 8))
	decoded, compiled := 0, 0
	for _, c := range cases {
		for range 40 {
			b := slices.Clone(c.Model)
			for range 1 + r.IntN(4) {
				b[r.IntN(len(b))] ^= 1 << r.IntN(8)
			}
			m, err := onnx.Unmarshal(b)
			if err != nil {
				continue
			}
			decoded++
			s, err := e.Compile(m, engine.Options{})
			if err != nil {
				if strings.Contains(err.Error(), "internal error") {
					t.Errorf("%s: %v", c.Name, err)
				}
				continue
			}
			compiled++
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	if decoded < 2000 || compiled < 500 {
		t.Errorf("%d models decoded and %d compiled: too few to mean anything", decoded, compiled)
	}
}
