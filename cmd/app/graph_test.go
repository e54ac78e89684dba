package app

import (
	"encoding/xml"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/autodiff/explain"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

const mlp = torchFixtures + "/mlp_relu/model.onnx"

// The text of every command that prints a function of the model alone is a golden file.
func TestGraphGolden(t *testing.T) {
	t.Parallel()
	affine := apptest.Save(t, build(t, func(b *onnx.Builder, x, w onnx.Value) []onnx.Value {
		b.SetScope("fc/")
		return []onnx.Value{b.Rename(b.Op("Tanh", []onnx.Value{b.Op("MatMul", []onnx.Value{x, w})}), "y")}
	}))
	other := torchFixtures + "/mlp_tanh/model.onnx"
	tests := []struct {
		name string
		code int
		args []string
	}{
		{"show", 0, []string{"show", mlp}},
		{"show_symbolic", 0, []string{"show", affine}},
		{"show_bound", 0, []string{"show", affine, "--bind", "batch=1000"}},
		{"show_json", 0, []string{"show", affine, "--bind", "batch=2", "--json"}},
		{"stats", 0, []string{"stats", mlp}},
		{"dump", 0, []string{"dump", mlp}},
		{"dump_names", 0, []string{"dump", affine, "--names", "--elements", "16", "--bind", "batch=2"}},
		{"diff", 1, []string{"diff", mlp, other}},
		{"diff_json", 1, []string{"diff", affine, mlp, "--json"}},
		{"to_dot", 0, []string{"to-dot", affine}},
	}
	for _, c := range tests {
		r := apptest.Run(t, append([]string{"graph"}, c.args...)...)
		if r.Code != c.code || r.Err != "" {
			t.Errorf("graph %v: exit status %d, expected %d\n%s", c.args, r.Code, c.code, r.Err)
		}
		golden(t, "graph/"+c.name+".golden", r.Out)
	}
	if files, err := os.ReadDir("testdata/graph"); err != nil || len(files) != len(tests) {
		t.Errorf("%d golden files for %d commands, %v", len(files), len(tests), err)
	}
	if r := apptest.Run(t, "graph", "diff", mlp, mlp); r.Code != 0 || r.Out != "no difference\n" {
		t.Errorf("a model differs from itself: exit status %d\n%s", r.Code, r.Out)
	}
}

func TestGraphPictures(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "g.svg")
	for _, dir := range []string{"encoder_attention", "lstm", "timecnn_glu"} {
		model := filepath.Join(torchFixtures, dir, "model.onnx")
		apptest.Succeed(t, "graph", "svg", model, "-o", path)
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		rects, d := 0, xml.NewDecoder(f)
		for {
			tok, err := d.Token()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", dir, err)
			}
			if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "rect" {
				rects++
			}
		}
		f.Close()
		m, err := onnx.Load(model)
		if err != nil {
			t.Fatal(err)
		}
		// Constants are shown in the boxes of the nodes that read them.
		nodes := 0
		for _, n := range m.Graph.Node {
			if n.OpType != "Constant" {
				nodes++
			}
		}
		if rects < nodes {
			t.Errorf("%s: %d boxes for %d nodes", dir, rects, nodes)
		}
		if dot := apptest.Succeed(t, "graph", "to-dot", model); !strings.HasPrefix(dot, "digraph ") || strings.Count(dot, "\n  n") < nodes {
			t.Errorf("%s: the DOT text has too few nodes", dir)
		}
	}
	part := apptest.Succeed(t, "graph", "to-dot", mlp, "--from", "/Relu_output_0", "--to", "/Relu_1_output_0")
	if strings.Count(part, "Gemm") != 1 {
		t.Errorf("the part holds more than one product:\n%s", part)
	}
	apptest.Refuse(t, []string{"graph", "svg", mlp, "--to", "nope"}, `"nope"`)
	apptest.Refuse(t, []string{"graph", "svg", mlp, "-o", filepath.Join(path, "below")}, "below")
}

func TestGraphExplain(t *testing.T) {
	t.Parallel()
	e := apptest.Decode[explain.Explanation](t, apptest.Succeed(t, "graph", "explain", torchFixtures+"/lstm/model.onnx", "--json"))
	at := slices.IndexFunc(e.Forward, func(l explain.Line) bool { return l.Op == "LSTM" })
	if at < 0 {
		t.Fatal("no LSTM is explained")
	}
	if l := e.Forward[at]; l.Expanded < 50 || len(l.Gradients) < 50 || l.GradientFLOPs <= l.ForwardFLOPs/2 {
		t.Errorf("LSTM: %d nodes, %d gradient nodes, %d and %d operations", l.Expanded, len(l.Gradients), l.ForwardFLOPs, l.GradientFLOPs)
	}
	if len(e.Lost) != 0 {
		t.Errorf("gradient nodes of unknown origin: %v", e.Lost)
	}
	// A gradient model from a file gives the same explanation as one built on the spot.
	grad := filepath.Join(t.TempDir(), "g.onnx")
	apptest.Succeed(t, "grad", "build", mlp, "-o", grad)
	direct, file := apptest.Succeed(t, "graph", "explain", mlp), apptest.Succeed(t, "graph", "explain", grad, "--of", mlp)
	if direct != file || apptest.Succeed(t, "graph", "explain", grad) != file {
		t.Errorf("explanations differ:\n%s\n%s", direct, file)
	}
	m, err := onnx.Load(grad)
	if err != nil {
		t.Fatal(err)
	}
	if long := apptest.Succeed(t, "graph", "explain", grad, "--verbose"); strings.Count(long, "\n  grad//") != len(m.Graph.Node)-5 {
		t.Errorf("not every one of %d gradient nodes is listed:\n%s", len(m.Graph.Node)-5, long)
	}
	one := apptest.Decode[explain.Explanation](t, apptest.Succeed(t, "graph", "explain", mlp, "--node", "/b/*", "--json"))
	if len(one.Forward) != 1 || one.Forward[0].Node != "/b/Gemm" {
		t.Errorf("one node: %+v", one.Forward)
	}
	apptest.Refuse(t, []string{"graph", "explain", mlp, "--node", "nope"}, "nope")
	apptest.Refuse(t, []string{"graph", "explain", mlp, "--loss", "nope"}, `"nope"`)
}

