package fit

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// noisy is a network with everything that has state: BatchNormalization and Dropout between two
// layers.
func noisy(t testing.TB) *onnx.Model {
	return model(t, func(b *onnx.Builder) {
		x := b.Input("x", batchOf(tensor.Float32, 4))
		ones := func(n int) *tensor.Tensor {
			v := tensor.New(tensor.Float32, n)
			for i := range v.Float32s() {
				v.Float32s()[i] = 1
			}
			return v
		}
		h := b.Op("Gemm", []onnx.Value{x, b.Initializer("fc1.weight", filled(1, 4, 8)), b.Initializer("fc1.bias", filled(2, 8))})
		h = b.Op("BatchNormalization", []onnx.Value{h, b.Initializer("bn.weight", ones(8)), b.Initializer("bn.bias", filled(5, 8)),
			b.Initializer("bn.mean", filled(6, 8)), b.Initializer("bn.var", ones(8))})
		h = b.Op("Relu", []onnx.Value{h})
		h = b.Op("Dropout", []onnx.Value{h, b.Initializer("ratio", tensor.Scalar(float32(0.25)))})
		y := b.Rename(b.Op("Gemm", []onnx.Value{h, b.Initializer("fc2.weight", filled(3, 8, 2)), b.Initializer("fc2.bias", filled(4, 2))}), "y")
		b.Output(y, batchOf(tensor.Float32, 2))
	})
}

// stateful is a configuration that uses everything a checkpoint must hold.
func stateful(path string) Config {
	cfg := regression(path)
	cfg.TrainMode = new(true)
	cfg.Batch, cfg.Accumulate, cfg.Epochs = 4, 2, 4
	cfg.Data.Validation.Fraction = 0.25
	cfg.Data.Window = 20
	cfg.ClipNorm = 1
	cfg.Optimizer = optim.Config{Kind: "adamw", LR: 0.05, Decay: 0.01}
	cfg.LearningRateSchedule = optim.Schedule{Kind: "cosine", Warmup: 3}
	cfg.EarlyStop = EarlyStop{Patience: 4}
	cfg.Seed = 11
	return cfg
}

// TestResumeEqualsUninterrupted stops a run after every one of its steps and requires the bits of
// the uninterrupted run after resuming.
func TestResumeEqualsUninterrupted(t *testing.T) {
	c, m, cfg := testengines.Fastest(t), noisy(t), stateful(table(t, 50))
	whole := run(t, c, m, cfg, runOptions{})
	if whole.Steps < 16 || whole.BestEpoch == 0 {
		t.Fatalf("%d steps, best epoch %d: the run is too short to prove anything", whole.Steps, whole.BestEpoch)
	}
	for stop := int64(1); stop <= whole.Steps; stop += int64(longtest.Every(t, 6)) {
		store := t.TempDir()
		first := run(t, c, m, cfg, runOptions{stop: stop, store: store})
		if stop < whole.Steps && (first.Stopped != Interrupted || first.Steps != stop) {
			t.Fatalf("stopped after step %d: %d steps, %q", stop, first.Steps, first.Stopped)
		}
		second := run(t, c, m, cfg, runOptions{store: store})
		if err := same(whole.weights, second.weights); err != nil {
			t.Fatalf("resumed after step %d: %v", stop, err)
		}
		if losses := append(first.losses, second.losses...); !slices.Equal(losses, whole.losses) {
			t.Fatalf("resumed after step %d: losses %v, want %v", stop, losses, whole.losses)
		}
		second.Rows = whole.Rows
		if fmt.Sprint(second.Result) != fmt.Sprint(whole.Result) {
			t.Fatalf("resumed after step %d: result %+v, want %+v", stop, second.Result, whole.Result)
		}
	}
}

// TestResumeInChains stops a run after each step, one process per step.
func TestResumeInChains(t *testing.T) {
	c, m, cfg := testengines.Fastest(t), noisy(t), stateful(table(t, 30))
	whole := run(t, c, m, cfg, runOptions{})
	store := t.TempDir()
	var last outcome
	for stop := int64(1); ; stop++ {
		last = run(t, c, m, cfg, runOptions{stop: stop, store: store})
		if last.Stopped != Interrupted {
			break
		}
	}
	if err := same(whole.weights, last.weights); err != nil {
		t.Error(err)
	}
	if last.Steps != whole.Steps {
		t.Errorf("%d steps, want %d", last.Steps, whole.Steps)
	}
}

// TestEarlyStopKeepsTheBestWeights also resumes a run that has stopped by itself: it has nothing
// left to do and holds the same weights.
func TestEarlyStopKeepsTheBestWeights(t *testing.T) {
	c, m := testengines.Fastest(t), mlp(t)
	cfg := regression(table(t, 60))
	cfg.Data.Validation.Fraction, cfg.Data.Validation.Tail = 0.3, true
	cfg.Epochs, cfg.EarlyStop = 500, EarlyStop{Patience: 3, MinDelta: 1e-3}
	cfg.Optimizer.LR = 0.05
	store := t.TempDir()
	r := run(t, c, m, cfg, runOptions{store: store})
	if r.Stopped != EarlyStopped || r.Epochs != r.BestEpoch+3 {
		t.Fatalf("stopped %q after %d epochs, the best is %d", r.Stopped, r.Epochs, r.BestEpoch)
	}
	again := run(t, c, m, cfg, runOptions{store: store})
	if err := same(r.weights, again.weights); err != nil {
		t.Error(err)
	}
	if again.Rows != 0 || again.Stopped != EarlyStopped || again.Loss != r.Loss || again.Validation != r.Validation {
		t.Errorf("resumed: %+v, want %+v and no rows", again.Result, r.Result)
	}
	// The best weights are those after BestEpoch: a run of that many epochs ends with them.
	cfg.Epochs, cfg.EarlyStop.Patience = r.BestEpoch, 0
	if err := same(r.weights, run(t, c, m, cfg, runOptions{}).weights); err != nil {
		t.Error(err)
	}
}

