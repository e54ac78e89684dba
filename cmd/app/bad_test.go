package app

import (
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// spoiled are files and models that no command may accept.
func spoiled(t *testing.T) map[string]string {
	t.Helper()
	dir := t.TempDir()
	paths := map[string]string{"directory": dir, "missing file": filepath.Join(dir, "absent.onnx")}
	raw := func(name string, b []byte) {
		paths[name] = filepath.Join(dir, strings.ReplaceAll(name, " ", "_")+".onnx")
		if err := os.WriteFile(paths[name], b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	whole, err := os.ReadFile(mlp)
	if err != nil {
		t.Fatal(err)
	}
	raw("truncated", whole[:len(whole)/2])
	raw("empty", nil)
	raw("text", []byte("this is not a model\n"))
	edited := func(name string, edit func(*onnx.Model)) {
		m := build(t, func(b *onnx.Builder, x, w onnx.Value) []onnx.Value {
			return []onnx.Value{b.Op("Relu", []onnx.Value{b.Op("MatMul", []onnx.Value{x, w})})}
		})
		edit(m)
		b, err := onnx.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		raw(name, b)
	}
	external := func(m *onnx.Model, location string) {
		w := m.Graph.Initializer[0]
		w.RawData, w.DataLocation = nil, onnx.TensorProto_EXTERNAL
		w.ExternalData = []*onnx.MetadataProp{{Key: "location", Value: location}, {Key: "offset", Value: "0"}, {Key: "length", Value: "64"}}
	}
	edited("cycle", func(m *onnx.Model) { m.Graph.Node[0].Input[1] = m.Graph.Node[1].Output[0] })
	edited("undefined value", func(m *onnx.Model) { m.Graph.Node[0].Input[1] = "nowhere" })
	edited("unknown operator", func(m *onnx.Model) { m.Graph.Node[0].OpType = "Frobnicate" })
	edited("unknown opset", func(m *onnx.Model) { m.SetOpset("", 99) })
	edited("wrong dtype", func(m *onnx.Model) { m.Graph.Initializer[0] = onnx.ProtoOf("w", tensor.New(tensor.Int64, 4, 4)) })
	edited("wrong shape", func(m *onnx.Model) { m.Graph.Initializer[0] = onnx.ProtoOf("w", tensor.New(tensor.Float32, 5, 4)) })
	edited("short weight", func(m *onnx.Model) { m.Graph.Initializer[0].RawData = m.Graph.Initializer[0].RawData[:10] })
	edited("missing external data", func(m *onnx.Model) { external(m, "gone.bin") })
	edited("path traversal", func(m *onnx.Model) { external(m, "../../etc/passwd") })
	edited("no graph", func(m *onnx.Model) { m.Graph = nil })
	return paths
}

func TestBadModels(t *testing.T) {
	t.Parallel()
	paths := spoiled(t)
	// The places that the error names beside the file.
	says := map[string]string{
		"directory": "not a regular file", "missing file": "no such file", "truncated": "unexpected EOF", "empty": "no data", "text": "decode",
		"cycle": `node "MatMul" (MatMul) -> node "Relu" (Relu)`, "undefined value": `"nowhere"`, "unknown operator": `(Frobnicate)`, "unknown opset": "99", "wrong dtype": `"w"`,
		"wrong shape": "MatMul", "short weight": "64 bytes", "missing external data": "gone.bin", "path traversal": "must lie in the model's folder", "no graph": "graph",
	}
	if len(says) != len(paths) {
		t.Fatalf("%d models, %d expectations", len(paths), len(says))
	}
	out := filepath.Join(t.TempDir(), "out.onnx")
	commands := [][]string{
		{"grad", "trace", "", "--bind", "batch=2", "--engine", apptest.Engines()[0]},
		{"compare", "", "--bind", "batch=2", "--engines", enginePair()},
		{"grad", "build", "", "--bind", "batch=2", "-o", out},
		{"graph", "explain", "", "--bind", "batch=2"},
	}
	ran := 0
	for name, path := range sorted.All(paths) {
		for _, c := range commands {
			args := append([]string{}, c...)
			for i := range args {
				if args[i] == "" {
					args[i] = path
				}
			}
			apptest.Refuse(t, args, says[name])
			ran++
		}
	}
	if ran != 15*4 {
		t.Errorf("%d commands ran", ran)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a refused model left an output file")
	}
	// graph check lists what is wrong with everything that can be decoded.
	for _, name := range []string{"cycle", "undefined value", "unknown operator", "unknown opset", "wrong dtype", "wrong shape", "short weight"} {
		r := apptest.Run(t, "graph", "check", paths[name])
		if r.Code != 1 || !strings.Contains(r.Out, says[name]) || !strings.Contains(r.Out, "1 problem") {
			t.Errorf("graph check of %s: exit status %d\n%s%s", name, r.Code, r.Out, r.Err)
		}
	}
}

// Flipped bits and cut files must end in an error or in a result, never in a panic: a panic of run
// would end this test.
func TestFlippedBits(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	rnd := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	path, out := filepath.Join(dir, "m.onnx"), filepath.Join(dir, "o.onnx")
	codes := map[int]int{}
	for _, name := range []string{"mlp_relu", "reduces", "embedding_topk_gather"} {
		whole, err := os.ReadFile(filepath.Join(torchFixtures, name, "model.onnx"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range 60 {
			b := bytes.Clone(whole)
			if i%3 == 0 {
				b = b[:rnd.IntN(len(b))]
			}
			for range 1 + rnd.IntN(8) {
				if len(b) > 0 {
					b[rnd.IntN(len(b))] ^= 1 << rnd.IntN(8)
				}
			}
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{
				{"graph", "show", path}, {"graph", "dump", path}, {"graph", "check", path}, {"graph", "svg", path}, {"graph", "diff", path, mlp},
				{"grad", "build", path, "-o", out}, {"grad", "trace", path, "--engine", "portable"},
			} {
				var text bytes.Buffer
				code := execute(t.Context(), experiment.Kinds{}, args, strings.NewReader(""), io.Discard, &text)
				if codes[code]++; code != 0 && code != 1 {
					t.Errorf("%v: exit status %d: %s", args, code, text.String())
				}
			}
		}
	}
	if codes[0] < 50 || codes[1] < 200 {
		t.Errorf("exit statuses %v: the files were all good or all bad", codes)
	}
}
