package trading_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// hourly gives a market three bars a day.
func hourly(m *trading.Market) *trading.Market {
	m.Dates = slices.Clone(m.Dates)
	for i := range m.Dates {
		m.Dates[i] = day0.AddDate(0, 0, i/3).Add(time.Duration(10+i%3) * time.Hour)
	}
	return m
}

// TestSettlement plays bars of hours by hand: what was bought on a day is not sold on it, and the
// mask says so where nothing else is held.
func TestSettlement(t *testing.T) {
	prices := slices.Repeat([][]float64{{10}}, 9)
	g := start(t, open(t, hourly(table(prices, prices)), config(func(c *trading.Config) {
		c.InitialCash, c.FeeRate, c.BuyPct, c.SellPct, c.Account.Settlement = 1000, 0, 0.5, 1, 1
	})), rng.New(1))
	const b, s, h = trading.Buy, trading.Sell, trading.Hold
	for i, c := range []struct {
		order         int64
		sell          bool // of the mask before
		held, skipped float64
	}{
		{b, true, 50, 0},  // bar 1 of day 0
		{s, false, 50, 1}, // bar 2 of day 0: nothing is settled
		{h, false, 50, 0}, // bar 3, the first of day 1
		{b, true, 75, 0},  // bar 4: 25 more
		{s, true, 25, 0},  // bar 5: the 50 of the day before
		{s, false, 0, 0},  // decided on the last bar of the day, filled on the first of the next
	} {
		if got := g.ts.Mask.Bools()[trading.Sell]; got != c.sell {
			t.Errorf("step %d: selling is %v", i, got)
		}
		g.play(c.order)
		if g.Positions()[0] != c.held || g.ts.Info[trading.InfoSkipped] != c.skipped {
			t.Errorf("step %d: %g shares, %g skipped, expected %g and %g", i, g.Positions()[0], g.ts.Info[trading.InfoSkipped], c.held, c.skipped)
		}
	}
}

// TestNothingIsSoldOnItsDay trades at random in bars of hours: the shares sold on a day are never
// more than were held when it began, a saved episode goes on as it would have, and days differ from
// hours only there.
func TestNothingIsSoldOnItsDay(t *testing.T) {
	const assets, bars = 5, 300
	m := hourly(randomMarket(41, bars, assets, 1))
	c := config(func(c *trading.Config) { c.Account.Settlement, c.SellPct = 1, 1 })
	g, s := start(t, open(t, m, c), rng.New(1)), rng.New(2).Stream()
	begin, sold, sales, day := make([]float64, assets), make([]float64, assets), 0, -1
	for g.ts.Type != envs.Last {
		if g.Bar()%7 == 3 {
			state, err := g.SaveState()
			if err != nil {
				t.Fatal(err)
			}
			mask := slices.Clone(g.ts.Mask.Bools())
			again := start(t, open(t, m, c), rng.New(1))
			if err := again.LoadState(state, again.ts); err != nil {
				t.Fatal(err)
			}
			if g = again; !slices.Equal(mask, g.ts.Mask.Bools()) {
				t.Fatalf("bar %d: the mask %v became %v", g.Bar(), mask, g.ts.Mask.Bools())
			}
		}
		if next := (g.Bar() + 1) / 3; next != day {
			day = next
			copy(begin, g.Positions())
			clear(sold)
		}
		g.play(g.random(s)...)
		for _, f := range g.Fills() {
			if f.Shares < 0 {
				sales++
				if sold[f.Asset] -= f.Shares; sold[f.Asset] > begin[f.Asset]*(1+1e-12) {
					t.Fatalf("bar %d: %g of the %g that were held in the morning are sold", g.Bar(), sold[f.Asset], begin[f.Asset])
				}
			}
		}
	}
	if sales < 100 {
		t.Errorf("%d sales", sales)
	}
	// In days, shares are settled when the next bar comes.
	daily := randomMarket(41, bars, assets, 1)
	a, b := start(t, open(t, daily, c), rng.New(1)), start(t, open(t, daily, config(func(c *trading.Config) { c.SellPct = 1 })), rng.New(1))
	for a.ts.Type != envs.Last {
		orders := a.random(s)
		a.play(orders...)
		b.play(orders...)
		if a.Value() != b.Value() || !slices.Equal(a.ts.Mask.Bools(), b.ts.Mask.Bools()) {
			t.Fatalf("bar %d: settlement changes what days trade", a.Bar())
		}
	}
}

// TestMaskAccount: what is not held cannot be sold, nothing can be bought without cash, and an
// agent that keeps to the mask never gives an order that is impossible; without the key it does.
func TestMaskAccount(t *testing.T) {
	prices := make([][]float64, 300)
	for b, moves := 0, rng.New(5).Stream(); b < len(prices); b++ {
		prices[b] = []float64{10 + moves.Float64(), 20 + moves.Float64(), 30 + moves.Float64()}
	}
	m := table(prices, prices)
	for _, split := range []string{trading.Fair, trading.Owner} {
		skipped, masked := map[string]float64{}, 0
		for _, mask := range []string{"", trading.MaskMarket, trading.MaskAccount} {
			g := start(t, open(t, m, config(func(c *trading.Config) { c.Mask, c.Execution.CashSplit, c.BuyPct = mask, split, 0.9 })), rng.New(1))
			s := rng.New(2).Stream()
			for g.ts.Type != envs.Last {
				can, orders := g.ts.Mask.Bools(), make([]int64, 3)
				for i := range orders {
					for orders[i] = int64(s.IntN(3)); !can[3*i+int(orders[i])]; orders[i] = int64(s.IntN(3)) {
						masked++
					}
					if mask == trading.MaskAccount && g.Positions()[i] == 0 && can[3*i+trading.Sell] || !can[3*i+trading.Hold] {
						t.Fatalf("%s: mask %v, positions %v", split, can, g.Positions())
					}
				}
				g.play(orders...)
				skipped[mask] += g.ts.Info[trading.InfoSkipped]
			}
		}
		// One after another may leave nothing for the last.
		if skipped[""] == 0 || skipped[""] != skipped[trading.MaskMarket] || masked == 0 || split == trading.Fair && skipped[trading.MaskAccount] != 0 || skipped[trading.MaskAccount] > skipped[""]/10 {
			t.Errorf("%s: impossible %v, masked %d", split, skipped, masked)
		}
	}
	bad := config(func(c *trading.Config) { c.Mask, c.Actions = trading.MaskAccount, trading.Weights })
	if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), "mask: account is for orders") {
		t.Errorf("target weights with a mask: %v", err)
	}
}
