package app

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The fixtures that PyTorch computed: the counts are exact, so that a fixture that is not found
// cannot pass.
const torchModels, torchTensors = 14, 131

// TestGradCheckTorch checks them all on the pure-Go engine; TestGradBuildTwice checks on every engine,
// and so does package gradcheck's TestTorch, with all of these.
func TestGradCheckTorch(t *testing.T) {
	t.Parallel()
	last := regexp.MustCompile(`^(\d+) models, (\d+) tensors, max error (\S+)$`)
	out := apptest.Succeed(t, "grad", "check", torchFixtures, "--engine", "portable")
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	m := last.FindStringSubmatch(lines[len(lines)-1])
	if m == nil || m[1] != strconv.Itoa(torchModels) || m[2] != strconv.Itoa(torchTensors) {
		t.Fatalf("last line %q, expected %d models, %d tensors", lines[len(lines)-1], torchModels, torchTensors)
	}
	if e, err := strconv.ParseFloat(m[3], 64); err != nil || e > 1e-4 || e == 0 {
		t.Errorf("max error %s", m[3])
	}
	// One line for each model, one for the gradient that is zero in theory, and the last.
	if len(lines) != torchModels+2 || !strings.Contains(out, "k.bias  error") || !strings.Contains(out, "rounding noise") {
		t.Errorf("%d lines for %d models\n%s", len(lines), torchModels, out)
	}
}

func TestGradCheckJSON(t *testing.T) {
	t.Parallel()
	got := apptest.Decode[gradCheck](t, apptest.Succeed(t, "grad", "check", torchFixtures+"/mlp_relu", torchFixtures+"/reduces", "--json", "--engine", "portable"))
	if len(got.Models) != 2 || got.Tensors != 14 || !got.OK || got.Engine != "portable" || got.MaxError == nil || *got.MaxError > 1e-4 {
		t.Errorf("got %+v", got)
	}
	for _, m := range got.Models {
		for _, k := range m.Tensors {
			if k.Name == "" || k.MaxError == nil || !slices.Contains([]string{"output", "param", "input"}, k.Kind) {
				t.Errorf("%s: %+v", m.Dir, k)
			}
		}
	}
}

// fixtureCopy is a fixture that a test may spoil.
func fixtureCopy(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "spoiled")
	if err := os.CopyFS(dir, os.DirFS(torchFixtures+"/mlp_relu")); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestGradCheckFails(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		spoil func(dir string) error
		says  []string
	}{
		{"wrong gradient", func(dir string) error {
			path := filepath.Join(dir, "data/grad_param_01.pb")
			name, x, err := onnx.ReadTensor(path)
			if err != nil {
				return err
			}
			x = x.Clone()
			x.Float32s()[0] += 0.25
			return onnx.WriteTensor(path, name, x)
		}, []string{"FAIL", "param", "8 tensors"}},
		{"unknown parameter", func(dir string) error {
			return onnx.WriteTensor(filepath.Join(dir, "data/grad_param_99.pb"), "no.such.weight", tensor.New(tensor.Float32, 2))
		}, []string{"FAIL", "no.such.weight", "max error +Inf"}},
		{"no cotangent", func(dir string) error { return os.Remove(filepath.Join(dir, "data/cotangent_0.pb")) }, []string{"FAIL", "cotangent"}},
		{"no input", func(dir string) error { return os.Remove(filepath.Join(dir, "data/input_0.pb")) }, []string{"FAIL", "input_"}},
		{"truncated tensor", func(dir string) error { return os.Truncate(filepath.Join(dir, "data/output_0.pb"), 20) }, []string{"FAIL", "output_0.pb"}},
		{"truncated model", func(dir string) error { return os.Truncate(filepath.Join(dir, "model.onnx"), 300) }, []string{"FAIL", "model.onnx"}},
		{"no data", func(dir string) error { return os.RemoveAll(filepath.Join(dir, "data")) }, []string{"FAIL", "data"}},
	}
	for _, c := range tests {
		dir := fixtureCopy(t)
		if err := c.spoil(dir); err != nil {
			t.Fatal(err)
		}
		r := apptest.Run(t, "grad", "check", dir, torchFixtures+"/lstm", "--engine", "portable")
		if r.Code != 1 {
			t.Errorf("%s: exit status %d\n%s", c.name, r.Code, r.Out)
		}
		for _, s := range append(c.says, "\n2 models, ") {
			if !strings.Contains(r.Out, s) {
				t.Errorf("%s: the output does not say %q:\n%s", c.name, s, r.Out)
			}
		}
	}
	apptest.Refuse(t, []string{"grad", "check", t.TempDir()}, "no model.onnx")
	apptest.Refuse(t, []string{"grad", "check", torchFixtures + "/mlp_relu/model.onnx"}, "is a file", "expected a directory")
	apptest.Refuse(t, []string{"grad", "check", "absent"}, "absent")
}

