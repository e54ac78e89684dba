package prove_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/prove"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The test's own program is the other process where envChild says how it behaves.
const envChild = "ONNXRL_PROVE_TEST"

func TestMain(m *testing.M) {
	if how := os.Getenv(envChild); how != "" {
		if err := prove.Main(context.Background(), fragile{portable.New(), how}, os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// fragile is an engine that crashes, hangs or ends the process at a given place, with models
// whose graph is called bad.
type fragile struct {
	engine.Compiler
	how string
}

func (f fragile) Compile(m *onnx.Model, o engine.Options) (engine.Session, error) {
	s, err := f.Compiler.Compile(m, o)
	if m.Graph.Name != "bad" {
		return s, err
	}
	switch f.how {
	case "compile":
		crash()
	case "hang":
		time.Sleep(time.Hour) // Without cgo the runtime ends a process that waits for nothing.
	case "exit":
		os.Exit(3)
	case "refuse":
		return nil, errors.New("no")
	}
	return fragileSession{s}, err
}

type fragileSession struct{ engine.Session }

// Run crashes with two rows of ones.
func (s fragileSession) Run(ctx context.Context, out, in []*tensor.Tensor) error {
	if x := in[0].Float32s(); len(x) == 4 && x[0] == 1 {
		crash()
	}
	return s.Session.Run(ctx, out, in)
}

// model multiplies [batch, 2] by weights.
func model(t *testing.T, name string, weights ...float32) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder(name, 18)
	row := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(2)}}
	y := b.Op("MatMul", []onnx.Value{b.Input("x", row), b.Initializer("w", tensor.Of(weights, 2, 2))})
	b.Output(b.Op("Clip", []onnx.Value{y, b.Const(tensor.Scalar(float32(-5)))}), row)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// divided divides 60 by the integer that a product of weights is.
func divided(t *testing.T, last float32) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("divided", 18)
	row := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(2)}}
	product := b.Op("Mul", []onnx.Value{b.Initializer("w", tensor.Of([]float32{last}, 1)), b.Initializer("v", tensor.Of([]float32{3}, 1))})
	whole := b.Op("Cast", []onnx.Value{product}, onnx.AttrInt("to", int(tensor.Int64)))
	ratio := b.Op("Cast", []onnx.Value{b.Op("Div", []onnx.Value{b.Const(tensor.Of([]int64{60}, 1)), whole})}, onnx.AttrInt("to", int(tensor.Float32)))
	b.Output(b.Op("Add", []onnx.Value{b.Input("x", row), ratio}), row)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func process(t *testing.T, how string) *prove.Process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &prove.Process{Argv: []string{exe}, Env: []string{envChild + "=" + how}}
}

func TestCrashesAreToldFromEverythingElse(t *testing.T) {
	good, bad := model(t, "good", 1, 2, 3, 4), model(t, "bad", 1, 2, 3, 4)
	cases := []struct {
		how   string
		model *onnx.Model
		says  []string // of a CrashError; nil for none
	}{
		{"none", good, nil},
		{"compile", good, nil},
		{"compile", bad, []string{signal, "compiling"}},
		{"run", bad, []string{signal, "running 2 rows of ones"}},
		{"exit", bad, []string{"exit status 3", "compiling"}},
		{"refuse", bad, nil},
	}
	for _, c := range cases {
		err := process(t, c.how).Try(t.Context(), serve.Trial{Model: c.model, Rows: []int{1, 2}})
		crash := new(serve.CrashError)
		if c.says == nil {
			if err != nil {
				t.Errorf("%s of %s: %v", c.how, c.model.Graph.Name, err)
			}
			continue
		}
		if !errors.As(err, &crash) || !strings.Contains(crash.How, c.says[0]) || crash.Stage != c.says[1] {
			t.Errorf("%s: %v, expected a crash by %q", c.how, err, c.says)
		}
	}
}

func TestWhatHangsIsKilled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(200*time.Millisecond, cancel)
	if err := process(t, "hang").Try(ctx, serve.Trial{Model: model(t, "bad", 1, 2, 3, 4), Rows: []int{1}}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, expected %v", err, context.Canceled)
	}
}

func TestNoProgram(t *testing.T) {
	for _, argv := range [][]string{nil, {"/nonexistent/onnxrl"}} {
		p := &prove.Process{Argv: argv}
		err := p.Try(t.Context(), serve.Trial{Model: model(t, "good", 1, 2, 3, 4)})
		if err == nil || errors.As(err, new(*serve.CrashError)) {
			t.Errorf("%v: %v, expected an error that is no crash", argv, err)
		}
	}
}

