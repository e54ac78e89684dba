package fit

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/models/loss"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// wave is a deterministic value that looks like noise.
func wave(i int) float64 { return math.Sin(float64(i)*12.9898) * math.Cos(float64(i)*4.1414) }

// filled returns a float32 tensor of small values.
func filled(seed int, shape ...int) *tensor.Tensor {
	x := tensor.New(tensor.Float32, shape...)
	for i := range x.Float32s() {
		x.Float32s()[i] = float32(0.5 * wave(i+1000*seed))
	}
	return x
}

func batchOf(d tensor.DType, dims ...int) onnx.TensorType {
	t := onnx.TensorType{DType: d, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("N")}}
	for _, n := range dims {
		t.Dims = append(t.Dims, onnx.Known(n))
	}
	return t
}

// model runs f on a builder of opset 17 and returns the model.
func model(t testing.TB, f func(b *onnx.Builder)) *onnx.Model {
	t.Helper()
	b := onnx.NewBuilder("test", 17)
	f(b)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// mlp is y = W2·tanh(W1·x + b1) + b2 with 4 inputs and 2 outputs.
func mlp(t testing.TB) *onnx.Model {
	return model(t, func(b *onnx.Builder) {
		x := b.Input("x", batchOf(tensor.Float32, 4))
		h := b.Op("Tanh", []onnx.Value{b.Op("Gemm", []onnx.Value{x, b.Initializer("fc1.weight", filled(1, 4, 8)), b.Initializer("fc1.bias", filled(2, 8))})})
		y := b.Rename(b.Op("Gemm", []onnx.Value{h, b.Initializer("fc2.weight", filled(3, 8, 2)), b.Initializer("fc2.bias", filled(4, 2))}), "y")
		b.Output(y, batchOf(tensor.Float32, 2))
	})
}

// table writes a CSV file with columns x0…x3, y0, y1, c (0, 1 or 2) and w, where y is a smooth
// function of x.
func table(t testing.TB, rows int) string {
	t.Helper()
	lines := [][]string{{"x0", "x1", "x2", "x3", "y0", "y1", "c", "w"}}
	num := func(v float64) string { return strconv.FormatFloat(v, 'g', 8, 32) }
	for r := range rows {
		x := make([]float64, 4)
		for k := range x {
			x[k] = 2 * wave(7*r+k)
		}
		lines = append(lines, []string{
			num(x[0]), num(x[1]), num(x[2]), num(x[3]), num(math.Sin(x[0]) + 0.5*x[1]), num(x[2]*x[3] - 0.3), strconv.Itoa(r % 3), num(1 + 0.5*wave(r)),
		})
	}
	return writeCSV(t, lines)
}

func writeCSV(t testing.TB, lines [][]string) string {
	t.Helper()
	var text bytes.Buffer
	if err := csv.NewWriter(&text).WriteAll(lines); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "data.csv")
	if err := os.WriteFile(path, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// regression is the configuration of mlp on table.
func regression(path string) Config {
	c := Defaults()
	c.Data.Path = path
	c.Data.Inputs = map[string][]string{"x": {"x*"}}
	c.Data.Targets = map[string][]string{"y": {"y0", "y1"}}
	c.Loss = []loss.Term{{Kind: "mse"}}
	c.Optimizer = optim.Config{Kind: "adam", LR: 0.02}
	c.Batch, c.Epochs, c.Shards = 16, 3, 1
	return c
}

// outcome is what a run leaves behind.
type outcome struct {
	Result
	losses, norms []float64
	weights       map[string][]float32
	logs          string
	config        Config
}

// runOptions: stop is the step after which a run is interrupted; 0 does not.
type runOptions struct {
	stop  int64
	store string
}

// run trains to the end or to the given step, from the newest checkpoint of the store if there is
// one.
func run(t testing.TB, c engine.Compiler, m *onnx.Model, cfg Config, o runOptions) outcome {
	t.Helper()
	out, err := tryRun(t, c, m, cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func tryRun(t testing.TB, c engine.Compiler, m *onnx.Model, cfg Config, o runOptions) (out outcome, err error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var logs bytes.Buffer
	hooks := Hooks{
		Log: slog.New(slog.NewTextHandler(&logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Step: func(p Progress) {
			out.losses, out.norms = append(out.losses, p.Loss), append(out.norms, p.GradNorm)
			if p.Step == o.stop {
				cancel()
			}
		},
	}
	var tr *Trainer
	if o.store != "" {
		store, err := checkpoint.OpenStore(o.store, checkpoint.Options{KeepLast: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		hooks.Save = func(step int64, score *float64) error {
			_, err := store.Save(checkpoint.Meta{Kind: "fit", Step: step, Score: score}, tr)
			return err
		}
	}
	if tr, err = New(m, cfg, c, hooks); err != nil {
		return out, err
	}
	defer func() {
		if err := tr.Close(); err != nil {
			t.Error(err)
		}
	}()
	if o.store != "" {
		ck, err := checkpoint.Latest(o.store)
		if err == nil {
			err = errors.Join(ck.Load(tr), ck.Close())
		} else if errors.Is(err, checkpoint.ErrNone) {
			err = nil
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	out.Result, err = tr.Run(ctx)
	out.logs, out.config = logs.String(), tr.Config()
	out.weights = map[string][]float32{}
	for _, s := range tr.Network().Specs {
		out.weights[s.Name] = slices.Clone(tr.Params().View(s.Name).Float32s())
	}
	return out, err
}

// same reports the first difference between the bits of two sets of weights.
func same(a, b map[string][]float32) error {
	if len(a) != len(b) || len(a) == 0 {
		return fmt.Errorf("%d and %d parameters", len(a), len(b))
	}
	for name, x := range sorted.All(a) {
		for i := range x {
			if math.Float32bits(x[i]) != math.Float32bits(b[name][i]) {
				return fmt.Errorf("%s[%d] is %g and %g", name, i, x[i], b[name][i])
			}
		}
	}
	return nil
}

// distance returns the largest difference of two sets of weights relative to the largest weight.
func distance(t testing.TB, a, b map[string][]float32) float64 {
	t.Helper()
	if len(a) != len(b) || len(a) == 0 {
		t.Fatalf("%d and %d parameters", len(a), len(b))
	}
	d, scale := 0.0, 0.0
	for name, x := range sorted.All(a) {
		for i := range x {
			d, scale = max(d, math.Abs(float64(x[i])-float64(b[name][i]))), max(scale, math.Abs(float64(x[i])))
		}
	}
	return d / scale
}

func TestRegressionIsLearned(t *testing.T) {
	cfg := regression(table(t, 200))
	cfg.Epochs = 60
	cfg.Data.Validation.Fraction = 0.2
	for _, c := range testengines.All(t) {
		r := run(t, c, mlp(t), cfg, runOptions{})
		if !(r.Loss < 0.05*r.losses[0]) || !(r.Validation < 0.1*r.losses[0]) || r.BestEpoch == 0 || r.Stopped != "" {
			t.Errorf("%s: first loss %g, last %g, validation %g, best epoch %d, stopped %q", c.Name(), r.losses[0], r.Loss, r.Validation, r.BestEpoch, r.Stopped)
		}
		if want := int64(len(r.losses)); r.Steps != want || r.Epochs != 60 {
			t.Errorf("%s: %d steps in %d epochs, want %d in 60", c.Name(), r.Steps, r.Epochs, want)
		}
	}
}

func TestSeedsDecideTheOrder(t *testing.T) {
	c := testengines.Fastest(t)
	cfg := regression(table(t, 50))
	a, b := run(t, c, mlp(t), cfg, runOptions{}), run(t, c, mlp(t), cfg, runOptions{})
	if err := same(a.weights, b.weights); err != nil {
		t.Errorf("two runs of one configuration differ: %v", err)
	}
	cfg.Seed = 1
	if same(a.weights, run(t, c, mlp(t), cfg, runOptions{}).weights) == nil {
		t.Error("another seed gives the same weights")
	}
}

func TestFrozenParametersKeepTheirBits(t *testing.T) {
	cfg := regression(table(t, 50))
	cfg.Train = []string{"fc2.*"}
	m := mlp(t)
	before, _, err := weightsOf(m)
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, testengines.Fastest(t), m, cfg, runOptions{})
	for _, name := range []string{"fc1.weight", "fc1.bias"} {
		if !slices.Equal(before[name], r.weights[name]) {
			t.Errorf("frozen parameter %s has changed", name)
		}
	}
	for _, name := range []string{"fc2.weight", "fc2.bias"} {
		if slices.Equal(before[name], r.weights[name]) {
			t.Errorf("trained parameter %s has not changed", name)
		}
	}
}

// weightsOf copies the parameters of a model.
func weightsOf(m *onnx.Model) (map[string][]float32, *models.Network, error) {
	net, values, err := models.FromModel(m, models.Options{})
	out := map[string][]float32{}
	for name, v := range sorted.All(values) {
		out[name] = slices.Clone(v.Float32s())
	}
	return out, net, err
}
