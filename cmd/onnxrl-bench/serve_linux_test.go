package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/servebench"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestServe runs every row for a moment, the neighbour that trains included; it looks at the form,
// never at the speed.
func TestServe(t *testing.T) {
	longtest.Slow(t)
	out := succeed(t, "serve", "-q", "--json", "--engine", portable.Name, "--rounds", "1", "--round", "20ms", "--concurrency", "1,2", "--requests", "100", "--reloads", "10", "--swap-every", "5ms", "--neighbour-nice", "0")
	r := decode[servebench.Report](t, out)
	if len(r.Loads) != 8 || len(r.Rows) != 11 || r.Machine.CPU == "" {
		t.Errorf("%d loads and %d rows", len(r.Loads), len(r.Rows))
	}
	if got := strings.Fields(succeed(t, "serve", "--list")); !slices.Equal(got, servebench.Names()) {
		t.Errorf("rows %q", got)
	}
	text := succeed(t, "serve", "-q", "--engine", portable.Name, "--rounds", "1", "--round", "20ms", "json")
	if !strings.Contains(text, "json/codec") || strings.Contains(text, "swap/p99") {
		t.Errorf("one row:\n%s", text)
	}
	// A target that no server reaches.
	server := startServer(t)
	args := []string{"serve", "-q", "--json", "--url", server, "--against", server, "--rounds", "1", "--round", "20ms", "--concurrency", "1", "--transports", "http-binary", "--at-least", "1000"}
	if missed := decode[servebench.Report](t, succeed(t, args...)); missed.Missed != 1 || len(missed.Rows) != 1 || len(missed.Loads) != 2 {
		t.Errorf("%+v", missed)
	}
	file := filepath.Join(t.TempDir(), "figures.json")
	if _, errs, code := execute(t, append(args, "--check", "--out", file)...); code != 1 || errs != "" {
		t.Errorf("--check: exit status %d, %q", code, errs)
	}
	figures, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if missed := decode[servebench.Report](t, string(figures)); missed.Missed != 1 {
		t.Errorf("--out: %+v", missed)
	}
	refuse(t, []string{"serve", "nothing"}, `serve: no benchmark is called "nothing"`)
	refuse(t, []string{"serve", "--against", server}, "--against needs --url")
}

func TestServeSoak(t *testing.T) {
	longtest.Slow(t)
	r := decode[servebench.SoakReport](t, succeed(t, "serve", "-q", "--json", "--engine", portable.Name, "--soak", "500ms", "--swap-every", "10ms"))
	if len(r.Problems) != 0 || len(r.Good) != 4 || len(r.Bad) != 34 || r.Swaps == 0 {
		t.Errorf("%+v", r)
	}
	rpc := 0
	for kind, n := range sorted.All(r.Bad) {
		if strings.HasPrefix(kind, "grpc ") && n > 0 {
			rpc++
		}
	}
	for _, kind := range []string{"wrong raw sizes", "lying shapes", "huge shapes", "unknown model", "large messages", "cancelled calls", "deadlines", "timeouts", "disconnects", "half-open", "garbage", "broken frames", "bad streams", "noise"} {
		if r.Bad["grpc "+kind] == 0 {
			t.Errorf("gRPC: no %s", kind)
		}
	}
	if rpc != 20 {
		t.Errorf("%d kinds of bad traffic over gRPC", rpc)
	}
}

// startServer starts onnxrl serve with a model that doubles its input and returns its URL.
func startServer(t *testing.T) string {
	t.Helper()
	b := onnx.NewBuilder("double", 18)
	x := b.Input("x", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(4)}})
	b.Output(b.Rename(b.Op("Add", []onnx.Value{x, x}), "y"), onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(4)}})
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := onnx.Save(path, m, onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	cmd := program(t, asOnnxrl, "serve", "-q", "--json", "--engine", portable.Name, "--http", "127.0.0.1:0", "--grpc", "", "--model", "m="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Killed: how it ends does not matter.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var started struct{ HTTP string }
	if err := json.Unmarshal(line, &started); err != nil {
		t.Fatal(err)
	}
	return "http://" + started.HTTP + "/"
}
