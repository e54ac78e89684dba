package fit

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models/loss"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// indexed is a table of 40 good rows with columns x (a number), t0…t3 (0 to 4) and c (0 to 2), in
// which one cell is something else.
func indexed(t testing.TB, row int, column, value string) string {
	t.Helper()
	names := []string{"x", "t0", "t1", "t2", "t3", "c"}
	var s strings.Builder
	fmt.Fprintln(&s, strings.Join(names, ","))
	for r := 1; r <= 40; r++ {
		for i, name := range names {
			cell := fmt.Sprint((r + i) % 5)
			if name == "c" {
				cell = fmt.Sprint(r % 3)
			}
			if r == row && name == column {
				cell = value
			}
			if i > 0 {
				s.WriteByte(',')
			}
			s.WriteString(cell)
		}
		s.WriteByte('\n')
	}
	path := filepath.Join(t.TempDir(), "indexed.csv")
	if err := os.WriteFile(path, []byte(s.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// tokens is a model on input t of four token ids: their embeddings, from a table of five rows,
// averaged and projected onto three classes. ids makes the indices of the input.
func tokens(t testing.TB, d tensor.DType, ids func(b *onnx.Builder, x onnx.Value) onnx.Value) *onnx.Model {
	return model(t, func(b *onnx.Builder) {
		x := b.Input("t", batchOf(d, 4))
		e := b.Op("Gather", []onnx.Value{b.Initializer("embed.weight", filled(1, 5, 6)), ids(b, x)})
		h := b.Op("ReduceMean", []onnx.Value{e}, onnx.AttrInts("axes", 1), onnx.AttrInt("keepdims", 0))
		b.Output(b.Rename(b.Op("MatMul", []onnx.Value{h, b.Initializer("w", filled(2, 6, 3))}), "y"), batchOf(tensor.Float32, 3))
	})
}

// lossGraph is a loss of the user's own that takes labels.
func lossGraph(t testing.TB, ignore bool) *onnx.Model {
	return model(t, func(b *onnx.Builder) {
		var attrs []*onnx.Attribute
		if ignore {
			attrs = append(attrs, onnx.AttrInt("ignore_index", -7))
		}
		attrs = append(attrs, onnx.AttrStr("reduction", "none"))
		in := []onnx.Value{b.Input("prediction", batchOf(tensor.Float32, 3)), b.Input("target", batchOf(tensor.Int64))}
		b.Output(b.Rename(b.Op("SoftmaxCrossEntropyLoss", in, attrs...), "loss"), batchOf(tensor.Float32))
	})
}

// TestIndicesOutsideAreRefused: engines count negative indices from the end, so that a label of −1
// would train the last class. Each case has one such cell.
func TestIndicesOutsideAreRefused(t *testing.T) {
	plain := func(_ *onnx.Builder, x onnx.Value) onnx.Value { return x }
	minus := -7
	own := func(ignore bool) func(c *Config) {
		return func(c *Config) { c.Loss[0] = loss.Term{Kind: "onnx", Model: lossGraph(t, ignore)} }
	}
	cases := []struct {
		name   string
		dtype  tensor.DType
		ids    func(b *onnx.Builder, x onnx.Value) onnx.Value
		edit   func(c *Config)
		column string
		value  string
		want   string // empty: accepted
	}{
		{"good", tensor.Int64, plain, nil, "c", "2", ""},
		{"label -1", tensor.Int64, plain, nil, "c", "-1", `row 17, column "c": -1 is not a class of output "y": expected 0 to 2`},
		{"label 3", tensor.Int64, plain, nil, "c", "3", `row 17, column "c": 3 is not a class of output "y": expected 0 to 2`},
		{"label in validation rows", tensor.Int64, plain, func(c *Config) {
			c.Data.Validation.Path, c.Data.Path = c.Data.Path, indexed(t, 0, "", "")
		}, "c", "-1", `row 17, column "c": -1 is not a class`},
		{"ignored label", tensor.Int64, plain, func(c *Config) { c.Loss[0].IgnoreIndex = &minus }, "c", "-7", ""},
		{"label beside the ignored one", tensor.Int64, plain, func(c *Config) { c.Loss[0].IgnoreIndex = &minus }, "c", "-1", "expected 0 to 2, or -7"},
		{"label of a loss graph", tensor.Int64, plain, own(false), "c", "-1", `row 17, column "c": -1 is not a class of`},
		{"ignored label of a loss graph", tensor.Int64, plain, own(true), "c", "-7", ""},
		{"label beside the ignored one of a loss graph", tensor.Int64, plain, own(true), "c", "-1", "expected 0 to 2, or -7"},
		{"token -1", tensor.Int64, plain, nil, "t2", "-1", `row 17, column "t2": -1 is not a row of the table "embed.weight": expected 0 to 4`},
		{"token 5", tensor.Int32, plain, nil, "t0", "5", `row 17, column "t0": 5 is not a row of the table "embed.weight": expected 0 to 4`},
		{"tokens among numbers", tensor.Float32, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			// x[:, 2:].long()
			return b.Op("Cast", []onnx.Value{b.Op("Slice", []onnx.Value{x, b.Ints(2), b.Ints(9), b.Ints(1)})}, onnx.AttrInt("to", int(tensor.Int64)))
		}, nil, "t3", "-1", `row 17, column "t3": -1 is not a row`},
		{"number beside tokens", tensor.Float32, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			return b.Op("Cast", []onnx.Value{b.Op("Slice", []onnx.Value{x, b.Ints(2), b.Ints(9), b.Ints(1)})}, onnx.AttrInt("to", int(tensor.Int64)))
		}, nil, "t1", "-1", ""},
		{"a token before all", tensor.Int64, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			cls := b.Op("Slice", []onnx.Value{x, b.Ints(0), b.Ints(1), b.Ints(1)})
			return b.Op("Concat", []onnx.Value{cls, b.Op("Transpose", []onnx.Value{b.Op("Transpose", []onnx.Value{x})})}, onnx.AttrInt("axis", 1))
		}, nil, "t1", "-5", `row 17, column "t1": -5 is not a row`},
		{"counted from the end on purpose", tensor.Int64, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			end := b.Op("Add", []onnx.Value{x, b.Int(5)})
			return b.Op("Where", []onnx.Value{b.Op("Less", []onnx.Value{x, b.Int(0)}), end, x})
		}, nil, "t1", "-5", ""},
		{"one-hot", tensor.Int64, func(b *onnx.Builder, x onnx.Value) onnx.Value {
			hot := b.Op("OneHot", []onnx.Value{x, b.Int(5), b.Const(tensor.Of([]int64{0, 1}, 2))})
			return b.Op("ArgMax", []onnx.Value{hot}, onnx.AttrInt("axis", 2), onnx.AttrInt("keepdims", 0))
		}, nil, "t1", "-1", `row 17, column "t1": -1 is not a class of`},
	}
	runs := 0
	for _, eng := range testengines.All(t) {
		for _, c := range cases {
			runs++
			cfg := Defaults()
			cfg.Epochs, cfg.Batch, cfg.Seed = 1, 16, 1
			cfg.Data.Path = indexed(t, 17, c.column, c.value)
			cfg.Data.Inputs = map[string][]string{"t": {"t*"}}
			cfg.Data.Targets = map[string][]string{"y": {"c"}}
			cfg.Loss = []loss.Term{{Kind: "cross_entropy"}}
			if c.edit != nil {
				c.edit(&cfg)
			}
			_, err := tryRun(t, eng, tokens(t, c.dtype, c.ids), cfg, runOptions{})
			switch {
			case c.want == "" && err != nil:
				t.Errorf("%s, %s: %v", eng.Name(), c.name, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "indexed.csv")):
				t.Errorf("%s, %s: error %v, want %q", eng.Name(), c.name, err, c.want)
			}
		}
	}
	if want := 16 * len(testengines.All(t)); runs != want {
		t.Errorf("%d runs, want %d", runs, want)
	}
}

