package fit

import (
	"errors"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/models/loss"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestMistakesAreNamed changes one thing of a good run at a time.
func TestMistakesAreNamed(t *testing.T) {
	path := table(t, 40)
	nan := func(name string, v float32) *onnx.Model {
		m := mlp(t)
		x := tensorOf(t, m.Graph.FindInitializer(name)).Clone()
		x.Float32s()[3] = v
		for i, p := range m.Graph.Initializer {
			if p.Name == name {
				m.Graph.Initializer[i] = onnx.ProtoOf(name, x)
			}
		}
		return m
	}
	symbolic := model(t, func(b *onnx.Builder) {
		x := b.Input("x", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("N"), onnx.Symbol("time")}})
		y := b.Op("ReduceMean", []onnx.Value{b.Op("Mul", []onnx.Value{x, b.Initializer("w", filled(1, 1, 1))})}, onnx.AttrInts("axes", 1))
		b.Output(b.Rename(y, "y"), batchOf(tensor.Float32, 1))
	})
	integer := model(t, func(b *onnx.Builder) {
		x := b.Input("x", batchOf(tensor.Int64, 4))
		e := b.Op("Gather", []onnx.Value{b.Initializer("table", filled(1, 5, 2)), x})
		b.Output(b.Rename(b.Op("ReduceMean", []onnx.Value{e}, onnx.AttrInts("axes", 1), onnx.AttrInt("keepdims", 0)), "y"), batchOf(tensor.Float32, 2))
	})
	fixed := model(t, func(b *onnx.Builder) {
		b.Output(b.Rename(b.Op("Relu", []onnx.Value{b.Input("x", batchOf(tensor.Float32, 4))}), "y"), batchOf(tensor.Float32, 4))
	})
	transposed := model(t, func(b *onnx.Builder) {
		h := b.Op("MatMul", []onnx.Value{b.Input("x", batchOf(tensor.Float32, 4)), b.Initializer("w", filled(1, 4, 2))})
		b.Output(b.Rename(b.Op("Transpose", []onnx.Value{h}), "y"), onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Known(2), onnx.Symbol("N")}})
	})
	// The rows are negative and positive numbers.
	roots := model(t, func(b *onnx.Builder) {
		h := b.Op("MatMul", []onnx.Value{b.Op("Sqrt", []onnx.Value{b.Input("x", batchOf(tensor.Float32, 4))}), b.Initializer("w", filled(1, 4, 2))})
		b.Output(b.Rename(h, "y"), batchOf(tensor.Float32, 2))
	})
	cases := []struct {
		name string
		edit func(c *Config, m **onnx.Model)
		want string
	}{
		{"no batch", func(c *Config, _ **onnx.Model) { c.Batch = 0 }, "batch: must be at least 1"},
		{"no loss", func(c *Config, _ **onnx.Model) { c.Loss = nil }, "loss: no term is given"},
		{"unknown loss", func(c *Config, _ **onnx.Model) { c.Loss[0].Kind = "msee" }, `loss[0].kind: must be one of`},
		{"unknown output", func(c *Config, _ **onnx.Model) { c.Loss[0].Output = "z" }, `the model has no output "z"; it has y`},
		{"target of no loss", func(c *Config, _ **onnx.Model) { c.Data.Targets["z"] = []string{"y0"} }, `there is no loss on an output "z"`},
		{"no target", func(c *Config, _ **onnx.Model) { c.Data.Targets = map[string][]string{"z": {"y0"}} }, `there is no loss on an output "z"`},
		{"unknown input", func(c *Config, _ **onnx.Model) { c.Data.Inputs["q"] = []string{"x0"} }, `the model has no input "q"; it has x`},
		{"unknown column", func(c *Config, _ **onnx.Model) { c.Data.Inputs["x"] = []string{"q*"} }, `needs column "q*"; the file has x0, x1, x2, x3, y0, y1, c, w`},
		{"too few columns", func(c *Config, _ **onnx.Model) { c.Data.Inputs["x"] = []string{"x0", "x1"} }, `"x" has shape [4] per row, 4 values, but its columns hold 2`},
		{"no such table", func(c *Config, _ **onnx.Model) { c.Data.Path = "nowhere.csv" }, "nowhere.csv"},
		{"train nothing", func(c *Config, _ **onnx.Model) { c.Train = []string{"conv*"} }, `train pattern "conv*" matches no parameter; the model has fc1.weight`},
		{"freeze everything", func(c *Config, _ **onnx.Model) { c.Freeze = []string{"*"} }, "no parameter is trainable"},
		{"a model without parameters", func(_ *Config, m **onnx.Model) { *m = fixed }, "no parameter is trainable: the model has 0"},
		{"lora nowhere", func(c *Config, _ **onnx.Model) { c.LoRA = &lora.Config{Rank: 2, Target: []string{"attn"}} }, `target "attn" matches no MatMul, Gemm or Conv`},
		{"lora of no rank", func(c *Config, _ **onnx.Model) { c.LoRA = &lora.Config{} }, "lora.rank: must be at least 1"},
		{"decay of nothing", func(c *Config, _ **onnx.Model) { c.Optimizer.NoDecay = []string{"*.scale"} }, `patterns ["*.scale"] match no trainable parameter`},
		{"patience without validation", func(c *Config, _ **onnx.Model) { c.EarlyStop.Patience = 2 }, "early_stop.patience: needs validation data"},
		{"unbound extent", func(c *Config, m **onnx.Model) { *m = symbolic }, `input "x" is float32[batch,time]: its first extent must be the batch, and extent 1 needs a number: set it with bind`},
		{"bind of nothing", func(c *Config, _ **onnx.Model) { c.Bind = map[string]int{"time": 3} }, `no extent of an input but the batch is called "time"`},
		{"batch on another axis", func(_ *Config, m **onnx.Model) { *m = transposed }, `output "y" is float32[2,batch]; for a loss its first extent must be the batch`},
		{"integers wanted", func(_ *Config, m **onnx.Model) { *m = integer }, "is not a whole number of type int64"},
		{"NaN weight", func(_ *Config, m **onnx.Model) { *m = nan("fc1.bias", float32(math.NaN())) }, "initial value of fc1.bias is NaN at element 3"},
		{"infinite weight", func(_ *Config, m **onnx.Model) { *m = nan("fc2.weight", float32(math.Inf(1))) }, "initial value of fc2.weight is +Inf at element 3"},
		{"a loss that was never finite", func(_ *Config, m **onnx.Model) { *m = roots }, "the loss of rows 1 to 16 of epoch 1 is NaN before anything was trained: the model makes it of these rows with the weights that it came with"},
		{"divergence", func(c *Config, _ **onnx.Model) { c.Optimizer = optim.Config{Kind: "sgd", LR: 1e30} }, "step 1: the loss of rows 17 to 32 of epoch 1 is"},
		{"shards of batch statistics", func(c *Config, m **onnx.Model) { *m, c.TrainMode, c.Shards = noisy(t), new(true), 2 }, "depends on rows of the batch together"},
		{"shards that do not divide", func(c *Config, _ **onnx.Model) { c.Shards = 3 }, "shards: 3 does not divide the batch of 16"},
		{"validation of nothing", func(c *Config, _ **onnx.Model) { c.Data.Validation.Fraction = 1e-9 }, "the selected part of the data has no rows"},
	}
	c := testengines.Fastest(t)
	for _, k := range cases {
		cfg, m := regression(path), mlp(t)
		k.edit(&cfg, &m)
		_, err := tryRun(t, c, m, cfg, runOptions{})
		if err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%s: error %v, want %q", k.name, err, k.want)
		}
		if diverged := new(*DivergedError); errors.As(err, diverged) != (k.name == "divergence") {
			t.Errorf("%s: %T", k.name, err)
		}
	}
	if len(cases) != 28 {
		t.Errorf("%d cases", len(cases))
	}
}

