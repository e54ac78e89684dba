package app

import (
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestScripts runs the scripts of testdata/script, one after another, because commands run in this
// process and each script has a folder of its own; -update rewrites the texts that they compare. The
// comment of the package says how to add one.
func TestScripts(t *testing.T) {
	dir, err := filepath.Abs("testdata/script")
	if err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts: %v", len(files), err)
	}
	ran := 0
	testscript.RunT(scriptT{t, &ran}, testscript.Params{
		Files: files,
		Setup: func(e *testscript.Env) error {
			e.Values[scriptT{}] = e.T()
			e.Setenv("TORCH", filepath.Join(root, "runtime", "autodiff", "testdata", "torch"))
			e.Setenv("DIGITS", filepath.Join(root, "configs", "experiments", "digits", "cnn.onnx"))
			return nil
		},
		Condition: func(name string) (bool, error) { return name == "ort" && ort.Cgo, nil },
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"onnxrl": scriptCommand, "refuse": scriptRefuses, "model": scriptModel,
		},
		UpdateScripts:      *update,
		RequireUniqueNames: true,
	})
	// -run may name one of them.
	if ran != len(files) && !strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
		t.Errorf("%d scripts ran, expected %d", ran, len(files))
	}
}

// scriptT is the test of a script: those of one process must not run at once.
type scriptT struct {
	*testing.T
	ran *int
}

func (t scriptT) Parallel()     {}
func (t scriptT) Verbose() bool { return testing.Verbose() }

func (t scriptT) Run(name string, f func(testscript.T)) {
	t.T.Run(name, func(inner *testing.T) {
		*t.ran++
		f(scriptT{inner, t.ran})
	})
}

// scriptCommand is the command onnxrl of scripts: its exit status is 0, and 1 behind "!".
func scriptCommand(s *testscript.TestScript, not bool, args []string) {
	want := 0
	if not {
		want = exitError
	}
	if code, _, errs := scriptRun(s, args); code != want {
		s.Fatalf("exit status %d, expected %d\n%s", code, want, errs)
	}
}

// scriptRefuses is the command refuse of scripts: onnxrl prints nothing but one line of error, which
// with --json is an object.
func scriptRefuses(s *testscript.TestScript, not bool, args []string) {
	if not {
		s.Fatalf("refuse has no opposite: write onnxrl")
	}
	code, out, errs := scriptRun(s, args)
	begins, want := "onnxrl: ", exitError
	if slices.Contains(args, "--json") {
		begins = `{"error":"`
	}
	if strings.Contains(errs, " has no command ") || strings.Contains(errs, "unknown flag") {
		want = exitUsage
	}
	if code != want || out != "" || strings.Count(errs, "\n") != 1 || !strings.HasPrefix(errs, begins) {
		s.Fatalf("exit status %d, expected %d and one line of error\n%s", code, want, errs)
	}
}

// scriptRun runs onnxrl in the folder of a script, with the store that it has set, and returns what
// is printed, but the one warning that the pure-Go engine is used.
func scriptRun(s *testscript.TestScript, args []string) (code int, out, errs string) {
	t := s.Value(scriptT{}).(scriptT)
	back, err := os.Getwd()
	s.Check(err)
	s.Check(os.Chdir(s.MkAbs(".")))
	defer func() { s.Check(os.Chdir(back)) }()
	if store := s.Getenv(storeVariable); store != "" {
		s.Check(os.Setenv(storeVariable, store))
		defer os.Unsetenv(storeVariable)
	}
	var printed, said strings.Builder
	code = execute(t.Context(), kinds.All(), args, strings.NewReader(""), &printed, &said)
	out, errs = printed.String(), said.String()
	if first, rest, ok := strings.Cut(errs, "\n"); !ort.Cgo && ok && strings.HasPrefix(first, "onnxrl: warning: ONNX Runtime is not available") {
		errs = rest
	}
	_, err = io.WriteString(s.Stdout(), out)
	s.Check(err)
	_, err = io.WriteString(s.Stderr(), errs)
	s.Check(err)
	return code, out, errs
}

// scriptModel is the command model of scripts: it writes models of scriptModels, NAME.onnx.
func scriptModel(s *testscript.TestScript, _ bool, names []string) {
	t := s.Value(scriptT{}).(scriptT).T
	for _, name := range names {
		f := scriptModels[name]
		if f == nil {
			s.Fatalf("there is no model %q", name)
		}
		s.Check(onnx.Save(s.MkAbs(name+".onnx"), f(t), onnx.SaveOptions{}))
	}
}

