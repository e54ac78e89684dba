package fit

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models/loss"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// oneStep is plain gradient descent on the whole table in file order: the weights it ends with show
// the gradient.
func oneStep(path string, rows int) Config {
	cfg := regression(path)
	cfg.Data.Shuffle = false
	cfg.Optimizer = optim.Config{Kind: "sgd", LR: 0.5}
	cfg.Batch, cfg.Epochs = rows, 1
	return cfg
}

// TestHowABatchIsCutDoesNotMatter compares ways of taking one step on 23 rows with the step on one
// batch of 23.
func TestHowABatchIsCutDoesNotMatter(t *testing.T) {
	const rows = 23
	path := table(t, rows)
	cases := []struct {
		name string
		edit func(*Config)
	}{
		{"a batch larger than the table", func(c *Config) { c.Batch = 100 }},
		{"accumulated with a smaller last batch", func(c *Config) { c.Batch, c.Accumulate = 5, 5 }},
		{"accumulated over more than there is", func(c *Config) { c.Batch, c.Accumulate = 10, 9 }},
		{"single rows", func(c *Config) { c.Batch, c.Accumulate = 1, rows }},
		{"shards, and a last batch that they do not divide", func(c *Config) { c.Batch, c.Accumulate, c.Shards = 4, 6, 2 }},
		{"shuffled", func(c *Config) { c.Data.Shuffle = true }},
		{"shuffled over small windows", func(c *Config) { c.Data.Shuffle, c.Data.Window, c.Batch, c.Accumulate = true, 1, 6, 4 }},
	}
	for _, e := range testengines.All(t) {
		for _, weight := range []string{"", "w"} {
			cfg := oneStep(path, rows)
			cfg.Data.Weight = weight
			want := run(t, e, mlp(t), cfg, runOptions{})
			start, _, err := weightsOf(mlp(t))
			if err != nil {
				t.Fatal(err)
			}
			if d := distance(t, start, want.weights); d < 1e-2 {
				t.Fatalf("the step moves the weights by %g only", d)
			}
			for _, c := range cases {
				cut := cfg
				c.edit(&cut)
				got := run(t, e, mlp(t), cut, runOptions{})
				if d := distance(t, want.weights, got.weights); !(d <= 1e-6) || got.Steps != 1 {
					t.Errorf("%s, %s, weight %q: %d steps, weights differ by %g", e.Name(), c.name, weight, got.Steps, d)
				}
				if math.Abs(got.losses[0]-want.losses[0]) > 1e-6*want.losses[0] {
					t.Errorf("%s, %s, weight %q: loss %g, want %g", e.Name(), c.name, weight, got.losses[0], want.losses[0])
				}
			}
		}
	}
}

// TestEveryEpochWeighsItsRowsEqually: three steps of 5, 5 and 3 rows equal hand-made steps on the
// means over 5, 5 and 3 rows.
func TestEveryEpochWeighsItsRowsEqually(t *testing.T) {
	e := testengines.Fastest(t)
	lines := rowsOf(t, 13)
	cfg := oneStep(writeCSV(t, lines), 5)
	whole := run(t, e, mlp(t), cfg, runOptions{})
	m := mlp(t)
	var losses []float64
	for _, part := range [][2]int{{0, 5}, {5, 10}, {10, 13}} {
		cfg := oneStep(writeCSV(t, append([][]string{lines[0]}, lines[1+part[0]:1+part[1]]...)), part[1]-part[0])
		tr, err := New(m, cfg, e, Hooks{Step: func(p Progress) { losses = append(losses, p.Loss) }})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tr.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		baked, err := tr.Baked()
		if err != nil {
			t.Fatal(err)
		}
		m = baked.Clone()
		if err := tr.Close(); err != nil {
			t.Fatal(err)
		}
	}
	got, _, err := weightsOf(m)
	if err != nil {
		t.Fatal(err)
	}
	if d := distance(t, whole.weights, got); d > 1e-6 || len(losses) != 3 {
		t.Errorf("weights differ by %g", d)
	}
	mean := (5*losses[0] + 5*losses[1] + 3*losses[2]) / 13
	if math.Abs(whole.Loss-mean) > 1e-6 {
		t.Errorf("the epoch's loss is %g, the mean over its rows %g", whole.Loss, mean)
	}
}

