package enginetest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func (s *suite) inputErrors(t *testing.T) {
	e := s.open(t)
	session := compile(t, e, identity(t, symbolic(tensor.Float32, onnx.Symbol("n"), onnx.Known(3))), engine.Options{})
	good := tensor.New(tensor.Float32, 2, 3)
	for _, c := range []struct {
		name    string
		out, in []*tensor.Tensor
		port    string // empty: any error
	}{
		{"no input", make([]*tensor.Tensor, 1), nil, ""},
		{"two inputs", make([]*tensor.Tensor, 1), []*tensor.Tensor{good, good}, ""},
		{"no output", nil, []*tensor.Tensor{good}, ""},
		{"nil input", make([]*tensor.Tensor, 1), []*tensor.Tensor{nil}, "x"},
		{"input type", make([]*tensor.Tensor, 1), []*tensor.Tensor{tensor.New(tensor.Float64, 2, 3)}, "x"},
		{"input rank", make([]*tensor.Tensor, 1), []*tensor.Tensor{tensor.New(tensor.Float32, 6)}, "x"},
		{"input extent", make([]*tensor.Tensor, 1), []*tensor.Tensor{tensor.New(tensor.Float32, 2, 4)}, "x"},
		{"output type", []*tensor.Tensor{tensor.New(tensor.Int32, 2, 3)}, []*tensor.Tensor{good}, "y"},
		{"output extent", []*tensor.Tensor{tensor.New(tensor.Float32, 2, 2)}, []*tensor.Tensor{good}, "y"},
	} {
		b, bindErr := session.Bind(c.out, c.in)
		if bindErr == nil {
			b.Close()
		}
		for call, err := range map[string]error{"run": session.Run(context.Background(), c.out, c.in), "bind": bindErr} {
			var target *engine.InputError
			switch {
			case err == nil:
				t.Errorf("%s, %s: accepted", call, c.name)
			case c.port != "" && (!errors.As(err, &target) || target.Port.Name != c.port):
				t.Errorf("%s, %s: %v, expected an InputError of %q", call, c.name, err, c.port)
			}
		}
	}
	if b, err := session.Bind(make([]*tensor.Tensor, 1), []*tensor.Tensor{good}); err == nil {
		b.Close()
		t.Error("a binding without an output buffer was made")
	}
	closed, err := tensor.NewArena(64)
	if err != nil {
		t.Fatal(err)
	}
	view, err := closed.Tensor(tensor.Float32, 0, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := session.Run(context.Background(), make([]*tensor.Tensor, 1), []*tensor.Tensor{view}); err == nil {
		t.Error("a view of a closed arena was accepted")
	}
	if err := session.Run(context.Background(), make([]*tensor.Tensor, 1), []*tensor.Tensor{good}); err != nil {
		t.Errorf("a good run after refused ones: %v", err)
	}
}

func (s *suite) compileErrors(t *testing.T) {
	e := s.open(t)
	one := func(n *onnx.Node) *onnx.Model {
		b := onnx.NewBuilder("broken", opset)
		b.Input("x", onnx.TypeOf(tensor.Float32, 2))
		b.Append(n)
		b.Output("y", onnx.TypeOf(tensor.Float32, 2))
		return finish(t, b)
	}
	for _, c := range []struct {
		name        string
		model       *onnx.Model
		unsupported bool
		says        string
	}{
		{"unknown operator", one(&onnx.Node{Name: "mystery", OpType: "Frobnicate", Input: []string{"x"}, Output: []string{"y"}}), true, "Frobnicate"},
		{"unknown domain", one(&onnx.Node{Name: "mystery", OpType: "Relu", Domain: "com.example.none", Input: []string{"x"}, Output: []string{"y"}}), true, "com.example.none"},
		{"undefined value", one(&onnx.Node{Name: "lost", OpType: "Relu", Input: []string{"ghost"}, Output: []string{"y"}}), false, "ghost"},
		{"undefined output", one(&onnx.Node{Name: "lost", OpType: "Relu", Input: []string{"x"}, Output: []string{"z"}}), false, "y"},
		{"no graph", &onnx.Model{IrVersion: onnx.DefaultIR}, false, "graph"},
	} {
		session, err := e.Compile(c.model, engine.Options{})
		if err == nil {
			session.Close()
			t.Errorf("%s: compiled", c.name)
			continue
		}
		var target *engine.UnsupportedError
		if errors.As(err, &target) != c.unsupported {
			t.Errorf("%s: %v (%T), UnsupportedError expected: %v", c.name, err, err, c.unsupported)
		}
		if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %q does not say %q", c.name, err, c.says)
		}
	}
}

func (s *suite) runErrors(t *testing.T) {
	e := s.open(t)
	b := onnx.NewBuilder("gather", opset)
	x, i := b.Input("x", onnx.TypeOf(tensor.Float32, 3)), b.Input("i", onnx.TypeOf(tensor.Int64, 1))
	b.Append(&onnx.Node{Name: "pick", OpType: "Gather", Input: []string{string(x), string(i)}, Output: []string{"y"}})
	b.Output("y", onnx.TypeOf(tensor.Float32, 1))
	session := compile(t, e, finish(t, b), engine.Options{})
	values, index := tensor.Of([]float32{1, 2, 3}, 3), tensor.Of([]int64{2}, 1)
	out := tensor.New(tensor.Float32, 1)
	bound, err := session.Bind([]*tensor.Tensor{out}, []*tensor.Tensor{values, index})
	if err != nil {
		t.Fatal(err)
	}
	defer bound.Close()
	runs := map[string]func() error{
		"run": func() error {
			return session.Run(context.Background(), []*tensor.Tensor{out}, []*tensor.Tensor{values, index})
		},
		"bound": bound.Run,
	}
	for name, run := range runs {
		index.Int64s()[0] = 77
		var target *engine.RunError
		if err := run(); !errors.As(err, &target) || target.Engine != e.Name() || !strings.Contains(target.Node, "pick") {
			t.Errorf("%s: %v, expected a RunError of node pick", name, err)
		}
		index.Int64s()[0] = 2
		if err := run(); err != nil || out.Float32s()[0] != 3 {
			t.Errorf("%s after a failed one: %v, %v", name, err, out.Float32s())
		}
	}
}

func (s *suite) closed(t *testing.T) {
	e := s.Open(t)
	m := identity(t, onnx.TypeOf(tensor.Float32, 1))
	session, err := e.Compile(m, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := []*tensor.Tensor{tensor.New(tensor.Float32, 1)}
	b, err := session.Bind([]*tensor.Tensor{tensor.New(tensor.Float32, 1)}, x)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []func() error{b.Close, session.Close, e.Close} {
		if err := c(); err != nil {
			t.Fatal(err)
		}
	}
	calls := map[string]error{
		"binding run":   b.Run(),
		"binding close": b.Close(),
		"session run":   session.Run(context.Background(), make([]*tensor.Tensor, 1), x),
		"session close": session.Close(),
		"engine close":  e.Close(),
	}
	_, calls["session bind"] = session.Bind(make([]*tensor.Tensor, 1), x)
	_, calls["engine compile"] = e.Compile(m, engine.Options{})
	for name, err := range calls {
		if !errors.Is(err, engine.ErrClosed) {
			t.Errorf("%s: %v, expected %v", name, err, engine.ErrClosed)
		}
	}
	if len(calls) != 7 {
		t.Errorf("%d calls checked, expected 7", len(calls))
	}
}
