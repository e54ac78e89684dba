package ope

import (
	"encoding/binary"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// tabular is the tabular problem without an end of steps, as environments of an action space.
func tabular(action envs.Space) envs.Spec {
	return envs.Spec{Name: "tabular", Observation: envs.Dict{{Name: "state", Space: envs.Discrete{N: 2}}}, Action: action, Reward: envs.Range{Low: -1, High: 2}}
}

// written is a data set of every transition as often as it is to be expected, each an episode that
// was cut off, or that has terminated; actions are the bytes of the two actions, several for each.
func written(t *testing.T, spec envs.Spec, actions [2][][]byte, logProb float64) *offline.Dataset {
	t.Helper()
	m := offline.Describe(spec)
	m.Behaviours = []offline.Behaviour{{Algorithm: "random"}}
	dir := filepath.Join(t.TempDir(), "dataset")
	w, err := offline.Create(dir, m)
	if err != nil {
		t.Fatal(err)
	}
	state := func(s int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(s)) }
	err = w.Part(t.Context(), 0, func(add func(*offline.Episode) error) error {
		for s := range 2 {
			for a := range 2 {
				p := stay[s][a]
				for k := range 4 {
					e := &offline.Episode{Rows: make([][]int64, 1), Reward: []float64{rewards[s][a]}, Discount: []float64{1}, LogProb: []float64{logProb}, Truncated: true}
					next := 0
					switch at := float64(k) / 4; {
					case at >= p[0]+p[1]:
						e.Discount[0], e.Truncated, e.Terminated = 0, false, true
					case at >= p[0]:
						next = 1
					}
					e.Obs = [][]byte{append(state(s), state(next)...)}
					for _, b := range actions[a] {
						e.Action = b
						if err := add(e); err != nil {
							return err
						}
					}
				}
			}
		}
		return nil
	})
	if err := errors.Join(err, w.Finish()); err != nil {
		t.Fatal(err)
	}
	d, err := offline.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// forever is the mean value of both states by a policy that goes on.
func forever(pi [2][2]float64) float64 {
	v := [2]float64{}
	for range 2000 {
		next := [2]float64{}
		for s := range 2 {
			for a := range 2 {
				next[s] += pi[s][a] * (rewards[s][a] + gamma*(stay[s][a][0]*v[0]+stay[s][a][1]*v[1]))
			}
		}
		v = next
	}
	return (v[0] + v[1]) / 2
}

// TestFQETabular compares fitted values with exact ones, which are between −1 and 5, for every kind
// of action: within 0.01 where the expectation over actions is exact, or the policy takes one
// action, and 0.1 where they are drawn.
func TestFQETabular(t *testing.T) {
	ints := func(x ...int) (b []byte) {
		for _, v := range x {
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		}
		return b
	}
	float := func(x float32) []byte { return binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)) }
	fixed := [2][2]float64{{0, 1}, {1, 0}}
	log := func(p float64) float32 {
		if p == 0 {
			return rlmath.Excluded
		}
		return float32(math.Log(p))
	}
	cases := 0
	for what, x := range sorted.All(longtest.Few(t, map[string]struct {
		space   envs.Space
		actions [2][][]byte
		pi      [2][2]float64
		slack   float64
	}{
		"discrete":      {envs.Discrete{N: 2}, [2][][]byte{{ints(0)}, {ints(1)}}, target, 0.01},
		"deterministic": {envs.Discrete{N: 2}, [2][][]byte{{ints(0)}, {ints(1)}}, fixed, 0.01},
		"heads":         {envs.MultiDiscrete{N: []int{2, 2}}, [2][][]byte{{ints(0, 0), ints(0, 1)}, {ints(1, 0), ints(1, 1)}}, target, 0.1},
		"box":           {envs.NewBox(-3, 1, 1), [2][][]byte{{float(-3)}, {float(1)}}, fixed, 0.01},
	}, 1)) {
		spec := tabular(x.space)
		d, err := Read(t.Context(), written(t, spec, x.actions, math.NaN()), spec)
		if err != nil {
			t.Fatal(err)
		}
		p, err := newPolicy(spec)
		if err != nil {
			t.Fatal(err)
		}
		for i := range d.Episodes() {
			// Rows are the state and the next one; the order of episodes is that of written.
			for row := d.starts[i]; row < d.starts[i+1]; row++ {
				s := stateOf(t, d, row)
				switch x.space.(type) {
				case envs.Box:
					p.actions = append(p.actions, float32(-3*x.pi[s][0]+x.pi[s][1]))
				case envs.MultiDiscrete:
					p.logProbs = append(p.logProbs, log(x.pi[s][0]), log(x.pi[s][1]), log(0.5), log(0.5))
				default:
					p.logProbs = append(p.logProbs, log(x.pi[s][0]), log(x.pi[s][1]))
				}
			}
		}
		c := Defaults()
		c.Gamma, c.Samples, c.Estimators = gamma, 50, []string{FQE}
		c.FQE = FQEConfig{Updates: 6000, BatchSize: 128, TargetEvery: 25, LearningRate: 1e-3, Hidden: []int{32}, Draws: 64}
		run := func() []Estimate {
			out, err := Evaluate(t.Context(), c, d, p, Tools{Engine: testengines.Fastest(t)})
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		out, want := run(), forever(x.pi)
		if len(out) != 2 || out[1].Estimator != FQE || math.Abs(out[1].Value-want) > x.slack || !(out[1].Low < out[1].Value && out[1].Value < out[1].High) {
			t.Errorf("%s: %+v, expected %v", what, out, want)
		} else {
			t.Logf("%s: %v, expected %v", what, out[1].Value, want)
		}
		if what == "heads" {
			c.FQE.Updates = 50
			if a, b := run(), run(); !slices.Equal(a, b) {
				t.Errorf("%s: the same seed gives %+v and %+v", what, a, b)
			}
		}
		cases++
	}
	if cases != longtest.Cases(t, 4, 1) {
		t.Errorf("%d cases", cases)
	}
}

