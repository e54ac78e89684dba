package program

import (
	"errors"
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// engines runs a test on every engine.
func engines(t *testing.T, f func(t *testing.T, c engine.Compiler)) {
	for _, c := range testengines.All(t) {
		t.Run(c.Name(), func(t *testing.T) { f(t, c) })
	}
}

// mlp builds loss = Σ w·(tanh(x·W1 + b1)·W2 + b2 − y)² with a symbolic batch.
func mlp(t testing.TB, mean bool) *onnx.Model {
	b := onnx.NewBuilder("mlp", 18)
	batch := func(n int) onnx.TensorType {
		return onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(n)}}
	}
	x, y, w := b.Input("x", batch(5)), b.Input("y", batch(2)), b.Input("w", batch(1))
	fill := func(name string, scale float32, shape ...int) onnx.Value {
		p := tensor.New(tensor.Float32, shape...)
		for i := range p.Float32s() {
			p.Float32s()[i] = scale * float32(math.Sin(float64(3*i+len(name))))
		}
		return b.Initializer(name, p)
	}
	h := b.Op("Tanh", []onnx.Value{b.Op("Gemm", []onnx.Value{x, fill("fc1.weight", 0.5, 5, 8), fill("fc1.bias", 0.1, 8)})})
	out := b.Rename(b.Op("Gemm", []onnx.Value{h, fill("fc2.weight", 0.5, 8, 2), fill("fc2.bias", 0.1, 2)}), "out")
	d := b.Op("Sub", []onnx.Value{out, y})
	sq := b.Op("Mul", []onnx.Value{b.Op("Mul", []onnx.Value{d, d}), w})
	op := "ReduceSum"
	if mean {
		op = "ReduceMean"
	}
	loss := b.Rename(b.Op(op, []onnx.Value{sq}, onnx.AttrInt("keepdims", 0)), "loss")
	b.Output(out, batch(2))
	b.Output(loss, onnx.TypeOf(tensor.Float32))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newMLP(t testing.TB, c engine.Compiler, mean bool, shards int) (*Program, *models.Params, error) {
	net, values, err := models.FromModel(mlp(t, mean), models.Options{})
	if err != nil {
		t.Fatal(err)
	}
	params, err := models.NewParams(net, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := params.Load(values); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { params.Close() })
	p, err := New(net, params, Config{
		Engine: c, Batch: 12, BatchSymbol: "batch", Shards: shards, Weights: []string{"w"},
		Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: "loss"}}}},
	})
	return p, params, err
}

func fillBatch(p *Program) {
	for _, name := range p.Inputs() {
		x := p.Input(name).Float32s()
		for i := range x {
			x[i] = float32(math.Cos(float64(i*7 + len(name)*3)))
			if name == "w" {
				x[i] = 1.0 / 12
			}
		}
	}
}

func TestGradientsMatchDifferences(t *testing.T) {
	engines(t, func(t *testing.T, c engine.Compiler) {
		p, params, err := newMLP(t, c, false, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		fillBatch(p)
		run := func() float64 {
			if err := p.Run(); err != nil {
				t.Fatal(err)
			}
			return float64(p.Output("loss").Float32s()[0])
		}
		run()
		seg := params.Segment(models.Trainable)
		grads := append([]float32(nil), p.Gradients(0).Floats()...)
		n := 0
		for i, s := range seg.Specs() {
			off, size := seg.Range(i)
			for k := off; k < off+size; k++ {
				const h = 1e-2
				at := seg.Floats()
				old := at[k]
				at[k] = old + h
				up := run()
				at[k] = old - h
				down := run()
				at[k] = old
				if got, want := float64(grads[k]), (up-down)/(2*h); math.Abs(got-want) > 1e-3*(1+math.Abs(want)) {
					t.Errorf("%s[%d]: gradient %g, difference quotient %g", s.Name, k-off, got, want)
				}
				n++
			}
		}
		if n != 5*8+8+8*2+2 {
			t.Errorf("checked %d elements", n)
		}
	})
}

func TestShardsAddUpToTheWhole(t *testing.T) {
	engines(t, func(t *testing.T, c engine.Compiler) {
		var want []float32
		var loss float32
		for _, shards := range []int{1, 2, 3, 5, 8} {
			p, _, err := newMLP(t, c, false, shards)
			if err != nil {
				t.Fatal(err)
			}
			fillBatch(p)
			if err := p.Run(); err != nil {
				t.Fatal(err)
			}
			g := append([]float32(nil), p.Gradients(0).Floats()...)
			l := p.Output("loss").Float32s()[0]
			if shards == 1 {
				want, loss = g, l
			}
			if math.Abs(float64(l-loss)) > 1e-5 {
				t.Errorf("%d shards: loss %g, want %g", shards, l, loss)
			}
			if i, bad := differs(want, g); bad {
				t.Errorf("%d shards: gradient %d is %g, want %g", shards, i, g[i], want[i])
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestMeanOverTheBatchIsNotSeparable(t *testing.T) {
	engines(t, func(t *testing.T, c engine.Compiler) {
		if _, _, err := newMLP(t, c, true, 2); !errors.Is(err, ErrNotSeparable) {
			t.Fatalf("error %v, want ErrNotSeparable", err)
		}
	})
}

func TestRunAllocatesNothing(t *testing.T) {
	engines(t, func(t *testing.T, c engine.Compiler) {
		for _, shards := range []int{1, 2} {
			p, _, err := newMLP(t, c, false, shards)
			if err != nil {
				t.Fatal(err)
			}
			fillBatch(p)
			if n := testing.AllocsPerRun(50, func() {
				if err := p.Run(); err != nil {
					t.Fatal(err)
				}
			}); n != 0 {
				t.Errorf("%d shards: %g allocations per run", shards, n)
			}
			if err := p.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
