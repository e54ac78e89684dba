package app

import (
	"archive/zip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
	"github.com/onnxrl/onnxrl/runtime/tensor/npy"
)

// wide makes a policy whose weights are large enough to quantise.
var wide = strings.NewReplacer("d_model: 8", "d_model: 48",
	"n_steps: 10", "n_steps: 10\n  gamma: 0.96\n  ent_coef: 0.05\n  vf_coef: 1\n  max_grad_norm: 1\n  reduction: sum\n  optimizer: {kind: adam}\n  encoders: shared\n  hidden_gain: 0").Replace(apptest.TinyMarket)

// exported exports with JSON and decodes it.
func exported(t *testing.T, args ...string) exportResult {
	t.Helper()
	r := apptest.Succeed(t, append([]string{"export", "--json", "--allow-ties"}, args...)...)
	return apptest.Decode[exportResult](t, r)
}

// TestExportForms proves a run with its own checkpoint and writes every form with every engine.
func TestExportForms(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := apptest.Trained(t, apptest.TinyMarket)
	cases := 0
	for _, e := range apptest.Engines() {
		for _, form := range []string{"onnx", "triton", "oci", "python"} {
			out := filepath.Join(t.TempDir(), "exported")
			r := exported(t, dir, "--engine", e, "--format", form, "--out", out, "--rows", "64")
			if r.Trained != "checkpoint" || r.Observations != "recorded" || r.Rows != 64 || r.Engine != e || r.Name != "run" && r.Name != "tiny" {
				t.Errorf("%s, %s: %+v", e, form, r)
			}
			// 4 batches of 1 and 7 rows and one of all; 3 heads of 3 alternatives, and the value.
			if p := r.Parity; p.Rows != 4+28+64 || p.Values != 10*p.Rows || p.Choices != 3*p.Rows || p.MaxError > bake.Tolerance {
				t.Errorf("%s, %s: parity %+v", e, form, p)
			}
			// The class of the Python folder draws actions, so its model does; what both have is
			// the same.
			draws := form == "python"
			if len(r.Models) != 2 || (r.Models[0].Bytes != r.Models[1].Bytes) != draws || r.Models[0].Nodes == 0 || *r.Models[0].Micros <= 0 || r.Ratio <= 0 || (r.Loss != nil) != draws || draws && r.Loss.MaxDelta != 0 {
				t.Errorf("%s, %s: sizes %+v", e, form, r.Models)
			}
			if len(r.Files) == 0 {
				t.Errorf("%s: no files", form)
			}
			for _, f := range r.Files {
				if st, err := os.Stat(f); err != nil || st.Size() == 0 {
					t.Errorf("%s: %s: %v", form, f, err)
				}
			}
			switch form {
			case "onnx":
				// The exported model is the published one, bit for bit.
				if a, b := apptest.ReadText(t, out), apptest.ReadText(t, filepath.Join(dir, "best.onnx")); a != b {
					t.Errorf("%s: the file has changed", e)
				}
			case "oci":
				_, mine, err := artifact.Find(r.Name, out)
				if err != nil {
					t.Fatal(err)
				}
				_, theirs, err := artifact.Find(r.Name, filepath.Join(dir, "artifacts"))
				if err != nil || mine.Digest != theirs.Digest {
					t.Errorf("version %s became %s, %v", theirs.Digest, mine.Digest, err)
				}
			case "python":
				recordedActions(t, out)
			}
			cases++
		}
	}
	if cases != 4*len(apptest.Engines()) {
		t.Errorf("%d cases", cases)
	}
	text := apptest.Succeed(t, "export", dir, "--out", filepath.Join(t.TempDir(), "x.onnx"), "--rows", "64", "--allow-ties")
	for _, want := range []string{"the network in training, of the newest checkpoint", "64 rows, recorded", "µs at batch 1", "published", "1 file"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not say %q:\n%s", want, text)
		}
	}
}

