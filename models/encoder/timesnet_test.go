package encoder_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/encoder/encodertest"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func smallTimesNet(t *testing.T, change func(c *encoder.TimesNetConfig)) *encoder.TimesNet {
	t.Helper()
	c := encoder.TimesNetDefaults()
	c.DModel, c.DFF, c.NLayers, c.NKernels, c.TopK = 4, 3, 1, 2, 2
	change(&c)
	e, err := encoder.NewTimesNet(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestTimesNet(t *testing.T) {
	longtest.Slow(t)
	n := 0
	for _, k := range []struct {
		change func(c *encoder.TimesNetConfig)
		// point is one where the step of a difference, which in float32 is a large one, does not
		// change which periods are chosen.
		point uint64
	}{
		{func(c *encoder.TimesNetConfig) {}, 4},
		{func(c *encoder.TimesNetConfig) { c.NLayers, c.Timestamps, c.Pool = 2, 1, "mean" }, 4},
		{func(c *encoder.TimesNetConfig) {
			c.PeriodChoice, c.Periods, c.NKernels = encoder.PeriodsFrozen, []int{5, 3}, 6
		}, 0},
		{func(c *encoder.TimesNetConfig) {
			c.PeriodChoice, c.Periods, c.Dropout = encoder.PeriodsFrozen, []int{2}, 0.1
		}, 0},
		{func(c *encoder.TimesNetConfig) { c.Project = 5 }, 4},
		{func(c *encoder.TimesNetConfig) {
			c.Adapt, c.NLayers, c.PeriodChoice, c.Periods = true, 2, encoder.PeriodsFrozen, []int{5, 3}
		}, 0},
	} {
		e := smallTimesNet(t, k.change)
		c := e.Config().(encoder.TimesNetConfig)
		r := encodertest.Run(t, encodertest.Suite{Encoder: e, Engines: testengines.All(t), Shapes: [][]int{{7, 3}, {6, 2, 2}}, Point: k.point})
		if r.Causal == 0 || (r.Masks > 0) != (c.Dropout > 0) {
			t.Errorf("%+v: %+v", c, r)
		}
		n++
	}
	if n != 6 {
		t.Errorf("%d configurations", n)
	}
}

// TestTimesNetAgainstTorch compares features and gradients with torch.fft, an image for each chosen period
// and six parallel convolutions, for every choice of periods.
func TestTimesNetAgainstTorch(t *testing.T) {
	longtest.Slow(t)
	engines := testengines.All(t)
	n := encodertest.Torch(t, "testdata/timesnet.json", encoder.TimesNetKind, engines)
	if n != len(engines)*16288 {
		t.Errorf("%d elements compared", n)
	}
}

// features runs an encoder whose parameters come from a fixed seed.
func features(t *testing.T, e *encoder.TimesNet, c engine.Compiler, x *tensor.Tensor) [][]float32 {
	t.Helper()
	g := layer.New("x", rng.New(3), layer.Options{})
	z, err := e.Build(g, g.Observation("x", x.Shape()[1:]...))
	if err != nil {
		t.Fatal(err)
	}
	g.Output("z", z)
	m, err := g.Model()
	if err != nil {
		t.Fatal(err)
	}
	out, err := gradcheck.Run(t.Context(), c, m, map[string]*tensor.Tensor{"x": x})
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]float32
	for i := range x.Shape()[0] {
		rows = append(rows, out["z"].Rows(i, i+1).Float32s())
	}
	return rows
}

// waves returns a sine for each row, of a period, as features of two columns.
func waves(steps int, periods ...float64) *tensor.Tensor {
	x := tensor.New(tensor.Float32, len(periods), steps, 2)
	for b, p := range periods {
		for i := range steps {
			v := math.Sin(2*math.Pi*float64(i)/p + 0.4)
			x.Float32s()[(b*steps+i)*2], x.Float32s()[(b*steps+i)*2+1] = float32(v), float32(-2*v)
		}
	}
	return x
}

func apart(a, b []float32) float64 {
	d := 0.0
	for i := range a {
		d = max(d, math.Abs(float64(a[i]-b[i])))
	}
	return d
}

