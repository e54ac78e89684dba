package enginetest

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// extremes checks numbers among the inputs of a run that kernels divide by or count with: those
// below 1 are errors of the run that name the node, where 1 is the least, as are indices beyond
// what there is, and a diagonal outside of the matrix is one, however far.
func (s *suite) extremes(t *testing.T) {
	e := s.open(t)
	// open compiles a node named hot that reads x and the integer n.
	open := func(op string, build func(b *onnx.Builder, x, n onnx.Value) onnx.Value, x onnx.TensorType) func(*tensor.Tensor, int64) (*tensor.Tensor, error) {
		b := onnx.NewBuilder(op, opset)
		y := build(b, b.Input("x", x), b.Input("n", onnx.TypeOf(tensor.Int64)))
		b.Output(y, onnx.TensorType{DType: x.DType})
		session, err := e.Compile(finish(t, b), engine.Options{})
		if err != nil {
			t.Fatalf("%s: %v", op, err)
		}
		t.Cleanup(func() {
			if err := session.Close(); err != nil {
				t.Error(err)
			}
		})
		return func(x *tensor.Tensor, n int64) (*tensor.Tensor, error) {
			out := make([]*tensor.Tensor, 1)
			err := session.Run(context.Background(), out, []*tensor.Tensor{x, tensor.Scalar(n)})
			return out[0], err
		}
	}
	hot := func(b *onnx.Builder, op string, in []onnx.Value, attrs ...*onnx.Attribute) onnx.Value {
		n := &onnx.Node{Name: "hot", OpType: op, Attribute: attrs, Output: []string{"y"}}
		for _, v := range in {
			n.Input = append(n.Input, string(v))
		}
		b.Append(n)
		return "y"
	}

	matrix := tensor.Of([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	for upper, want := range [][]float32{{0, 0, 0, 0, 0, 0}, {1, 2, 3, 4, 5, 6}} {
		trilu := open("Trilu", func(b *onnx.Builder, x, n onnx.Value) onnx.Value {
			return hot(b, "Trilu", []onnx.Value{x, n}, onnx.AttrInt("upper", upper))
		}, onnx.TypeOf(tensor.Float32, 2, 3))
		below, above := want, slices.Clone(want)
		for i, v := range matrix.Float32s() {
			above[i] = v - want[i]
		}
		for _, n := range []int64{math.MinInt64, math.MinInt64 + 1, -1 << 50, math.MinInt32, -2, 3, math.MaxInt32, 1 << 50, math.MaxInt64} {
			want := below
			if n > 0 {
				want = above
			}
			if got, err := trilu(matrix, n); err != nil || !slices.Equal(got.Float32s(), want) {
				t.Errorf("Trilu, upper %d, from diagonal %d: %v, %v, expected %v", upper, n, got, err, want)
			}
		}
	}

	signal := tensor.New(tensor.Float32, 1, 8, 1)
	cases := []struct {
		name  string
		build func(b *onnx.Builder, x, n onnx.Value) onnx.Value
	}{
		{"STFT with frames of", func(b *onnx.Builder, x, n onnx.Value) onnx.Value {
			return hot(b, "STFT", []onnx.Value{x, b.Const(tensor.Scalar(int64(2))), "", n})
		}},
		{"STFT in steps of", func(b *onnx.Builder, x, n onnx.Value) onnx.Value {
			return hot(b, "STFT", []onnx.Value{x, n, "", b.Const(tensor.Scalar(int64(2)))})
		}},
		{"SplitToSequence into parts of", func(b *onnx.Builder, x, n onnx.Value) onnx.Value {
			parts := hot(b, "SplitToSequence", []onnx.Value{x, n}, onnx.AttrInt("axis", 1))
			return b.Op("SequenceAt", []onnx.Value{parts, b.Const(tensor.Scalar(int64(0)))})
		}},
	}
	for _, c := range cases {
		run := open(c.name, c.build, onnx.TypeOf(tensor.Float32, 1, 8, 1))
		if _, err := run(signal, 2); err != nil {
			t.Errorf("%s 2: %v", c.name, err)
		}
		for _, n := range []int64{0, -1, math.MinInt64} {
			if _, err := run(signal, n); !errors.Is(err, engine.ErrNotPositive) || !strings.Contains(err.Error(), "hot") {
				t.Errorf("%s %d: %v, expected %v in node hot", c.name, n, err, engine.ErrNotPositive)
			}
		}
	}

	list := func(b *onnx.Builder, n onnx.Value, dims ...int) onnx.Value {
		return b.Op("Reshape", []onnx.Value{n, b.Ints(dims...)})
	}
	row := tensor.Of([]float32{1, 2, 3}, 3)
	indexed := map[string]func(b *onnx.Builder, x, n onnx.Value) onnx.Value{
		"Gather": func(b *onnx.Builder, x, n onnx.Value) onnx.Value { return hot(b, "Gather", []onnx.Value{x, n}) },
		"GatherElements": func(b *onnx.Builder, x, n onnx.Value) onnx.Value {
			return hot(b, "GatherElements", []onnx.Value{x, list(b, n, 1)})
		},
		"GatherND": func(b *onnx.Builder, x, n onnx.Value) onnx.Value {
			return hot(b, "GatherND", []onnx.Value{x, list(b, n, 1, 1)})
		},
		"ScatterElements": func(b *onnx.Builder, x, n onnx.Value) onnx.Value {
			return hot(b, "ScatterElements", []onnx.Value{x, list(b, n, 1), b.Const(tensor.Of([]float32{5}, 1))})
		},
		"ScatterND": func(b *onnx.Builder, x, n onnx.Value) onnx.Value {
			return hot(b, "ScatterND", []onnx.Value{x, list(b, n, 1, 1), b.Const(tensor.Of([]float32{5}, 1))})
		},
		"SequenceAt": func(b *onnx.Builder, x, n onnx.Value) onnx.Value {
			return hot(b, "SequenceAt", []onnx.Value{b.Op("SequenceConstruct", []onnx.Value{x, x, x}), n})
		},
	}
	for _, op := range slices.Sorted(maps.Keys(indexed)) {
		run := open(op, indexed[op], onnx.TypeOf(tensor.Float32, 3))
		if _, err := run(row, 2); err != nil {
			t.Errorf("%s at 2: %v", op, err)
		}
		for _, n := range []int64{3, -4, 1 << 32, math.MaxInt64, math.MinInt64} {
			if _, err := run(row, n); !errors.As(err, new(engine.DataError)) || !strings.Contains(err.Error(), "hot") {
				t.Errorf("%s at %d: %v, expected a DataError in node hot", op, n, err)
			}
		}
	}
}
