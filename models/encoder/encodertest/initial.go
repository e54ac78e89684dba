package encodertest

import (
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// initial checks where initial values come from and how they are distributed.
func (r *runner) initial(obs []int) {
	values := func(seed uint64, before bool) (*layer.Graph, map[string]*tensor.Tensor) {
		g, _ := r.network(obs, rng.New(seed), layer.Options{}, func(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
			if before {
				g.In("other").Param("weight", layer.Normal(1), 3, 3)
			}
			return r.Encoder.Build(g.In("encoder"), x)
		})
		net, v, err := g.Network(models.Options{})
		if err != nil {
			r.Fatal(err)
		}
		if len(net.Specs) != len(v) {
			r.Fatalf("%d parameters, %d values", len(net.Specs), len(v))
		}
		return g, v
	}
	g, first := values(seed, false)
	_, again := values(seed, true)
	_, other := values(seed+1, false)
	for name, v := range first {
		r.Initial++
		if !slices.Equal(v.Bytes(), again[name].Bytes()) {
			r.Errorf("parameter %q depends on what else the network has", name)
		}
		init, ok := g.InitOf(name)
		if !ok {
			// The value came with a file: it must not depend on the seed.
			if !slices.Equal(v.Bytes(), other[name].Bytes()) {
				r.Errorf("parameter %q comes from a file and depends on the seed", name)
			}
			continue
		}
		if same := slices.Equal(v.Bytes(), other[name].Bytes()); same != init.Fixed() {
			r.Errorf("parameter %q, %v: other seeds give the same value: %v", name, init, same)
		}
		r.moments(name, init, v)
	}
}

// moments compares the elements of a parameter with the moments of its initialisation, within five
// standard errors, which a right one exceeds less than once in a million parameters.
func (r *runner) moments(name string, init layer.Init, v *tensor.Tensor) {
	mean, std := init.Moments(v.Shape())
	x := v.Float32s()
	n := float64(len(x))
	gotMean, squares := 0.0, 0.0
	for _, e := range x {
		gotMean += float64(e) / n
	}
	for _, e := range x {
		squares += (float64(e) - mean) * (float64(e) - mean) / n
	}
	r.Moments += 2
	if d := math.Abs(gotMean - mean); d > 5*std/math.Sqrt(n)+1e-6*(1+math.Abs(mean)) {
		r.Errorf("parameter %q, %v: its mean is %v, expected %v", name, init, gotMean, mean)
	}
	if got := math.Sqrt(squares); math.Abs(got-std) > std*5/math.Sqrt(2*n)+1e-6 {
		r.Errorf("parameter %q, %v: its deviation is %v, expected %v", name, init, got, std)
	}
}

// masks checks that dropout is there when training, and only then.
func (r *runner) masks(obs []int) {
	g, m := r.build(obs, rng.New(seed), layer.Options{Training: true})
	masks := g.Masks()
	if len(masks) == 0 {
		return
	}
	_, plain := r.build(obs, rng.New(seed), layer.Options{})
	if n := len(plain.Graph.Inputs()); n != 1 {
		r.Errorf("%d inputs without training", n)
	}
	const batch = 3
	x := observation(batch, obs, 3)
	in := func(value func(i int) float32) map[string]*tensor.Tensor {
		out := map[string]*tensor.Tensor{}
		for _, v := range m.Graph.Input {
			t, _ := v.TensorType()
			if v.Name == "observation" {
				continue
			}
			if t.Dims[0] != onnx.Symbol(layer.Batch) {
				r.Fatalf("the rows of mask %q, %v, are not those of the batch", v.Name, t)
			}
			shape := []int{batch}
			for _, d := range t.Dims[1:] {
				shape = append(shape, d.Value)
			}
			mask := tensor.New(tensor.Float32, shape...)
			for i := range mask.Float32s() {
				mask.Float32s()[i] = value(i)
			}
			out[v.Name] = mask
		}
		return out
	}
	for _, e := range r.Engines {
		want := r.run(e, plain, x, nil).Float32s()
		r.same("masks of ones on "+e.Name(), r.run(e, m, x, in(func(int) float32 { return 1 })).Float32s(), want, r.Tol, &r.Masks)
		some := r.run(e, m, x, in(func(i int) float32 { return float32(i % 2 * 2) })).Float32s()
		if slices.Equal(some, want) {
			r.Errorf("masks change nothing on %s", e.Name())
		}
	}
	for _, k := range masks {
		if k.Ratio <= 0 || k.Ratio >= 1 {
			r.Errorf("mask %q has the ratio %v", k.Input, k.Ratio)
		}
	}
}