func rowsOf(t *testing.T, rows int) [][]string {
	t.Helper()
	lines := [][]string{{"x0", "x1", "x2", "x3", "y0", "y1", "w"}}
	for r := range rows {
		line := make([]string, 7)
		for k := range line {
			line[k] = strconv.FormatFloat(wave(7*r+k), 'g', 8, 32)
		}
		line[6] = strconv.Itoa(2 * (r % 2))
		lines = append(lines, line)
	}
	return lines
}

// TestSampleWeightsCountRows: weights 2 and 0 on alternate rows are the same as only every other
// row.
func TestSampleWeightsCountRows(t *testing.T) {
	e := testengines.Fastest(t)
	lines := rowsOf(t, 20)
	heavy := [][]string{lines[0]}
	for r, line := range lines[1:] {
		if r%2 == 1 {
			heavy = append(heavy, line)
		}
	}
	cfg := oneStep(writeCSV(t, lines), 20)
	cfg.Data.Weight = "w"
	a := run(t, e, mlp(t), cfg, runOptions{})
	b := run(t, e, mlp(t), oneStep(writeCSV(t, heavy), 10), runOptions{})
	if d := distance(t, a.weights, b.weights); d > 1e-6 || math.Abs(a.Loss-b.Loss) > 1e-6 {
		t.Errorf("weights differ by %g, losses are %g and %g", d, a.Loss, b.Loss)
	}
}

func TestShardsAreDeterministic(t *testing.T) {
	for _, e := range testengines.All(t) {
		cfg := regression(table(t, 70))
		cfg.Batch, cfg.Shards = 12, 3
		a, b := run(t, e, mlp(t), cfg, runOptions{}), run(t, e, mlp(t), cfg, runOptions{})
		if err := same(a.weights, b.weights); err != nil {
			t.Errorf("%s: %v", e.Name(), err)
		}
		cfg.Shards = 1
		one := run(t, e, mlp(t), cfg, runOptions{})
		if d := distance(t, one.weights, a.weights); !(d <= 1e-5) {
			t.Errorf("%s: with and without shards the weights differ by %g", e.Name(), d)
		}
	}
}

// TestParametersWithoutGradientKeepTheirBits: a head that no loss depends on is named and does not
// decay.
func TestParametersWithoutGradientKeepTheirBits(t *testing.T) {
	m := model(t, func(b *onnx.Builder) {
		x := b.Input("x", batchOf(tensor.Float32, 4))
		for _, head := range []string{"y", "z"} {
			b.Output(b.Rename(b.Op("MatMul", []onnx.Value{x, b.Initializer(head+".weight", filled(1, 4, 2))}), head), batchOf(tensor.Float32, 2))
		}
	})
	cfg := regression(table(t, 40))
	cfg.Loss = []loss.Term{{Output: "y", Kind: "mse"}}
	cfg.Optimizer = optim.Config{Kind: "adamw", LR: 0.01, Decay: 0.1}
	before, _, err := weightsOf(m)
	if err != nil {
		t.Fatal(err)
	}
	r := run(t, testengines.Fastest(t), m, cfg, runOptions{})
	if !slices.Equal(before["z.weight"], r.weights["z.weight"]) || slices.Equal(before["y.weight"], r.weights["y.weight"]) {
		t.Error("the head with a loss must be trained and the one without must keep its weights")
	}
	if want := `parameters=[z.weight]`; !strings.Contains(r.logs, want) {
		t.Errorf("the log lacks %q:\n%s", want, r.logs)
	}
}

// TestStepsAllocateNothing runs single steps of a trainer whose table is in memory.
func TestStepsAllocateNothing(t *testing.T) {
	for _, e := range testengines.All(t) {
		cfg := stateful(table(t, 400))
		cfg.Data.Window = 0
		tr, err := New(noisy(t), cfg, e, Hooks{Step: func(Progress) {}, Metrics: func(int64, map[string]float64) {}})
		if err != nil {
			t.Fatal(err)
		}
		step := func() {
			if err := tr.step(); err != nil {
				t.Fatal(err)
			}
		}
		// The first step of the run reads the table and allocates the optimiser's state, the first
		// of an epoch permutes its rows.
		step()
		if tr.train.Left() < 21*8 {
			t.Fatalf("%d rows left", tr.train.Left())
		}
		if n := testing.AllocsPerRun(20, step); n != 0 {
			t.Errorf("%s: %g allocations per step", e.Name(), n)
		}
		if err := tr.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
