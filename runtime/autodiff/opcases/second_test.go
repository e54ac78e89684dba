package opcases_test

import (
	"context"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/autodiff/opcases"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestSecondOrder differentiates the gradients of all cases again and compares with differences of
// the gradients.
func TestSecondOrder(t *testing.T) {
	longtest.Slow(t)
	c := portable.New()
	defer c.Close()
	var mu sync.Mutex
	var wg sync.WaitGroup
	limit := make(chan struct{}, 2)
	ran, comparisons := 0, 0
	for _, k := range opcases.All() {
		// Stated gradients lie at kinks, and a gradient that is zero by definition has no
		// derivative to compare.
		if k.Want != nil || k.Check.Zero || *onlyOp != "" && k.Op != *onlyOp {
			continue
		}
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			n, err := second(t.Context(), c, k)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Errorf("%v: %v", k, err)
			}
			ran++
			comparisons += n
		})
	}
	wg.Wait()
	t.Logf("%d cases, %d comparisons", ran, comparisons)
	if *onlyOp == "" && (ran < 800 || comparisons < 68_000) {
		t.Errorf("only %d cases and %d comparisons", ran, comparisons)
	}
}

func second(ctx context.Context, c engine.Compiler, k opcases.Case) (int, error) {
	p, err := k.Problem()
	if err != nil {
		return 0, err
	}
	obj := autodiff.Objective{Wrt: p.Wrt}
	for _, out := range p.Outputs {
		obj.Losses = append(obj.Losses, autodiff.Loss{Value: out, Cotangent: "cot/" + out})
	}
	g, err := autodiff.Grad(p.Model, autodiff.Options{Objectives: []autodiff.Objective{obj}, DropOutputs: true})
	if err != nil {
		return 0, err
	}
	// Where shapes depend on the data, a run tells them.
	values, err := gradcheck.Run(ctx, c, p.Model, p.Inputs)
	if err != nil {
		return 0, err
	}
	p.Model, p.Name = g.Model, "second"
	for _, l := range obj.Losses {
		shape, ok := g.Env.Type(onnx.Value(l.Cotangent)).Static()
		if !ok {
			shape = values[l.Value].Shape()
		}
		cot := tensor.New(tensor.Float32, shape...)
		for i := range cot.Float32s() {
			cot.Float32s()[i] = float32(i%5)/4 - 0.375
		}
		p.Inputs[l.Cotangent] = cot
	}
	p.Outputs = nil
	for _, o := range g.Outputs[0] {
		p.Outputs = append(p.Outputs, o.Name)
	}
	o := k.Check
	o.Seed, o.Full = 5, -1
	r, err := gradcheck.Check(ctx, c, p, o)
	return r.Comparisons, err
}
