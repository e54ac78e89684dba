package backtest_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
)

// TestBuyAndHold compares the values with their formula, an asset that is listed later included:
// its share is cash until then.
func TestBuyAndHold(t *testing.T) {
	const assets, bars = 4, 120
	m := randomMarket(5, bars, assets)
	for i := range m.Tradable {
		m.Tradable[i] |= trading.SidesAt(i%assets == 2, 0, 0, 0)
	}
	s := source(t, m, nil)
	r := must(t)(backtest.Accounts(ctx, s, trading.Range{First: 10, Last: bars - 1}, backtest.BuyAndHold()))
	compared := 0
	for k, v := range r.Value {
		bar, want := 10+k, 0.0
		for i := range assets {
			share, bought := 2500.0, 11
			if i == 1 {
				bought = 31
			}
			if bar >= bought {
				share *= m.Close[bar*assets+i] / m.Open[bought*assets+i] / 1.0005
			}
			want += share
		}
		if !near(v, want, 1e-12) {
			t.Fatalf("bar %d: worth %.10f, the formula says %.10f", bar, v, want)
		}
		compared++
	}
	if compared != bars-10 || len(r.Trades) != assets {
		t.Errorf("%d values were compared; %d trades", compared, len(r.Trades))
	}
	// Without the late asset, the others have its share.
	listed := must(t)(backtest.Accounts(ctx, s, trading.Range{First: 10, Last: bars - 1}, backtest.BuyListed()))
	want := 0.0
	for _, i := range []int{0, 2, 3} {
		want += 10_000 / 3. * m.Close[(bars-1)*assets+i] / m.Open[11*assets+i] / 1.0005
	}
	if got := listed.Value[len(listed.Value)-1]; !near(got, want, 1e-12) || len(listed.Trades) != 3 {
		t.Errorf("the listed are worth %.10f, the formula says %.10f", got, want)
	}
	// The capital employed earns what the stock earns from its purchase on.
	for i := range assets {
		bought, total := 11, 1.0
		if i == 1 {
			bought = 31
		}
		for _, g := range r.AssetReturn(i) {
			total *= 1 + g
		}
		if want := m.Close[(bars-1)*assets+i] / m.Open[bought*assets+i] / 1.0005; !near(total, want, 1e-12) {
			t.Errorf("asset %d: the capital employed grew to %g, expected %g", i, total, want)
		}
	}
}

// TestMovingAverage compares the positions with a plain account of the rule's words.
func TestMovingAverage(t *testing.T) {
	const assets, bars = 3, 160
	m := randomMarket(6, bars, assets)
	s := source(t, m, nil)
	in, out := 0, 0
	for _, n := range []int{10, 20, 30} {
		rule, err := backtest.MovingAverage(n)
		if err != nil {
			t.Fatal(err)
		}
		r := must(t)(backtest.Accounts(ctx, s, trading.Range{First: 0, Last: bars - 1}, rule))
		for i := range assets {
			listed, long := 0, false
			if i == 1 {
				listed = 30
			}
			for k := range r.Steps() {
				bar := 4 + k
				var mean float64
				for b := max(bar-n+1, 0); b <= bar; b++ {
					mean += m.Close[b*assets+i] / float64(n)
				}
				signal := bar-n+1 >= listed && m.Close[bar*assets+i] > mean
				if m.Tradable[bar*assets+i]&m.Tradable[(bar+1)*assets+i] != 0 {
					long = signal
				}
				if held := r.Positions[(k+1)*assets+i] > 0; held != long {
					t.Fatalf("MA%d, asset %d, bar %d: held is %t, expected %t", n, i, bar, held, long)
				}
				if long {
					in++
				} else {
					out++
				}
			}
		}
	}
	if in < 300 || out < 300 || in+out != 3*assets*(bars-5) {
		t.Errorf("%d bars in and %d out", in, out)
	}
	if _, err := backtest.MovingAverage(1); err == nil {
		t.Error("a mean of one close is accepted")
	}
}