// Versions that differ in weights alone are tried once; others are tried each.
func TestWeightsDoNotCount(t *testing.T) {
	p := process(t, "none")
	clipped := model(t, "good", 1, 2, 3, 4)
	choice := func(w float32) *onnx.Model {
		m := model(t, "choice", w, 2, 3, 4)
		g := m.Graph
		g.Node = append(g.Node, &onnx.NodeProto{OpType: "ArgMax", Input: []string{g.Output[0].Name}, Output: []string{"best"}}, &onnx.NodeProto{OpType: "Squeeze", Input: []string{"best"}, Output: []string{"action"}})
		g.Output = append(g.Output, &onnx.ValueInfoProto{Name: "action"})
		return m
	}
	clipped.Graph.Node[1].Input[1] = ""
	for i, c := range []struct {
		model *onnx.Model
		tried int
	}{{model(t, "good", 1, 2, 3, 4), 1}, {model(t, "good", 5, 6, 7, 8), 1}, {model(t, "other", 1, 2, 3, 4), 2}, {clipped, 3}, {model(t, "good", 9, 9, 9, 9), 3}, {choice(1), 4}, {choice(2), 4}} {
		if err := p.Try(t.Context(), serve.Trial{Model: c.model, Rows: []int{1}}); err != nil {
			t.Fatal(err)
		}
		if p.Tried() != c.tried {
			t.Errorf("after model %d: %d processes, expected %d", i, p.Tried(), c.tried)
		}
	}
	// Where an integer is made of what weights give, and computed with, versions that differ in
	// weights are tried each.
	q := process(t, "none")
	for i, last := range []float32{4, 5, 5} {
		if err := q.Try(t.Context(), serve.Trial{Model: divided(t, last), Rows: []int{1}}); err != nil {
			t.Fatal(err)
		}
		if want := []int{1, 2, 2}[i]; q.Tried() != want {
			t.Errorf("divisor %v: %d processes, expected %d", last, q.Tried(), want)
		}
	}
	// A refused model is not remembered as proven.
	q = process(t, "compile")
	for range 2 {
		if err := q.Try(t.Context(), serve.Trial{Model: model(t, "bad", 1, 2, 3, 4)}); err == nil {
			t.Error("a model that crashes is accepted")
		}
	}
	if q.Tried() != 2 {
		t.Errorf("%d processes, expected 2", q.Tried())
	}
}

// models lists one model with a version for each graph.
type models []*onnx.Model

func (l *models) Scan(context.Context) ([]serve.Listing, error) {
	out := serve.Listing{Name: "m"}
	for i, m := range *l {
		name := fmt.Sprint(i + 1)
		out.Versions = append(out.Versions, serve.Candidate{Name: name, Stamp: name, Open: func(context.Context) (*serve.Content, error) {
			return &serve.Content{Model: m}, nil
		}})
	}
	return []serve.Listing{out}, nil
}

// A server goes on with the version that it has where the next one would have ended it.
func TestServerSurvives(t *testing.T) {
	c := portable.New()
	defer c.Close()
	list := models{model(t, "good", 1, 2, 3, 4)}
	s, err := serve.New(serve.Options{Compiler: c, Prove: process(t, "compile").Try}, &list)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.Background())
	if err := s.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	list = append(list, model(t, "bad", 1, 2, 3, 4))
	if err := s.Poll(t.Context()); err == nil || !strings.Contains(err.Error(), "would have ended this process: "+signal) {
		t.Errorf("poll: %v", err)
	}
	if s.Crashes() != 1 {
		t.Errorf("%d crashes, expected 1", s.Crashes())
	}
	var resp serve.Response
	err = s.Infer(t.Context(), &serve.Request{Model: "m", Inputs: []serve.Tensor{{Name: "x", Value: tensor.Of([]float32{1, 1}, 1, 2)}}}, &resp)
	if err != nil || resp.Version != "1" {
		t.Errorf("version %q, %v", resp.Version, err)
	}
}

func TestDamagedInput(t *testing.T) {
	c := portable.New()
	defer c.Close()
	for _, in := range []string{"", "abc", "\xff\xff\xff\xff", "\x02\x00\x00\x00{]", "\x02\x00\x00\x00{}\xff\xff"} {
		var out bytes.Buffer
		if err := prove.Main(t.Context(), c, strings.NewReader(in), &out); err == nil {
			t.Errorf("%q is taken for a model", in)
		}
	}
}