func TestGradOps(t *testing.T) {
	t.Parallel()
	table := apptest.Decode[gradOps](t, apptest.Succeed(t, "grad", "ops", "--json"))
	if table.Specified != 119 || table.ORTTraining != 65 || table.Verified || table.Comparisons != 0 {
		t.Errorf("%d operators, %d of ONNX Runtime training, verified %v", table.Specified, table.ORTTraining, table.Verified)
	}
	covered := 0
	for _, g := range table.Operators {
		if g.Covered {
			covered++
			if g.Rule == "none" || g.Cases < 3 {
				t.Errorf("%s counts with rule %s and %d cases", g.Op, g.Rule, g.Cases)
			}
		}
	}
	if covered != table.Covered || covered < 105 {
		t.Errorf("%d operators counted, %d in the list, at least 105 expected", table.Covered, covered)
	}
	text := apptest.Succeed(t, "grad", "ops")
	want := fmt.Sprintf("%d/119 differentiable operators covered (ONNX Runtime training: 65), not verified on this machine; --verify does\n", covered)
	if !strings.HasSuffix(text, want) {
		t.Errorf("the table does not end with %q:\n%s", want, text[max(0, len(text)-300):])
	}
	if n := strings.Count(text, "\n"); n != 119+len(table.Beyond)+3 {
		t.Errorf("the table has %d lines for %d operators", n, 119+len(table.Beyond))
	}
}

// Without ONNX Runtime the verification must not look complete.
func TestGradOpsVerifyWithoutORT(t *testing.T) {
	t.Parallel()
	cmd := apptest.Program(t, "grad", "ops", "--verify", "Relu", "--no-install")
	for i, kv := range cmd.Env {
		if strings.HasPrefix(kv, "HOME=") || strings.HasPrefix(kv, "XDG_CACHE_HOME=") || strings.HasPrefix(kv, "ONNXRL_ORT") {
			cmd.Env[i] = "UNUSED="
		}
	}
	empty := t.TempDir()
	cmd.Env = append(cmd.Env, "HOME="+empty, "XDG_CACHE_HOME="+empty)
	out, err := cmd.CombinedOutput()
	if err == nil && strings.Contains(string(out), "on ort and portable\n") {
		return // A system-wide ONNX Runtime was found, and used.
	}
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "ONNX Runtime is not available") || !strings.Contains(string(out), "on portable only: ort is not available") {
		t.Errorf("exit status %d:\n%s", cmd.ProcessState.ExitCode(), out)
	}
}

func TestGradBuild(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "grad.onnx")
	got := apptest.Decode[gradBuild](t, apptest.Succeed(t, "grad", "build", torchFixtures+"/mlp_relu/model.onnx", "--wrt", "*.weight", "--wrt", "x0", "--freeze", "b.*", "-o", out, "--json"))
	var names []string
	for _, g := range got.Gradients {
		names = append(names, g.Output+" "+g.Type)
	}
	if want := []string{"grad/a.weight float32[16,7]", "grad/c.weight float32[3,16]", "grad/x0 float32[6,7]"}; !slices.Equal(names, want) {
		t.Errorf("gradients %v, expected %v", names, want)
	}
	m, err := onnx.Load(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := onnx.Check(m); err != nil {
		t.Error(err)
	}
	if len(m.Graph.Node) != got.ForwardNodes+got.GradientNodes || got.ForwardNodes != 5 {
		t.Errorf("%d nodes written, %d and %d reported", len(m.Graph.Node), got.ForwardNodes, got.GradientNodes)
	}
	// Both engines run it and agree.
	apptest.Succeed(t, "compare", out, "--engines", enginePair())

	// A supervised loss brings inputs for targets and weights; cotangents bring one per loss.
	affine := apptest.Save(t, build(t, func(b *onnx.Builder, x, w onnx.Value) []onnx.Value {
		return []onnx.Value{b.Rename(b.Op("MatMul", []onnx.Value{x, w}), "y")}
	}))
	got = apptest.Decode[gradBuild](t, apptest.Succeed(t, "grad", "build", affine, "--loss", "mse:y", "--bind", "batch=3", "-o", out, "--json"))
	if len(got.Inputs) != 3 || len(got.Gradients) != 1 || got.Gradients[0].Type != "float32[4,4]" {
		t.Errorf("supervised: %+v", got)
	}
	got = apptest.Decode[gradBuild](t, apptest.Succeed(t, "grad", "build", affine, "--loss", "y=0.5", "--cotangents", "--wrt", "x", "--bind", "batch=3", "-o", out, "--json"))
	if want := []string{"x float32[3,4]", "cotangent/y float32[3,4]"}; !slices.Equal(got.Inputs, want) {
		t.Errorf("inputs %v, expected %v", got.Inputs, want)
	}

	// Without parameters the gradient is that of the inputs.
	plain := apptest.Save(t, build(t, func(b *onnx.Builder, x, _ onnx.Value) []onnx.Value {
		b.Graph().Initializer = nil
		return []onnx.Value{b.Op("Tanh", []onnx.Value{x})}
	}))
	got = apptest.Decode[gradBuild](t, apptest.Succeed(t, "grad", "build", plain, "--bind", "batch=3", "-o", out, "--json"))
	if len(got.Gradients) != 1 || got.Gradients[0].Wrt != "x" {
		t.Errorf("no parameters: %+v", got.Gradients)
	}

	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{affine, "-o", out, "--bind", "bach=3"}, "it has batch"},
		{[]string{affine, "-o", out, "--bind", "batch"}, "expected NAME=NUMBER"},
		{[]string{affine, "-o", out, "--bind", "batch=3", "--loss", "nope"}, `"nope"`},
		{[]string{affine, "-o", out, "--bind", "batch=3", "--loss", "y=0"}, "weight of 0"},
		{[]string{affine, "-o", out, "--bind", "batch=3", "--wrt", "b*"}, `"b*"`},
		{[]string{affine, "-o", out, "--bind", "batch=3", "--stop", "nope"}, `"nope"`},
		{[]string{affine, "-o", filepath.Join(out, "below", "g.onnx"), "--bind", "batch=3"}, "g.onnx"},
		{[]string{affine, "--bind", "batch=3"}, `"out"`},
	} {
		apptest.Refuse(t, append([]string{"grad", "build"}, c.args...), c.says)
	}
}

