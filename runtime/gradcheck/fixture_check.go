package gradcheck

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// FixtureTolerance is the largest relative error that passes.
const FixtureTolerance = 1e-4

// FixtureResult is what checking one fixture gave.
type FixtureResult struct {
	Dir string
	// Tensors lists what was compared: outputs, then gradients of parameters and inputs, each in
	// order of the files.
	Tensors []Compared
	// MaxError is the largest relative error, infinite where values are missing, of another shape,
	// or not numbers.
	MaxError float64
	// Err says why the fixture could not be checked at all; then Tensors is empty.
	Err error
}

// Compared is one tensor's comparison.
type Compared struct {
	// Point is the folder of the expected tensor, Kind "output", "param" or "input", and Name the
	// value the tensor, or its gradient, belongs to.
	Point, Kind, Name string
	Error             float64
	// Rounding is the relative error as it stands where it exceeds [FixtureTolerance] through nothing but
	// rounding noise; Error does not count that noise. 0 elsewhere.
	Rounding float64
	// Problem says what is wrong where the error is infinite.
	Problem string
}

// OK reports whether everything was compared and is within [FixtureTolerance].
func (r FixtureResult) OK() bool {
	return r.Err == nil && len(r.Tensors) > 0 && r.MaxError <= FixtureTolerance
}

// CheckFixture reads a fixture, runs forward and gradients on an engine and compares.
func CheckFixture(ctx context.Context, c engine.Compiler, dir string) FixtureResult {
	r := FixtureResult{Dir: dir}
	f, err := ReadFixture(dir)
	if err != nil {
		r.Err = err
		return r
	}
	if r.Tensors, err = f.check(ctx, c); err != nil {
		r.Err = fmt.Errorf("check fixture %s: %w", dir, err)
		return r
	}
	for _, t := range r.Tensors {
		r.MaxError = max(r.MaxError, t.Error)
	}
	return r
}

func fixtureCotangent(out string) string { return "cotangent/" + out }

func (f *Fixture) check(ctx context.Context, c engine.Compiler) ([]Compared, error) {
	m, err := f.bound()
	if err != nil {
		return nil, err
	}
	first := f.Points[0]
	obj := autodiff.Objective{}
	for _, v := range m.Graph.Output {
		if first.Cotangents[v.Name] != nil {
			obj.Losses = append(obj.Losses, autodiff.Loss{Value: v.Name, Cotangent: fixtureCotangent(v.Name)})
		}
	}
	var in []map[string]*tensor.Tensor
	for _, p := range f.Points {
		feeds := maps.Clone(p.Inputs)
		for name, t := range p.Cotangents {
			feeds[fixtureCotangent(name)] = t
		}
		in = append(in, feeds)
	}
	floats := map[string]bool{}
	for _, v := range m.Graph.Input {
		if t, ok := v.TensorType(); ok && t.DType.IsFloat() {
			floats[v.Name] = true
		}
	}
	for _, t := range m.Graph.Initializer {
		if tensor.DType(t.DataType).IsFloat() {
			floats[t.Name] = true
		}
	}
	for _, name := range slices.Concat(first.ParamNames, first.InputNames) {
		// Tensors that the model lacks are reported below, one by one.
		if floats[name] {
			obj.Wrt = append(obj.Wrt, name)
		}
	}
	model, names := m, map[string]string{}
	if len(obj.Wrt) > 0 {
		g, err := autodiff.Grad(m, autodiff.Options{Objectives: []autodiff.Objective{obj}})
		if err != nil {
			return nil, err
		}
		model = g.Model
		for _, o := range g.Outputs[0] {
			names[o.Wrt] = o.Name
		}
	}
	got, err := RunAll(ctx, c, model, in)
	if err != nil {
		return nil, err
	}
	var all []Compared
	for i, p := range f.Points {
		all = append(all, p.compare(m, got[i], names)...)
	}
	return all, nil
}

// compare compares all that a point expects with what a run gave; names holds the gradients'
// outputs.
func (p *Point) compare(m *onnx.Model, got map[string]*tensor.Tensor, names map[string]string) []Compared {
	floor := p.floor()
	var all []Compared
	for _, v := range m.Graph.Output {
		if want := p.Outputs[v.Name]; want != nil {
			all = append(all, compare("output", v.Name, got[v.Name], want, 0))
		}
	}
	for _, name := range p.ParamNames {
		all = append(all, compare("param", name, got[names[name]], p.Params[name], floor))
	}
	for _, name := range p.InputNames {
		all = append(all, compare("input", name, got[names[name]], p.InputGrads[name], floor))
	}
	for i := range all {
		all[i].Point = p.Name
	}
	return all
}

