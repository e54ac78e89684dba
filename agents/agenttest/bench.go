package agenttest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// pendulum trains for some rounds on Pendulum.
func pendulum(b *testing.B, m agents.Maker, threads, rounds int) *Training {
	v := Vector(b, 1, func() (*classic.Env, error) { return classic.NewPendulum(classic.PendulumDefaults()) })
	r := NewTraining(b, Agent(b, m, v, testengines.Fastest(b), threads), v)
	r.Run(b, rounds)
	return r
}

// BenchmarkPendulum measures complete training on Pendulum, on one core and on two, after some
// rounds.
func BenchmarkPendulum(b *testing.B, m agents.Maker, rounds int) {
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			r := pendulum(b, m, threads, rounds)
			b.ReportAllocs()
			for b.Loop() {
				r.Run(b, 1)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "env-steps/s")
		})
	}
}

// products are the matrix products of a program and nothing else: the same shapes, in as many
// shards, on the same engine.
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
		Closing(t, s)
		Closing(t, binding)
		p.bindings = append(p.bindings, binding)
	}
	return p
}

// BenchmarkUpdatesAgainstProducts compares whole updates (sampling, noise, targets, gradients,
// optimisers, target networks) with the matrix products that they consist of, on the same cores, in
// turns. The metric "ratio" is that of the medians. One measurement is of so many updates, in which
// the actor has one. of returns the learner of an agent and what updates it.
func BenchmarkUpdatesAgainstProducts(b *testing.B, m agents.Maker, rounds, updates int, of func(agents.Agent) (*offpolicy.Learner, func() error)) {
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			l, update := of(pendulum(b, m, threads, rounds).Agent)
			e, batch := testengines.Fastest(b), len(l.Batch.Reward)
			part := func(m *onnx.Model) *products { return productsOf(b, e, m, batch/threads, threads) }
			targets, critic, actor := part(l.Networks.Targets.Model), part(l.Critic.Graph().Model), part(l.Actor.Graph().Model)
			list := append(slices.Repeat([]*products{targets, critic}, updates), actor)
			fail := make([]error, threads)
			var now *products
			job := func(k int) { fail[k] = now.bindings[k].Run() }
			var whole, alone []float64
			for b.Loop() {
				start := time.Now()
				for range updates {
					if err := update(); err != nil {
						b.Fatal(err)
					}
				}
				whole = append(whole, time.Since(start).Seconds())
				start = time.Now()
				for _, now = range list {
					l.Workers.Run(job)
				}
				alone = append(alone, time.Since(start).Seconds())
				if err := errors.Join(fail...); err != nil {
					b.Fatal(err)
				}
			}
			flops := 0.0
			for _, p := range list {
				flops += p.flops
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