// TestTimesNetBatchChoice: the same row in another batch has other features with the published choice, and
// with the default the same; of one row both are the same network.
func TestTimesNetBatchChoice(t *testing.T) {
	n := 0
	for _, c := range testengines.All(t) {
		sample, batch := smallTimesNet(t, func(*encoder.TimesNetConfig) {}), smallTimesNet(t, func(c *encoder.TimesNetConfig) { c.PeriodChoice = encoder.PeriodsBatch })
		alone, beside := waves(24, 12), waves(24, 12, 3, 4, 3, 4)
		want := features(t, sample, c, alone)[0]
		if d := apart(features(t, sample, c, beside)[0], want); d > 1e-6 {
			t.Errorf("%s: sample: a row beside others differs by %v", c.Name(), d)
		}
		if d := apart(features(t, batch, c, alone)[0], want); d > 1e-6 {
			t.Errorf("%s: batch of one row and sample differ by %v", c.Name(), d)
		}
		if d := apart(features(t, batch, c, beside)[0], want); d < 1e-3 {
			t.Errorf("%s: batch: a row beside others differs by %v only", c.Name(), d)
		}
		n++
	}
	if n == 0 {
		t.Error("no engines")
	}
	// The trainer receives a warning.
	for choice, notes := range sorted.All(map[string]int{encoder.PeriodsSample: 0, encoder.PeriodsBatch: 1}) {
		g := layer.New("x", rng.New(3), layer.Options{})
		z, err := smallTimesNet(t, func(c *encoder.TimesNetConfig) { c.PeriodChoice = choice }).Build(g, g.Observation("x", 8, 2))
		if err != nil {
			t.Fatal(err)
		}
		g.Output("z", z)
		net, _, err := g.Network(models.Options{})
		if err != nil || len(net.Notes) != notes {
			t.Errorf("%s: notes %q, %v", choice, net.Notes, err)
		}
	}
}

// TestTimesNetAdapt: the layer behind the blocks does nothing before it is adapted, and an adapter of it is one
// pair of matrices that stands behind each block.
func TestTimesNetAdapt(t *testing.T) {
	two := func(c *encoder.TimesNetConfig) { c.NLayers = 2 }
	plain, with := smallTimesNet(t, two), smallTimesNet(t, func(c *encoder.TimesNetConfig) { two(c); c.Adapt = true })
	for _, c := range testengines.All(t) {
		a, b := features(t, plain, c, waves(24, 12, 5)), features(t, with, c, waves(24, 12, 5))
		for i := range a {
			if !slices.Equal(a[i], b[i]) {
				t.Errorf("%s: row %d is %v with the identity, and %v without", c.Name(), i, b[i], a[i])
			}
		}
	}
	g := layer.New("x", rng.New(3), layer.Options{})
	z, err := g.Adapt("encoder", lora.Config{Rank: 2, Target: []string{"*adapt*"}}, g.Observation("x", 24, 2), func(g *layer.Graph, x onnx.Value) (onnx.Value, error) { return with.Build(g, x) })
	if err != nil {
		t.Fatal(err)
	}
	g.Output("z", z)
	var adapted []string
	for _, p := range g.Params() {
		if p.Role == models.Trainable {
			adapted = append(adapted, fmt.Sprint(p.Name, p.Shape))
		}
	}
	if want := []string{"lora.encoder.adapt.weight.A[2 4]", "lora.encoder.adapt.weight.B[4 2]"}; !slices.Equal(adapted, want) {
		t.Errorf("trained are %v, expected %v", adapted, want)
	}
	m, err := g.Model()
	if err != nil {
		t.Fatal(err)
	}
	uses := 0
	for _, n := range m.Graph.Node {
		if slices.Contains(n.Input, "lora.encoder.adapt.weight.A") {
			uses++
		}
	}
	if uses != 2 {
		t.Errorf("the adapter is used %d times, expected behind each of two blocks", uses)
	}
}

func TestTimesNetPeriods(t *testing.T) {
	for steps, want := range sorted.All(map[int][]int{2: {2}, 7: {7, 3, 2}, 20: {20, 10, 6, 5, 4, 3, 2}, 96: {96, 48, 32, 24, 19, 16, 13, 12, 10, 9, 8, 7, 6, 5, 4, 3, 2}}) {
		if got := encoder.Periods(steps); !slices.Equal(got, want) {
			t.Errorf("periods of %d steps: %v, want %v", steps, got, want)
		}
	}
}

func TestTimesNetErrors(t *testing.T) {
	n := 0
	for _, k := range []struct {
		change func(c *encoder.TimesNetConfig)
		shape  []int
		want   []string
	}{
		{func(c *encoder.TimesNetConfig) { c.TopK = 5 }, []int{9, 3}, []string{"top_k: 5", "window of 10 steps", "has 9 steps"}},
		{func(c *encoder.TimesNetConfig) { c.PeriodChoice, c.Periods = encoder.PeriodsFrozen, []int{3, 10} }, []int{9, 3}, []string{"periods[1] is 10 steps", "has 9"}},
		{func(c *encoder.TimesNetConfig) { c.Timestamps = 3 }, []int{9, 3}, []string{"timestamps: the last 3 features"}},
		{func(*encoder.TimesNetConfig) {}, []int{9}, []string{"float32[batch,9]"}},
	} {
		g := layer.New("x", rng.New(1), layer.Options{})
		_, err := smallTimesNet(t, k.change).Build(g, g.Observation("x", k.shape...))
		for _, w := range k.want {
			if n++; err == nil || !strings.Contains(err.Error(), w) {
				t.Errorf("%v does not mention %q", err, w)
			}
		}
	}
	if n != 7 {
		t.Errorf("%d mentions", n)
	}
}
