package trading_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestDelisting: what is held of an asset that is gone becomes cash once, with the part of its last
// price that the configuration says, and keeps that price where it says nothing; one that comes back is
// bought again. Cash 1000, no fees, half of the cash is spent on A at bar 1, whose last row is bar 2.
func TestDelisting(t *testing.T) {
	for _, fill := range []string{trading.NextOpen, trading.NextClose, trading.SameClose} {
		for _, prices := range []string{trading.Adjusted, trading.Raw} {
			for _, c := range []struct {
				rule         *trading.Delisting
				cash, shares float64
			}{{nil, 500, 50}, {&trading.Delisting{Recovery: 0.7}, 780, 0}, {&trading.Delisting{Recovery: 1}, 900, 0}, {&trading.Delisting{}, 500, 0}} {
				rows := [][]float64{{10}, {10}, {8}, {8}, {8}, {8}, {4}, {4}}
				m := table(rows, rows)
				m.Gone = []uint8{0, 0, 0, 0, 1, 1, 0, 0}
				m.Tradable[3], m.Tradable[4], m.Tradable[5] = 0, 0, 0
				if prices == trading.Raw {
					m.Raw = &trading.RawPrices{Open: m.Open, Close: m.Close, Factor: []float64{1, 1, 1, 1, 1, 1, 1, 1}}
				}
				g := start(t, open(t, m, config(func(k *trading.Config) {
					k.InitialCash, k.FeeRate, k.BuyPct, k.Execution.Fill, k.Account.Prices, k.Account.Delisting = 1000, 0, 0.5, fill, prices, c.rule
				})), rng.New(1))
				for bar := 1; bar < m.Len(); bar++ {
					order := int64(trading.Hold)
					if bar == 1 || bar == 7 && fill != trading.SameClose {
						order = trading.Buy
					}
					g.play(order)
					cash, shares := 500.0, 50.0
					if bar >= 4 {
						cash, shares = c.cash, c.shares
					}
					if bar == 7 && fill != trading.SameClose {
						if c.rule == nil {
							continue // Whoever kept it is bought more of.
						}
						shares = cash / 2 / 4
						cash /= 2
					}
					if !near(g.Cash(), cash, 1e-9) || !near(g.Positions()[0], shares, 1e-9) || !near(g.Value(), cash+shares*m.Close[bar], 1e-9) {
						t.Errorf("%s, %s, %+v, bar %d: %g in cash and %g shares worth %g, expected %g and %g", fill, prices, c.rule, bar, g.Cash(), g.Positions()[0], g.Value(), cash, shares)
					}
				}
			}
		}
	}

	for text, want := range sorted.All(map[string]float64{"account: {delisting: {}}": trading.DefaultRecovery, "account: {delisting: {recovery: 0}}": 0, "account: {delisting: {recovery: 1.5}}": -1}) {
		doc, err := configs.Parse("env.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		c := trading.Defaults()
		err = doc.Decode(&c)
		if (err != nil) != (want < 0) || err == nil && c.Account.Delisting.Recovery != want {
			t.Errorf("%s: %+v, error %v", text, c.Account.Delisting, err)
		}
	}
}