// scriptModels are the models that scripts look at.
var scriptModels = map[string]func(*testing.T) *onnx.Model{
	"affine": func(t *testing.T) *onnx.Model {
		return build(t, func(b *onnx.Builder, x, w onnx.Value) []onnx.Value {
			b.SetScope("fc/")
			return []onnx.Value{b.Rename(b.Op("Tanh", []onnx.Value{b.Op("MatMul", []onnx.Value{x, w})}), "y")}
		})
	},
	// An operator that this program does not know.
	"foreign": func(t *testing.T) *onnx.Model {
		return build(t, func(b *onnx.Builder, x, w onnx.Value) []onnx.Value {
			return b.OpN("Frobnicate", "my.domain", 1, []onnx.Value{x, w})
		})
	},
	// A convolution that never moves.
	"hostile": func(t *testing.T) *onnx.Model {
		b := onnx.NewBuilder("hostile", 18)
		x := b.Input("x", onnx.TypeOf(tensor.Float32, 1, 1, 4, 4))
		w := b.Initializer("w", tensor.Of([]float32{1, 2, 3, 4}, 1, 1, 2, 2))
		b.Output(b.Op("Conv", []onnx.Value{x, w}, onnx.AttrInts("strides", 0, 0)), onnx.TypeOf(tensor.Float32, 1, 1, 3, 3))
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		return m
	},
	// A value that is declared to be integers of another shape, which ONNX Runtime refuses.
	"contradiction": func(t *testing.T) *onnx.Model {
		b := onnx.NewBuilder("contradiction", 18)
		y := b.Op("Relu", []onnx.Value{b.Input("x", onnx.TypeOf(tensor.Float32, 2, 3))})
		b.Output(b.Rename(y, "z"), onnx.TypeOf(tensor.Float32, 2, 3))
		m, err := b.Model()
		if err != nil {
			t.Fatal(err)
		}
		m.Graph.ValueInfo = []*onnx.ValueInfo{onnx.NewValueInfo(y, onnx.TypeOf(tensor.Int64, 7))}
		return m
	},
	// A loop that does not end, and one that keeps 4 MB of every round.
	"endless":  func(t *testing.T) *onnx.Model { return loopModel(t, 1) },
	"hoarding": func(t *testing.T) *onnx.Model { return loopModel(t, 1<<20) },
	// A policy that ties in every choice.
	"undecided": func(t *testing.T) *onnx.Model { return undecidedModel(t) },
}

// loopModel adds up x as long as a counter of 64 bits lasts. With more than one number, it keeps what
// it has after every round.
func loopModel(t *testing.T, numbers int) *onnx.Model {
	t.Helper()
	x := onnx.TypeOf(tensor.Float32, numbers)
	value := func(name string, t onnx.TensorType) *onnx.ValueInfo { return onnx.NewValueInfo(onnx.Value(name), t) }
	body := &onnx.Graph{Name: "body",
		Input:  []*onnx.ValueInfo{value("i", onnx.TypeOf(tensor.Int64)), value("go", onnx.TypeOf(tensor.Bool)), value("sum", x)},
		Output: []*onnx.ValueInfo{value("on", onnx.TypeOf(tensor.Bool)), value("more", x)},
		Node: []*onnx.Node{
			{OpType: "Identity", Input: []string{"go"}, Output: []string{"on"}},
			{OpType: "Add", Input: []string{"sum", "x"}, Output: []string{"more"}},
		}}
	b := onnx.NewBuilder("loop", 18)
	in := b.Input("x", x)
	outputs := []string{"last"}
	if numbers > 1 {
		outputs = append(outputs, "all")
		body.Node = append(body.Node, &onnx.Node{OpType: "Identity", Input: []string{"more"}, Output: []string{"kept"}})
		body.Output = append(body.Output, value("kept", x))
	}
	b.Append(&onnx.Node{Name: "loop", OpType: "Loop", Input: []string{string(b.Int(math.MaxInt64)), "", string(in)}, Output: outputs, Attribute: []*onnx.Attribute{onnx.AttrGraph("body", body)}})
	b.Output("last", x)
	if numbers > 1 {
		b.Output("all", onnx.TensorType{DType: tensor.Float32})
	}
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}
