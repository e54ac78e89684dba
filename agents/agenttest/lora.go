package agenttest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// LoRA trains variants with adapters for so many rounds. At first they compute what their base
// does, bit by bit; afterwards the base is what it was, and the policy with its adapters merged is
// the policy. Agents that share a base have it once in memory and learn the same; adapters of
// another base are refused. Variants whose names do not begin with lora are left out.
func LoRA(t *testing.T, variants map[string]Variant, rounds int) {
	t.Helper()
	variants = maps.Clone(variants)
	maps.DeleteFunc(variants, func(what string, _ Variant) bool { return !strings.HasPrefix(what, "lora") })
	variants = longtest.Few(t, variants, 1)
	n, adapters := 0, 0
	for _, e := range testengines.All(t) {
		for what, x := range variants {
			what = e.Name() + ", " + what
			r, _ := x.training(t, e)
			adapters += begins(t, what, r, e)
			_, params := r.Agent.Learner().Policy()
			base := params.Segment(models.Base)
			sum, before := base.Sum(), slices.Clone(params.Segment(models.Trainable).Floats())
			r.Run(t, rounds)
			if base.Sum() != sum {
				t.Errorf("%s: training changed the base", what)
			}
			if slices.Equal(before, params.Segment(models.Trainable).Floats()) {
				t.Errorf("%s: %d rounds changed nothing", what, rounds)
			}
			merges(t, what, r, e, 1e-5)
			x.shares(t, what, e, r, rounds)
			x.refuses(t, what, e, r)
			n++
		}
	}
	if n < len(variants) || len(variants) == 0 || adapters < n {
		t.Errorf("%d agents with %d adapters", n, adapters)
	}
}

// begins looks at an agent that has not learnt, and returns the number of its policy's adapters.
func begins(t testing.TB, what string, r *Training, e engine.Compiler) int {
	t.Helper()
	net, params := r.Agent.Learner().Policy()
	list, err := lora.Adapters(net.Model)
	if err != nil || len(list) == 0 {
		t.Fatalf("%s: adapters %v: %v", what, list, err)
	}
	for _, ad := range list {
		w, a, b := params.View(ad.Weight), params.View(ad.A), params.View(ad.B)
		in, out := w.Len()/w.Shape()[0], w.Shape()[0]
		if got := a.Len() + b.Len(); got != ad.Rank*(in+out) {
			t.Errorf("%s: the adapter of %s %v has %d parameters, expected %d·(%d + %d)", what, ad.Weight, w.Shape(), got, ad.Rank, in, out)
		}
		if slices.ContainsFunc(b.Float32s(), func(x float32) bool { return x != 0 }) {
			t.Errorf("%s: %s does not begin at 0", what, ad.B)
		}
	}
	for _, s := range params.Segments() {
		for _, p := range s.Specs() {
			if s.Role == models.Trainable && strings.Contains(p.Name, "encoder") && !layer.IsAdapter(p.Name) {
				t.Errorf("%s: %s is trained", what, p.Name)
			}
			if s.Role != models.Base && s.Role != models.Trainable && strings.Contains(p.Name, "encoder") && !layer.IsAdapter(p.Name) {
				t.Errorf("%s: %s is a copy of the base", what, p.Name)
			}
		}
	}
	merges(t, what, r, e, 0)
	return len(list)
}

