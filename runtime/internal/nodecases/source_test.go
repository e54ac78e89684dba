package nodecases_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/internal/nodecases"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// archive writes files as a .tar.gz and returns its path.
func archive(t *testing.T, files map[string]string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, data := range sorted.All(files) {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(data)), Mode: 0o644}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cases.tar.gz")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpen(t *testing.T) {
	files := map[string]string{
		"node/test_b/model.onnx": "B", "node/test_a/model.onnx": "A", "node/test_a/test_data_set_0/input_0.pb": "a0", "node/test_a/test_data_set_0/input_1.pb": "a1",
		"node/test_a/test_data_set_1/output_0.pb": "ao", "node/README": "ignored", "node/test_a/test_data_set_0/notes.txt": "ignored",
	}
	dir := t.TempDir()
	for name, data := range sorted.All(files) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{dir, archive(t, files)} {
		cases, err := nodecases.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(cases) != 2 || cases[0].Name != "test_a" || string(cases[1].Model) != "B" || len(cases[0].Sets) != 2 ||
			string(cases[0].Sets[0].Inputs[1]) != "a1" || string(cases[0].Sets[1].Outputs[0]) != "ao" {
			t.Errorf("%s: got %+v", path, cases)
		}
	}
	for name, path := range sorted.All(map[string]string{
		"missing":          filepath.Join(dir, "nowhere"),
		"no cases":         archive(t, map[string]string{"README": ""}),
		"no model":         archive(t, map[string]string{"test_a/test_data_set_0/input_0.pb": ""}),
		"not an archive":   filepath.Join(dir, "node", "README"),
		"no such data set": archive(t, map[string]string{"test_a/test_data_set_99999/input_0.pb": ""}),
	}) {
		if _, err := nodecases.Open(path); err == nil {
			t.Errorf("%s: it opened", name)
		}
	}
}

// TestCompareCanFail shows that the comparison notices what it is for.
func TestCompareCanFail(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	tol := nodecases.Tolerance{Rel: 1e-3, Abs: 1e-6}
	vec := func(v ...float32) *tensor.Tensor { return tensor.Of(v, len(v)) }
	for _, c := range []struct {
		name      string
		got, want *tensor.Tensor
		equal     bool
	}{
		{"equal", vec(1, nan, inf), vec(1, nan, inf), true},
		{"within", vec(1000.9), vec(1000), true},
		{"beyond", vec(1001.1), vec(1000), false},
		{"tiny", vec(5e-7), vec(0), true},
		{"not so tiny", vec(5e-6), vec(0), false},
		{"nan for a number", vec(nan), vec(1), false},
		{"a number for nan", vec(1), vec(nan), false},
		{"infinity for a number", vec(inf), vec(1e30), false},
		{"a number for infinity", vec(1e30), vec(inf), false},
		{"shape", tensor.Of([]float32{1, 2}, 1, 2), vec(1, 2), false},
		{"type", tensor.Of([]float64{1}, 1), vec(1), false},
		{"integer off by one", tensor.Of([]int64{1000}, 1), tensor.Of([]int64{1001}, 1), false},
		{"bool", tensor.Of([]bool{true}, 1), tensor.Of([]bool{false}, 1), false},
		{"string", tensor.OfStrings([]string{"a"}, 1), tensor.OfStrings([]string{"b"}, 1), false},
		{"nothing", nil, vec(1), false},
	} {
		if err := nodecases.Compare(c.got, c.want, tol); (err == nil) != c.equal {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestRunReportsFailures spoils cases and looks at their outcomes.
func TestRunReportsFailures(t *testing.T) {
	cases, err := nodecases.Open(filepath.Join("testdata", "own.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	cases = cases[:3]
	// Another case's output, a truncated model, a missing input.
	cases[0].Sets = []nodecases.Set{{Inputs: cases[0].Sets[0].Inputs, Outputs: cases[2].Sets[0].Outputs}}
	cases[1].Model = cases[1].Model[:len(cases[1].Model)/2]
	cases[2].Sets = []nodecases.Set{{Outputs: cases[2].Sets[0].Outputs}}
	e := portable.New()
	defer e.Close()
	rs, err := nodecases.Run(t.Context(), cases, e, nodecases.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rs {
		if r.Outcome != nodecases.Fail || r.Reason == "" {
			t.Errorf("%+v, expected a failure with a reason", r)
		}
	}
	// A failure needs an explanation, which stays while the outcome does.
	var b strings.Builder
	if err := nodecases.WriteExceptions(&b, "portable", rs, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := nodecases.ReadExceptions(strings.NewReader(b.String())); err == nil || !strings.Contains(err.Error(), "line 2: no reason why "+rs[0].Name) {
		t.Errorf("failures without a reason: %v", err)
	}
	b.Reset()
	before := map[string]nodecases.Exception{}
	for _, r := range rs {
		before[r.Name] = nodecases.Exception{Outcome: nodecases.Fail, Reason: "it is cut off"}
	}
	if err := nodecases.WriteExceptions(&b, "portable", rs, before); err != nil {
		t.Fatal(err)
	}
	listed, err := nodecases.ReadExceptions(strings.NewReader(b.String()))
	if err != nil || len(listed) != 3 || listed[rs[0].Name] != before[rs[0].Name] {
		t.Fatalf("%v, %v", listed, err)
	}
	if worse, other := nodecases.Changes(rs, listed); len(worse) != 0 || len(other) != 0 {
		t.Errorf("worse %v, other %v, expected none", worse, other)
	}
	// One passes now, another is not listed, a third is not there any more.
	rs[0].Outcome = nodecases.Pass
	delete(listed, rs[1].Name)
	listed["test_gone"] = nodecases.Exception{Outcome: nodecases.Skip, Reason: "random"}
	if worse, other := nodecases.Changes(rs, listed); len(worse) != 1 || len(other) != 2 {
		t.Errorf("worse %v, other %v, expected one and two", worse, other)
	}
}