// recordedActions runs the model of a Python folder on what is recorded there with the pure-Go
// engine: actions are the same, numbers near.
func recordedActions(t *testing.T, dir string) {
	t.Helper()
	z, err := zip.OpenReader(filepath.Join(dir, "recorded.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	arrays := map[string]*tensor.Tensor{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if arrays[strings.TrimSuffix(f.Name, ".npy")], err = npy.Decode(b); err != nil {
			t.Fatal(err)
		}
	}
	m, err := onnx.Load(filepath.Join(dir, "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := portable.New().Compile(m, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var in []*tensor.Tensor
	for _, p := range s.Inputs() {
		in = append(in, arrays["input."+p.Name])
	}
	out := make([]*tensor.Tensor, len(s.Outputs()))
	if err := s.Run(t.Context(), out, in); err != nil {
		t.Fatal(err)
	}
	for i, p := range s.Outputs() {
		want := arrays["output."+p.Name]
		if want == nil || !slices.Equal(want.Shape(), out[i].Shape()) || want.Shape()[0] < 8 {
			t.Fatalf("recorded %s is %v", p.Name, want)
		}
		if p.DType != tensor.Float32 {
			if string(want.Bytes()) != string(out[i].Bytes()) {
				t.Errorf("recorded %s is another", p.Name)
			}
			continue
		}
		for k, x := range want.Float32s() {
			if d := x - out[i].Float32s()[k]; d > 1e-4 || d < -1e-4 {
				t.Errorf("recorded %s: %g, computed %g", p.Name, x, out[i].Float32s()[k])
			}
		}
	}
}

// TestExportPrecision writes weights in lower precision, and a model that draws actions; each is a
// version made of the published one.
func TestExportPrecision(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := apptest.Trained(t, wide)
	e := apptest.Engines()[0]
	full := exported(t, dir, "--engine", e, "--out", filepath.Join(t.TempDir(), "x.onnx"), "--rows", "256").Models[0].Bytes
	for _, k := range []struct {
		flags []string
		most  float64 // of |Δ|
		bytes float64 // by the published model's
	}{{[]string{"--precision", "fp16"}, 0.01, 0.75}, {[]string{"--precision", "int8"}, 0.3, 0.95}, {[]string{"--sample"}, 0, 1.1}, {[]string{"--sample", "--precision", "fp16"}, 0.01, 0.8}} {
		out := filepath.Join(t.TempDir(), "store")
		r := exported(t, append([]string{dir, "--engine", e, "--format", "oci", "--out", out, "--rows", "256"}, k.flags...)...)
		if l := r.Loss; l == nil || l.Rows != 256 || l.Choices != 3*256 || l.MaxDelta > k.most || (l.MaxDelta == 0) != (k.most == 0) || l.MeanDelta > l.MaxDelta {
			t.Errorf("%v: loss %+v", k.flags, l)
		}
		if got := float64(r.Models[1].Bytes) / float64(full); got > k.bytes {
			t.Errorf("%v: %.2f × the size", k.flags, got)
		}
		s, v, err := artifact.Find(r.Name, out)
		if err != nil {
			t.Fatal(err)
		}
		m := v.Manifest
		if len(m.Parents) != 1 || m.Golden == nil || m.Golden.Rows != 4 || m.Features == nil || m.Inputs[0].Description == "" {
			t.Errorf("%v: manifest %+v", k.flags, m)
		}
		names := func(list []artifact.Port) (out []string) {
			for _, p := range list {
				out = append(out, p.Name)
			}
			return out
		}
		if sample := k.flags[0] == "--sample"; slices.Contains(names(m.Inputs), bake.NoiseInput) != sample || slices.Contains(names(m.Outputs), bake.SampleOutput) != sample {
			t.Errorf("%v: inputs %v, outputs %v", k.flags, names(m.Inputs), names(m.Outputs))
		}
		// The golden values hold with the other engines.
		for _, other := range apptest.Engines() {
			apptest.Succeed(t, "models", "verify", "--store", out, "--engine", other)
		}
		s.Close()
	}
}

// TestExportSources exports versions of stores, files in runs and files without any environment.
func TestExportSources(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := apptest.Trained(t, apptest.TinyMarket)
	config := filepath.Join(dir, run.ConfigFile)
	lone := filepath.Join(t.TempDir(), "lone.onnx")
	if err := os.WriteFile(lone, []byte(apptest.ReadText(t, filepath.Join(dir, "best.onnx"))), 0o600); err != nil {
		t.Fatal(err)
	}
	list := apptest.Decode[struct {
		Store    string       `json:"store"`
		Versions []versionDoc `json:"versions"`
	}](t, apptest.Succeed(t, "models", "ls", "--json", "--store", filepath.Join(dir, "artifacts")))
	name := list.Versions[0].Name
	for _, k := range []struct {
		target                []string
		trained, observations string
	}{
		{[]string{dir}, "checkpoint", "recorded"},
		{[]string{filepath.Join(dir, "best.onnx")}, "checkpoint", "recorded"},
		{[]string{filepath.Join(dir, "artifacts") + "//" + name + ":best"}, "checkpoint", "recorded"},
		{[]string{name, "--store", filepath.Join(dir, "artifacts")}, "checkpoint", "recorded"},
		{[]string{lone}, "file", "made up"},
		{[]string{lone, "--config", config}, "file", "recorded"},
	} {
		r := exported(t, append(k.target, "--out", filepath.Join(t.TempDir(), "out.onnx"), "--rows", "64")...)
		if r.Trained != k.trained || r.Observations != k.observations || r.Name != name || r.Parity.Choices == 0 {
			t.Errorf("%v: %+v", k.target, r)
		}
	}
}

// TestExportOpenExtents exports a model that leaves more open than the batch.
func TestExportOpenExtents(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder("open", 17)
	x := b.Input("x", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Symbol("time"), onnx.Known(2)}})
	b.Output(b.Rename(b.Op("MatMul", []onnx.Value{x, b.Initializer("w", tensor.Of([]float32{1, 2}, 2, 1))}), "y"),
		onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Symbol("time"), onnx.Known(1)}})
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "open.onnx")
	if err := onnx.Save(path, m, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	apptest.Refuse(t, []string{"export", path, "--out", filepath.Join(t.TempDir(), "x.onnx")}, "give --bind time=NUMBER")
	for _, form := range []string{"onnx", "triton", "python", "oci"} {
		if r := exported(t, path, "--format", form, "--out", filepath.Join(t.TempDir(), "x"), "--rows", "20", "--bind", "time=5"); r.Rows != 20 {
			t.Errorf("%s: %+v", form, r)
		}
	}
}

