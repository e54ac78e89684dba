package trading_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// TestTwoAssetToy compares orders on a market of two assets with tables worked out by hand. Initial
// cash 1000, fee 1 %, buys of 20 % of the cash and sells of 50 % of the position.
func TestTwoAssetToy(t *testing.T) {
	// Bars 0 to 3: at the open A costs 10, 10, 20, 20 and B costs 5, 5, 4, 8; at the close A costs
	// 10, 12, 20, 10 and B costs 5, 4, 8, 8.
	m := table([][]float64{{10, 5}, {10, 5}, {20, 4}, {20, 8}}, [][]float64{{10, 5}, {12, 4}, {20, 8}, {10, 8}})
	const b, s, h = trading.Buy, trading.Sell, trading.Hold
	type row struct {
		orders                        [2]int64
		cash, posA, posB, fees, value float64
		skipped                       float64
	}
	cases := []struct {
		name   string
		change func(*trading.Config)
		rows   []row
	}{
		{"fair, next open", nil, []row{
			// Both buy: each spends 0.2·1000 = 200 with the fee, amount 200/1.01 = 198.0198…; A
			// 19.80198… shares at 10, B 39.60396… at 5.
			{[2]int64{b, b}, 600, 200 / 10.1, 200 / 5.05, 400 - 400/1.01, 600 + 200/10.1*12 + 200/5.05*4, 0},
			// A sells half at 20: amount 9.90099…·20 = 198.0198…, fee 1.980198…; then B buys 0.2 of
			// the new cash, 0.2·796.0396… = 159.2079…, at 4.
			{[2]int64{s, b}, 0.8 * (600 + 100/10.1*20*0.99), 100 / 10.1, 200/5.05 + 0.2*(600+100/10.1*20*0.99)/1.01/4,
				100/10.1*20*0.01 + 0.2*(600+100/10.1*20*0.99)*(1-1/1.01),
				0.8*(600+100/10.1*20*0.99) + 100/10.1*20 + (200/5.05+0.2*(600+100/10.1*20*0.99)/1.01/4)*8, 0},
		}},
		{"owner, next open", func(c *trading.Config) { c.Execution.CashSplit = trading.Owner }, []row{
			// A spends 200 and a fee of 2 first; then B spends 0.2·798 = 159.6 and 1.596.
			{[2]int64{b, b}, 798 - 159.6 - 1.596, 20, 31.92, 3.596, 636.804 + 20*12 + 31.92*4, 0},
			{[2]int64{h, s}, 636.804 + 15.96*4*0.99, 20, 15.96, 15.96 * 4 * 0.01, 636.804 + 15.96*4*0.99 + 20*20 + 15.96*8, 0},
		}},
		{"fair, next close", func(c *trading.Config) { c.Execution.Fill = trading.NextClose }, []row{
			{[2]int64{b, h}, 800, 200 / 12.12, 0, 200 - 200/1.01, 800 + 200/12.12*12, 0},
			{[2]int64{h, b}, 640, 200 / 12.12, 160 / 8.08, 160 - 160/1.01, 640 + 200/12.12*20 + 160/8.08*8, 0},
		}},
		{"fair, same close", func(c *trading.Config) { c.Execution.Fill = trading.SameClose }, []row{
			{[2]int64{b, h}, 800, 200 / 10.1, 0, 200 - 200/1.01, 800 + 200/10.1*12, 0},
			{[2]int64{s, h}, 800 + 100/10.1*12*0.99, 100 / 10.1, 0, 100 / 10.1 * 12 * 0.01, 800 + 100/10.1*12*0.99 + 100/10.1*20, 0},
		}},
		{"whole shares", func(c *trading.Config) { c.Execution.Lot = 1 }, []row{
			// 198.0198… buys 19 of A at 10 and 39 of B at 5.
			{[2]int64{b, b}, 1000 - 190*1.01 - 195*1.01, 19, 39, 3.85, 1000 - 385*1.01 + 19*12 + 39*4, 0},
			// Half of 19 is 9 shares; half of 39 is 19.
			{[2]int64{s, s}, 1000 - 385*1.01 + 180*0.99 + 76*0.99, 10, 20, 2.56, 1000 - 385*1.01 + 256*0.99 + 10*20 + 20*8, 0},
		}},
		{"all of the cash, three orders that cannot be executed", func(c *trading.Config) { c.BuyPct = 1 }, []row{
			{[2]int64{b, s}, 0, 1000 / 10.1, 0, 1000 - 1000/1.01, 1000 / 10.1 * 12, 1},
			{[2]int64{h, b}, 0, 1000 / 10.1, 0, 0, 1000 / 10.1 * 20, 1},
			{[2]int64{b, b}, 0, 1000 / 10.1, 0, 0, 1000 / 10.1 * 10, 2},
		}},
		{"the owner's split is short of the fee", func(c *trading.Config) { c.BuyPct, c.Execution.CashSplit = 1, trading.Owner }, []row{
			{[2]int64{b, b}, 1000, 0, 0, 0, 1000, 2},
		}},
	}
	compared := 0
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g := start(t, open(t, m, config(func(o *trading.Config) {
				o.InitialCash, o.FeeRate = 1000, 0.01
				if c.change != nil {
					c.change(o)
				}
			})), rng.New(1))
			before := 1000.0
			for i, want := range c.rows {
				g.play(want.orders[:]...)
				for _, v := range []struct {
					name      string
					got, want float64
				}{
					{"cash", g.Cash(), want.cash}, {"position A", g.Positions()[0], want.posA}, {"position B", g.Positions()[1], want.posB},
					{"fees", g.ts.Info[trading.InfoFees], want.fees}, {"value", g.Value(), want.value}, {"info value", g.ts.Info[trading.InfoValue], want.value},
					{"reward", g.ts.Reward, want.value/before - 1}, {"skipped", g.ts.Info[trading.InfoSkipped], want.skipped},
				} {
					compared++
					if !near(v.got, v.want, 1e-9) {
						t.Errorf("step %d: %s is %.12g, expected %.12g", i+1, v.name, v.got, v.want)
					}
				}
				before = want.value
			}
		})
	}
	if compared != 14*8 {
		t.Errorf("%d values were compared", compared)
	}
}