// TestGradBuildTwice compares Hessian-vector products with PyTorch's, which
// cmd/peers/second_order.py wrote, and builds third-order gradients: no name clashes with an
// earlier one.
func TestGradBuildTwice(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, second, third := filepath.Join(dir, "model.onnx"), filepath.Join(dir, "second", "model.onnx"), filepath.Join(dir, "second", "third.onnx")
	apptest.Succeed(t, "grad", "build", torchFixtures+"/mlp_tanh/model.onnx", "-o", first)
	if err := os.CopyFS(filepath.Join(dir, "data"), os.DirFS(filepath.Join(torchFixtures, "..", "second", "mlp_tanh", "data"))); err != nil {
		t.Fatal(err)
	}
	for _, engine := range apptest.Engines() {
		got := apptest.Decode[gradCheck](t, apptest.Succeed(t, "grad", "check", dir, "--json", "--engine", engine))
		if len(got.Models) != 1 || got.Tensors != 8 || !got.OK || got.MaxError == nil || *got.MaxError > 1e-5 {
			t.Errorf("%s: %+v", engine, got)
		}
	}
	if err := os.Mkdir(filepath.Dir(second), 0o755); err != nil {
		t.Fatal(err)
	}
	want := []string{"a.weight", "a.bias", "b.weight", "b.bias", "c.weight", "c.bias"}
	for i, step := range [][]string{{first, second, "grad/a.weight"}, {second, third, "grad2/a.weight"}} {
		b := apptest.Decode[gradBuild](t, apptest.Succeed(t, "grad", "build", step[0], "--loss", step[2], "--cotangents", "-o", step[1], "--json"))
		var names []string
		for _, g := range b.Gradients {
			name, ok := strings.CutPrefix(g.Output, fmt.Sprintf("grad%d/", i+2))
			if !ok || name != g.Wrt {
				t.Errorf("the gradient of %s is called %s", g.Wrt, g.Output)
			}
			names = append(names, name)
		}
		if !slices.Equal(names, want) {
			t.Errorf("order %d: gradients of %q, expected %q", i+2, names, want)
		}
		apptest.Succeed(t, "graph", "check", step[1])
		apptest.Succeed(t, "compare", step[1], "--engines", enginePair())
	}
	if out := apptest.Succeed(t, "graph", "explain", second); !strings.Contains(out, "grad//a/Gemm") {
		t.Errorf("the first gradient is not among what was differentiated:\n%s", out)
	}
}

// TestGradOfShapesFromData: a network whose shapes depend on the data is checked on the pure-Go engine,
// built, and run on both; package gradcheck's TestTimesNet checks it on both.
func TestGradOfShapesFromData(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	net := filepath.Join(torchFixtures, "..", "timesnet")
	got := apptest.Decode[gradCheck](t, apptest.Succeed(t, "grad", "check", net, "--json", "--engine", "portable"))
	if len(got.Models) != 2 || got.Tensors != 192 || !got.OK || got.Models[0].Tensors[191/2].Point != "data_3" {
		t.Errorf("%d models, %d tensors", len(got.Models), got.Tensors)
	}
	apptest.Succeed(t, "compare", filepath.Join(net, "written", "model.onnx"), "--grad", "--bind", "batch=3", "--engines", enginePair())
}
