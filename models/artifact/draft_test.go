package artifact

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Drafts that are no versions: the error says why, and nothing of them is left.
func TestBadDrafts(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "m.onnx")
	if err := os.WriteFile(file, []byte("no model"), 0o666); err != nil {
		t.Fatal(err)
	}
	port := func(p Port) func(*Draft) { return func(d *Draft) { d.Manifest.Inputs = []Port{p} } }
	cases := []struct {
		name string
		edit func(*Draft)
		says string
	}{
		{"no name", func(d *Draft) { d.Manifest.Name = "" }, `artefact name ""`},
		{"bad name", func(d *Draft) { d.Manifest.Name = "My Model" }, `artefact name "My Model"`},
		{"bad alias", func(d *Draft) { d.Aliases = []string{"a b"} }, `alias "a b"`},
		{"no model", func(d *Draft) { d.ModelBytes = nil }, "the draft has no model"},
		{"two models", func(d *Draft) { d.Model = file }, "a model's path and its bytes"},
		{"missing model", func(d *Draft) { d.ModelBytes, d.Model = nil, filepath.Join(dir, "none.onnx") }, "no such file"},
		{"a folder as model", func(d *Draft) { d.ModelBytes, d.Model = nil, dir }, "expected a regular file"},
		{"not a model", func(d *Draft) { d.ModelBytes, d.Model = nil, file }, "m.onnx"},
		{"an invalid model", func(d *Draft) { d.ModelBytes = []byte{} }, "no data"},
		{"input that the model lacks", port(Port{Name: "z"}), `input "z": the model has none of that name`},
		{"input of another type", port(Port{Name: "x", DType: "int64"}), `input "x" is described as int64[], and the model has float32[-1 4]`},
		{"input of another shape", port(Port{Name: "x", Shape: []int{-1, 5}}), `described as [-1 5], and the model has float32[-1 4]`},
		{"bounds of another size", port(Port{Name: "x", Bounds: &Bounds{Low: []Bound{0, 0}, High: []Bound{1, 1}}}), "2 low and 2 high bounds, expected one of each or 4"},
		{"bounds that cross", port(Port{Name: "x", Bounds: &Bounds{Low: []Bound{2}, High: []Bound{1}}}), "bounds 2 to 1"},
		{"a bound that is no number", port(Port{Name: "x", Bounds: &Bounds{Low: []Bound{Bound(math.NaN())}, High: []Bound{1}}}), "bounds NaN to 1"},
		{"a metric that is no number", func(d *Draft) { d.Manifest.Metrics = map[string]float64{"sharpe": math.NaN()} }, `metric "sharpe" is NaN`},
		{"a parent that is no digest", func(d *Draft) { d.Manifest.Parents = []string{"sha256:beef"} }, `parent: digest "sha256:beef"`},
		{"config digest", func(d *Draft) { d.Manifest.ConfigDigest = "beef" }, "config_digest"},
		{"data digest", func(d *Draft) { d.Manifest.DataDigest = "sha256:x" }, "data_digest"},
		{"negative step", func(d *Draft) { d.Manifest.EnvStep = -1 }, "env_step -1"},
		{"features", func(d *Draft) { d.Manifest.Features = []byte("{") }, "features: expected JSON"},
		{"file that climbs", func(d *Draft) { d.Files = []NewFile{{Title: "../x"}} }, `file title "../x"`},
		{"file without a title", func(d *Draft) { d.Files = []NewFile{{}} }, `file title ""`},
		{"file of another system", func(d *Draft) { d.Files = []NewFile{{Title: `c:\x`}} }, `file title "c:\\x"`},
		{"file that is not clean", func(d *Draft) { d.Files = []NewFile{{Title: "a//b"}} }, `file title "a//b"`},
		{"two files", func(d *Draft) { d.Files = []NewFile{{Title: "a"}, {Title: "a"}} }, `a second file "a"`},
		{"file of the store's own title", func(d *Draft) { d.Files = []NewFile{{Title: ModelTitle}} }, "it is the store's own"},
		{"file of the store's own type", func(d *Draft) { d.Files = []NewFile{{Title: "a", MediaType: GoldenType}} }, "is the store's own"},
		{"missing file", func(d *Draft) { d.Files = []NewFile{{Title: "a", Path: filepath.Join(dir, "none")}} }, "no such file"},
		{"a folder as file", func(d *Draft) { d.Files = []NewFile{{Title: "a", Path: dir}} }, "is not a regular file"},
		{"golden input missing", func(d *Draft) { delete(d.Golden.Inputs, "x") }, `golden input "x" is missing`},
		{"golden input unknown", func(d *Draft) { d.Golden.Inputs["z"] = tensor.Scalar(float32(1)) }, `golden input "z": the model has none`},
		{"golden output unknown", func(d *Draft) { d.Golden.Outputs["z"] = tensor.Scalar(float32(1)) }, `golden output "z": the model has none`},
		{"golden output of another shape", func(d *Draft) { d.Golden.Outputs["y"] = tensor.New(tensor.Float32, 3, 3) }, `golden output: "y" is`},
		{"no golden output", func(d *Draft) { d.Golden.Outputs = nil }, "without an output"},
		{"data with a model", func(d *Draft) { d.Data = true }, "a draft of data has files, and neither a model nor golden values"},
		{"data without files", func(d *Draft) { d.Data, d.ModelBytes, d.Golden = true, nil, nil }, "a draft of data has files"},
		{"golden tolerance", func(d *Draft) { d.Golden.Tolerance = math.NaN() }, "tolerance NaN"},
	}
	s := open(t, t.TempDir(), Options{})
	for _, c := range cases {
		d := draft("a", 1)
		c.edit(&d)
		_, err := s.Publish(t.Context(), d)
		if err == nil || !strings.HasPrefix(err.Error(), "publish ") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.says)
		}
	}
	if got := names(t, s.Dir()); !slices.Equal(got, []string{"/.lock", "/index.json", "/oci-layout"}) {
		t.Errorf("left %v", got)
	}
	if len(cases) != 38 {
		t.Errorf("%d cases", len(cases))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Publish(ctx, draft("a", 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestGoldenValuesAreChecked(t *testing.T) {
	s := open(t, t.TempDir(), Options{})
	good := publish(t, s, draft("good", 1))
	silent := draft("silent", 1)
	silent.Golden = nil
	publish(t, s, silent)
	wrong := draft("wrong", 1)
	wrong.Golden.Outputs["y"].Float32s()[4] += 0.5
	publish(t, s, wrong)
	loose := draft("loose", 1)
	loose.Golden.Outputs["y"].Float32s()[4] += 0.5
	loose.Golden.Tolerance = 0.6
	publish(t, s, loose)
	compared := 0
	for _, c := range testengines.All(t) {
		if values, worst, err := good.CheckGolden(t.Context(), c); values != 6 || worst > 1e-6 || err != nil {
			t.Errorf("%s: %d values, %g, %v", c.Name(), values, worst, err)
		}
		list, err := s.Verify(t.Context(), c)
		if !errors.Is(err, ErrGolden) || !strings.Contains(err.Error(), `wrong@`) || !strings.Contains(err.Error(), `output "y": golden outputs differ by up to`) {
			t.Errorf("%s: error %v", c.Name(), err)
		}
		for _, v := range list {
			want := map[string]int{"good": 6, "silent": 0, "wrong": 6, "loose": 6}[v.Version.Manifest.Name]
			if v.Golden != want || (v.Err != nil) != (v.Version.Manifest.Name == "wrong") {
				t.Errorf("%s: %s: %+v", c.Name(), v.Version, v)
			}
			compared += v.Golden
		}
		some, err := s.Verify(t.Context(), c, "good", "loose:latest", "none")
		if len(some) != 3 || some[2].Err == nil || !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %d verified, %v", c.Name(), len(some), err)
		}
	}
	if want := 18 * len(testengines.All(t)); compared != want {
		t.Errorf("%d values compared, want %d", compared, want)
	}
}

func TestManifestSurvivesJSON(t *testing.T) {
	seed := uint64(math.MaxUint64)
	m := Manifest{Schema: Schema, Name: "a", Kind: "agent", Description: "<é>", Inputs: []Port{{Name: "x", DType: "float32", Shape: []int{-1, 2}, Axes: []string{"N", ""},
		Bounds: &Bounds{Low: []Bound{Bound(math.Inf(-1)), 0}, High: []Bound{0.1, Bound(math.Inf(1))}}}, {Name: "unranked"}}, Outputs: []Port{}, Opsets: map[string]int{"ai.onnx": 17, "com.microsoft": 1}, IR: 8,
		Metrics: map[string]float64{"b": 0.1, "a": -1e-300}, Parents: []string{digestPrefix + hex64}, Seed: &seed, EnvStep: 1, LearnerStep: 2, ConfigDigest: digestPrefix + hex64, DataDigest: digestPrefix + hex64,
		CodeVersion: "v1", Features: json.RawMessage("{\n    \"a\": [\n      1\n    ]\n  }"), Golden: &GoldenInfo{Rows: 3, Tolerance: 1e-4}, Info: map[string]string{"k": "v"}}
	text, err := m.encode()
	if err != nil {
		t.Fatal(err)
	}
	got, err := decodeManifest(text)
	if err != nil || !reflect.DeepEqual(*got, m) {
		t.Errorf("%+v, %v\nwant %+v", got, err, m)
	}
	again, err := got.encode()
	if err != nil || string(again) != string(text) {
		t.Errorf("encoded again:\n%s%v\nwas\n%s", again, err, text)
	}
	// A key of a later program that is safe to ignore, and a schema that is not.
	later := strings.Replace(string(text), `"kind"`, `"later": {"x": 1}, "kind"`, 1)
	if _, err := decodeManifest([]byte(later)); err != nil {
		t.Errorf("another key: %v", err)
	}
	for _, c := range []struct{ text, says string }{
		{strings.Replace(string(text), `"schema": 1`, `"schema": 2`, 1), "its schema is 2, and this program reads up to 1"},
		{`{"name":"a"}`, "it has no schema"}, {`[]`, "cannot unmarshal"}, {`{"schema":1}`, `artefact name ""`},
		{strings.Replace(string(text), `"-inf"`, `"low"`, 1), "expected a number"},
	} {
		if _, err := decodeManifest([]byte(c.text)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: error %v", c.says, err)
		}
	}
}

// FuzzDecode gives foreign bytes to everything that decodes them: the index, an image manifest with
// its layers, and a manifest. Nothing panics, and what is accepted leads nowhere outside the store.
func FuzzDecode(f *testing.F) {
	s, err := Open(f.TempDir(), Options{Now: clock()})
	if err != nil {
		f.Fatal(err)
	}
	v, err := s.Publish(f.Context(), draft("a", 1))
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range []string{filepath.Join(s.Dir(), "index.json"), s.blobPath(digest.Digest(v.Digest)), filepath.Join(s.Dir(), "oci-layout")} {
		text, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	text, err := v.Manifest.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"schemaVersion":2,"manifests":[{"digest":"sha256:..","size":9223372036854775807}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		_ = checkLayout(text) // the seeds include one that passes
		if index, err := decodeIndex(text); err == nil {
			for _, e := range entries(index) {
				if filepath.Dir(s.blobPath(e.desc.Digest)) != s.blobDir() {
					t.Errorf("digest %q leads to %s", e.desc.Digest, s.blobPath(e.desc.Digest))
				}
				_, _ = s.load(e) // most say something that is not there
			}
			setTag(index, "a:b", ocispec.Descriptor{Digest: digest.Digest(v.Digest)})
			again, err := json.Marshal(index)
			if err == nil {
				_, err = decodeIndex(again)
			}
			if err != nil {
				t.Errorf("an index that was read and changed is refused: %v", err)
			}
		}
		if image, err := decodeImage(text); err == nil {
			list, err := filesOf(image)
			for _, file := range list {
				if err == nil && !filepath.IsLocal(filepath.FromSlash(file.Title)) {
					t.Errorf("title %q", file.Title)
				}
			}
		}
		if m, err := decodeManifest(text); err == nil {
			if _, err := m.encode(); err != nil {
				t.Errorf("a manifest that was read cannot be written: %v", err)
			}
		}
	})
}