// stateOf is the state that a row shows.
func stateOf(t *testing.T, d *Data, row int) int {
	t.Helper()
	frame := frameOf(t, d.Spec)
	d.obs.Put(frame, 0, row)
	return int(frame.Obs[0].Int64s()[0])
}

// TestUnknown: without the behaviour's probabilities, estimators by weights name the column, or
// have a note, and so have policies without density.
func TestUnknown(t *testing.T) {
	spec := tabular(envs.NewBox(-3, 1, 1))
	float := func(x float32) []byte { return binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)) }
	p, err := newPolicy(spec)
	if err != nil {
		t.Fatal(err)
	}
	p.actions = make([]float32, 32)
	cases := 0
	for word, logProb := range sorted.All(map[string]float64{"column log_prob": math.NaN(), "no density": -1}) {
		d, err := Read(t.Context(), written(t, spec, [2][][]byte{{float(-3)}, {float(1)}}, logProb), spec)
		if err != nil {
			t.Fatal(err)
		}
		if p.mean, p.logStd = nil, nil; math.IsNaN(logProb) {
			// A policy that has densities.
			p.mean, p.logStd = make([]float32, 32), make([]float32, 32)
		}
		c := Defaults()
		c.FQE.Updates, c.Samples = 1, 2
		for _, name := range []string{PDIS, WPDIS, DR, WDR} {
			c.Estimators = []string{name}
			_, err := Evaluate(t.Context(), c, d, p, Tools{Engine: testengines.Fastest(t)})
			agenttest.Has(t, err, name, word)
			cases++
		}
		c.Estimators = nil
		out, err := Evaluate(t.Context(), c, d, p, Tools{Engine: testengines.Fastest(t)})
		if err != nil || len(out) != 6 || out[1].Note == "" || !math.IsNaN(out[1].Value) || math.IsNaN(out[5].Value) {
			t.Errorf("%+v, %v", out, err)
		}
	}
	if cases != 8 {
		t.Errorf("%d cases", cases)
	}
}

// TestBadConfigs has values that mean nothing.
func TestBadConfigs(t *testing.T) {
	cases := 0
	for word, change := range sorted.All(map[string]func(c *Config){
		"estimators":        func(c *Config) { c.Estimators = []string{"is"} },
		"gamma":             func(c *Config) { c.Gamma = 1.5 },
		"samples":           func(c *Config) { c.Samples = -1 },
		"level":             func(c *Config) { c.Level = 1 },
		"fqe.updates":       func(c *Config) { c.FQE.Updates = 0 },
		"fqe.batch_size":    func(c *Config) { c.FQE.BatchSize = 0 },
		"fqe.target_every":  func(c *Config) { c.FQE.TargetEvery = 0 },
		"fqe.learning_rate": func(c *Config) { c.FQE.LearningRate = 0 },
		"fqe.hidden":        func(c *Config) { c.FQE.Hidden = []int{0} },
		"fqe.draws":         func(c *Config) { c.FQE.Draws = 0 },
	}) {
		c := Defaults()
		change(&c)
		agenttest.Has(t, c.Validate(), word)
		cases++
	}
	if cases != 10 {
		t.Errorf("%d cases", cases)
	}
}

