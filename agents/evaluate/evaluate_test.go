package evaluate_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// walker goes to the right with probability p, by the key of the round.
type walker struct{ p float64 }

func (w walker) NewActor(_ agents.Mode, n int) (agents.Actor, error) {
	return &walking{walker: w, d: vector.Decision{Actions: tensor.New(tensor.Int64, n)}}, nil
}

type walking struct {
	walker
	d      vector.Decision
	stream rng.Stream
}

func (a *walking) Act(_ context.Context, key rng.Key, _ *vector.Batch) (*vector.Decision, error) {
	a.stream.Seed(key)
	for i := range a.d.Actions.Int64s() {
		a.d.Actions.Int64s()[i] = corridor.Left
		if a.stream.Bernoulli(a.p) {
			a.d.Actions.Int64s()[i] = corridor.Right
		}
	}
	return &a.d, nil
}
func (*walking) Remembers() bool            { return false }
func (*walking) Sync(context.Context) error { return nil }
func (*walking) Close() error               { return nil }

// corridors is a factory that counts what it has made and what was closed.
type corridors struct{ made, closed int }

func (*corridors) Config() any { return nil }
func (f *corridors) New(envs.Split, int) (envs.Env, error) {
	f.made++
	e, err := corridor.New(corridor.Config{Cells: 8})
	return envtest.Priced{Env: counted{e, f}}, err
}
func (*corridors) Close() error { return nil }

type counted struct {
	*corridor.Env
	f *corridors
}

func (c counted) Close() error { c.f.closed++; return c.Env.Close() }

