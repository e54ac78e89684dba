package transfer

import (
	"errors"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/models/safetensors"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// weights are those of an encoder with one convolution and one layer; every value is v.
func weights(v float32) map[string]*tensor.Tensor {
	list := map[string]*tensor.Tensor{}
	for name, shape := range sorted.All(map[string][]int{"conv1.weight": {4, 3}, "conv1.bias": {4}, "fc.weight": {4, 2}}) {
		t := tensor.New(tensor.Float32, shape...)
		for i := range t.Float32s() {
			t.Float32s()[i] = v + float32(i)
		}
		list[name] = t
	}
	return list
}

// below puts a prefix before every name.
func below(prefix string, values map[string]*tensor.Tensor) map[string]*tensor.Tensor {
	list := map[string]*tensor.Tensor{}
	for name, t := range sorted.All(values) {
		list[prefix+name] = t
	}
	return list
}

func join(lists ...map[string]*tensor.Tensor) map[string]*tensor.Tensor {
	all := map[string]*tensor.Tensor{}
	for _, l := range lists {
		for name, t := range sorted.All(l) {
			all[name] = t
		}
	}
	return all
}

// graph is an encoder with these weights: y = (x·conv1ᵀ + bias)·fc, with a constant that is no
// weight.
func graph(t *testing.T, w map[string]*tensor.Tensor) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("encoder", 18)
	x := b.Input("x", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("N"), onnx.Known(3)}})
	h := b.Op("Gemm", []onnx.Value{x, b.Initializer("conv1.weight", w["conv1.weight"]), b.Initializer("conv1.bias", w["conv1.bias"])}, onnx.AttrInt("transB", 1))
	h = b.Op("Add", []onnx.Value{h, b.Initializer("const/half", tensor.Scalar(float32(0.5)))})
	y := b.Rename(b.Op("MatMul", []onnx.Value{h, b.Initializer("fc.weight", w["fc.weight"])}), "y")
	b.Output(y, onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("N"), onnx.Known(2)}})
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func saveTensors(t *testing.T, path string, values map[string]*tensor.Tensor) string {
	t.Helper()
	var list []safetensors.Tensor
	for _, name := range slices.Sorted(maps.Keys(values)) {
		s, err := safetensors.Of(name, values[name])
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, s)
	}
	if err := atomicfile.WriteFile(path, func(w io.Writer) error { return safetensors.Write(w, nil, list) }); err != nil {
		t.Fatal(err)
	}
	return path
}

// run is a component as agents and fit save them: parameters below scopes, beside state that is
// none.
type run struct {
	scopes []string
	values map[string]*tensor.Tensor
}

