package autodiff_test

import (
	"hash/fnv"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/autodiff/opcases"
	"github.com/onnxrl/onnxrl/runtime/internal/hostile"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestHostileGradients differentiates models with hostile numbers in attributes, constants and
// shapes of every operator: a gradient or an error comes of each, and no panic. It tries those without
// elements and a part of the others.
func TestHostileGradients(t *testing.T) {
	longtest.Slow(t)
	seen := map[string]bool{}
	hostileGradients(t, func(v hostile.Variant) bool { return chosen(v, seen) })
}

// TestEveryHostileGradient is TestHostileGradients with every variant.
func TestEveryHostileGradient(t *testing.T) {
	longtest.Nightly(t)
	hostileGradients(t, func(hostile.Variant) bool { return true })
}

// hostileGradients differentiates the variants that chosen chooses.
func hostileGradients(t *testing.T, chosen func(hostile.Variant) bool) {
	t.Helper()
	counts := map[string]int{}
	for _, c := range opcases.All() {
		p, err := c.Problem()
		if err != nil {
			t.Fatal(err)
		}
		b := hostile.Base{Name: c.String(), Model: p.Model}
		for _, v := range p.Model.Graph.Inputs() {
			b.Inputs = append(b.Inputs, p.Inputs[v.Name])
		}
		list := hostile.Variants(b)
		if o, ok := hostile.Open(b); ok {
			list = append(list, hostile.Variants(o)...)
		}
		for _, v := range list {
			if !chosen(v) {
				continue
			}
			m, in, err := v.Make()
			if err != nil {
				t.Fatalf("%s (%s): %v", v.Key(), v.Base, err)
			}
			counts[gradientOf(t, v, fixed(m, in), p.Outputs, p.Wrt)]++
		}
	}
	for _, v := range hostile.Equations() {
		if !chosen(v) {
			continue
		}
		m, in, err := v.Make()
		if err != nil {
			t.Fatal(err)
		}
		counts[gradientOf(t, v, fixed(m, in), []string{m.Graph.Output[0].Name}, []string{"x*"})]++
	}
	t.Log(counts)
	if counts["built"] < 500 || counts["refused"] < 500 {
		t.Errorf("%v were tried, expected at least 500 of each kind", counts)
	}
}

// chosen picks variants, those of empty shapes and paddings before the others.
func chosen(v hostile.Variant, seen map[string]bool) bool {
	key := v.Key() + "\t" + v.Form
	h := fnv.New32a()
	h.Write([]byte(key))
	part := uint32(128)
	if strings.HasPrefix(v.Site, "shape") && strings.HasSuffix(v.Value, " 0") {
		part = 4
	}
	if seen[key] || h.Sum32()%part != 0 {
		return false
	}
	seen[key] = true
	return true
}

// fixed declares of a model's inputs what comes in, unless it declares it already.
func fixed(m *onnx.Model, in []*tensor.Tensor) *onnx.Model {
	m = m.ShallowClone()
	inputs := m.Graph.Inputs()
	m.Graph.Input = slices.Clone(m.Graph.Input)
	for i, v := range m.Graph.Input {
		at := slices.IndexFunc(inputs, func(w *onnx.ValueInfo) bool { return w.Name == v.Name })
		if at >= 0 && in[at] != nil {
			m.Graph.Input[i] = onnx.NewValueInfo(onnx.Value(v.Name), onnx.TypeOf(in[at].DType(), in[at].Shape()...))
		}
	}
	return m
}

func gradientOf(t *testing.T, v hostile.Variant, m *onnx.Model, losses, wrt []string) (what string) {
	defer func() {
		if r := recover(); r != nil {
			what = "panic"
			stack := strings.Split(string(debug.Stack()), "\n")
			t.Errorf("%s (%s): panic: %v\n%s", v.Key(), v.Base, r, strings.Join(stack[min(9, len(stack)):min(15, len(stack))], "\n"))
		}
	}()
	o := autodiff.Objective{}
	for _, l := range losses {
		o.Losses = append(o.Losses, autodiff.Loss{Value: l})
	}
	for _, w := range wrt {
		if strings.Contains(w, "*") || slices.ContainsFunc(m.Graph.Inputs(), func(v *onnx.ValueInfo) bool { return v.Name == w }) || slices.ContainsFunc(m.Graph.Initializer, func(p *onnx.TensorProto) bool { return p.Name == w }) {
			o.Wrt = append(o.Wrt, w)
		}
	}
	began := time.Now()
	_, err := autodiff.Grad(m, autodiff.Options{Objectives: []autodiff.Objective{o}})
	if d := time.Since(began); d > time.Second {
		t.Logf("%s (%s): %v", v.Key(), v.Base, d)
	}
	if err != nil {
		return "refused"
	}
	return "built"
}