// TestExportSequences exports a model that remembers, which no environment knows.
func TestExportSequences(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder("frames", 17)
	x := b.Input("x", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Known(3), onnx.Known(2)}})
	y := b.Op("MatMul", []onnx.Value{b.Op("Reshape", []onnx.Value{x, b.Ints(-1, 6)}), b.Initializer("w", tensor.Of([]float32{1, 2, 3, 4, 5, 6}, 6, 1))})
	b.Output(b.Rename(y, "y"), onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Known(1)}})
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if m, err = bake.Stack(m, bake.Frames{Input: "x", Repeat: true}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "frames.onnx")
	if err := onnx.Save(path, m, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"triton", "python"} {
		out := t.TempDir()
		r := exported(t, path, "--format", form, "--out", out, "--rows", "20")
		if r.Parity.MaxError > bake.Tolerance || r.Rows != 20 || r.Name != "frames" {
			t.Errorf("%s: %+v", form, r)
		}
	}
}

// TestExportOptimized writes what ONNX Runtime makes of a graph; TestExportRefuses has the engine
// that writes none.
func TestExportOptimized(t *testing.T) {
	t.Parallel()
	path := undecided(t)
	for _, e := range apptest.Engines() {
		if e == portable.Name {
			continue
		}
		out := filepath.Join(t.TempDir(), "optimized.onnx")
		r := exported(t, path, "--engine", e, "--out", filepath.Join(t.TempDir(), "x.onnx"), "--rows", "16", "--optimized", out)
		m, err := onnx.Load(out)
		if err != nil || len(r.Models) != 3 || r.Models[2].Name != "optimised" || r.Models[2].Nodes != len(m.Graph.Node) || r.Models[2].Micros != nil {
			t.Errorf("%s: %+v, %v", e, r.Models, err)
		}
		out = filepath.Join(t.TempDir(), "optimized.ort")
		r = exported(t, path, "--engine", e, "--out", filepath.Join(t.TempDir(), "x.onnx"), "--rows", "16", "--optimized", out)
		if text := apptest.ReadText(t, out); text[4:8] != ortMagic || len(r.Models) != 3 || r.Models[2].Nodes != 0 || r.Models[2].Bytes != len(text) {
			t.Errorf("%s: %q, %+v", e, text[:8], r.Models)
		}
	}
}