func TestTrainModeMovesRunningStatisticsAsDocumented(t *testing.T) {
	path := table(t, 8)
	cfg := regression(path)
	cfg.TrainMode = new(true)
	cfg.Batch, cfg.Epochs, cfg.Data.Shuffle = 8, 1, false
	cfg.Optimizer = optim.Config{Kind: "sgd", LR: 0}
	m := noisy(t)
	before, _, err := weightsOf(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range testengines.All(t) {
		r := run(t, c, m, cfg, runOptions{})
		for _, want := range []string{`msg="layer trained in training form" op=BatchNormalization`, `msg="layer trained in training form" op=Dropout`} {
			if !strings.Contains(r.logs, want) {
				t.Errorf("%s: the log lacks %s:\n%s", c.Name(), want, r.logs)
			}
		}
		pre := preactivations(t, path, before)
		for k := range 8 {
			mean, variance := 0.0, 0.0
			for _, row := range pre {
				mean += row[k] / float64(len(pre))
			}
			for _, row := range pre {
				variance += (row[k] - mean) * (row[k] - mean) / float64(len(pre))
			}
			// ONNX: running = running·0.9 + batch·0.1, with the biased variance.
			for name, batch := range sorted.All(map[string]float64{"bn.mean": mean, "bn.var": variance}) {
				want := 0.9*float64(before[name][k]) + 0.1*batch
				if got := float64(r.weights[name][k]); math.Abs(got-want) > 1e-5 {
					t.Errorf("%s: %s[%d] = %g, want %g", c.Name(), name, k, got, want)
				}
			}
		}
	}
}

// preactivations computes x·W + b of the first layer in float64.
func preactivations(t *testing.T, path string, w map[string][]float32) [][]float64 {
	t.Helper()
	var out [][]float64
	for r := range 8 {
		row := make([]float64, 8)
		for k := range row {
			row[k] = float64(w["fc1.bias"][k])
			for i := range 4 {
				row[k] += float64(float32(2*wave(7*r+i))) * float64(w["fc1.weight"][i*8+k])
			}
		}
		out = append(out, row)
	}
	return out
}

func TestEvaluationFormIsKeptAndSaid(t *testing.T) {
	cfg := regression(table(t, 40))
	m := noisy(t)
	before, _, err := weightsOf(m)
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, testengines.Fastest(t), m, cfg, runOptions{})
	for _, name := range []string{"bn.mean", "bn.var"} {
		if !slices.Equal(before[name], r.weights[name]) {
			t.Errorf("running statistic %s has changed in evaluation form", name)
		}
	}
	if slices.Equal(before["bn.weight"], r.weights["bn.weight"]) {
		t.Error("the scale of BatchNormalization is not trained")
	}
	for _, want := range []string{"layer kept in evaluation form", "op=BatchNormalization", "op=Dropout"} {
		if !strings.Contains(r.logs, want) {
			t.Errorf("the log lacks %q:\n%s", want, r.logs)
		}
	}
	r = run(t, testengines.Fastest(t), mlp(t), cfg, runOptions{})
	if strings.Contains(r.logs, "BatchNormalization") || strings.Contains(r.logs, "Dropout") {
		t.Errorf("the log speaks of layers that were never there:\n%s", r.logs)
	}
	cfg.TrainMode = new(true)
	if r = run(t, testengines.Fastest(t), mlp(t), cfg, runOptions{}); !strings.Contains(r.logs, "train_mode changes nothing") {
		t.Errorf("a train mode without effect is not said:\n%s", r.logs)
	}
}

func TestDropoutMasksDifferPerRunAndFollowTheSeed(t *testing.T) {
	cfg := stateful(table(t, 40))
	cfg.Optimizer.LR, cfg.Optimizer.Decay = 1e-9, 0
	cfg.Data.Shuffle = false
	cfg.Epochs = 2
	c := testengines.Fastest(t)
	a := run(t, c, noisy(t), cfg, runOptions{})
	half := len(a.losses) / 2
	if half < 2 || slices.Equal(a.losses[:half], a.losses[half:]) {
		t.Errorf("both epochs have the losses %v: the masks are the same", a.losses[:half])
	}
	if b := run(t, c, noisy(t), cfg, runOptions{}); !slices.Equal(a.losses, b.losses) {
		t.Error("the same seed gives other masks")
	}
	cfg.Seed++
	cfg.Data.Validation.Fraction, cfg.EarlyStop.Patience = 0, 0
	first := run(t, c, noisy(t), cfg, runOptions{})
	cfg.Seed++
	if second := run(t, c, noisy(t), cfg, runOptions{}); slices.Equal(first.losses, second.losses) {
		t.Error("another seed gives the same masks")
	}
}