// TestDensities adds up densities over a box, in the environment's units: they are 1 together,
// squashed or not, and what is drawn has them.
func TestDensities(t *testing.T) {
	spec := tabular(envs.NewBox(-3, 1, 1))
	cases := 0
	for what, squashed := range sorted.All(map[string]bool{"gaussian": false, "squashed": true}) {
		p, err := newPolicy(spec)
		if err != nil {
			t.Fatal(err)
		}
		p.mean, p.logStd, p.squashed, p.actions = []float32{-0.6}, []float32{float32(math.Log(0.35))}, squashed, []float32{-0.6}
		const n = 4000
		sum, mean, room := 0.0, 0.0, tensor.New(tensor.Float32, 1)
		for i := range n {
			x := -3 + 4*(float64(i)+0.5)/n
			d := &Data{size: 4, actions: binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(x)))}
			density := math.Exp(p.logProb(d, 0, room))
			sum += density * 4 / n
			mean += x * density * 4 / n
		}
		drawn, to := 0.0, make([]float32, 1)
		s := rng.New(5).Stream()
		for range n {
			p.draw(s, 0, to)
			drawn += (-1 + 2*float64(to[0])) / n
		}
		if math.Abs(sum-1) > 1e-3 || math.Abs(drawn-mean) > 0.05 {
			t.Errorf("%s: the densities are %v together, and the mean of draws is %v, expected %v", what, sum, drawn, mean)
		}
		cases++
	}
	if cases != 2 {
		t.Errorf("%d cases", cases)
	}
}

// TestTellSquashed finds out by best actions what a Gaussian's means are.
func TestTellSquashed(t *testing.T) {
	cases := 0
	for what, x := range sorted.All(map[string]struct {
		mean, actions []float32
		squashed      bool
		words         []string
	}{
		"cut off":  {[]float32{-5, -2, 0.5, 3}, []float32{-3, -2, 0.5, 1}, false, nil},
		"squashed": {[]float32{-5, 0, 0.5}, []float32{-2.999818, -1, -0.0757657}, true, nil},
		"neither":  {[]float32{-1, 0}, []float32{-2, 0.5}, false, []string{"neither", "action_mean"}},
	}) {
		p, err := newPolicy(tabular(envs.NewBox(-3, 1, 1)))
		if err != nil {
			t.Fatal(err)
		}
		p.mean, p.actions = x.mean, x.actions
		err = p.tellSquashed()
		if x.words != nil {
			agenttest.Has(t, err, x.words...)
		} else if err != nil || p.squashed != x.squashed {
			t.Errorf("%s: %v, %v", what, p.squashed, err)
		}
		cases++
	}
	p, err := newPolicy(tabular(envs.NewBox(-1, 1, 1)))
	if err != nil {
		t.Fatal(err)
	}
	p.mean, p.actions = []float32{0.001}, []float32{0.001}
	agenttest.Has(t, p.tellSquashed(), "density is not the same")
	if cases != 3 {
		t.Errorf("%d cases", cases)
	}
}

// TestUpdatesAllocateNothing counts what updates allocate, where actions are drawn.
func TestUpdatesAllocateNothing(t *testing.T) {
	spec := tabular(envs.MultiDiscrete{N: []int{2, 2}})
	zero := make([]byte, 16)
	d, err := Read(t.Context(), written(t, spec, [2][][]byte{{zero}, {zero}}, 0), spec)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPolicy(spec)
	if err != nil {
		t.Fatal(err)
	}
	p.logProbs = make([]float32, 4*d.rows())
	e, c := testengines.Fastest(t), DefaultFQE()
	c.BatchSize, c.Hidden = 16, []int{8}
	f, err := newFitter(c, d, p, gamma, e, nil, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, f)
	// Two programs run.
	if n := testing.AllocsPerRun(20, func() {
		if _, err := f.update(1); err != nil {
			t.Fatal(err)
		}
	}); n > 2*testengines.Allocations(e) {
		t.Errorf("an update allocates %v times", n)
	}
}
