package publish

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/meta"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// corridorRouter publishes two experts of opposite minds and a router that chooses between them.
func corridorRouter(t *testing.T, e engine.Compiler) WholeOptions {
	t.Helper()
	c := document(t, "env: {kind: corridor, cells: 9}")
	f := open(t, c)
	var experts []string
	for i := range 2 {
		dir := t.TempDir()
		pol := policy(t, f)
		for _, spec := range pol.Network.Specs {
			if i == 0 || strings.HasPrefix(spec.Name, "body") {
				continue
			}
			for k, v := range pol.Params.View(spec.Name).Float32s() {
				pol.Params.View(spec.Name).Float32s()[k] = -v
			}
		}
		if _, err := publisher(t, c, f, e, dir).Publish(t.Context(), pol); err != nil {
			t.Fatal(err)
		}
		experts = append(experts, fmt.Sprintf("{path: %q}", filepath.Join(dir, BestFile)))
	}
	d := document(t, "env: {kind: meta, segment: 2, diversity: {usage_window: 3}, experts: ["+strings.Join(experts, ", ")+"], env: {kind: corridor, cells: 9}}")
	kinds := experiment.Kinds{
		Envs: []envs.Kind{corridor.Kind, meta.Kind([]envs.Kind{corridor.Kind}, Experts)}, Engine: func(context.Context) (engine.Compiler, error) { return e, nil },
	}
	environments, err := envs.Open(t.Context(), kinds.Envs, d.Env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := environments.Close(); err != nil {
			t.Error(err)
		}
	})
	environments.(interface {
		UseEngine(func(context.Context) (engine.Compiler, error))
	}).UseEngine(kinds.Engine)
	dir := t.TempDir()
	if _, err := publisher(t, d, environments, e, dir).Publish(t.Context(), policy(t, environments)); err != nil {
		t.Fatal(err)
	}
	inside, err := InsideOf(d, environments)
	if err != nil {
		t.Fatal(err)
	}
	return WholeOptions{Router: d, Environments: environments, Dir: dir, Config: inside, Factory: open(t, inside), Engine: e, Name: "corridor-whole", AllowTies: true}
}

// TestWholeIsProved publishes a router and its experts, whose environment is no market, and asks
// that a model that differs from what the environment does is not.
func TestWholeIsProved(t *testing.T) {
	ran := 0
	for _, e := range testengines.All(t) {
		o := corridorRouter(t, e)
		ref, err := Whole(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		s, err := artifact.Open(filepath.Join(o.Dir, WholeDir, StoreDir), artifact.Options{MustExist: true})
		if err != nil {
			t.Fatal(err)
		}
		v, err := s.Resolve(ref)
		if err != nil || len(v.Manifest.Parents) != 3 || v.Manifest.Name != "corridor-whole" {
			t.Errorf("%s: %v, %v", e.Name(), v.Manifest, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		for what, change := range sorted.All(map[string]func(w *composed, c *meta.Config){
			"the same":          func(*composed, *meta.Config) {},
			"longer segments":   func(_ *composed, c *meta.Config) { c.Segment++ },
			"experts in turn":   func(w *composed, _ *meta.Config) { slices.Reverse(w.experts) },
			"another usage":     func(_ *composed, c *meta.Config) { c.Diversity.UsageWindow = 1 },
			"an expert as both": func(w *composed, _ *meta.Config) { w.experts[1] = w.experts[0] },
		}) {
			ran++
			err := proofOf(t, o, change)
			if what == "the same" && err != nil || what != "the same" && (err == nil || !strings.Contains(err.Error(), "parity")) {
				t.Errorf("%s: %s: %v", e.Name(), what, err)
			}
		}
	}
	if want := 5 * len(testengines.All(t)); ran != want {
		t.Errorf("%d proofs, want %d", ran, want)
	}
}

// proofOf proves a model that was composed otherwise.
func proofOf(t *testing.T, o WholeOptions, change func(w *composed, c *meta.Config)) error {
	t.Helper()
	w := &composed{o: o}
	var err error
	if _, w.p, err = routerOf(o.Environments); err != nil {
		t.Fatal(err)
	}
	if err := w.read(); err != nil {
		t.Fatal(err)
	}
	e, err := openEnv(o.Environments)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	inside, err := openEnv(o.Factory)
	if err != nil {
		t.Fatal(err)
	}
	defer inside.Close()
	if w.a, err = newPreprocessing(o.Factory, inside); err != nil {
		t.Fatal(err)
	}
	in, _ := wrap.Find[*meta.Env](e)
	c := in.Config()
	change(w, &c)
	if err := w.compose(c); err != nil {
		t.Fatal(err)
	}
	p, err := newWholeProof(t.Context(), w, e, in)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	return p.run(t.Context(), 400)
}

// TestRoutersThatDoNotFit compares the errors of models and limits that do not fit together.
func TestRoutersThatDoNotFit(t *testing.T) {
	good := routerOf55(t, false)
	with := func(change func(r *bake.Router)) bake.Router {
		r := good
		r.Experts = slices.Clone(r.Experts)
		change(&r)
		return r
	}
	input := func(m *onnx.Model, name string, typ onnx.TensorType) *onnx.Model {
		m = m.ShallowClone()
		for i, v := range m.Graph.Input {
			if v.Name == name {
				m.Graph.Input[i] = onnx.NewValueInfo(onnx.Value(name), typ)
			}
		}
		return m
	}
	n := 0
	for _, x := range []struct {
		r    bake.Router
		want string
	}{
		{with(func(r *bake.Router) { r.Experts = r.Experts[:1] }), "1 experts"},
		{with(func(r *bake.Router) { r.Account = "" }), "limits on risk need an account"},
		{with(func(r *bake.Router) { r.Mixture = true }), `router: output "action"`},
		{with(func(r *bake.Router) { r.Experts[2] = r.Model }), `expert 2: output "action"`},
		{with(func(r *bake.Router) {
			r.Experts[3] = input(r.Experts[3], "cash", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(2)}})
		}), `expert 3: input "cash" is`},
		{with(func(r *bake.Router) {
			r.Experts[1] = r.Experts[1].ShallowClone()
			r.Experts[1].SetMeta(bake.MetaScales, "position")
		}), `expert 1: input "position" is scaled by some`},
		{with(func(r *bake.Router) { r.Mask = "other" }), `no input "other"`},
	} {
		n++
		if _, err := x.r.Compose(); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%v; want %q", err, x.want)
		}
	}
	if _, err := good.Compose(); err != nil || n != 7 {
		t.Errorf("%d cases, and what fits: %v", n, err)
	}
}
