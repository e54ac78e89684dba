package enginetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func (s *suite) ports(t *testing.T) {
	e := s.open(t)
	if e.Name() == "" {
		t.Error("the engine has no name")
	}
	b := onnx.NewBuilder("ports", opset)
	x := b.Input("x", symbolic(tensor.Float32, onnx.Symbol("batch"), onnx.Known(3)))
	n := b.Input("n", onnx.TypeOf(tensor.Int64))
	// An initializer that is also an input is a default, not a port.
	w := b.Input("w", onnx.TypeOf(tensor.Float32, 3))
	b.Graph().Initializer = append(b.Graph().Initializer, onnx.ProtoOf("w", tensor.Of([]float32{1, 2, 3}, 3)))
	b.Output(b.Rename(b.Op("Mul", []onnx.Value{x, w}), "y"), symbolic(tensor.Float32, onnx.Symbol("batch"), onnx.Known(3)))
	b.Output(b.Rename(b.Op("Neg", []onnx.Value{n}), "m"), onnx.TypeOf(tensor.Int64))
	session := compile(t, e, finish(t, b), engine.Options{})
	for _, c := range []struct {
		side      string
		got, want []engine.Port
	}{
		{"inputs", session.Inputs(), []engine.Port{
			{Name: "x", DType: tensor.Float32, Shape: []int{-1, 3}}, {Name: "n", DType: tensor.Int64, Shape: []int{}}}},
		{"outputs", session.Outputs(), []engine.Port{
			{Name: "y", DType: tensor.Float32, Shape: []int{-1, 3}}, {Name: "m", DType: tensor.Int64, Shape: []int{}}}},
	} {
		equal := slices.EqualFunc(c.got, c.want, func(a, b engine.Port) bool {
			// A missing shape is an unknown rank, not rank 0.
			return a.Name == b.Name && a.DType == b.DType && slices.Equal(a.Shape, b.Shape) && (a.Shape == nil) == (b.Shape == nil)
		})
		if !equal {
			t.Errorf("%s %v, expected %v", c.side, c.got, c.want)
		}
	}
	out := make([]*tensor.Tensor, 2)
	in := []*tensor.Tensor{tensor.Of([]float32{1, 1, 1, 2, 2, 2}, 2, 3), tensor.Scalar(int64(7))}
	if err := session.Run(context.Background(), out, in); err != nil {
		t.Fatal(err)
	}
	close32(t, "y", out[0].Float32s(), []float32{1, 2, 3, 2, 4, 6})
	if out[1].Rank() != 0 || out[1].Int64s()[0] != -7 {
		t.Errorf("m is %v, expected int64[] -7", out[1])
	}
}

// sample fills a tensor with bit patterns that survive any faithful copy.
func sample(d tensor.DType, shape ...int) *tensor.Tensor {
	t := tensor.New(d, shape...)
	if d == tensor.String {
		for i := range t.Strings() {
			t.Strings()[i] = fmt.Sprintf("s%d — ünicode\x00after", i)
		}
		return t
	}
	b := t.Bytes()
	for i := range b {
		b[i] = byte(37*i + 1)
		if d == tensor.Bool {
			b[i] &= 1
		}
	}
	return t
}

func sameTensor(a, b *tensor.Tensor) error {
	switch {
	case a == nil || b == nil:
		return errors.New("missing tensor")
	case a.DType() != b.DType() || !slices.Equal(a.Shape(), b.Shape()):
		return fmt.Errorf("%v, expected %v", a, b)
	case a.DType() == tensor.String && !slices.Equal(a.Strings(), b.Strings()):
		return fmt.Errorf("%q, expected %q", a.Strings(), b.Strings())
	case !bytes.Equal(a.Bytes(), b.Bytes()):
		return fmt.Errorf("bytes % x, expected % x", a.Bytes(), b.Bytes())
	}
	return nil
}

// allDTypes are those of ONNX that Identity takes at the suite's opset.
var allDTypes = []tensor.DType{
	tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Bool, tensor.String,
	tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64, tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64,
}

func (s *suite) dtypes(t *testing.T) {
	e := s.open(t)
	supported := 0
	for _, d := range allDTypes {
		m := identity(t, symbolic(d, onnx.Symbol("n"), onnx.Known(2)))
		if !slices.Contains(s.DTypes, d) {
			session, err := e.Compile(m, engine.Options{})
			if err == nil {
				session.Close()
			}
			if target := (*engine.UnsupportedError)(nil); !errors.As(err, &target) {
				t.Errorf("%v: error %v, expected an UnsupportedError", d, err)
			}
			continue
		}
		supported++
		session := compile(t, e, m, engine.Options{})
		x := sample(d, 3, 2)
		for _, out := range []*tensor.Tensor{nil, tensor.New(d, 3, 2)} {
			outs := []*tensor.Tensor{out}
			if err := session.Run(context.Background(), outs, []*tensor.Tensor{x}); err != nil {
				t.Errorf("%v: %v", d, err)
			} else if err := sameTensor(outs[0], x); err != nil {
				t.Errorf("%v: %v", d, err)
			} else if out != nil && outs[0] != out {
				t.Errorf("%v: the output tensor was replaced", d)
			}
		}
	}
	if supported != len(s.DTypes) || supported == 0 {
		t.Errorf("%d types checked, the engine claims %d", supported, len(s.DTypes))
	}
}

