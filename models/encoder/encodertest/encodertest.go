package encodertest

import (
	"fmt"
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Suite is an encoder and where it is tested.
type Suite struct {
	Encoder encoder.Encoder
	// Engines execute the graphs; all must agree.
	Engines []engine.Compiler
	// Shapes are those of one observation, without the batch.
	Shapes [][]int
	// Tol bounds relative differences between engines and between forms; 0 means 2e-5.
	Tol float64
	// Point selects the observation at which gradients are checked. An encoder with kinks, such as
	// a maximum, needs a point that is not next to one.
	Point uint64
}

// Report counts comparisons, by what was compared.
type Report struct {
	Features, Rows, Assets, Gradients, Initial, Moments, Masks, Causal, Shared int
}

// Run checks the encoder and fails t with everything that is wrong.
func Run(t *testing.T, s Suite) Report {
	t.Helper()
	if s.Tol == 0 {
		s.Tol = 2e-5
	}
	if len(s.Engines) == 0 || len(s.Shapes) == 0 {
		t.Fatal("encodertest: no engines or no shapes")
	}
	r := &runner{T: t, Suite: s}
	for _, shape := range s.Shapes {
		r.features(shape)
		r.gradients(shape)
		r.initial(shape)
		r.masks(shape)
		if len(shape) > 1 {
			r.causal(shape)
			r.shared(shape)
		}
	}
	n := r.Report
	if n.Features == 0 || n.Rows == 0 || n.Gradients == 0 || n.Initial == 0 {
		t.Errorf("encodertest: too little was checked: %+v", n)
	}
	t.Logf("encodertest: %+v", n)
	return n
}

type runner struct {
	*testing.T
	Suite
	Report
}

const seed = 5

// build returns the encoder as a network: observation -> features.
func (r *runner) build(shape []int, key rng.Key, o layer.Options) (*layer.Graph, *onnx.Model) {
	r.Helper()
	return r.network(shape, key, o, func(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
		return r.Encoder.Build(g.In("encoder"), x)
	})
}

func (r *runner) network(shape []int, key rng.Key, o layer.Options, f func(*layer.Graph, onnx.Value) (onnx.Value, error)) (*layer.Graph, *onnx.Model) {
	r.Helper()
	g := layer.New("encoder", key, o)
	z, err := f(g, g.Observation("observation", shape...))
	if err != nil {
		r.Fatalf("build for observations %v: %v", shape, err)
	}
	g.Output("features", z)
	m, err := g.Model()
	if err != nil {
		r.Fatalf("build for observations %v: %v", shape, err)
	}
	return g, m
}

// run executes a model with the observation and, for masks, ones.
func (r *runner) run(e engine.Compiler, m *onnx.Model, x *tensor.Tensor, more map[string]*tensor.Tensor) *tensor.Tensor {
	r.Helper()
	in := map[string]*tensor.Tensor{"observation": x}
	for k, v := range more {
		in[k] = v
	}
	out, err := gradcheck.Run(r.Context(), e, m, in)
	if err != nil {
		r.Fatalf("%s: %v", e.Name(), err)
	}
	return out["features"]
}

func observation(batch int, shape []int, stream uint64) *tensor.Tensor {
	x := tensor.New(tensor.Float32, append([]int{batch}, shape...)...)
	rng.New(stream).Stream().FillNormal32(x.Float32s(), 0, 1)
	return x
}

// same compares and counts.
func (r *runner) same(what string, got, want []float32, tol float64, count *int) {
	r.Helper()
	if len(got) != len(want) {
		r.Errorf("%s: %d values, want %d", what, len(got), len(want))
		return
	}
	scale := 0.0
	for _, v := range want {
		scale = max(scale, math.Abs(float64(v)))
	}
	for i := range got {
		*count++
		if d := math.Abs(float64(got[i]) - float64(want[i])); !(d <= tol*(scale+1e-3)) {
			r.Errorf("%s: element %d is %v, want %v (of values up to %v)", what, i, got[i], want[i], scale)
			return
		}
	}
}

func (r *runner) features(obs []int) {
	_, m := r.build(obs, rng.New(seed), layer.Options{})
	if err := onnx.Check(m); err != nil {
		r.Fatal(err)
	}
	env, err := shape.Infer(m, nil)
	if err != nil {
		r.Fatal(err)
	}
	typ := env.Type("features")
	rank := 2
	if len(obs) == 3 {
		rank = 3
	}
	if typ.DType != tensor.Float32 || len(typ.Dims) != rank || typ.Dims[0] != onnx.Symbol(layer.Batch) || !typ.Dims[rank-1].IsKnown() || rank == 3 && typ.Dims[1] != onnx.Known(obs[1]) {
		r.Fatalf("features of observations %v are %v", obs, typ)
	}
	const batch = 5
	x := observation(batch, obs, 1)
	var reference []float32
	for _, e := range r.Engines {
		z := r.run(e, m, x, nil)
		for _, v := range z.Float32s() {
			if v != v || v-v != 0 {
				r.Fatalf("%s: a feature is %v", e.Name(), v)
			}
		}
		if reference == nil {
			reference = z.Float32s()
		}
		r.same("features on "+e.Name(), z.Float32s(), reference, r.Tol, &r.Report.Features)
		per := z.Len() / batch
		// Rows in reverse order, and each row alone.
		back := tensor.New(tensor.Float32, x.Shape()...)
		for i := range batch {
			if err := back.Rows(i, i+1).CopyFrom(x.Rows(batch-1-i, batch-i)); err != nil {
				r.Fatal(err)
			}
		}
		reversed := r.run(e, m, back, nil)
		for i := range batch {
			want := z.Float32s()[i*per : (i+1)*per]
			r.same("row in another order on "+e.Name(), reversed.Float32s()[(batch-1-i)*per:(batch-i)*per], want, r.Tol, &r.Rows)
			r.same("row alone on "+e.Name(), r.run(e, m, x.Rows(i, i+1), nil).Float32s(), want, r.Tol, &r.Rows)
		}
		if len(obs) == 3 {
			r.assets(e, obs, x, z)
		}
	}
}

// assets compares each asset of a batch with the same asset alone, whose parameters have the same
// names and so the same values.
func (r *runner) assets(e engine.Compiler, obs []int, x, z *tensor.Tensor) {
	w, n, f := obs[0], obs[1], obs[2]
	_, single := r.build([]int{w, f}, rng.New(seed), layer.Options{})
	batch, d := x.Shape()[0], z.Shape()[2]
	for a := range n {
		one := tensor.New(tensor.Float32, batch, w, f)
		for i := range batch * w {
			copy(one.Float32s()[i*f:(i+1)*f], x.Float32s()[(i*n+a)*f:])
		}
		got := r.run(e, single, one, nil)
		want := make([]float32, 0, batch*d)
		for i := range batch {
			want = append(want, z.Float32s()[(i*n+a)*d:(i*n+a+1)*d]...)
		}
		r.same(fmt.Sprintf("asset %d alone on %s", a, e.Name()), got.Float32s(), want, r.Tol, &r.Report.Assets)
	}
}

func (r *runner) gradients(obs []int) {
	g, m := r.network(obs, rng.New(seed), layer.Options{}, func(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
		z, err := r.Encoder.Build(g.In("encoder"), x)
		if err != nil {
			return "", err
		}
		// The sum of normalised features is always 0, and its gradient nothing but rounding; a
		// weighted sum is not.
		weights := tensor.New(tensor.Float32, g.Extent(z, -1))
		rng.New(8).Stream().FillNormal32(weights.Float32s(), 0, 1)
		return g.Mul(z, g.Const(weights)), nil
	})
	bound, err := onnx.BindDims(m, map[string]int{layer.Batch: 2})
	if err != nil {
		r.Fatal(err)
	}
	p := gradcheck.Problem{Model: bound, Inputs: map[string]*tensor.Tensor{"observation": observation(2, obs, 100+r.Point)}, Wrt: []string{"observation"}}
	for _, s := range g.Params() {
		if s.Role == models.Trainable {
			p.Wrt = append(p.Wrt, s.Name)
		}
	}
	for _, e := range r.Engines {
		res, err := gradcheck.Check(r.Context(), e, p, gradcheck.Options{})
		if err != nil {
			r.Errorf("gradient for observations %v on %s: %v", obs, e.Name(), err)
		}
		r.Gradients += res.Comparisons
	}
}
