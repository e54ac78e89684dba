package artifact

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// model is y = x·w + k with a weight of the given number of rows, so that different k and rows give
// different files.
func model(rows int, k float32) *onnx.Model {
	b := onnx.NewBuilder("net", 18)
	batch := func(dims ...int) onnx.TensorType {
		tt := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("N")}}
		for _, n := range dims {
			tt.Dims = append(tt.Dims, onnx.Known(n))
		}
		return tt
	}
	w := tensor.New(tensor.Float32, rows, 2)
	for i := range w.Float32s() {
		w.Float32s()[i] = float32(i%7) - 3
	}
	x := b.Input("x", batch(rows))
	y := b.Op("MatMul", []onnx.Value{x, b.Initializer("w", w)})
	y = b.Rename(b.Op("Add", []onnx.Value{y, b.Initializer("k", tensor.Of([]float32{k}, 1))}), "y")
	b.Output(y, batch(2))
	m, err := b.Model()
	if err != nil {
		panic(err) // a mistake of this file
	}
	return m
}

func modelBytes(rows int, k float32) []byte {
	text, err := onnx.Marshal(model(rows, k))
	if err != nil {
		panic(err)
	}
	return text
}

// golden are inputs and outputs of model.
func golden(rows int, k float32) *Golden {
	const n = 3
	x, y := tensor.New(tensor.Float32, n, rows), tensor.New(tensor.Float32, n, 2)
	for r := range n {
		for i := range rows {
			x.Float32s()[r*rows+i] = float32(r + i)
			for c := range 2 {
				y.Float32s()[r*2+c] += float32(r+i) * (float32((2*i+c)%7) - 3)
			}
		}
		y.Float32s()[r*2] += k
		y.Float32s()[r*2+1] += k
	}
	return &Golden{Inputs: map[string]*tensor.Tensor{"x": x}, Outputs: map[string]*tensor.Tensor{"y": y}}
}

func draft(name string, k float32) Draft {
	return Draft{Manifest: Manifest{Name: name, Kind: "model"}, ModelBytes: modelBytes(4, k), Golden: golden(4, k)}
}

// clock counts seconds from a fixed time.
func clock() func() time.Time {
	var n atomic.Int64
	return func() time.Time {
		return time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC).Add(time.Duration(n.Add(1)) * time.Second)
	}
}

