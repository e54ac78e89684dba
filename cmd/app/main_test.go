package app

import (
	"context"
	"flag"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/export/serve/prove"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var update = flag.Bool("update", false, "rewrite what scripts and tables expect")

const torchFixtures = "../../runtime/autodiff/testdata/torch"

func TestMain(m *testing.M) {
	timedTurns, timedRuns = 1, 5
	apptest.Main(m, apptest.App{
		Main: func() { Main(kinds.All(), Name("onnxrl")) },
		Execute: func(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int {
			return execute(ctx, kinds.All(), args, in, out, errw)
		},
	})
}

// tried is where commands of tests try models first: nothing crashes there, so that a program which
// answers at once does for them. The tests of trials have their own, or programs, as pages have.
var tried = sync.OnceValue(func() *prove.Process {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return nil
	}
	return &prove.Process{Argv: []string{shell, "-c", `cat >/dev/null; echo '{"Done":true}'`}}
})

// execute runs one command line and returns the exit status.
func execute(ctx context.Context, kinds experiment.Kinds, args []string, in io.Reader, out, errw io.Writer) int {
	return Execute(ctx, kinds, args, in, out, errw, Name("onnxrl"), func(a *app) { a.tries = tried() })
}

// enginePair is what compare runs on in tests that are not about differences.
func enginePair() string {
	if ort.Cgo {
		return strings.Join(engineNames(), ",")
	}
	return portable.Name + "," + portable.Name
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
