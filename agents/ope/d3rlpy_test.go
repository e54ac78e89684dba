package ope

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// episodesOf are the transitions of a fixture, each an episode, with the policy of its best
// actions.
func episodesOf(t *testing.T, f *agenttest.Fixture, spec envs.Spec) (*Data, *Policy) {
	t.Helper()
	m := offline.Describe(spec)
	m.Behaviours = []offline.Behaviour{{Algorithm: "random"}}
	dir := filepath.Join(t.TempDir(), "dataset")
	w, err := offline.Create(dir, m)
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPolicy(spec)
	if err != nil {
		t.Fatal(err)
	}
	err = w.Part(t.Context(), 0, func(add func(*offline.Episode) error) error {
		for _, u := range f.Updates {
			rows := len(u.Reward.Data)
			obs, next := tensor.New(tensor.Float32, rows, 3), tensor.New(tensor.Float32, rows, 3)
			action := tensor.New(spec.Action.DType(), append([]int{rows}, spec.Action.Shape()...)...)
			u.Obs.Fill(t, obs)
			u.Next.Fill(t, next)
			u.Action.Fill(t, action)
			for i := range rows {
				at := func(x *tensor.Tensor) []byte { return x.Rows(i, i+1).Bytes() }
				e := &offline.Episode{Rows: make([][]int64, 1), Obs: [][]byte{append(append([]byte{}, at(obs)...), at(next)...)}, Action: at(action), Reward: u.Reward.Data[i : i+1], LogProb: []float64{math.NaN()}, Discount: []float64{1}, Truncated: true}
				if u.Discount.Data[i] == 0 {
					e.Discount[0], e.Truncated, e.Terminated = 0, false, true
				}
				if err := add(e); err != nil {
					return err
				}
				// Nobody asks what the policy does at the first observation.
				p.best(f.Options.Actions, make([]float64, 2))
				n := len(u.Noise[0].Data) / rows
				p.best(f.Options.Actions, u.Noise[0].Data[i*n:(i+1)*n])
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
	x, err := Read(t.Context(), d, spec)
	if err != nil {
		t.Fatal(err)
	}
	return x, p
}

// best appends the best action at a row: one of so many Discrete ones, or one in a box.
func (p *Policy) best(choices int, action []float64) {
	for k := range choices {
		x := float32(rlmath.Excluded)
		if k == int(action[0]) {
			x = 0
		}
		p.logProbs = append(p.logProbs, x)
	}
	if choices == 0 {
		p.actions = append(p.actions, float32(action[0]), float32(action[1]))
	}
}

// TestUpdatesOfD3RLPy: losses and parameters of fitted Q evaluation are d3rlpy's.
func TestUpdatesOfD3RLPy(t *testing.T) {
	text, err := os.ReadFile("testdata/d3rlpy.json")
	if err != nil {
		t.Fatal(err)
	}
	var fixtures []agenttest.Fixture
	if err := json.Unmarshal(text, &fixtures); err != nil {
		t.Fatal(err)
	}
	updates, numbers := 0, 0
	for _, e := range testengines.All(t) {
		for _, x := range fixtures {
			near := func(what string, got, want float64) {
				t.Helper()
				if numbers++; !(math.Abs(got-want) <= 2e-5*(1+math.Abs(want))) {
					t.Errorf("%s, %s: %s is %v, expected %v", e.Name(), x.Name, what, got, want)
				}
			}
			spec := agenttest.Spec(x.Options.Actions, false)
			d, p := episodesOf(t, &x, spec)
			rows := len(x.Updates[0].Reward.Data)
			c := FQEConfig{Updates: len(x.Updates), BatchSize: rows, TargetEvery: 2, LearningRate: 1e-2, Hidden: x.Options.Hidden, Draws: 1}
			f, err := newFitter(c, d, p, 0.9, e, nil, rng.New(1))
			if err != nil {
				t.Fatal(err)
			}
			agenttest.Closing(t, f)
			f.scale = 1
			view := func(name string) *tensor.Tensor {
				v := f.params.View(name)
				if v == nil {
					t.Fatalf("there is no parameter %q", name)
				}
				return v
			}
			for name, v := range sorted.All(x.Initial) {
				v.Fill(t, view(name))
			}
			for k, u := range x.Updates {
				if k%c.TargetEvery == 0 {
					f.follower.Move()
				}
				for i := range f.batch {
					f.batch[i] = d.steps[k*rows+i]
				}
				loss, err := f.learn(1)
				if err != nil {
					t.Fatal(err)
				}
				near("loss", loss, u.Metrics["train/loss"])
				updates++
			}
			// d3rlpy copies after its last update, too.
			f.follower.Move()
			if n := len(f.params.Segment(models.Trainable).Specs()) + len(f.params.Segment(models.Frozen).Specs()); len(x.Final) != n {
				t.Errorf("%s: %d parameters in the fixture, %d here", x.Name, len(x.Final), n)
			}
			for name, want := range sorted.All(x.Final) {
				got := view(name).Float32s()
				for i, v := range want.Data {
					near(name, float64(got[i]), v)
				}
			}
		}
	}
	if n := len(testengines.All(t)); updates != n*8 || numbers != n*254 {
		t.Errorf("%d updates, %d numbers", updates, numbers)
	}
}