// merges compares the policy with the same without adapters, into whose weights they are merged.
func merges(t testing.TB, what string, r *Training, e engine.Compiler, tolerance float64) {
	t.Helper()
	net, params := r.Agent.Learner().Policy()
	apart, err := net.Bake(params.View)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := lora.Merge(apart)
	if err != nil {
		t.Fatal(err)
	}
	if err := onnx.Check(merged); err != nil {
		t.Fatal(err)
	}
	for _, p := range merged.Graph.Initializer {
		if layer.IsAdapter(p.Name) {
			t.Errorf("%s: the merged model has %s", what, p.Name)
		}
	}
	in := r.shown(t, merged)
	want, err := gradcheck.Run(t.Context(), e, apart, in)
	if err != nil {
		t.Fatal(err)
	}
	got, err := gradcheck.Run(t.Context(), e, merged, in)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for name, y := range want {
		a, b := floats64(t, y), floats64(t, got[name])
		for i := range a {
			if n++; math.Abs(a[i]-b[i]) > tolerance*(1+math.Abs(a[i])) {
				t.Errorf("%s: element %d of %s is %g, and %g merged", what, i, name, a[i], b[i])
				break
			}
		}
	}
	if n == 0 {
		t.Errorf("%s: nothing to compare", what)
	}
}

// shown is what the environments show of the inputs of a model.
func (r *Training) shown(t testing.TB, m *onnx.Model) map[string]*tensor.Tensor {
	t.Helper()
	b, in := r.Env.Batch(), map[string]*tensor.Tensor{}
	if r.Env.Spec().Masked {
		in[agents.MaskInput] = b.Mask
	}
	for i, f := range r.Env.Spec().Observation {
		if !slices.ContainsFunc(m.Graph.Input, func(v *onnx.ValueInfo) bool { return v.Name == f.Name }) {
			// Only a critic reads it.
			continue
		}
		x := tensor.New(f.Space.DType(), append([]int{r.Env.Len()}, f.Space.Shape()...)...)
		if err := b.Gather(i, x); err != nil {
			t.Fatal(err)
		}
		in[f.Name] = x
	}
	return in
}

// shares trains two agents over one base: they have it once, and learn what one alone does.
func (x Variant) shares(t testing.TB, what string, e engine.Compiler, alone *Training, rounds int) {
	t.Helper()
	bases, prefixes := &models.Bases{}, Prefixes(t)
	Closing(t, bases)
	var held *models.Segment
	for i := range 2 {
		v := Toys(t, 2, x.Spec)
		r := NewTraining(t, Agent(t, x.Maker, v, e, 2, func(s *agents.Setup) { s.TotalEnvSteps, s.Bases, s.Prefixes = 300, bases, prefixes }), v)
		_, params := r.Agent.Learner().Policy()
		base := params.Segment(models.Base)
		if held != nil && base != held {
			t.Errorf("%s: agent %d has a base of its own", what, i)
		}
		held = base
		r.Run(t, rounds)
		_, want := alone.Agent.Learner().Policy()
		if !slices.Equal(params.Segment(models.Trainable).Floats(), want.Segment(models.Trainable).Floats()) {
			t.Errorf("%s: agent %d of a shared base has learnt something else than one alone", what, i)
		}
		path := Save(t, r.Agent)
		if err := Load(t, path, r.Agent); err != nil {
			t.Errorf("%s: a shared base: %v", what, err)
		}
	}
}

// refuses loads adapters of another base: that of another seed, and one that is shared.
func (x Variant) refuses(t testing.TB, what string, e engine.Compiler, r *Training) {
	t.Helper()
	path, bases := Save(t, r.Agent), &models.Bases{}
	Closing(t, bases)
	double := func(values map[string]*tensor.Tensor) error {
		for name, v := range values {
			if strings.HasPrefix(name, "encoder.") {
				for i := range v.Float32s() {
					v.Float32s()[i] *= 2
				}
			}
		}
		return nil
	}
	for i, change := range []func(*agents.Setup){
		func(s *agents.Setup) { s.Key = rng.New(77) },
		func(s *agents.Setup) { s.Bases, s.Init = bases, double },
	} {
		other := Agent(t, x.Maker, Toys(t, 2, x.Spec), e, 2, change)
		if err := Load(t, path, other); err == nil || !strings.Contains(fmt.Sprint(err), "another base") {
			t.Errorf("%s: base %d: %v", what, i, err)
		}
	}
}