func open(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func publish(t testing.TB, s *Store, d Draft) Version {
	t.Helper()
	v, err := s.Publish(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func resolve(t testing.TB, s *Store, ref string) Version {
	t.Helper()
	v, err := s.Resolve(ref)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// verifyAll verifies every version of a store and returns how many there are.
func verifyAll(t testing.TB, dir string) int {
	t.Helper()
	s := open(t, dir, Options{MustExist: true})
	list, err := s.Verify(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestPublishedIsFound(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "store")
	s := open(t, dir, Options{Now: clock()})
	seed := uint64(1) << 63
	d := draft("qtmrl/us-16", 1)
	parent := publish(t, s, draft("encoder", 9))
	d.Aliases = []string{"best", "v1.0"}
	d.Files = []NewFile{{Title: "config.yaml", MediaType: "application/yaml", Data: []byte("seed: 1\n")}}
	d.Manifest.Inputs = []Port{{Name: "x", Description: "returns", Bounds: &Bounds{Low: []Bound{-1}, High: []Bound{Bound(math.Inf(1))}}}}
	d.Manifest.Metrics = map[string]float64{"validation/sharpe": 1.25, "b": -1}
	d.Manifest.Seed, d.Manifest.EnvStep, d.Manifest.CodeVersion = &seed, 1000, "v0.1"
	d.Manifest.Parents = []string{parent.Digest}
	d.Manifest.Features = []byte(`{"window": 20,   "order": ["open","close"]}`)
	v := publish(t, s, d)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Resolve("encoder"); !errors.Is(err, ErrClosed) {
		t.Errorf("closed store: %v", err)
	}

	s = open(t, dir, Options{MustExist: true})
	for _, ref := range []string{"qtmrl/us-16", "qtmrl/us-16:best", "qtmrl/us-16:v1.0", "qtmrl/us-16@" + v.Digest, v.Digest, v.Digest[:15], v.String()} {
		got := resolve(t, s, ref)
		if got.Digest != v.Digest || !slices.Equal(got.Aliases, []string{"best", "latest", "v1.0"}) || got.Published.Second() != 2 {
			t.Errorf("%s: %s with %v of %v", ref, got, got.Aliases, got.Published)
		}
	}
	m := resolve(t, s, "qtmrl/us-16").Manifest
	if m.Schema != Schema || m.IR == 0 || m.Opsets["ai.onnx"] != 18 || *m.Seed != seed || m.Metrics["validation/sharpe"] != 1.25 || m.Golden.Rows != 3 || m.Golden.Tolerance != DefaultTolerance {
		t.Errorf("manifest %+v", m)
	}
	x := m.Inputs[0]
	if x.DType != "float32" || !slices.Equal(x.Shape, []int{-1, 4}) || !slices.Equal(x.Axes, []string{"N", ""}) || x.Description != "returns" || x.Bounds.High[0] != Bound(math.Inf(1)) || m.Outputs[0].Name != "y" {
		t.Errorf("ports %+v %+v", m.Inputs, m.Outputs)
	}
	if !strings.Contains(string(m.Features), `"window": 20`) {
		t.Errorf("features %s", m.Features)
	}
	got, err := v.Model()
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := onnx.Marshal(got); !bytes.Equal(text, d.ModelBytes) {
		t.Error("the model has changed")
	}
	if text, err := os.ReadFile(v.ModelFile()); err != nil || !bytes.Equal(text, d.ModelBytes) {
		t.Errorf("model file: %v", err)
	}
	g, err := v.Golden()
	if err != nil || !bytes.Equal(g.Inputs["x"].Bytes(), d.Golden.Inputs["x"].Bytes()) || !bytes.Equal(g.Outputs["y"].Bytes(), d.Golden.Outputs["y"].Bytes()) {
		t.Errorf("golden %v, %v", g, err)
	}
	if n := verifyAll(t, dir); n != 2 {
		t.Errorf("%d versions", n)
	}
	line, err := s.Lineage("qtmrl/us-16:best")
	if err != nil || len(line) != 2 || line[1].Version.Manifest.Name != "encoder" || line[1].Depth != 1 {
		t.Errorf("lineage %v, %v", line, err)
	}
}

func TestTheSameContentIsTheSameVersion(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, Options{Now: clock()})
	one := publish(t, s, draft("a", 1))
	two := publish(t, s, draft("a", 2))
	if v := resolve(t, s, "a"); v.Digest != two.Digest || one.Digest == two.Digest {
		t.Errorf("latest is %s, not %s", v, two)
	}
	before := names(t, dir)
	again := draft("a", 1)
	again.Aliases = []string{"best"}
	// Other whitespace, another path, another clock: the same content.
	again.Manifest.Metrics, again.Manifest.Info = map[string]float64{}, map[string]string{}
	path := filepath.Join(t.TempDir(), "other name.onnx")
	if err := os.WriteFile(path, again.ModelBytes, 0o666); err != nil {
		t.Fatal(err)
	}
	again.Model, again.ModelBytes = path, nil
	v := publish(t, s, again)
	if v.Digest != one.Digest || !v.Published.Equal(one.Published) || !slices.Equal(v.Aliases, []string{"best", "latest"}) {
		t.Errorf("%s of %v with %v, want %s of %v", v, v.Published, v.Aliases, one, one.Published)
	}
	if after := names(t, dir); !slices.Equal(before, after) {
		t.Errorf("files %v, were %v", after, before)
	}
	list, err := s.List()
	if err != nil || len(list) != 2 || list[0].Digest != one.Digest || list[1].Digest != two.Digest {
		t.Errorf("%v, %v", list, err)
	}
	// Under another name it is another version of the same bytes.
	if v := publish(t, s, draft("b", 1)); v.Digest == one.Digest || v.Files[0].Digest != one.Files[0].Digest {
		t.Errorf("%s has files %v", v, v.Files)
	}
	if v := publish(t, open(t, t.TempDir(), Options{}), draft("a", 1)); v.Digest != one.Digest || !v.Published.IsZero() {
		t.Errorf("in another store without a clock: %s of %v", v, v.Published)
	}
}

// names lists all files below a directory.
func names(t testing.TB, dir string) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			list = append(list, strings.TrimPrefix(path, dir))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestAliasesMove(t *testing.T) {
	s := open(t, t.TempDir(), Options{Now: clock()})
	one, two := publish(t, s, draft("a", 1)), publish(t, s, draft("a", 2))
	other := publish(t, s, draft("b", 1))
	for _, c := range []struct{ ref, alias, want string }{
		{"a@" + one.Digest[:20], "prod", one.Digest}, {"a", "prod", two.Digest}, {"a:prod", "best", two.Digest}, {one.Digest, "best", one.Digest}, {"a:best", "latest", one.Digest}, {"b", "prod", other.Digest},
	} {
		v, err := s.Alias(t.Context(), c.ref, c.alias)
		if err != nil || v.Digest != c.want || !slices.Contains(v.Aliases, c.alias) {
			t.Errorf("%s to %s: %s with %v, %v", c.alias, c.ref, v, v.Aliases, err)
		}
	}
	for ref, want := range sorted.All(map[string]string{"a": one.Digest, "a:best": one.Digest, "a:prod": two.Digest, "b": other.Digest, "b:prod": other.Digest, two.Digest: two.Digest}) {
		if v := resolve(t, s, ref); v.Digest != want {
			t.Errorf("%s is %s, want %s", ref, v.Digest, want)
		}
	}
	for _, c := range []struct{ ref, alias, says string }{
		{"a", "not an alias", "alias \"not an alias\""}, {"a:none", "best", "aliases of a: expected best, latest, prod"}, {"c", "best", "names in the store: expected a, b"}, {"?", "best", "artefact name"},
	} {
		if _, err := s.Alias(t.Context(), c.ref, c.alias); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s to %s: %v", c.alias, c.ref, err)
		}
	}
	if n := verifyAll(t, s.Dir()); n != 3 {
		t.Errorf("%d versions", n)
	}
}

func TestExternalDataIsPublishedWithTheModel(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "m.onnx")
	if err := onnx.Save(path, model(64, 3), onnx.SaveOptions{ExternalThreshold: 256, ExternalFile: "weights/w.bin"}); err == nil {
		t.Fatal("a folder that does not exist was written to")
	}
	if err := os.Mkdir(filepath.Join(dir, "weights"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := onnx.Save(path, model(64, 3), onnx.SaveOptions{ExternalThreshold: 256, ExternalFile: "weights/w.bin"}); err != nil {
		t.Fatal(err)
	}
	s := open(t, filepath.Join(dir, "store"), Options{})
	v := publish(t, s, Draft{Manifest: Manifest{Name: "big"}, Model: path})
	if len(v.Files) != 2 || v.Files[1].Title != "weights/w.bin" || v.Files[1].MediaType != DataType {
		t.Fatalf("files %+v", v.Files)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "weights", "w.bin"))
	if err != nil {
		t.Fatal(err)
	}
	same := publish(t, s, Draft{Manifest: Manifest{Name: "big"}, ModelBytes: text, Files: []NewFile{{Title: "weights/w.bin", Data: data}}})
	if same.Digest != v.Digest {
		t.Error("from bytes it is another version")
	}
	want, err := onnx.Marshal(model(64, 3))
	if err != nil {
		t.Fatal(err)
	}
	compare := func(what string, m *onnx.Model, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got, err := onnx.Marshal(m); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: another model, %v", what, err)
		}
	}
	m, err := v.Model()
	compare("from the store", m, err)
	out := filepath.Join(dir, "out", "deep")
	file, err := v.Extract(t.Context(), out)
	if err != nil {
		t.Fatal(err)
	}
	m, err = onnx.Load(file)
	compare("extracted", m, err)
	if got := names(t, out); !slices.Equal(got, []string{"/model.onnx", "/weights/w.bin"}) {
		t.Errorf("extracted %v", got)
	}
	for what, d := range sorted.All(map[string]Draft{
		"has no such file": {ModelBytes: text},
		"bytes [0, 512)":   {ModelBytes: text, Files: []NewFile{{Title: "weights/w.bin", Data: data[:100]}}},
		"checksum of":      {ModelBytes: text, Files: []NewFile{{Title: "weights/w.bin", Data: make([]byte, len(data))}}},
	}) {
		d.Manifest.Name = "big"
		if _, err := s.Publish(t.Context(), d); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: error %v", what, err)
		}
	}
}

func TestLineage(t *testing.T) {
	s := open(t, t.TempDir(), Options{Now: clock()})
	child := func(name string, k float32, parents ...string) Version {
		d := draft(name, k)
		d.Manifest.Parents = parents
		return publish(t, s, d)
	}
	gone := "sha256:" + strings.Repeat("ab", 32)
	base := child("base", 0)
	a, b := child("a", 1, base.Digest), child("b", 2, base.Digest, gone)
	top := child("top", 3, a.Digest, b.Digest)
	line, err := s.Lineage("top")
	if err != nil {
		t.Fatal(err)
	}
	want := []Ancestor{{top.Digest, 0, &top, s.dir}, {a.Digest, 1, &a, s.dir}, {b.Digest, 1, &b, s.dir}, {base.Digest, 2, &base, s.dir}, {gone, 2, nil, ""}}
	if len(line) != len(want) {
		t.Fatalf("%d ancestors, want %d", len(line), len(want))
	}
	for i, w := range want {
		if g := line[i]; g.Digest != w.Digest || g.Store != w.Store || g.Depth != w.Depth || (g.Version == nil) != (w.Version == nil) {
			t.Errorf("ancestor %d: %+v, want %+v", i, g, w)
		}
	}
	if _, err := s.Lineage("none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("error %v", err)
	}
}