// TestRandom holds the frequencies of the random policy and that it does not depend on the run's
// key.
func TestRandom(t *testing.T) {
	const assets, bars = 8, 3000
	s := source(t, randomMarket(7, bars, assets), nil)
	all := trading.Range{First: 0, Last: bars - 1}
	var first []*backtest.Record
	for _, seed := range backtest.RandomSeeds {
		r := must(t)(backtest.Run(ctx, s, all, backtest.Random(seed), key))
		mix := r.ActionMix()
		for i, want := range []float64{0.2, 0.2, 0.6} {
			if math.Abs(mix[i]-want) > 0.012 {
				t.Errorf("%s: action %d has a share of %g", r.Name, i, mix[i])
			}
		}
		first = append(first, r)
	}
	again := must(t)(backtest.Run(ctx, s, all, backtest.Random(42), key.Split("other")))
	if !slices.Equal(again.Value, first[0].Value) || slices.Equal(first[0].Value, first[1].Value) || len(first) != 5 {
		t.Error("the random baseline depends on the key, or not on its seed")
	}
}

func TestIndex(t *testing.T) {
	dates := []time.Time{day0, day0.AddDate(0, 0, 1), day0.AddDate(0, 0, 2)}
	r := must(t)(backtest.Index("SPY", dates, []float64{50, 55, 44}, 10_000))
	if !slices.Equal(r.Value, []float64{10_000, 11_000, 8_800}) || !near(r.Rewards[1], -0.2, 1e-12) || !near(r.Returns()[0], 0.1, 1e-12) || !near(r.AssetReturns()[1], -0.2, 1e-12) {
		t.Errorf("%+v", r)
	}
	for _, bad := range [][]float64{{1, 2}, {1, 0, 2}, {1, 2, math.NaN()}, {0, 1, 2}, {math.Inf(1), 1, 2}} {
		if _, err := backtest.Index("SPY", dates, bad, 10_000); err == nil {
			t.Errorf("prices %v are accepted", bad)
		}
	}
}

// TestBadInput holds the messages.
func TestBadInput(t *testing.T) {
	m := randomMarket(8, 60, 2)
	parts := source(t, m, func(c *trading.Config) {
		c.Episode = trading.Episode{Kind: trading.Random, Length: 10, End: trading.Truncate}
	})
	whole, ran := source(t, m, nil), 0
	for _, c := range []struct {
		s    *trading.Source
		r    trading.Range
		want string
	}{
		{parts, trading.Range{First: 0, Last: 59}, "expected whole ones"},
		{whole, trading.Range{First: 0, Last: 60}, "bars 0 to 60 of 60"},
		{whole, trading.Range{First: 0, Last: 3}, "do not leave a step"},
	} {
		_, a := backtest.Run(ctx, c.s, c.r, backtest.HoldCash(), key)
		_, b := backtest.Accounts(ctx, c.s, c.r, backtest.BuyAndHold())
		for _, err := range []error{a, b} {
			ran++
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "back-test ") {
				t.Errorf("%v, expected %q", err, c.want)
			}
		}
	}
	if _, err := backtest.Costs(ctx, whole, trading.Range{First: 0, Last: 59}, backtest.HoldCash(), key, []float64{-1}); err == nil || !strings.Contains(err.Error(), "fee_rate") {
		t.Errorf("a negative fee: %v", err)
	}
	if ran != 6 {
		t.Errorf("%d cases", ran)
	}
}

// TestNothingIsAllocatedPerStep compares runs over 100 and over 1,000 bars.
func TestNothingIsAllocatedPerStep(t *testing.T) {
	s := source(t, randomMarket(9, 1100, 6), nil)
	count := func(bars int) float64 {
		return testing.AllocsPerRun(5, func() {
			if _, err := backtest.Run(ctx, s, trading.Range{First: 10, Last: 10 + bars}, momentum{fixed: true}, key); err != nil {
				t.Fatal(err)
			}
		})
	}
	// The list of trades doubles now and then.
	if short, long := count(100), count(1000); long > short+12 {
		t.Errorf("%g allocations for 100 bars, %g for 1,000", short, long)
	}
}
