package format

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
	"github.com/onnxrl/onnxrl/runtime/tensor/npy"
)

// modelOf is a policy of frames [batch, 2, 3] and a mask, with an action, scores, and a value
// without an extent beside the batch.
func modelOf(t *testing.T) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("policy", 13)
	row := func(d tensor.DType, dims ...int) onnx.TensorType {
		tt := onnx.TensorType{DType: d, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch")}}
		for _, n := range dims {
			tt.Dims = append(tt.Dims, onnx.Known(n))
		}
		return tt
	}
	x, mask := b.Input("window", row(tensor.Float32, 2, 3)), b.Input("mask", row(tensor.Bool, 4))
	w := tensor.New(tensor.Float32, 6, 4)
	for i := range w.Float32s() {
		w.Float32s()[i] = float32(i%7) - 3
	}
	z := b.Op("MatMul", []onnx.Value{b.Op("Reshape", []onnx.Value{x, b.Ints(-1, 6)}), b.Initializer("w", w)})
	z = b.Rename(b.Op("Where", []onnx.Value{mask, z, b.Float(-1e8)}), "scores")
	b.Output(b.Rename(b.Op("ArgMax", []onnx.Value{z}, onnx.AttrInt("axis", 1), onnx.AttrInt("keepdims", 0)), "action"), row(tensor.Int64))
	b.Output(z, row(tensor.Float32, 4))
	b.Output(b.Rename(b.Op("ReduceSum", []onnx.Value{x, b.Ints(1, 2)}, onnx.AttrInt("keepdims", 0)), "value"), row(tensor.Float32))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	m.SetMeta("onnxrl.seed", "7")
	return m
}

// packageOf runs the model on some rows.
func packageOf(t *testing.T, m *onnx.Model) *Package {
	t.Helper()
	const rows = 5
	p := &Package{Name: "policy", Model: m, Inputs: map[string]*tensor.Tensor{}, Outputs: map[string]*tensor.Tensor{}, Manifest: artifact.Manifest{Description: "A test", Inputs: []artifact.Port{{Name: "window", Description: "the last two days"}}}}
	s, err := portable.New().Compile(m, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var in []*tensor.Tensor
	for _, port := range s.Inputs() {
		x := tensor.New(port.DType, append([]int{rows}, port.Shape[1:]...)...)
		for i := range x.Len() {
			if x.DType() == tensor.Bool {
				x.Bools()[i] = i%3 != 0
			} else {
				x.Float32s()[i] = float32(i*i%11) / 4
			}
		}
		in, p.Inputs[port.Name] = append(in, x), x
	}
	out := make([]*tensor.Tensor, len(s.Outputs()))
	if err := s.Run(t.Context(), out, in); err != nil {
		t.Fatal(err)
	}
	for i, port := range s.Outputs() {
		p.Outputs[port.Name] = out[i]
	}
	return p
}

func write(t *testing.T, name, out string, p *Package) ([]string, error) {
	t.Helper()
	f, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return f.Write(t.Context(), out, p)
}

func marshal(t *testing.T, m *onnx.Model) string {
	t.Helper()
	b, err := onnx.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestEveryFormKeepsTheModel writes each form and reads the model back, and the list of files is
// what is there.
func TestEveryFormKeepsTheModel(t *testing.T) {
	p := packageOf(t, modelOf(t))
	forms := Forms()
	for _, f := range forms {
		dir := t.TempDir()
		out := filepath.Join(dir, "a", "b")
		files, err := f.Write(t.Context(), out, p)
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		var there []string
		found := false
		err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() && e.Name() != ".lock" {
				there = append(there, path)
				found = found || read(t, path) == marshal(t, p.Model)
			}
			return err
		})
		if err != nil || !slices.Equal(there, files) {
			t.Errorf("%s: files %v, there are %v, %v", f.Name, files, there, err)
		}
		if !found {
			t.Errorf("%s: no file is the model", f.Name)
		}
	}
	if len(forms) != 4 {
		t.Errorf("%d forms", len(forms))
	}
	if _, err := Lookup("tensorrt"); err == nil || !strings.Contains(err.Error(), "expected onnx, triton, oci, python") {
		t.Errorf("error %v", err)
	}
}

func TestOCIKeepsTheDigest(t *testing.T) {
	p := packageOf(t, modelOf(t))
	p.Golden = &artifact.Golden{Inputs: p.Inputs, Outputs: p.Outputs}
	p.Files = []artifact.NewFile{{Title: "notes.txt", Data: []byte("x")}}
	first := filepath.Join(t.TempDir(), "store")
	if _, err := write(t, "oci", first, p); err != nil {
		t.Fatal(err)
	}
	s, v, err := artifact.Find("policy", first)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if n, _, err := v.CheckGolden(t.Context(), portable.New()); err != nil || n == 0 || v.Manifest.Kind != "model" {
		t.Errorf("%d golden values, %v, %+v", n, err, v.Manifest)
	}
	again := *p
	again.Manifest = v.Manifest
	second := filepath.Join(t.TempDir(), "store")
	if _, err := write(t, "oci", second, &again); err != nil {
		t.Fatal(err)
	}
	s2, w, err := artifact.Find("policy", second)
	if err != nil || w.Digest != v.Digest {
		t.Errorf("%s became %s, %v", v.Digest, w.Digest, err)
	}
	s2.Close()
}

