package vector_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// priced is a corridor with costs.
func priced(t testing.TB) envs.Env {
	t.Helper()
	e, err := corridor.New(corridor.Config{Cells: 6})
	if err != nil {
		t.Fatal(err)
	}
	return envtest.Priced{Env: e}
}

func TestPricedContract(t *testing.T) {
	envtest.Run(t, func() (envs.Env, error) { return priced(t), nil }, envtest.Options{Steps: 100})
}

// TestCosts: what steps cost comes through vectors and wrappers, and adds up over episodes.
func TestCosts(t *testing.T) {
	stacked := func() envs.Env {
		e, err := wrap.NewFrameStack(priced(t), wrap.Frames{Frames: 2, Initial: wrap.InitialFirst})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	cases, episodes := 0, 0
	for what, open := range sorted.All(map[string]func() envs.Env{"bare": func() envs.Env { return priced(t) }, "frame stack": stacked}) {
		for _, scaled := range []bool{false, true} {
			list := []envs.Env{open(), open(), open()}
			local, err := vector.New(list, vector.Options{Workers: 1, Check: true, Truncate: 9})
			if err != nil {
				t.Fatal(err)
			}
			var v vector.Env = local
			if scaled {
				gamma := 0.9
				if v, err = vector.Normalize(v, wrap.Normalize{Obs: true, Reward: true, ClipObs: 10, ClipReward: 10, Epsilon: 1e-8, Gamma: &gamma}); err != nil {
					t.Fatal(err)
				}
			}
			defer v.Close()
			if err := v.Reset(rng.New(1)); err != nil {
				t.Fatal(err)
			}
			b, sum := v.Batch(), vector.NewCostSum(v.Spec(), 3)
			for e := range 3 {
				if slices.Max(b.Costs[e]) != 0 {
					t.Errorf("%s: a first step costs %v", what, b.Costs[e])
				}
			}
			actions, draws := tensor.New(tensor.Int64, 3), rng.New(2).Stream()
			frame, err := vector.NewFrame(v.Spec(), 1, false)
			if err != nil {
				t.Fatal(err)
			}
			defer frame.Close()
			for range 60 {
				for e := range 3 {
					actions.Int64s()[e] = int64(draws.IntN(2))
				}
				if err := v.Step(actions); err != nil {
					t.Fatal(err)
				}
				for e, r := range b.Earned() {
					if want := []float64{1, 2*r + 0.5}; !slices.Equal(b.Costs[e], want) {
						t.Fatalf("%s: a step costs %v, expected %v", what, b.Costs[e], want)
					}
				}
				sum.Add(b)
				for _, e := range b.Ended {
					if got, want := sum.Episode(e.Env), []float64{float64(e.Length), 2*e.Return + 0.5*float64(e.Length)}; got[0] != want[0] || math.Abs(got[1]-want[1]) > 1e-12 {
						t.Errorf("%s: an episode of %d steps cost %v, expected %v", what, e.Length, got, want)
					}
					episodes++
				}
				// As before a checkpoint: what goes on stays.
				sum.Settle()
			}
			ts := envs.NewTimeStep(v.Spec())
			ts.Costs[1] = 7
			if err := frame.Put(0, ts); err != nil || frame.Batch().Costs[0][1] != 7 {
				t.Errorf("a frame has the costs %v, %v", frame.Batch().Costs, err)
			}
			cases++
		}
	}
	if cases != 4 || episodes < 40 {
		t.Errorf("%d cases, %d episodes", cases, episodes)
	}
	if a, b := vector.CostTag("x", "cost", 1), vector.CostTag("x", "cost", 2); a != "x" || b != "x/cost" {
		t.Errorf("tags %q and %q", a, b)
	}
}

// unpriced answers with a cost that is no number.
type unpriced struct{ envs.Env }

func (e unpriced) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	err := e.Env.Step(action, ts)
	ts.Costs[1] = math.Inf(1)
	return err
}

func TestCostsAreFinite(t *testing.T) {
	v, err := vector.New([]envs.Env{unpriced{priced(t)}}, vector.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	if err := v.Reset(rng.New(1)); err != nil {
		t.Fatal(err)
	}
	if err := v.Step(v.Batch().Actions); err == nil || !strings.Contains(err.Error(), `cost "reward" is +Inf`) {
		t.Errorf("a cost of infinity: %v", err)
	}
	s := priced(t).Spec()
	s.Costs = []string{"a", "a"}
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), `cost 1: name "a"`) {
		t.Errorf("two costs of one name: %v", err)
	}
	if o := priced(t).Spec(); s.Equal(&o) {
		t.Error("specs of other costs are equal")
	}
}