// TestExportTies exports a policy that cannot decide, with and without leave.
func TestExportTies(t *testing.T) {
	t.Parallel()
	path, out := undecided(t), filepath.Join(t.TempDir(), "x.onnx")
	r := apptest.Run(t, "export", path, "--out", out, "--rows", "50")
	if _, err := os.Stat(out); r.Code == 0 || err == nil || !strings.Contains(r.Err, "--allow-ties accepts them") || !strings.Contains(r.Err, "1 %") {
		t.Errorf("status %d, %q, %v", r.Code, r.Err, err)
	}
	// 4 batches of 1 and of 7 rows, and one of all.
	if p := exported(t, path, "--out", out, "--rows", "50").Parity; p.Ties != 4+28+50 || p.Choices != p.Ties {
		t.Errorf("%+v", p)
	}
}

// undecided writes a policy that gives both of its actions the same score.
func undecided(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "undecided.onnx")
	if err := onnx.Save(path, undecidedModel(t), onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

func undecidedModel(t *testing.T) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("undecided", 17)
	row := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("n"), onnx.Known(2)}}
	scores := b.Rename(b.Op("Mul", []onnx.Value{b.Input("x", row), b.Float(0)}), "log_probs")
	action := b.Op("ArgMax", []onnx.Value{scores}, onnx.AttrInt("axis", 1), onnx.AttrInt("keepdims", 0))
	b.Output(b.Rename(action, "action"), onnx.TensorType{DType: tensor.Int64, Ranked: true, Dims: row.Dims[:1]})
	b.Output(scores, row)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	m.SetMeta("onnxrl.heads", "2")
	return m
}

func TestExportRefuses(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := apptest.Trained(t, apptest.TinyMarket)
	best := filepath.Join(dir, "best.onnx")
	broken := filepath.Join(t.TempDir(), "broken.onnx")
	if err := os.WriteFile(broken, []byte("no model"), 0o600); err != nil {
		t.Fatal(err)
	}
	fixed := filepath.Join(t.TempDir(), "fixed.onnx")
	b := onnx.NewBuilder("fixed", 17)
	b.Output(b.Rename(b.Op("Relu", []onnx.Value{b.Input("x", onnx.TypeOf(tensor.Float32, 2, 3))}), "y"), onnx.TypeOf(tensor.Float32, 2, 3))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	if err := onnx.Save(fixed, m, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	cases := 0
	for _, k := range []struct {
		args []string
		want string
	}{
		{[]string{dir}, `required flag(s) "out" not set`},
		{[]string{dir, "--out", out, "--format", "tensorrt"}, "expected onnx, triton, oci, python"},
		{[]string{dir, "--out", out, "--rows", "0"}, "--rows 0: expected at least 1"},
		{[]string{dir, "--out", out, "--precision", "bf16"}, "--precision bf16: expected float32, fp16 or int8"},
		{[]string{dir, "--out", out, "--max-changed", "0.1"}, "--max-changed: it means nothing with --precision float32"},
		{[]string{dir, "--out", out, "--name", "No Name"}, "give --name"},
		{[]string{t.TempDir(), "--out", out}, "no published policy (best.onnx)"},
		{[]string{filepath.Join(dir, "none.onnx"), "--out", out}, "there is no such file"},
		{[]string{filepath.Join(dir, "artifacts") + "//none", "--out", out}, "as an artefact"},
		{[]string{broken, "--out", out}, "broken.onnx"},
		{[]string{fixed, "--out", out, "--format", "python"}, "--format python needs a batch that is free"},
		{[]string{best, "--out", out, "--config", broken}, "broken.onnx"},
		{[]string{dir, "--out", out, "--precision", "int8", "--rows", "64"}, "large enough to keep in lower precision"},
		{[]string{dir, "--out", full, "--format", "python", "--rows", "64", "--allow-ties"}, "not empty"},
		{[]string{dir, "--out", out, "--rows", "64", "--allow-ties", "--engine", "portable", "--optimized", filepath.Join(t.TempDir(), "o.onnx")}, "does not write optimised graphs"},
	} {
		r := apptest.Run(t, append([]string{"export"}, k.args...)...)
		if r.Code == 0 || !strings.Contains(r.Err, k.want) {
			t.Errorf("%v: status %d, %q, want %q", k.args, r.Code, r.Err, k.want)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%v: something was written", k.args)
		}
		cases++
	}
	if cases != 15 {
		t.Errorf("%d cases", cases)
	}
}