// bound gives the extents of the fixture's inputs to the model's inputs.
func (f *Fixture) bound() (*onnx.Model, error) {
	m := f.Model.ShallowClone()
	for i, v := range m.Graph.Input {
		t := f.Points[0].Inputs[v.Name]
		if t == nil {
			continue
		}
		if d, ok := v.TensorType(); ok && d.DType != t.DType() {
			return nil, fmt.Errorf("input %q is %v, its file holds %v", v.Name, d, t)
		}
		m.Graph.Input[i] = onnx.NewValueInfo(onnx.Value(v.Name), onnx.TypeOf(t.DType(), t.Shape()...))
	}
	// Declared types carry the symbols that the inputs no longer have.
	m.Graph.ValueInfo = nil
	for i, v := range m.Graph.Output {
		if t, ok := v.TensorType(); ok {
			m.Graph.Output[i] = onnx.NewValueInfo(onnx.Value(v.Name), onnx.TensorType{DType: t.DType})
		}
	}
	return m, nil
}

// floor is the absolute difference of gradients that rounding explains: four units in the last
// place of the largest gradient of the point. Gradients that are zero in theory, such as that of
// the bias of attention keys, are rounding noise of that kind on both sides, and no two ways of
// summing agree on noise.
func (p *Point) floor() float64 {
	most := 0.0
	for _, list := range []map[string]*tensor.Tensor{p.Params, p.InputGrads} {
		for _, t := range list {
			v, _ := numbers(t)
			for _, x := range v {
				if a := math.Abs(x); !math.IsInf(a, 0) {
					most = max(most, a)
				}
			}
		}
	}
	return most * 0x1p-21
}

func compare(kind, name string, got, want *tensor.Tensor, floor float64) Compared {
	c := Compared{Kind: kind, Name: name, Error: math.Inf(1)}
	switch {
	case got == nil:
		c.Problem = "the model has no such floating-point value"
	case got.DType() != want.DType() || !slices.Equal(got.Shape(), want.Shape()):
		c.Problem = fmt.Sprintf("got %v, expected %v", got, want)
	default:
		c.Error, c.Problem = relative(got, want, 0)
		if c.Error > FixtureTolerance && c.Problem == "" {
			if e, _ := relative(got, want, floor); e <= FixtureTolerance {
				c.Error, c.Rounding = e, c.Error
			}
		}
	}
	return c
}

// relative returns max|Δ| / (1e-6 + max|want|), differences up to floor not counted.
func relative(got, want *tensor.Tensor, floor float64) (float64, string) {
	g, ok := numbers(got)
	w, _ := numbers(want)
	if !ok {
		return math.Inf(1), fmt.Sprintf("elements of %v are not compared", want.DType())
	}
	worst, most := 0.0, 0.0
	for i := range w {
		d := math.Abs(g[i] - w[i])
		if g[i] == w[i] || d <= floor {
			d = 0
		}
		if math.IsNaN(d) {
			return math.Inf(1), fmt.Sprintf("element %d is %v, expected %v", i, g[i], w[i])
		}
		worst = max(worst, d)
		if !math.IsInf(w[i], 0) {
			most = max(most, math.Abs(w[i]))
		}
	}
	return worst / (1e-6 + most), ""
}

func numbers(t *tensor.Tensor) ([]float64, bool) {
	v := make([]float64, t.Len())
	switch t.DType() {
	case tensor.Float32:
		for i, x := range t.Float32s() {
			v[i] = float64(x)
		}
	case tensor.Float64:
		copy(v, t.Float64s())
	case tensor.Int64:
		for i, x := range t.Int64s() {
			v[i] = float64(x)
		}
	case tensor.Int32:
		for i, x := range t.Int32s() {
			v[i] = float64(x)
		}
	case tensor.Bool:
		for i, x := range t.Bools() {
			if x {
				v[i] = 1
			}
		}
	default:
		return nil, false
	}
	return v, true
}
