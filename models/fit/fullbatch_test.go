package fit

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/optim/fullbatch"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// whole is regression by a full-batch method; 50 rows are three batches of 16 and one of 2.
func whole(path string, f fullbatch.Config) Config {
	cfg := regression(path)
	cfg.Optimizer, cfg.Epochs, cfg.FullBatch = Defaults().Optimizer, Defaults().Epochs, &f
	return cfg
}

// line is y = x·W + b, whose squared error is a quadratic function of 10 parameters.
func line(t testing.TB) *onnx.Model {
	return model(t, func(b *onnx.Builder) {
		x := b.Input("x", batchOf(tensor.Float32, 4))
		b.Output(b.Rename(b.Op("Gemm", []onnx.Value{x, b.Initializer("w", filled(1, 4, 2)), b.Initializer("b", filled(2, 2))}), "y"), batchOf(tensor.Float32, 2))
	})
}

// TestFullBatchFindsTheMinimum requires of every method the least squares that the others find.
func TestFullBatchFindsTheMinimum(t *testing.T) {
	path := table(t, 50)
	losses := map[string]float64{}
	for _, method := range fullbatch.Methods {
		f := fullbatch.Config{Method: method}
		if method == "cmaes" {
			// Rounding of the loss to float32 keeps the samples apart for ever.
			f.FuncIterations = 50
		}
		r := run(t, testengines.Fastest(t), line(t), whole(path, f), runOptions{})
		if r.FullBatch == nil || !r.FullBatch.Converged && !r.FullBatch.Stalled || r.Stopped != "" || len(r.losses) != r.FullBatch.Iterations || int64(r.FullBatch.Evaluations*50) != r.Rows {
			t.Errorf("%s: %+v, %+v, %d iterations told", method, r.Result, r.FullBatch, len(r.losses))
			continue
		}
		losses[method] = r.Loss
		if method != "cmaes" && r.norms[len(r.norms)-1] > 1e-3 {
			t.Errorf("%s: the gradient has the norm %g at the end", method, r.norms[len(r.norms)-1])
		}
	}
	for _, method := range fullbatch.Methods {
		if math.Abs(losses[method]-losses["lbfgs"]) > 1e-6*losses["lbfgs"] || losses[method] == 0 {
			t.Errorf("losses %v differ", losses)
		}
	}
}

// TestFullBatchIsNoMatterOfBatches compares sums over batches with one batch of all rows.
func TestFullBatchIsNoMatterOfBatches(t *testing.T) {
	cfg := whole(table(t, 50), fullbatch.Config{Method: "lbfgs", MaxIterations: 3})
	many := run(t, testengines.Fastest(t), mlp(t), cfg, runOptions{})
	cfg.Batch = 50
	one := run(t, testengines.Fastest(t), mlp(t), cfg, runOptions{})
	if d := distance(t, many.weights, one.weights); d > 1e-4 || many.Steps != 3 {
		t.Errorf("after %d iterations the weights are %g apart", many.Steps, d)
	}
}

// TestFullBatchResumes stops runs after iterations and requires the bits, iterations and
// evaluations of the run that never stopped, also where the method restarts in between.
func TestFullBatchResumes(t *testing.T) {
	longtest.Slow(t)
	c, m, path := testengines.Fastest(t), mlp(t), table(t, 50)
	compared := 0
	for _, f := range []fullbatch.Config{
		{Method: "lbfgs", MaxIterations: 12}, {Method: "lbfgs", MaxIterations: 12, Restart: 5}, {Method: "cg", MaxIterations: 12, Restart: 5}, {Method: "cmaes", MaxIterations: 12},
	} {
		cfg := whole(path, f)
		cfg.Checkpoint.Every = 1
		want := run(t, c, m, cfg, runOptions{})
		if want.Steps != 12 {
			t.Fatalf("%+v: %+v", f, want.FullBatch)
		}
		for stop := int64(1); stop < want.Steps; stop++ {
			store := t.TempDir()
			first := run(t, c, m, cfg, runOptions{stop: stop, store: store})
			if first.Stopped != Interrupted || first.Steps != stop {
				t.Fatalf("%+v stopped after iteration %d: %+v", f, stop, first.Result)
			}
			second := run(t, c, m, cfg, runOptions{store: store})
			if err := same(want.weights, second.weights); err != nil {
				t.Errorf("%+v resumed after iteration %d: %v", f, stop, err)
			}
			if losses := append(first.losses, second.losses...); !slices.Equal(losses, want.losses) || fmt.Sprint(*second.FullBatch) != fmt.Sprint(*want.FullBatch) || first.Rows+second.Rows != want.Rows {
				t.Errorf("%+v resumed after iteration %d: %+v, losses %v, rows %d and %d; want %+v, %v, %d", f, stop, *second.FullBatch, losses, first.Rows, second.Rows, *want.FullBatch, want.losses, want.Rows)
			}
			compared++
		}
	}
	if compared != 44 {
		t.Fatalf("%d runs compared, want 44", compared)
	}
}

func TestFullBatchRefusals(t *testing.T) {
	cases := []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Optimizer.LR = 0.1 }, "optimizer: not used by lbfgs"},
		{func(c *Config) { c.Optimizer.Decay = 0.1 }, "optimizer: not used by lbfgs"},
		{func(c *Config) { c.LearningRateSchedule = optim.Schedule{Kind: "cosine"} }, "learning_rate_schedule: not used"},
		{func(c *Config) { c.ClipNorm = 1 }, "clip_norm: not used"},
		{func(c *Config) { c.Accumulate = 2 }, "accumulate: not used"},
		{func(c *Config) { c.Epochs = 3 }, "epochs: not used"},
		{func(c *Config) { c.TrainMode = new(true) }, "train_mode: not used"},
		{func(c *Config) { c.Data.Validation.Fraction, c.EarlyStop.Patience = 0.2, 2 }, "early_stop.patience: not used"},
		{func(c *Config) { c.FullBatch.Method = "newton" }, `unknown "newton"`},
		{func(c *Config) { c.FullBatch, c.Optimizer.Kind = nil, "lbfgs" }, "set full_batch.method"},
	}
	for _, k := range cases {
		cfg := whole("data.csv", fullbatch.Config{Method: "lbfgs"})
		k.change(&cfg)
		if err := configs.Validate(cfg); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%v, want %q", err, k.want)
		}
	}
	random := model(t, func(b *onnx.Builder) {
		x := b.Input("x", batchOf(tensor.Float32, 4))
		h := b.Op("Add", []onnx.Value{x, b.Op("RandomNormalLike", []onnx.Value{x})})
		b.Output(b.Rename(b.Op("Gemm", []onnx.Value{h, b.Initializer("w", filled(1, 4, 2))}), "y"), batchOf(tensor.Float32, 2))
	})
	if _, err := tryRun(t, testengines.Fastest(t), random, whole(table(t, 50), fullbatch.Config{Method: "lbfgs"}), runOptions{}); err == nil || !strings.Contains(err.Error(), "draws random numbers") {
		t.Errorf("a graph that draws: %v", err)
	}
}