// TestInfiniteGradientIsNamed: √x has an infinite slope at 0, where the loss itself is finite.
// Nothing is updated.
func TestInfiniteGradientIsNamed(t *testing.T) {
	m := model(t, func(b *onnx.Builder) {
		x := b.Input("x", batchOf(tensor.Float32, 4))
		h := b.Op("MatMul", []onnx.Value{x, b.Initializer("w", tensor.New(tensor.Float32, 4, 2))})
		b.Output(b.Rename(b.Op("Sqrt", []onnx.Value{h}), "y"), batchOf(tensor.Float32, 2))
	})
	_, err := tryRun(t, testengines.Fastest(t), m, regression(table(t, 40)), runOptions{})
	var bad *optim.NonFiniteError
	if !errors.As(err, &bad) || bad.Param != "w" || bad.What != "gradient" {
		t.Errorf("error %v, want the gradient of w", err)
	}
}

// TestNothingBadIsSaved: an update that overflows the weights is found before they are saved.
func TestNothingBadIsSaved(t *testing.T) {
	cfg := regression(table(t, 16))
	cfg.Optimizer = optim.Config{Kind: "sgd", LR: 3e38}
	cfg.Loss[0] = loss.Term{Kind: "mse", Weight: 1e3}
	saves := 0
	tr, err := New(mlp(t), cfg, testengines.Fastest(t), Hooks{Save: func(int64, *float64) error { saves++; return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	_, err = tr.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "value of ") || saves != 0 {
		t.Errorf("error %v after %d saves", err, saves)
	}
}

// TestSaveErrorsEndTheRun also shows that the state is still whole: the same trainer can go on.
func TestSaveErrorsEndTheRun(t *testing.T) {
	cfg := regression(table(t, 64))
	cfg.Checkpoint.Every = 2
	full := errors.New("no space left on device")
	broken := true
	tr, err := New(mlp(t), cfg, testengines.Fastest(t), Hooks{Save: func(int64, *float64) error {
		if broken {
			return full
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	res, err := tr.Run(t.Context())
	if !errors.Is(err, full) || !strings.Contains(err.Error(), "step 2") || res.Steps != 2 {
		t.Fatalf("error %v after %d steps", err, res.Steps)
	}
	broken = false
	if res, err = tr.Run(t.Context()); err != nil || res.Steps != 12 {
		t.Errorf("error %v after %d steps", err, res.Steps)
	}
}

func TestMissingValidationTableIsNamed(t *testing.T) {
	cfg := regression(table(t, 40))
	cfg.Data.Validation.Path = filepath.Join(t.TempDir(), "later.csv")
	if _, err := tryRun(t, testengines.Fastest(t), mlp(t), cfg, runOptions{}); err == nil || !strings.Contains(err.Error(), "later.csv") {
		t.Errorf("error %v", err)
	}
	cfg.Data.Validation.Path = table(t, 20)
	if r := run(t, testengines.Fastest(t), mlp(t), cfg, runOptions{}); math.IsNaN(r.Validation) {
		t.Error("there is no validation loss")
	}
}
