//go:build cgo

package ort_test

import (
	"fmt"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// training is the loss of two layers of 64, and of its gradients by the weights: of one network
// where members is 0, and otherwise of so many, with an axis for them in front of everything.
func training(t testing.TB, members, batch int) *onnx.Model {
	t.Helper()
	const obs, hidden, out = 17, 64, 6
	b := onnx.NewBuilder("training", onnx.DefaultOpset)
	shaped := func(shape ...int) onnx.TensorType {
		if members > 0 {
			shape = append([]int{members}, shape...)
		}
		return onnx.TypeOf(tensor.Float32, shape...)
	}
	x, y := b.Input("x", shaped(batch, obs)), b.Input("y", shaped(batch, out))
	var weights []string
	for i, d := range [][2]int{{obs, hidden}, {hidden, hidden}, {hidden, out}} {
		w, bias := b.Input(fmt.Sprint("w", i), shaped(d[0], d[1])), b.Input(fmt.Sprint("b", i), shaped(1, d[1]))
		weights = append(weights, string(w), string(bias))
		if members == 0 {
			x = b.Op("Gemm", []onnx.Value{x, w, bias})
		} else {
			x = b.Op("Add", []onnx.Value{b.Op("MatMul", []onnx.Value{x, w}), bias})
		}
		if i < 2 {
			x = b.Op("Tanh", []onnx.Value{x})
		}
	}
	e := b.Op("Sub", []onnx.Value{x, y})
	loss := b.Op("ReduceSum", []onnx.Value{b.Op("Mul", []onnx.Value{e, e})}, onnx.AttrInt("keepdims", 0))
	b.Output(b.Rename(loss, "loss"), onnx.TypeOf(tensor.Float32))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	g, err := autodiff.Grad(m, autodiff.Options{Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: "loss"}}, Wrt: weights}}})
	if err != nil {
		t.Fatal(err)
	}
	return g.Model
}

// BenchmarkMemberAxis compares the training graphs of N small networks that run one after the other
// with one graph of all of them. What is measured is one step of all N.
func BenchmarkMemberAxis(b *testing.B) {
	e := open(b)
	defer e.Close()
	bound := func(m *onnx.Model) engine.Binding {
		s, err := e.Compile(m, engine.Options{})
		if err != nil {
			b.Fatal(err)
		}
		var ports [2][]*tensor.Tensor
		for k, list := range [2][]engine.Port{s.Inputs(), s.Outputs()} {
			for _, p := range list {
				t := tensor.New(p.DType, p.Shape...)
				for i := range t.Float32s() {
					t.Float32s()[i] = float32(i%13-6) / 64
				}
				ports[k] = append(ports[k], t)
			}
		}
		x, err := s.Bind(ports[1], ports[0])
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() {
			if err := x.Close(); err != nil {
				b.Error(err)
			}
			if err := s.Close(); err != nil {
				b.Error(err)
			}
		})
		return x
	}
	for _, batch := range []int{64, 256} {
		for _, members := range []int{4, 16, 64} {
			run := func(name string, n int, m func() *onnx.Model) {
				b.Run(fmt.Sprintf("batch=%d/members=%d/%s", batch, members, name), func(b *testing.B) {
					var list []engine.Binding
					for range n {
						list = append(list, bound(m()))
					}
					b.ReportAllocs()
					for b.Loop() {
						for _, x := range list {
							if err := x.Run(); err != nil {
								b.Fatal(err)
							}
						}
					}
				})
			}
			run("apart", members, func() *onnx.Model { return training(b, 0, batch) })
			run("one", 1, func() *onnx.Model { return training(b, members, batch) })
		}
	}
}