func (c run) SaveState(w *checkpoint.Writer) error {
	for i, scope := range c.scopes {
		at := w
		for _, s := range strings.Split(scope, "/") {
			if s != "" {
				at = at.Scope(s)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(c.values)) {
			role := "trainable"
			if name == "conv1.bias" {
				role = "frozen"
			}
			data := c.values[name].Float32s()
			if i > 0 {
				data = make([]float32, len(data))
			}
			at.Scope("params").Scope(role).PutFloat32s(name, data, c.values[name].Shape()...)
		}
		at.Scope("optim").PutFloat32s("m/conv1.weight", make([]float32, 12))
	}
	w.PutJSON("state", map[string]int{"step": 1})
	return nil
}

func (c run) LoadState(*checkpoint.Reader) error { return nil }

func saveRun(t *testing.T, dir string, step int64, score *float64, scopes []string, values map[string]*tensor.Tensor) string {
	t.Helper()
	s, err := checkpoint.OpenStore(dir, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	path, err := s.Save(checkpoint.Meta{Kind: "test", Step: step, Score: score}, run{scopes, values})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func loaded(t *testing.T, ref, store string) *Source {
	t.Helper()
	s, err := Load(t.Context(), ref, store)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func check(t *testing.T, what string, got, want map[string]*tensor.Tensor) {
	t.Helper()
	for name, w := range sorted.All(want) {
		if g := got[name]; g == nil || !reflect.DeepEqual(g.Float32s(), w.Float32s()) {
			t.Errorf("%s: parameter %q is not what was transferred", what, name)
		}
	}
}

func number(v float64) *float64 { return &v }

func TestEveryKindOfSource(t *testing.T) {
	dir := t.TempDir()
	want := weights(7)
	model := filepath.Join(dir, "m.onnx")
	if err := onnx.Save(model, graph(t, want), onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	external := filepath.Join(dir, "external.onnx")
	if err := onnx.Save(external, graph(t, want), onnx.SaveOptions{ExternalThreshold: 8}); err != nil {
		t.Fatal(err)
	}
	store := filepath.Join(dir, "store")
	s, err := artifact.Open(store, artifact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Publish(t.Context(), artifact.Draft{Manifest: artifact.Manifest{Name: "enc", Kind: "encoder"}, Model: external, Aliases: []string{"best"}})
	if err != nil {
		t.Fatal(err)
	}
	plain := saveRun(t, filepath.Join(dir, "plain"), 3, nil, []string{""}, want)
	nested := filepath.Join(dir, "nested")
	saveRun(t, filepath.Join(nested, "checkpoints"), 1, nil, []string{"agent"}, weights(1))
	saveRun(t, filepath.Join(nested, "checkpoints"), 2, nil, []string{"run/agent", "run/agent/target"}, want)
	scored := filepath.Join(dir, "scored")
	saveRun(t, filepath.Join(scored, "checkpoints"), 1, number(0.5), []string{"agent"}, weights(1))
	saveRun(t, filepath.Join(scored, "checkpoints"), 2, number(0.9), []string{"agent"}, want)
	saveRun(t, filepath.Join(scored, "checkpoints"), 3, number(0.7), []string{"agent"}, weights(2))
	saveRun(t, filepath.Join(scored, "checkpoints"), 4, nil, []string{"agent"}, weights(3))
	double := tensor.New(tensor.Float64, 4)
	half := tensor.New(tensor.Float16, 4, 2)
	for i := range 4 {
		double.Float64s()[i] = float64(7 + i)
	}
	for i := range 8 {
		tensor.Data[uint16](half)[i] = tensor.Float32ToFloat16(float32(7 + i))
	}

	cases := []struct{ name, ref, store, kind string }{
		{"onnx", model, "", "onnx"},
		{"onnx with external data", external, "", "onnx"},
		{"safetensors", saveTensors(t, filepath.Join(dir, "w.safetensors"), want), "", "safetensors"},
		{"other precisions", saveTensors(t, filepath.Join(dir, "h.safetensors"), join(want, map[string]*tensor.Tensor{"conv1.bias": double, "fc.weight": half,
			"num_batches_tracked": tensor.Scalar(int64(5))})), "", "safetensors"},
		{"checkpoint", plain, "", "checkpoint"},
		{"store of checkpoints", filepath.Dir(plain), "", "checkpoint"},
		{"run, newest", nested, "", "checkpoint"},
		{"run, best", scored, "", "checkpoint"},
		{"artefact", "enc", store, "artefact"},
		{"artefact by alias", "enc:best", store, "artefact"},
		{"artefact by digest", artifact.Short(v.Digest), store, "artefact"},
		{"artefact in its store", store + "//enc", "elsewhere", "artefact"},
	}
	for _, c := range cases {
		src := loaded(t, c.ref, c.store)
		if src.Kind != c.kind || !reflect.DeepEqual(src.Names(), []string{"conv1.bias", "conv1.weight", "fc.weight"}) {
			t.Errorf("%s: %s of %v", c.name, src.Kind, src.Names())
		}
		got := weights(0)
		r, err := src.Apply(got, Options{})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		check(t, c.name, got, want)
		if len(r.Matched) != 3 || len(r.New)+len(r.LeftOver)+len(r.ShapeMismatch)+len(r.Renamed) != 0 || r.Automatic {
			t.Errorf("%s: report %+v", c.name, r)
		}
		if err := src.Close(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if len(cases) != 12 {
		t.Errorf("%d kinds of source", len(cases))
	}
}

func TestMatching(t *testing.T) {
	dir := t.TempDir()
	head := map[string]*tensor.Tensor{"head.weight": tensor.New(tensor.Float32, 2, 5)}
	wide := map[string]*tensor.Tensor{"fc.weight": tensor.New(tensor.Float32, 4, 9)}
	cases := []struct {
		name            string
		source, network map[string]*tensor.Tensor
		o               Options
		is              error
		says            string
		matched         []string
		summary         string
	}{
		{name: "the same names", source: weights(7), network: weights(0), matched: []string{"conv1.bias", "conv1.weight", "fc.weight"}, summary: "3 copied from"},
		{name: "more than is asked for", source: join(weights(7), head), network: weights(0), matched: []string{"conv1.bias", "conv1.weight", "fc.weight"}, summary: "1 left over"},
		{name: "less", source: weights(7), network: join(weights(0), head), is: ErrPartial, says: `3 of 4 are; the source has no "head.weight"[2 5]`},
		{name: "less, accepted", source: weights(7), network: join(weights(0), head), o: Options{Partial: true}, matched: []string{"conv1.bias", "conv1.weight", "fc.weight"}, summary: "3 copied"},
		{name: "another shape", source: join(weights(7), wide), network: weights(0), is: ErrPartial, says: `"fc.weight" has shape [4 2] in the network and [4 9] in the source`},
		{name: "another shape, accepted", source: join(weights(7), wide), network: weights(0), o: Options{Partial: true}, matched: []string{"conv1.bias", "conv1.weight"}, summary: "1 of other shapes"},
		{name: "nothing", source: head, network: weights(0), o: Options{Partial: true}, is: ErrNothing, says: `the source has no "conv1.bias"[4]`},
		{name: "an encoder in an agent", source: weights(7), network: join(below("encoder.", weights(0)), head), o: Options{Partial: true},
			matched: []string{"encoder.conv1.bias", "encoder.conv1.weight", "encoder.fc.weight"}, summary: `renamed automatically: "" to "encoder."`},
		{name: "an encoder in an agent, all asked for", source: weights(7), network: join(below("encoder.", weights(0)), head), is: ErrPartial, says: "3 of 4 are"},
		{name: "an encoder of an agent", source: join(below("agent/encoder.", weights(7)), head), network: weights(0),
			matched: []string{"conv1.bias", "conv1.weight", "fc.weight"}, summary: `renamed automatically: "agent/encoder." to ""`},
		{name: "two encoders", source: weights(7), network: join(below("actor.", weights(0)), below("critic.", weights(0))), o: Options{Partial: true}, is: ErrNothing,
			says: `the source fits the network below each of "actor.", "critic.": say which by a rename`},
		{name: "two encoders, one by shape", source: weights(7), network: join(below("actor.", weights(0)), below("critic.", join(weights(0), wide))), o: Options{Partial: true},
			matched: []string{"actor.conv1.bias", "actor.conv1.weight", "actor.fc.weight"}, summary: `"" to "actor."`},
		{name: "two encoders, both by renames", source: join(below("a.", weights(7)), below("b.", weights(7))), network: join(below("actor.", weights(0)), below("critic.", weights(0))),
			o: Options{Rename: []Rename{{"a.", "actor."}, {"b.", "critic."}}}, matched: []string{"actor.conv1.bias", "actor.conv1.weight", "actor.fc.weight", "critic.conv1.bias", "critic.conv1.weight", "critic.fc.weight"}, summary: `renamed: "a." to "actor."`},
		{name: "most of an encoder", source: join(weights(7), head), network: below("encoder.", weights(0)), o: Options{Partial: true}, is: ErrNothing, says: `with "encoder." before the source's names 3 would`},
		{name: "most of an encoder, by rename", source: join(weights(7), head), network: below("encoder.", weights(0)), o: Options{Rename: []Rename{{To: "encoder."}}},
			matched: []string{"encoder.conv1.bias", "encoder.conv1.weight", "encoder.fc.weight"}, summary: "1 left over"},
		{name: "a rename of nothing", source: weights(7), network: weights(0), o: Options{Rename: []Rename{{"x.", "y."}}}, says: `rename "x." to "y.": no name of the source begins so; it has "conv1.bias"`},
		{name: "a rename into another", source: join(weights(7), below("a.", weights(1))), network: weights(0), o: Options{Rename: []Rename{{From: "a."}}}, says: "would both be"},
	}
	failures := 0
	for i, c := range cases {
		src := loaded(t, saveTensors(t, filepath.Join(dir, string(rune('a'+i))+".safetensors"), c.source), "")
		before := map[string]*tensor.Tensor{}
		for name, v := range sorted.All(c.network) {
			c.network[name] = v.Clone()
			before[name] = v.Clone()
		}
		r, err := src.Apply(c.network, c.o)
		if c.is != nil || c.says != "" {
			failures++
			if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: error %v, want %q", c.name, err, c.says)
			}
			check(t, c.name+": after an error", c.network, before)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var matched []string
		for _, m := range r.Matched {
			matched = append(matched, m.Name)
			if v := c.network[m.Name].Float32s(); v[0] != 7 || v[len(v)-1] != float32(6+len(v)) {
				t.Errorf("%s: %q was not copied", c.name, m.Name)
			}
			delete(before, m.Name)
		}
		check(t, c.name+": not matched", c.network, before)
		if !reflect.DeepEqual(matched, c.matched) || !strings.Contains(r.Summary(), c.summary) {
			t.Errorf("%s: %v, %s", c.name, matched, r.Summary())
		}
	}
	if failures != 8 || len(cases) != 17 {
		t.Errorf("%d of %d cases failed as they should", failures, len(cases))
	}
}

func TestBadSources(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	store := filepath.Join(dir, "store")
	if _, err := artifact.Open(store, artifact.Options{}); err != nil {
		t.Fatal(err)
	}
	damaged := saveRun(t, filepath.Join(dir, "damaged"), 1, nil, []string{""}, weights(1))
	write("damaged/"+filepath.Base(damaged)+"/arrays.safetensors", "x")
	twins := saveRun(t, filepath.Join(dir, "twins"), 1, nil, []string{"a", "b"}, weights(1))
	bare := saveRun(t, filepath.Join(dir, "bare"), 1, nil, nil, nil)
	saveRun(t, filepath.Join(dir, "seeds", "seed-1", "checkpoints"), 1, nil, []string{""}, weights(1))
	saveRun(t, filepath.Join(dir, "seeds", "seed-2", "checkpoints"), 1, nil, []string{""}, weights(1))
	integers := saveTensors(t, filepath.Join(dir, "i.safetensors"), map[string]*tensor.Tensor{"n": tensor.Scalar(int64(1))})

	cases := []struct{ name, ref, store, says string }{
		{"empty", "", "", "no source is given"},
		{"missing file", filepath.Join(dir, "none.onnx"), store, "no such file"},
		{"missing relative file", "none.safetensors", store, "no such file"},
		{"missing artefact", "none", store, "the store is empty"},
		{"missing store", "none", filepath.Join(dir, "nostore"), "no artefact store"},
		{"missing store in the reference", filepath.Join(dir, "nostore") + "//x", store, "no artefact store"},
		{"no reference", "No Such Thing", store, `artefact name "No Such Thing"`},
		{"store without a name", store, store, "is an artefact store; expected " + store + "//NAME: the store is empty"},
		{"not a model", write("bad.onnx", "hello"), "", "bad.onnx"},
		{"empty model", write("empty.onnx", ""), "", "no data"},
		{"not safetensors", write("bad.safetensors", "hello"), "", "bad.safetensors"},
		{"only integers", integers, "", "it has none"},
		{"another format", write("m.pt", "hello"), "", "expected a file .onnx or .safetensors"},
		{"empty directory", filepath.Dir(write("empty/x", "")), "", "holds no checkpoint"},
		{"damaged checkpoint", damaged, "", "checkpoint is damaged"},
		{"damaged run", filepath.Dir(damaged), "", "checkpoint is damaged"},
		{"two networks", twins, "", `parameters of several networks, in ["a/" "b/"]`},
		{"no parameters", bare, "", "it has none"},
		{"several runs", filepath.Join(dir, "seeds"), "", "choose one of"},
	}
	for _, c := range cases {
		s, err := Load(t.Context(), c.ref, c.store)
		if err == nil {
			s.Close()
		}
		if err == nil || !strings.HasPrefix(err.Error(), "load parameters from") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.says)
		}
	}
	if len(cases) != 19 {
		t.Errorf("%d cases", len(cases))
	}
}

func TestValuesThatAreNoNumbersAreRefused(t *testing.T) {
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		source := weights(7)
		source["fc.weight"].Float32s()[5] = bad
		src := loaded(t, saveTensors(t, filepath.Join(t.TempDir(), "w.safetensors"), source), "")
		network := weights(0)
		if _, err := src.Apply(network, Options{}); err == nil || !strings.Contains(err.Error(), `"fc.weight": element 5 is`) {
			t.Errorf("error %v", err)
		}
		check(t, "after an error", network, weights(0))
	}
	src := loaded(t, saveTensors(t, filepath.Join(t.TempDir(), "w.safetensors"), weights(7)), "")
	if _, err := src.Apply(map[string]*tensor.Tensor{"fc.weight": tensor.New(tensor.Int64, 1)}, Options{}); err == nil || !strings.Contains(err.Error(), "expected float32") {
		t.Errorf("error %v", err)
	}
	if err := src.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := src.Apply(weights(0), Options{}); err == nil {
		t.Error("a closed source was applied")
	}
}