// TestActivationsMayBeIndexedFromTheEnd: x[i] in a network takes −1 for the last, as PyTorch does;
// only tables of parameters have no such rows.
func TestActivationsMayBeIndexedFromTheEnd(t *testing.T) {
	m := model(t, func(b *onnx.Builder) {
		x, i := b.Input("x", batchOf(tensor.Float32, 4)), b.Input("i", batchOf(tensor.Int64, 1))
		h := b.Op("MatMul", []onnx.Value{x, b.Initializer("w", filled(2, 4, 3))})
		b.Output(b.Rename(b.Op("GatherElements", []onnx.Value{h, i}, onnx.AttrInt("axis", 1)), "y"), batchOf(tensor.Float32, 1))
	})
	for value, want := range sorted.All(map[string]string{"-1": "", "-3": "", "-4": `row 17, column "c": -4 is not an index of`, "3": "expected -3 to 2"}) {
		cfg := Defaults()
		cfg.Epochs, cfg.Batch = 1, 16
		cfg.Data.Path = indexed(t, 17, "c", value)
		cfg.Data.Inputs = map[string][]string{"x": {"t*"}, "i": {"c"}}
		cfg.Data.Targets = map[string][]string{"y": {"x"}}
		cfg.Loss = []loss.Term{{Kind: "mse"}}
		_, err := tryRun(t, testengines.Fastest(t), m, cfg, runOptions{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("index %s: error %v, want %q", value, err, want)
		}
	}
}