// JSON keys are an interface: a change here breaks people's scripts.
func TestJSONKeys(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "g.onnx")
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"graph", "show", mlp}, "flops graph inputs ir_version nodes opsets ops outputs parameter_bytes parameters peak_activation_bytes peak_at per_node producer valid"},
		{[]string{"graph", "stats", mlp}, "flops nodes ops parameter_bytes parameters peak_activation_bytes peak_at per_node"},
		{[]string{"graph", "check", mlp}, "ok problems"},
		{[]string{"graph", "dump", mlp}, "text"},
		{[]string{"graph", "diff", mlp, mlp}, ""},
		{[]string{"graph", "explain", mlp}, "forward seeds sums"},
		{[]string{"grad", "ops"}, "beyond covered operators ort_training specified verified"},
		{[]string{"grad", "check", torchFixtures + "/mlp_relu"}, "engine max_error models ok tensors tolerance"},
		{[]string{"grad", "build", mlp, "-o", out}, "forward_nodes gradient_nodes gradients inputs out outputs"},
		{[]string{"grad", "trace", mlp}, "engine first ok values"},
		{[]string{"compare", mlp, "--engines", enginePair()}, "absolute_tolerance engines ok outputs tolerance"},
	}
	for _, c := range tests {
		got := apptest.Keys(t, apptest.Succeed(t, append(c.args, "--json")...))
		want := strings.Fields(c.want)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%v: keys %v, expected %v", c.args, got, want)
		}
	}
}

func TestMisspeltCommand(t *testing.T) {
	t.Parallel()
	apptest.Refuse(t, []string{"graph", "shwo", mlp}, `"shwo"`, "show")
	apptest.Refuse(t, []string{"grad", "chekc"}, `"chekc"`, "build, check, ops, trace")
	if out := apptest.Succeed(t, "grad"); !strings.Contains(out, "onnxrl grad [command]") {
		t.Errorf("no help:\n%s", out)
	}
}

// Models of operators that this program does not know can still be looked at.
func TestForeignOperators(t *testing.T) {
	t.Parallel()
	path := apptest.Save(t, build(t, func(b *onnx.Builder, x, w onnx.Value) []onnx.Value {
		return b.OpN("Frobnicate", "my.domain", 1, []onnx.Value{x, w})
	}))
	for _, sub := range []string{"show", "stats", "dump", "to-dot", "svg"} {
		r := apptest.Run(t, "graph", sub, path)
		code := 0
		if sub == "show" || sub == "stats" {
			code = 1 // as graph check
		}
		if r.Code != code || !strings.Contains(r.Out, "Frobnicate") || !strings.Contains(r.Err, "warning") {
			t.Errorf("graph %s: exit status %d\n%s%s", sub, r.Code, r.Out, r.Err)
		}
	}
	r := apptest.Run(t, "graph", "check", path, "--strict")
	if r.Code != 1 || !strings.Contains(r.Out, "my.domain") {
		t.Errorf("exit status %d\n%s", r.Code, r.Out)
	}
	for _, engine := range apptest.Engines() {
		apptest.Refuse(t, []string{"grad", "trace", path, "--bind", "batch=2", "--engine", engine}, "Frobnicate")
	}
	apptest.Refuse(t, []string{"grad", "build", path, "--bind", "batch=2", "-o", path + ".g"}, "Frobnicate")
}

// What graph check rejects, graph show and graph stats show and reject.
func TestShowRejectsWhatCheckRejects(t *testing.T) {
	t.Parallel()
	b := onnx.NewBuilder("hostile", 18)
	x := b.Input("x", onnx.TypeOf(tensor.Float32, 1, 1, 4, 4))
	w := b.Initializer("w", tensor.Of([]float32{1, 2, 3, 4}, 1, 1, 2, 2))
	b.Output(b.Op("Conv", []onnx.Value{x, w}, onnx.AttrInts("strides", 0, 0)), onnx.TypeOf(tensor.Float32, 1, 1, 3, 3))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "hostile.onnx")
	if err := onnx.Save(path, m, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, sub := range []string{"check", "show", "stats"} {
		for _, format := range [][]string{nil, {"--json"}} {
			r := apptest.Run(t, append([]string{"graph", sub, path}, format...)...)
			if r.Code != 1 || (sub != "stats" || format == nil) && !strings.Contains(r.Out+r.Err, "strides") {
				t.Errorf("graph %s %v: exit status %d\n%s%s", sub, format, r.Code, r.Out, r.Err)
			}
		}
	}
}
