package encodertest

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// causal changes the later steps of a window and looks for a trace of it in the features of earlier
// ones.
func (r *runner) causal(obs []int) {
	s, ok := r.Encoder.(encoder.Sequencer)
	if !ok {
		return
	}
	_, m := r.network(obs, rng.New(seed), layer.Options{}, func(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
		return s.BuildSequence(g.In("encoder"), x)
	})
	w := obs[0]
	per := 1
	for _, d := range obs[1:] {
		per *= d
	}
	x := observation(1, obs, 4)
	for _, e := range r.Engines {
		want := r.run(e, m, x, nil)
		steps := want.Shape()[1]
		if steps > w {
			r.Fatalf("%d steps of features for a window of %d", steps, w)
		}
		d := want.Len() / steps
		if !s.Causal() {
			// The claim is not made; what is not causal must show that it is not.
			moved := x.Clone()
			moved.Float32s()[w*per-1] += 1
			got := r.run(e, m, moved, nil)
			r.Report.Causal++
			if slices.Equal(got.Float32s()[:(steps-1)*d], want.Float32s()[:(steps-1)*d]) {
				r.Errorf("it says it is not causal, but earlier features do not depend on the last step on %s", e.Name())
			}
			continue
		}
		for t := range w {
			moved := x.Clone()
			for i := (t + 1) * per; i < len(moved.Float32s()); i++ {
				moved.Float32s()[i] = -3*moved.Float32s()[i] + 1
			}
			got := r.run(e, m, moved, nil)
			// The last features belong to the last step.
			n := max(steps-(w-1-t), 0) * d
			r.Report.Causal += n
			if !slices.Equal(got.Float32s()[:n], want.Float32s()[:n]) {
				r.Errorf("features up to step %d depend on later steps on %s", t, e.Name())
			}
			if t < w-1 && slices.Equal(got.Float32s(), want.Float32s()) {
				r.Errorf("no feature depends on the steps after %d on %s", t, e.Name())
			}
		}
	}
}

// shared compares the features and the gradients of windows that share their rows with those of the
// same windows alone.
func (r *runner) shared(obs []int) {
	s, ok := r.Encoder.(encoder.Sharer)
	if !ok {
		return
	}
	const extra = 4
	w := obs[0]
	rows := append([]int{w + extra}, obs[1:]...)
	g := layer.New("shared", rng.New(seed), layer.Options{})
	z, err := s.BuildShared(g.In("encoder"), g.Observation("observation", rows...), w)
	if why := s.Shares(w); why != nil {
		r.Report.Shared++
		if err == nil {
			r.Errorf("BuildShared succeeds although Shares says: %v", why)
		}
		return
	}
	if err != nil {
		r.Fatal(err)
	}
	g.Output("features", z)
	shared, err := g.Model()
	if err != nil {
		r.Fatal(err)
	}
	alone, each := r.build(obs, rng.New(seed), layer.Options{})
	if a, b := fmt.Sprint(alone.Params()), fmt.Sprint(g.Params()); a != b {
		r.Errorf("parameters per window %s, shared %s", a, b)
	}
	const batch = 2
	table := observation(batch, rows, 6)
	per := table.Len() / batch / (w + extra)
	// All windows, batch by batch.
	windows := tensor.New(tensor.Float32, append([]int{batch * (extra + 1)}, obs...)...)
	for b := range batch {
		for i := range extra + 1 {
			copy(windows.Float32s()[(b*(extra+1)+i)*w*per:][:w*per], table.Float32s()[(b*(w+extra)+i)*per:])
		}
	}
	var names []string
	for _, p := range g.Params() {
		names = append(names, p.Name)
	}
	for _, e := range r.Engines {
		// A cotangent of random numbers makes the comparison of gradients one of the whole
		// Jacobian's product with it.
		gs := r.differentiated(e, shared, batch, names, table, nil)
		ge := r.differentiated(e, each, batch*(extra+1), names, windows, nil)
		for _, name := range append([]string{"features"}, names...) {
			r.same(name+" of shared windows on "+e.Name(), gs[name].Float32s(), ge[name].Float32s(), r.Tol, &r.Report.Shared)
		}
	}
}

// differentiated returns the features and the gradients, by parameter, of their product with a
// cotangent; absent is fixed random numbers.
func (r *runner) differentiated(e engine.Compiler, m *onnx.Model, batch int, names []string, x, cotangent *tensor.Tensor) map[string]*tensor.Tensor {
	r.Helper()
	grad, err := autodiff.Grad(m, autodiff.Options{
		Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: "features", Cotangent: "cotangent"}}, Wrt: names}},
		Bind:       map[string]int{layer.Batch: batch},
	})
	if err != nil {
		r.Fatal(err)
	}
	if cotangent == nil {
		shape, ok := grad.Env.Type("features").Static()
		if !ok {
			r.Fatalf("features are %v", grad.Env.Type("features"))
		}
		cotangent = tensor.New(tensor.Float32, shape...)
		rng.New(7).Stream().FillNormal32(cotangent.Float32s(), 0, 1)
	}
	out, err := gradcheck.Run(r.Context(), e, grad.Model, map[string]*tensor.Tensor{"observation": x, "cotangent": cotangent})
	if err != nil {
		r.Fatal(err)
	}
	result := map[string]*tensor.Tensor{"features": out["features"]}
	for _, o := range grad.Outputs[0] {
		result[o.Wrt] = out[o.Name]
	}
	return result
}
