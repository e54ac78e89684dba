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
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

const mlp = torchFixtures + "/mlp_relu/model.onnx"

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
	e := apptest.Decode[autodiff.Explanation](t, apptest.Succeed(t, "graph", "explain", torchFixtures+"/lstm/model.onnx", "--json"))
	at := slices.IndexFunc(e.Forward, func(l autodiff.Line) bool { return l.Op == "LSTM" })
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
	one := apptest.Decode[autodiff.Explanation](t, apptest.Succeed(t, "graph", "explain", mlp, "--node", "/b/*", "--json"))
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
