package program

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/pool"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestSharedPoolAndPartOfTheGradient runs two programs on one pool, each differentiated by some
// parameters only, with gradients in one segment. Neither touches what is the other's.
func TestSharedPoolAndPartOfTheGradient(t *testing.T) {
	compared := 0
	engines(t, func(t *testing.T, c engine.Compiler) {
		whole, params, err := newMLP(t, c, false, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer whole.Close()
		fillBatch(whole)
		if err := whole.Run(); err != nil {
			t.Fatal(err)
		}
		net, _, err := models.FromModel(mlp(t, false), models.Options{})
		if err != nil {
			t.Fatal(err)
		}
		grads, err := params.Segment(models.Trainable).Like()
		if err != nil {
			t.Fatal(err)
		}
		defer grads.Close()
		workers := pool.New(4, pool.Spin)
		defer workers.Close()
		var parts []*Program
		inputs := map[string]*tensor.Tensor{}
		for _, wrt := range [][]string{{"fc1.weight", "fc2.bias"}, {"fc1.bias", "fc2.weight"}} {
			p, err := New(net, params, Config{
				Engine: c, Batch: 12, BatchSymbol: "batch", Shards: 3, Pool: workers, Gradients: []*models.Segment{grads}, Inputs: inputs,
				Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: "loss"}}, Wrt: wrt}},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			if len(parts) == 0 {
				// The second program reads the batch of the first.
				inputs["x"], inputs["y"], inputs["w"] = p.Input("x"), p.Input("y"), p.Input("w")
			}
			parts = append(parts, p)
		}
		fillBatch(parts[0])
		for range 3 {
			for _, p := range parts {
				if err := p.Run(); err != nil {
					t.Fatal(err)
				}
				compared++
			}
			if at, ok := differs(whole.Gradients(0).Floats(), grads.Floats()); ok {
				t.Fatalf("element %d of %q differs", at, paramAt(grads, at))
			}
		}
		before := slices.Clone(grads.Floats())
		if n := testing.AllocsPerRun(20, func() {
			if err := parts[0].Run(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
		if !slices.Equal(before, grads.Floats()) {
			t.Error("a repeated run gives other bits")
		}
		if _, err := New(net, params, Config{Engine: c, Batch: 12, BatchSymbol: "batch", Shards: 6, Pool: workers}); err == nil || !strings.Contains(err.Error(), "pool of 4 workers for 6 shards") {
			t.Errorf("a pool that is too small: %v", err)
		}
		if _, err := New(net, params, Config{Engine: c, Batch: 4, BatchSymbol: "batch", Inputs: inputs}); err == nil || !strings.Contains(err.Error(), "the buffer given is") {
			t.Errorf("a buffer that does not fit: %v", err)
		}
	})
	if compared < 6 {
		t.Errorf("%d runs", compared)
	}
}
