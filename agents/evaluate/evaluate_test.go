package evaluate_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// source returns a market of a random walk with a random feature.
func source(t testing.TB, bars, assets int) *trading.Source {
	t.Helper()
	s := rng.New(1).Stream()
	m := &trading.Market{Features: []string{"noise"}, X: make([]float32, bars*assets), Open: make([]float64, bars*assets), Close: make([]float64, bars*assets), Tradable: make([]trading.Sides, bars*assets)}
	for i := range assets {
		m.Assets = append(m.Assets, string(rune('A'+i)))
	}
	for b := range bars {
		m.Dates = append(m.Dates, time.Date(2015, 1, 1+b, 0, 0, 0, 0, time.UTC))
		for i := b * assets; i < (b+1)*assets; i++ {
			m.X[i], m.Open[i], m.Close[i], m.Tradable[i] = float32(s.Normal()), 50*math.Exp(0.1*s.Normal()), 50*math.Exp(0.1*s.Normal()), trading.SidesAt(s.Bernoulli(0.9), 0, 0, 0)
		}
	}
	c := trading.Defaults()
	c.Window = 4
	src, err := trading.NewSource(m, c)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// trader buys and sells by the last row of the window, the weight it holds and, when it explores,
// its key.
type trader struct {
	m      *trading.Market
	closed *int
	fail   error
}

func (w trader) NewActor(m agents.Mode, n int) (agents.Actor, error) {
	return &trades{trader: w, mode: m, d: agents.Decision{Actions: tensor.New(tensor.Int64, n, len(w.m.Assets))}}, w.fail
}

type trades struct {
	trader
	mode   agents.Mode
	d      agents.Decision
	stream rng.Stream
}

func (a *trades) Act(_ context.Context, key rng.Key, b *vector.Batch) (*agents.Decision, error) {
	a.stream.Seed(key)
	n := len(a.m.Assets)
	for r, bar := range b.Rows[0] {
		for i := range n {
			k := r*n + i
			o := int64(trading.Hold)
			switch x := a.m.X[int(bar)*n+i]; {
			case a.mode == agents.Explore && a.stream.Bernoulli(0.5):
			case b.Obs[1].Float32s()[k] > 0.3 || x < -0.5:
				o = trading.Sell
			case x > 0.5 && b.Mask.Bools()[3*k+trading.Buy]:
				o = trading.Buy
			}
			a.d.Actions.Int64s()[k] = o
		}
	}
	return &a.d, nil
}
func (*trades) Sync(context.Context) error { return nil }
func (a *trades) Close() error             { *a.closed++; return nil }

// TestPolicyActsAsInAVector compares a back-test with an actor that acts in a vector, step by step,
// in both modes.
func TestPolicyActsAsInAVector(t *testing.T) {
	src := source(t, 120, 3)
	all := trading.Range{First: 0, Last: 119}
	compared, closed := 0, 0
	for _, mode := range []agents.Mode{agents.Greedy, agents.Explore} {
		e, err := src.Env(all)
		if err != nil {
			t.Fatal(err)
		}
		w := trader{src.Market(), &closed, nil}
		p, err := evaluate.NewPolicy("trader", w, mode, e.Spec(), nil)
		if err != nil {
			t.Fatal(err)
		}
		key := rng.New(3)
		r, err := backtest.Run(t.Context(), src, all, p, key)
		if err != nil {
			t.Fatal(err)
		}
		again, err := backtest.Run(t.Context(), src, all, p, key)
		if err != nil || !slices.Equal(r.Actions, again.Actions) {
			t.Errorf("%v: a second run differs: %v", mode, err)
		}
		v, err := vector.New([]envs.Env{e}, vector.Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		actor, err := w.NewActor(mode, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.Reset(key); err != nil {
			t.Fatal(err)
		}
		step := 0
		err = agents.Collect(t.Context(), v, actor, nil, key.Split("policy"), 0, r.Steps(), func(b *vector.Batch) error {
			if !slices.Equal(b.Actions.Int64s(), r.Actions[step*3:step*3+3]) || b.Reward[0] != r.Rewards[step] || b.Info[0][trading.InfoValue] != r.Value[step+1] {
				t.Fatalf("%v: step %d differs", mode, step)
			}
			step++
			compared++
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{actor.Close(), v.Close(), p.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	}
	if compared != 2*116 || closed != 4 {
		t.Errorf("%d steps were compared, %d actors closed", compared, closed)
	}
}

func TestPolicyRefusesOtherEnvironments(t *testing.T) {
	src, other, closed := source(t, 60, 3), source(t, 60, 2), 0
	e, err := src.Env(trading.Range{First: 0, Last: 59})
	if err != nil {
		t.Fatal(err)
	}
	p, err := evaluate.NewPolicy("trader", trader{src.Market(), &closed, nil}, agents.Greedy, e.Spec(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backtest.Run(t.Context(), other, trading.Range{First: 0, Last: 59}, p, rng.New(1)); err == nil || !strings.Contains(err.Error(), "made for other observations or actions") {
		t.Errorf("%v", err)
	}
	// Another length and other fees are no other environment.
	cheap, err := src.WithFee(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backtest.Run(t.Context(), cheap, trading.Range{First: 20, Last: 40}, p, rng.New(1)); err != nil {
		t.Error(err)
	}
	broken := errors.New("broken")
	if _, err := evaluate.NewPolicy("trader", trader{src.Market(), &closed, broken}, agents.Greedy, e.Spec(), nil); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	if err := p.Close(); err != nil || closed != 1 {
		t.Errorf("%v, %d actors closed", err, closed)
	}
}

func TestPolicyDoesNotAllocate(t *testing.T) {
	src, closed := source(t, 60, 3), 0
	e, err := src.Env(trading.Range{First: 0, Last: 59})
	if err != nil {
		t.Fatal(err)
	}
	p, err := evaluate.NewPolicy("trader", trader{src.Market(), &closed, nil}, agents.Greedy, e.Spec(), nil)
	if err != nil {
		t.Fatal(err)
	}
	ts, orders := envs.NewTimeStep(e.Spec()), make([]int64, 3)
	if err := errors.Join(e.Reset(rng.New(1), ts), p.Begin(e, rng.New(1))); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() {
		if err := p.Decide(t.Context(), e, ts, orders); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a decision allocates %g times", n)
	}
}

// walker goes to the right with probability p, by the key of the round.
type walker struct{ p float64 }

func (w walker) NewActor(_ agents.Mode, n int) (agents.Actor, error) {
	return &walking{walker: w, d: agents.Decision{Actions: tensor.New(tensor.Int64, n)}}, nil
}

type walking struct {
	walker
	d      agents.Decision
	stream rng.Stream
}

func (a *walking) Act(_ context.Context, key rng.Key, _ *vector.Batch) (*agents.Decision, error) {
	a.stream.Seed(key)
	for i := range a.d.Actions.Int64s() {
		a.d.Actions.Int64s()[i] = corridor.Left
		if a.stream.Bernoulli(a.p) {
			a.d.Actions.Int64s()[i] = corridor.Right
		}
	}
	return &a.d, nil
}
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

// markets makes whole-range portfolios, all of whose episodes are equal.
type markets struct{ src *trading.Source }

func (markets) Config() any { return nil }
func (f markets) New(envs.Split, int) (envs.Env, error) {
	return f.src.Env(trading.Range{First: 0, Last: f.src.Market().Len() - 1})
}
func (markets) Close() error { return nil }

// TestEqualEpisodesAreCountedOnce holds for a greedy policy only.
func TestEqualEpisodesAreCountedOnce(t *testing.T) {
	src, closed := source(t, 60, 3), 0
	w := trader{src.Market(), &closed, nil}
	greedy, err := evaluate.Episodes(t.Context(), markets{src}, envs.Test, w, agents.Greedy, 20, 1000, rng.New(1))
	if err != nil || len(greedy.Episodes) != 1 || greedy.Length != 56 {
		t.Errorf("%+v, %v", greedy, err)
	}
	drawn, err := evaluate.Episodes(t.Context(), markets{src}, envs.Test, w, agents.Explore, 20, 1000, rng.New(1))
	if err != nil || len(drawn.Episodes) != 20 || drawn.ReturnStd == 0 {
		t.Errorf("%+v, %v", drawn, err)
	}
}

// presser presses the right button of [envtest.Shifts] with probability p.
type presser struct{ p float64 }

func (w presser) NewActor(_ agents.Mode, n int) (agents.Actor, error) {
	return &pressing{walking{walker(w), agents.Decision{Actions: tensor.New(tensor.Int64, n)}, rng.Stream{}}}, nil
}

type pressing struct{ walking }

func (a *pressing) Act(ctx context.Context, key rng.Key, b *vector.Batch) (*agents.Decision, error) {
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
