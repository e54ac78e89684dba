//go:build cgo && unix

package app

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/export/serve/prove"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Commands that open models which others wrote have each tried in a process of its own: one that
// ends that process is refused, one for which the system killed it, as for want of memory, is not.
func TestForeignModelsAreTriedFirst(t *testing.T) {
	dir := t.TempDir()
	b := onnx.NewBuilder("net", 18)
	x := b.Input("x", onnx.TypeOf(tensor.Float32, 2, 3))
	b.Output(b.Op("MatMul", []onnx.Value{x, b.Initializer("w", tensor.Of([]float32{1, 2, 3}, 3, 1))}), onnx.TypeOf(tensor.Float32, 2, 1))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	model := filepath.Join(dir, "net.onnx")
	if err := onnx.Save(model, m, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	data := apptest.Write(t, "data.csv", "a,b,c,y\n1,2,3,4\n2,3,4,5\n3,4,5,6\n4,5,6,7\n")
	run := func(script string, args ...string) (int, string) {
		var out, errs strings.Builder
		a := newApp("onnxrl", strings.NewReader(""), &out, &errs)
		a.tries = &prove.Process{Argv: []string{"/bin/sh", "-c", `echo '{"Stage":"compiling"}'; kill -` + script + ` $$`}}
		status := a.run(t.Context(), a.command(), append(args, "--engine", ort.Name))
		return status, out.String() + errs.String()
	}
	for _, args := range [][]string{
		{"compare", model, "--engines", "ort,ort"}, {"grad", "trace", model}, {"grad", "check", torchFixtures + "/activations"},
		{"models", "publish", model, "--golden", "--store", filepath.Join(dir, "store")},
		{"fit", "--model", model, "--data", data, "--input", "x=a,b,c", "--target", "MatMul=y", "--loss", "mse", "--batch", "2", "--dir", filepath.Join(dir, "run"), "--out", filepath.Join(dir, "o.onnx")},
	} {
		if status, errs := run("SEGV", args...); status == 0 || !strings.Contains(errs, "would have ended this process") {
			t.Errorf("%s: status %d, %s", strings.Join(args, " "), status, errs)
		}
	}
	if status, errs := run("KILL", "compare", model, "--engines", "ort,ort"); status != 0 {
		t.Errorf("compare, with the trial killed: status %d, %s", status, errs)
	}
}
