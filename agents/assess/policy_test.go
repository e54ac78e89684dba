package assess_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/assess"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
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
	return &trades{trader: w, mode: m, d: vector.Decision{Actions: tensor.New(tensor.Int64, n, len(w.m.Assets))}}, w.fail
}

type trades struct {
	trader
	mode   agents.Mode
	d      vector.Decision
	stream rng.Stream
}

func (a *trades) Act(_ context.Context, key rng.Key, b *vector.Batch) (*vector.Decision, error) {
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
func (*trades) Remembers() bool            { return false }
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
		p, err := assess.NewPolicy("trader", w, mode, e.Spec(), nil)
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
	p, err := assess.NewPolicy("trader", trader{src.Market(), &closed, nil}, agents.Greedy, e.Spec(), nil)
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
	if _, err := assess.NewPolicy("trader", trader{src.Market(), &closed, broken}, agents.Greedy, e.Spec(), nil); !errors.Is(err, broken) {
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
	p, err := assess.NewPolicy("trader", trader{src.Market(), &closed, nil}, agents.Greedy, e.Spec(), nil)
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

// TestOnePair: where all episodes are equal there is one, which has no interval.
func TestOnePair(t *testing.T) {
	src, closed := source(t, 60, 2), 0
	w := trader{src.Market(), &closed, nil}
	p, err := evaluate.PairedEpisodes(t.Context(), markets{src}, envs.Test, w, w, 20, 1000, rng.New(1))
	if err != nil || p.Episodes != 1 || p.Low != nil || p.High != nil || p.Differing != 0 || closed != 2 {
		t.Errorf("%+v, %v, %d closed", p, err, closed)
	}
	text, err := json.Marshal(p)
	if err != nil || !strings.Contains(string(text), `"difference":0,"low":null,"high":null`) {
		t.Errorf("%s, %v", text, err)
	}
}

// TestPairFails: an error of a policy is returned, and everything is closed.
func TestPairFails(t *testing.T) {
	src, closed := source(t, 60, 2), 0
	boom := errors.New("boom")
	good, bad := trader{src.Market(), &closed, nil}, trader{src.Market(), &closed, boom}
	if _, err := evaluate.PairedEpisodes(t.Context(), markets{src}, envs.Test, good, bad, 20, 1000, rng.New(1)); !errors.Is(err, boom) || closed != 1 {
		t.Errorf("%v, %d closed", err, closed)
	}
}