func (s *suite) shapes(t *testing.T) {
	e := s.open(t)
	for _, shape := range [][]int{{}, {1}, {5}, {2, 3}, {1, 1, 1}, {2, 1, 3, 2}, {2, 1, 2, 1, 2, 1}, {0}, {3, 0}, {0, 4}} {
		free := make([]onnx.Dim, len(shape))
		for i := range free {
			free[i] = onnx.Symbol(fmt.Sprintf("d%d", i))
		}
		for kind, typ := range map[string]onnx.TensorType{
			"static": onnx.TypeOf(tensor.Float32, shape...), "free": symbolic(tensor.Float32, free...), "unranked": {DType: tensor.Float32},
		} {
			session := compile(t, e, identity(t, typ), engine.Options{})
			x := tensor.New(tensor.Float32, shape...)
			for i := range x.Float32s() {
				x.Float32s()[i] = float32(i) + 0.5
			}
			for _, out := range []*tensor.Tensor{nil, tensor.New(tensor.Float32, shape...)} {
				outs := []*tensor.Tensor{out}
				if err := session.Run(context.Background(), outs, []*tensor.Tensor{x}); err != nil {
					t.Errorf("%s %v: %v", kind, shape, err)
				} else if err := sameTensor(outs[0], x); err != nil {
					t.Errorf("%s %v: %v", kind, shape, err)
				}
			}
			y := tensor.New(tensor.Float32, shape...)
			b, err := session.Bind([]*tensor.Tensor{y}, []*tensor.Tensor{x})
			if err != nil {
				t.Errorf("bind %s %v: %v", kind, shape, err)
				continue
			}
			if err := errors.Join(b.Run(), sameTensor(y, x), b.Close()); err != nil {
				t.Errorf("bind %s %v: %v", kind, shape, err)
			}
		}
	}
}

func (s *suite) policy(t *testing.T) {
	e := s.open(t)
	for _, n := range []net{{1, 5, 8, 2}, {7, 3, 16, 1}} {
		for _, batch := range []onnx.Dim{onnx.Known(n.batch), onnx.Symbol("batch")} {
			session := compile(t, e, n.model(t, batch), engine.Options{})
			in := n.inputs(3, tensor.New)
			out := make([]*tensor.Tensor, 1)
			if err := session.Run(context.Background(), out, in); err != nil {
				t.Fatal(err)
			}
			if want := []int{n.batch, n.act}; !slices.Equal(out[0].Shape(), want) {
				t.Errorf("shape %v, expected %v", out[0].Shape(), want)
			}
			close32(t, "logits", out[0].Float32s(), n.want(in))
		}
	}
}

// initializers are compiled in: their later change has no effect that a caller
// may rely on, but the first run must see them.
func (s *suite) initializers(t *testing.T) {
	e := s.open(t)
	b := onnx.NewBuilder("constants", opset)
	x := b.Input("x", symbolic(tensor.Float32, onnx.Symbol("n")))
	b.Output(b.Rename(b.Op("Add", []onnx.Value{x, b.Float(0.25)}), "y"), symbolic(tensor.Float32, onnx.Symbol("n")))
	m := finish(t, b)
	session := compile(t, e, m, engine.Options{})
	out := make([]*tensor.Tensor, 1)
	if err := session.Run(context.Background(), out, []*tensor.Tensor{tensor.Of([]float32{1, 2}, 2)}); err != nil {
		t.Fatal(err)
	}
	close32(t, "y", out[0].Float32s(), []float32{1.25, 2.25})
}

func (s *suite) outputsInPlace(t *testing.T) {
	e := s.open(t)
	session := compile(t, e, identity(t, symbolic(tensor.Float32, onnx.Symbol("n"))), engine.Options{})
	alloc, _ := arenaAlloc(t, 4096)
	for name, out := range map[string]*tensor.Tensor{"heap": tensor.New(tensor.Float32, 4), "arena": alloc(tensor.Float32, 4)} {
		outs := []*tensor.Tensor{out}
		x := tensor.Of([]float32{1, 2, 3, 4}, 4)
		if err := session.Run(context.Background(), outs, []*tensor.Tensor{x}); err != nil {
			t.Fatal(err)
		}
		if outs[0] != out {
			t.Errorf("%s: the output tensor was replaced", name)
		}
		close32(t, name, out.Float32s(), x.Float32s())
	}
	// A tensor of another extent than the run gives is an error, never a partial or
	// overflowing write.
	short, x := tensor.New(tensor.Float32, 3), tensor.New(tensor.Float32, 4)
	if err := session.Run(context.Background(), []*tensor.Tensor{short}, []*tensor.Tensor{x}); err == nil {
		t.Error("an output of 3 elements was accepted for 4")
	}
}

func (s *suite) optLevels(t *testing.T) {
	e := s.open(t)
	n := net{4, 6, 8, 3}
	in := n.inputs(9, tensor.New)
	for _, o := range []engine.Options{
		{}, {Optimize: engine.OptNone}, {Optimize: engine.OptBasic}, {Optimize: engine.OptExtended},
		{Threads: 2}, {Threads: 2, Spin: true}, {NoMemoryPattern: true},
	} {
		session := compile(t, e, n.model(t, onnx.Known(n.batch)), o)
		out := make([]*tensor.Tensor, 1)
		if err := session.Run(context.Background(), out, in); err != nil {
			t.Fatalf("%+v: %v", o, err)
		}
		close32(t, fmt.Sprintf("%+v", o), out[0].Float32s(), n.want(in))
	}
}

func (s *suite) modelIsNotChanged(t *testing.T) {
	e := s.open(t)
	n := net{2, 3, 4, 2}
	m := n.model(t, onnx.Symbol("batch"))
	before := m.Clone()
	session := compile(t, e, m, engine.Options{})
	if err := session.Run(context.Background(), make([]*tensor.Tensor, 1), n.inputs(1, tensor.New)); err != nil {
		t.Fatal(err)
	}
	if !proto.Equal(before, m) {
		t.Error("compiling changed the model")
	}
}
