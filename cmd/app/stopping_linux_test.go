package app

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// endless is a model that is never done: "run", because of a loop of 2⁶⁰ iterations, or "make",
// because ONNX Runtime multiplies its constants when a session is made.
func endless(t *testing.T, when string) string {
	t.Helper()
	b := onnx.NewBuilder("endless", 18)
	x := b.Input("x", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(3)}})
	column := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(1)}}
	w := tensor.New(tensor.Float32, 3, 1)
	for i := range w.Float32s() {
		w.Float32s()[i] = 0.1 * float32(i+1)
	}
	h := b.Op("MatMul", []onnx.Value{x, b.Initializer("fc.weight", w)})
	if when == "run" {
		value := func(name onnx.Value, d tensor.DType) *onnx.ValueInfo { return onnx.NewValueInfo(name, onnx.TypeOf(d)) }
		body := &onnx.Graph{Name: "body", Input: []*onnx.ValueInfo{value("i", tensor.Int64), value("go", tensor.Bool), onnx.NewValueInfo("was", column)},
			Node:   []*onnx.Node{{OpType: "Identity", Input: []string{"go"}, Output: []string{"go_on"}}, {OpType: "Sin", Input: []string{"was"}, Output: []string{"is"}}},
			Output: []*onnx.ValueInfo{value("go_on", tensor.Bool), onnx.NewValueInfo("is", column)}}
		n, yes := b.Initializer("n", tensor.Scalar(int64(1)<<60)), b.Initializer("yes", tensor.Scalar(true))
		h = b.Op("Loop", []onnx.Value{n, yes, h}, onnx.AttrGraph("body", body))
	} else {
		first := b.Op("ConstantOfShape", []onnx.Value{b.Initializer("shape", tensor.Of([]int64{1200, 1200}, 2))}, onnx.AttrTensor("value", tensor.Of([]float32{1e-3}, 1)))
		c := first
		for range 3000 {
			c = b.Op("MatMul", []onnx.Value{c, first})
		}
		h = b.Op("Add", []onnx.Value{h, b.Op("ReduceMean", []onnx.Value{c}, onnx.AttrInt("keepdims", 0))})
	}
	b.Output(b.Rename(h, "y"), column)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return apptest.Save(t, m)
}

// processorTime is what a process and the children that it has or had have used, in hundredths of a
// second, as Linux counts for programs.
func processorTime(t *testing.T, pid int) (ticks int) {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	for _, f := range fields[11:13] {
		n, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	lists, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, list := range lists {
		text, _ := os.ReadFile(list) // A thread may have ended.
		for _, child := range strings.Fields(string(text)) {
			n, err := strconv.Atoi(child)
			if err != nil {
				t.Fatal(err)
			}
			ticks += processorTime(t, n)
		}
	}
	return ticks
}

// A signal is answered at once and ends what an engine is doing soon after; a second one ends it at
// once.
func TestSignalsEndWhatDoesNotEnd(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	path := endless(t, "run")
	stops(t, false, []string{"grad", "trace", path, "--engine", portable.Name})
	path = endless(t, "make")
	stops(t, true, apptest.FitArgs(path, apptest.CSVFile(t, apptest.Table(40)), "--out", filepath.Join(t.TempDir(), "out.onnx"), "--engine", portable.Name))
	if ort.Cgo {
		stops(t, false, []string{"compare", path, "--engines", ort.Name + "," + ort.Name})
	}
}

// TestSignalsEndEverything does so with every command that runs or makes sessions, and each engine.
func TestSignalsEndEverything(t *testing.T) {
	longtest.Nightly(t)
	run, create, data := endless(t, "run"), endless(t, "make"), apptest.CSVFile(t, apptest.Table(40))
	fit := apptest.FitArgs(create, data, "--out", filepath.Join(t.TempDir(), "out.onnx"))
	compare := func(model, engine string) []string {
		return []string{"compare", model, "--engines", engine + "," + engine}
	}
	export := func(model string) []string {
		return []string{"export", model, "--format", "onnx", "--out", filepath.Join(t.TempDir(), "out")}
	}
	cases := []struct {
		name, engine string
		args         []string
		twice        bool
	}{
		{"compare runs", portable.Name, compare(run, portable.Name), false},
		{"export runs", portable.Name, export(run), false},
		{"trace runs", portable.Name, []string{"grad", "trace", run}, false},
		// It multiplies constants without looking at anything.
		{"fit compiles", portable.Name, fit, false},
		{"fit compiles, twice", portable.Name, fit, true},
	}
	if ort.Cgo {
		cases = append(cases, []struct {
			name, engine string
			args         []string
			twice        bool
		}{
			{"compare runs", ort.Name, compare(run, ort.Name), false},
			{"trace runs", ort.Name, []string{"grad", "trace", run}, false},
			{"compare makes a session", ort.Name, compare(create, ort.Name), false},
			{"compare makes a session, twice", ort.Name, compare(create, ort.Name), true},
			{"export makes a session", ort.Name, export(create), false},
			{"serve makes a session", ort.Name, []string{"serve", "--model", "endless=" + create, "--http", "127.0.0.1:0", "--grpc", ""}, false},
			{"fit makes a session", ort.Name, fit, false},
		}...)
	}
	for _, c := range cases {
		t.Run(c.engine+" "+c.name, func(t *testing.T) { stops(t, c.twice, append(slices.Clone(c.args), "--engine", c.engine)) })
	}
}

func stops(t *testing.T, twice bool, args []string) {
	cmd := apptest.Program(t, args...)
	errw, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Longer than anything takes that comes before.
	for began := time.Now(); processorTime(t, cmd.Process.Pid) < 60 && time.Since(began) < time.Minute; {
		time.Sleep(10 * time.Millisecond)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(errw)
	var text strings.Builder
	// A command that ends in the same moment only says that it was interrupted.
	for !strings.Contains(text.String(), "onnxrl: stopping; a second signal ends") && !strings.Contains(text.String(), "onnxrl: interrupted: ") {
		line, err := lines.ReadString('\n')
		text.WriteString(line)
		if err != nil {
			t.Fatalf("it does not say that it stops: %v\n%s", err, &text)
		}
	}
	told := time.Now()
	if twice {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // How it ended follows.
	took, state := time.Since(told), cmd.ProcessState
	switch {
	case twice && state.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM:
		t.Errorf("the second signal: %v\n%s%s", state, &text, rest)
	case !twice && state.ExitCode() != apptest.Interrupted:
		t.Errorf("%v\n%s%s", state, &text, rest)
	}
	// Far more than it needs, on a busy machine too; it would go on for much longer.
	if took > 2*time.Minute {
		t.Errorf("it took %v to end", took)
	}
	t.Logf("%v, %.1f s: %s", state, took.Seconds(), rest)
}
