package td3

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"onnxrl/models/layer"
	"onnxrl/models/program"
	"onnxrl/runtime/engine"
	"onnxrl/runtime/engine/testengines"
	"onnxrl/runtime/onnx"
	"onnxrl/runtime/onnx/shape"
	"onnxrl/runtime/rng"
	"onnxrl/runtime/tensor"
)

// BenchmarkPendulum measures complete training at the defaults: layers of 400 and 300, batches of 256, one update for each env step.
func BenchmarkPendulum(b *testing.B) {
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			c := Defaults()
			c.BufferSize = 100_000
			v := pendulums(b, 1)
			r := newTraining(b, agent(b, c, v, testengines.Fastest(b), threads), v)
			if err := r.run(b.Context(), c.LearningStarts+10, nil); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := r.run(b.Context(), 1, nil); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "env-steps/s")
		})
	}
}

// products are the matrix products of a program and nothing else: the same shapes, in as many shards, on the same engine.
type products struct {
	bindings []engine.Binding
	flops    float64
}

// productsOf extracts the products of a graph, whose symbolic batch stands for so many rows.
func productsOf(t testing.TB, e engine.Compiler, m *onnx.Model, rows, shards int) *products {
	t.Helper()
	bind := map[string]int{layer.Batch: rows}
	env, err := shape.Infer(m, bind)
	if err != nil {
		t.Fatal(err)
	}
	b := onnx.NewBuilder("products", onnx.DefaultOpset)
	inputs := map[string]onnx.Value{}
	input := func(v onnx.Value) (onnx.Value, []int) {
		s, ok := env.Type(v).Static()
		if !ok || len(s) != 2 {
			t.Fatalf("operand %q of a product is %v", v, env.Type(v))
		}
		name := fmt.Sprint("x", s)
		if inputs[name] == "" {
			inputs[name] = b.Input(name, onnx.TypeOf(tensor.Float32, s...))
		}
		return inputs[name], s
	}
	p := &products{flops: program.FLOPs(m, bind) * float64(shards)}
	for _, n := range m.Graph.Node {
		if n.OpType != "Gemm" {
			continue
		}
		x, _ := input(n.In(0))
		w, _ := input(n.In(1))
		var attrs []*onnx.Attribute
		for _, name := range []string{"transA", "transB"} {
			attrs = append(attrs, onnx.AttrInt(name, int(n.Int(name, 0))))
		}
		s, _ := env.Type(n.Out(0)).Static()
		b.Output(b.Op("Gemm", []onnx.Value{x, w}, attrs...), onnx.TypeOf(tensor.Float32, s...))
	}
	model, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	for range shards {
		s, err := e.Compile(model, engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var in, out []*tensor.Tensor
		for _, port := range s.Inputs() {
			x := tensor.New(port.DType, port.Shape...)
			rng.New(1).Stream().FillNormal32(x.Float32s(), 0, 0.1)
			in = append(in, x)
		}
		for _, port := range s.Outputs() {
			out = append(out, tensor.New(port.DType, port.Shape...))
		}
		binding, err := s.Bind(out, in)
		if err != nil {
			t.Fatal(err)
		}
		closing(t, s)
		closing(t, binding)
		p.bindings = append(p.bindings, binding)
	}
	return p
}

// BenchmarkUpdateAgainstProducts compares two whole updates (sampling, noise, targets, gradients, optimisers, target networks) with the matrix products that it consists of, on the same cores, in turns. The metric "ratio" is that of the medians.
func BenchmarkUpdateAgainstProducts(b *testing.B) {
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			c := Defaults()
			c.BufferSize = 100_000
			v := pendulums(b, 1)
			e := testengines.Fastest(b)
			r := newTraining(b, agent(b, c, v, e, threads), v)
			if err := r.run(b.Context(), c.LearningStarts+500, nil); err != nil {
				b.Fatal(err)
			}
			l := &r.a.learner
			var list []*products
			flops := 0.0
			for _, p := range []struct {
				m        *onnx.Model
				n, times int
			}{{l.g.targets.Model, threads, 2}, {l.critic.Graph().Model, threads, 2}, {l.actor.Graph().Model, threads, 1}} {
				x := productsOf(b, e, p.m, c.BatchSize/p.n, p.n)
				list, flops = append(list, x), flops+float64(p.times)*x.flops
			}
			var sum losses
			fail := make([]error, threads)
			var now *products
			job := func(k int) { fail[k] = now.bindings[k].Run() }
			var whole, alone []float64
			for b.Loop() {
				start := time.Now()
				// The actor is updated every other time.
				for range 2 {
					if err := l.update(1, &sum); err != nil {
						b.Fatal(err)
					}
				}
				whole = append(whole, time.Since(start).Seconds())
				start = time.Now()
				for _, k := range []int{0, 1, 0, 1, 2} {
					now = list[k]
					l.hands.Run(job)
				}
				alone = append(alone, time.Since(start).Seconds())
				if err := errors.Join(fail...); err != nil {
					b.Fatal(err)
				}
			}
			slices.Sort(whole)
			slices.Sort(alone)
			b.ReportMetric(1e6*whole[len(whole)/2], "update-µs")
			b.ReportMetric(1e6*alone[len(alone)/2], "products-µs")
			b.ReportMetric(whole[len(whole)/2]/alone[len(alone)/2], "ratio")
			b.ReportMetric(whole[len(whole)/10]/alone[len(alone)/10], "ratio-p10")
			b.ReportMetric(flops/alone[len(alone)/10]/1e9, "GFLOP/s")
		})
	}
}