// TestEpisodes counts episodes of different lengths: the mean over a given number per environment
// is not drawn towards short ones.
func TestEpisodes(t *testing.T) {
	f := &corridors{}
	// A policy that never arrives is stopped.
	if stuck, err := evaluate.Episodes(t.Context(), &corridors{}, envs.Valid, walker{0}, agents.Greedy, 3, 40, rng.New(1)); err != nil || stuck.Length != 40 || !stuck.Episodes[0].Truncated {
		t.Errorf("%v %+v", err, stuck)
	}
	r, err := evaluate.Episodes(t.Context(), f, envs.Valid, walker{0.7}, agents.Explore, 50, 1000, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	var steps int64
	mean, square := 0.0, 0.0
	for i, e := range r.Episodes {
		if e.Env != i%8 || e.Number != i/8 || e.Length < 1 {
			t.Fatalf("episode %d is %+v", i, e)
		}
		steps += int64(e.Length)
		mean += float64(e.Length) / 50
		square += float64(e.Length) * float64(e.Length) / 50
	}
	if len(r.Episodes) != 50 || r.Steps != steps || math.Abs(r.Length-mean) > 1e-9 || math.Abs(r.LengthStd-math.Sqrt(square-mean*mean)) > 1e-9 || r.LengthStd == 0 || r.Return != 1 || r.ReturnStd != 0 ||
		math.Abs(r.Costs[envtest.StepCost]-mean) > 1e-9 || math.Abs(r.Costs[envtest.RewardCost]-(2+0.5*mean)) > 1e-9 || len(r.Costs) != 2 {
		t.Errorf("%+v", r)
	}
	again, err := evaluate.Episodes(t.Context(), f, envs.Valid, walker{0.7}, agents.Explore, 50, 1000, rng.New(1))
	if err != nil || !slices.Equal(r.Episodes, again.Episodes) {
		t.Errorf("a second count differs: %v", err)
	}
	if f.made != 16 || f.closed != 16 {
		t.Errorf("%d environments made, %d closed", f.made, f.closed)
	}
	if few, err := evaluate.Episodes(t.Context(), f, envs.Valid, walker{1}, agents.Greedy, 3, 1000, rng.New(1)); err != nil || len(few.Episodes) != 3 || f.made != 19 || f.closed != 19 {
		t.Errorf("%+v, %v, %d made, %d closed", few, err, f.made, f.closed)
	}
	if _, err := evaluate.Episodes(t.Context(), f, envs.Valid, walker{1}, agents.Greedy, 0, 1000, rng.New(1)); err == nil {
		t.Error("no episodes are counted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := evaluate.Episodes(ctx, f, envs.Valid, walker{0}, agents.Greedy, 3, 1000, rng.New(1)); !errors.Is(err, context.Canceled) || f.made != f.closed {
		t.Errorf("%v, %d made, %d closed", err, f.made, f.closed)
	}
}

// presser presses the right button of [envtest.Shifts] with probability p.
type presser struct{ p float64 }

func (w presser) NewActor(_ agents.Mode, n int) (agents.Actor, error) {
	return &pressing{walking{walker(w), vector.Decision{Actions: tensor.New(tensor.Int64, n)}, rng.Stream{}}}, nil
}

type pressing struct{ walking }

func (a *pressing) Act(ctx context.Context, key rng.Key, b *vector.Batch) (*vector.Decision, error) {
	a.stream.Seed(key)
	for i := range a.d.Actions.Int64s() {
		light := slices.Index(b.Obs[0].Float32s()[3*i:3*i+3], 1)
		press := envtest.Button(int(b.Obs[1].Int64s()[i]), max(light, 0))
		if !a.stream.Bernoulli(a.p) {
			press = (press + 1) % 3
		}
		a.d.Actions.Int64s()[i] = int64(press)
	}
	return &a.d, nil
}

// TestEpisodesOfSeveralAgents: n episodes of worlds count, and the means are over all episodes of
// agents in them.
func TestEpisodesOfSeveralAgents(t *testing.T) {
	var f envs.Factory = envtest.ShiftsFactory{Shifts: envtest.Shifts{Workers: 3}}
	limited := wrap.Defaults()
	limited.TimeLimit = 10
	short, err := wrap.Apply(f, limited)
	if err != nil {
		t.Fatal(err)
	}
	for limit, f := range sorted.All(map[int]envs.Factory{envtest.ShiftSteps: f, 10: short}) {
		r, err := evaluate.Episodes(t.Context(), f, envs.Valid, presser{0.8}, agents.Explore, 20, 1000, rng.New(1))
		if err != nil {
			t.Fatal(err)
		}
		worlds, sum, died := map[int]int{}, 0.0, 0.0
		for _, e := range r.Episodes {
			worlds[8*e.Number+e.Env/3] += e.Length
			sum += e.Return
			if !e.Truncated {
				died++
			}
		}
		for k, steps := range sorted.All(worlds) {
			if k >= 20 || steps < 1 || steps > 3*limit {
				t.Errorf("episode %d of the worlds has %d steps", k, steps)
			}
		}
		n := float64(len(r.Episodes))
		if len(worlds) != 20 || n < 60 || math.Abs(r.Return-sum/n) > 1e-9 || math.Abs(r.Costs["wrong"]-died/n) > 1e-9 || died < n/4 {
			t.Errorf("limit %d: %d worlds, %g episodes, %+v", limit, len(worlds), n, r)
		}
		best, err := evaluate.Episodes(t.Context(), f, envs.Valid, presser{1}, agents.Greedy, 20, 1000, rng.New(1))
		if err != nil || best.Return != best.Length || best.Costs["wrong"] != 0 {
			t.Errorf("%v, %+v", err, best)
		}
	}
}

// stroller is an agent that always goes to the right.
type stroller struct{ agents.Agent }

func (stroller) NewActor(m agents.Mode, n int) (agents.Actor, error) { return walker{1}.NewActor(m, n) }

// TestValidator: the metrics of whole episodes, with those that environments add.
func TestValidator(t *testing.T) {
	r, err := evaluate.Validator(&corridors{}, evaluate.Defaults())(t.Context(), stroller{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if r["mean_length"] < 1 || r["mean_reward"] != 1 || r["std_reward"] != 0 || len(r) != len(evaluate.Metrics())+2 || r["mean_cost/"+envtest.StepCost] != r["mean_length"] {
		t.Errorf("%v", r)
	}
	for _, name := range evaluate.Metrics() {
		if _, ok := r[name]; !ok {
			t.Errorf("%s is missing: %v", name, r)
		}
	}
}