// TestPythonIsComplete compares the recorded arrays with what the engine gives for them; the
// example itself is run by cmd/peers/export_python.sh.
func TestPythonIsComplete(t *testing.T) {
	p := packageOf(t, modelOf(t))
	out := filepath.Join(t.TempDir(), "policy")
	files, err := write(t, "python", out, p)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		names = append(names, filepath.Base(f))
	}
	if want := "README.md agent.py example.py model.onnx recorded.npz"; strings.Join(names, " ") != want {
		t.Errorf("files %v, want %s", names, want)
	}
	text := read(t, out, "recorded.npz")
	z, err := zip.NewReader(strings.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
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
		if arrays[f.Name], err = npy.Decode(b); err != nil {
			t.Fatal(err)
		}
	}
	if len(arrays) != len(p.Inputs)+len(p.Outputs) {
		t.Errorf("%d arrays", len(arrays))
	}
	for prefix, set := range sorted.All(map[string]map[string]*tensor.Tensor{"input.": p.Inputs, "output.": p.Outputs}) {
		for name, want := range sorted.All(set) {
			if got := arrays[prefix+name+".npy"]; got == nil || !slices.Equal(got.Shape(), want.Shape()) || !bytes.Equal(got.Bytes(), want.Bytes()) {
				t.Errorf("%s%s: %v", prefix, name, got)
			}
		}
	}
	for file, list := range sorted.All(map[string][]string{
		"example.py": {"import numpy as np", "import onnxruntime", `recorded.npz`, "sys.exit(bad > 0)"},
		"agent.py":   {"def predict(self, observation, state=None, episode_start=None, deterministic=None, action_masks=None)", "allow_nonfinite=False", "nonfinite_refused += 1"},
		"README.md":  {"# policy", "A test.", "| input | `window` | float32[-1 2 3] | the last two days |", "| output | `value` | float32[-1] |", "onnxrl.seed: 7", "5 recorded observations"},
	}) {
		for _, want := range list {
			if !strings.Contains(read(t, out, file), want) {
				t.Errorf("%s does not say %q", file, want)
			}
		}
	}
	if n := strings.Count(read(t, out, "example.py"), "\n"); n > 35 {
		t.Errorf("the example has %d lines", n)
	}
	for _, file := range []string{"agent.py", "example.py"} {
		for line := range strings.Lines(read(t, out, file)) {
			module, ok := strings.CutPrefix(strings.TrimSpace(line), "import ")
			if known := []string{"json", "os", "sys", "warnings", "numpy as np", "onnxruntime"}; ok && !slices.Contains(known, module) {
				t.Errorf("%s imports %s", file, module)
			}
		}
	}
}

// TestBadPackagesLeaveNothing writes packages that cannot be written.
func TestBadPackagesLeaveNothing(t *testing.T) {
	good := func() *Package { return packageOf(t, modelOf(t)) }
	cases := 0
	for _, k := range []struct {
		name  string
		forms []string
		edit  func(p *Package)
		want  string
	}{
		{"name", []string{"onnx", "triton", "oci", "python"}, func(p *Package) { p.Name = "../up" }, "../up"},
		{"folders in the name", []string{"triton"}, func(p *Package) { p.Name = "a/b" }, "one folder"},
		{"an invalid model", []string{"onnx", "triton", "oci", "python"}, func(p *Package) { p.Model.Graph.Node[0].OpType = "Nonsense" }, "Nonsense"},
		{"states that the model lacks", []string{"onnx", "triton", "oci", "python"}, func(p *Package) {
			p.Model.SetMeta(models.StateKey, `[{"input":"a","output":"b","shape":[1],"initial":[0]}]`)
		}, `has no "a"`},
		{"no rows", []string{"triton", "python"}, func(p *Package) { p.Inputs = nil }, `recorded rows of "window"`},
		{"rows of different number", []string{"triton", "python"}, func(p *Package) { p.Outputs["value"] = p.Outputs["value"].Rows(0, 2) }, `recorded rows of "value"`},
		{"a fixed batch", []string{"triton"}, func(p *Package) {
			p.Model.Graph.Input[1] = onnx.NewValueInfo("mask", onnx.TypeOf(tensor.Bool, 5, 4))
		}, "symbolic batch"},
	} {
		for _, form := range k.forms {
			p := good()
			k.edit(p)
			dir := t.TempDir()
			if _, err := write(t, form, filepath.Join(dir, "out"), p); err == nil || !strings.Contains(err.Error(), k.want) {
				t.Errorf("%s, %s: error %v, want %q", k.name, form, err, k.want)
			}
			if list, err := os.ReadDir(dir); err != nil || len(list) != 0 {
				t.Errorf("%s, %s: left %v, %v", k.name, form, list, err)
			}
			cases++
		}
	}
	// Existing files are not written over.
	for _, form := range []string{"oci", "python"} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := write(t, form, dir, good()); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s into a folder with files: error %v", form, err)
		}
		cases++
	}
	if cases != 20 {
		t.Errorf("%d cases", cases)
	}
}
