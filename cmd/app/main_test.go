package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// envRun makes the test binary behave as the program: the tests run a real process without building
// it again.
const envRun = "ONNXRL_TEST_RUN"

const torchFixtures = "../../runtime/autodiff/testdata/torch"

func TestMain(m *testing.M) {
	// Commands that run inside the tests start this program as they would onnxrl.
	if os.Getenv(envRun) != "" || len(os.Args) > 1 && os.Args[1] == proveName {
		Main(kinds.All(), Name("onnxrl"))
	}
	os.Exit(m.Run())
}

// program returns a command that is onnxrl itself.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	// Work of a low priority, as the environment may want it, would wait for every other package's
	// tests.
	cmd.Env = append(os.Environ(), envRun+"=1", niceVariable+"=0")
	return cmd
}

// execute runs one command line and returns the exit status.
func execute(ctx context.Context, kinds experiment.Kinds, args []string, in io.Reader, out, errw io.Writer) int {
	a := newApp("onnxrl", in, out, errw)
	a.kinds = kinds
	return a.run(ctx, a.command(), args)
}

// testEngines are the engines that this build has: without cgo there is no ONNX Runtime.
func testEngines() []string {
	if ort.Cgo {
		return []string{ort.Name, portable.Name}
	}
	return []string{portable.Name}
}

// enginePair is what compare runs on in tests that are not about differences.
func enginePair() string {
	if ort.Cgo {
		return strings.Join(engineNames(), ",")
	}
	return portable.Name + "," + portable.Name
}

// interruptedStatus is the exit status of a program that a signal has ended.
const interruptedStatus = 130

// result is what became of a program that ran to its end.
type result struct {
	code     int
	out, err string
}

// onnxrl runs the program to its end.
func onnxrl(t *testing.T, args ...string) result {
	t.Helper()
	cmd := program(t, args...)
	var out, errw bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errw
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	r := result{cmd.ProcessState.ExitCode(), out.String(), errw.String()}
	if strings.Contains(r.err, "goroutine ") || strings.Contains(r.err, "panic:") {
		t.Fatalf("onnxrl %s panicked:\n%s", strings.Join(args, " "), r.err)
	}
	return r
}

// succeed runs the program and expects exit status 0.
func succeed(t *testing.T, args ...string) string {
	t.Helper()
	r := onnxrl(t, args...)
	if r.code != 0 {
		t.Fatalf("onnxrl %s: exit status %d\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	return r.out
}

// refuse runs the program and expects exit status 1 and one line of error that contains every one
// of says.
func refuse(t *testing.T, args []string, says ...string) {
	t.Helper()
	r := onnxrl(t, args...)
	if r.code != 1 {
		t.Errorf("onnxrl %s: exit status %d, expected 1\n%s%s", strings.Join(args, " "), r.code, r.out, r.err)
	}
	if !ort.Cgo {
		// The one warning that the pure-Go engine is used comes before whatever is wrong.
		if first, rest, ok := strings.Cut(r.err, "\n"); ok && strings.HasPrefix(first, "onnxrl: warning: ONNX Runtime is not available") {
			r.err = rest
		}
	}
	if strings.Count(r.err, "\n") != 1 || !strings.HasPrefix(r.err, "onnxrl: ") {
		t.Errorf("onnxrl %s: expected one line of error, got\n%s", strings.Join(args, " "), r.err)
	}
	for _, s := range says {
		if !strings.Contains(r.err, s) {
			t.Errorf("onnxrl %s: the error does not say %q:\n%s", strings.Join(args, " "), s, r.err)
		}
	}
}

// golden compares text with a file below testdata; -update rewrites it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (run with -update and read the difference); got\n%s", path, got)
	}
}

// keys returns the top-level keys of a JSON document, sorted.
func keys(t *testing.T, text string) []string {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return slices.Sorted(maps.Keys(m))
}

// decode reads a JSON document strictly.
func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return v
}

// save writes a model to a file of the test's own and returns its path.
func save(t *testing.T, m *onnx.Model) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := onnx.Save(path, m, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	return path
}

// build makes a model from x float32[batch,4] with the initializer w float32[4,4]; the values that
// f returns are its outputs.
func build(t *testing.T, f func(b *onnx.Builder, x, w onnx.Value) []onnx.Value) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("test", 18)
	x := b.Input("x", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(4)}})
	v := make([]float32, 16)
	for i := range v {
		v[i] = float32(i-8) / 8
	}
	w := b.Initializer("w", tensor.Of(v, 4, 4))
	for _, o := range f(b, x, w) {
		b.Output(o, onnx.TensorType{DType: tensor.Float32})
	}
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}
