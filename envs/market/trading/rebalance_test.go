package trading_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// weighing returns a configuration of weights.
func weighing(change func(*trading.Config)) trading.Config {
	return config(func(c *trading.Config) {
		if c.Actions = trading.Weights; change != nil {
			change(c)
		}
	})
}

// rebalancings are the ways of trading towards weights that every property holds for.
var rebalancings = map[string]func(*trading.Config){
	"plain":          nil,
	"next close":     func(c *trading.Config) { c.Execution.Fill = trading.NextClose },
	"same close":     func(c *trading.Config) { c.Execution.Fill = trading.SameClose },
	"lots":           func(c *trading.Config) { c.Execution.Lot, c.Execution.CashSplit = 3, trading.Owner },
	"costs":          executions["costs"],
	"capped":         func(c *trading.Config) { c.Weights.MaxTurnover, c.Weights.MinTrade = 0.3, 0.01 },
	"limits on risk": executions["limits on risk"],
	"limits in lots": func(c *trading.Config) {
		executions["owner costs in lots"](c)
		c.Risk = limits
	},
	"all": func(c *trading.Config) {
		executions["owner costs in lots"](c)
		c.Weights, c.Execution.Fill = trading.WeightRules{MaxTurnover: 0.5, MinTrade: 0.005}, trading.SameClose
	},
}

// target writes random weights: some are 0, and some days everything is to be in cash, or none.
func target(s *rng.Stream, weights []float64) {
	sum := 0.0
	for i := range weights {
		if weights[i] = 0; s.Bernoulli(0.7) {
			weights[i] = s.Float64() * s.Float64()
		}
		sum += weights[i]
	}
	if sum == 0 {
		weights[len(weights)-1], sum = 1, 1
	}
	for i := range weights {
		weights[i] /= sum
	}
}

// oneSided takes single sides from assets that can be traded.
func oneSided(m *trading.Market, seed uint64) *trading.Market {
	s := rng.New(seed).Split("sides").Stream()
	for i, x := range m.Tradable {
		if x == trading.Both && s.Bernoulli(0.15) {
			m.Tradable[i] = []trading.Sides{trading.CanBuy, trading.CanSell}[s.IntN(2)]
		}
	}
	return m
}

// TestRebalanceConserves takes many random steps. Trades and fees explain the change of the value;
// cash and positions are never negative; nothing is done that a side, the volume, settlement or the
// cap of turnover forbids; and where nothing binds the target is met.
func TestRebalanceConserves(t *testing.T) {
	const assets, bars = 6, 500
	m := oneSided(randomMarket(7, bars, assets, 1), 1)
	steps, fills, met, capped := 0, 0, 0, 0
	for name, change := range sorted.All(rebalancings) {
		c := weighing(change)
		g := start(t, open(t, m, c), rng.New(1))
		s := rng.New(3).Split(name).Stream()
		weights, before, bought := make([]float64, assets+1), make([]float64, assets), make([]float64, assets)
		for range 20_000 {
			if g.ts.Type == envs.Last {
				if err := g.Reset(rng.New(1), g.ts); err != nil {
					t.Fatal(err)
				}
			}
			copy(before, g.Positions())
			cash, value, bar := g.Cash(), g.Value(), g.Bar()
			target(s, weights)
			if err := g.Rebalance(weights, g.ts); err != nil {
				t.Fatal(err)
			}
			steps++
			at, prices, sides := m.Fill(c.Execution.Fill, bar)
			decided, filled := m.Tradable[bar*assets:], sides[at*assets:]
			expected, spent, traded, whole, buying := value, cash, 0.0, cash, false
			for i, q := range before {
				if q != 0 {
					expected += q * (m.Close[(bar+1)*assets+i] - m.Close[bar*assets+i])
					whole += q * prices[at*assets+i]
				}
				bought[i] = 0
			}
			for _, f := range g.Fills() {
				side := trading.CanBuy
				if f.Shares < 0 {
					side = trading.CanSell
				}
				ordered := decided[f.Asset]
				if c.Risk.On() && side == trading.CanSell {
					ordered = trading.Both // A limit may demand the sale.
				}
				if ordered&filled[f.Asset]&side == 0 || f.Bar != at || f.Fee < 0 || f.Shares == 0 || buying && f.Shares < 0 {
					t.Fatalf("%s: bar %d: the fill %+v cannot be", name, bar, f)
				}
				if p := c.Costs.Participation; p > 0 && math.Abs(f.Shares) > p*m.Volume[f.Bar*assets+f.Asset] {
					t.Fatalf("%s: bar %d: the fill %+v is more than the volume allows", name, bar, f)
				}
				buying = f.Shares > 0
				expected += f.Shares*(m.Close[(bar+1)*assets+f.Asset]-f.Price) - f.Fee
				spent -= f.Shares*f.Price + f.Fee
				traded += math.Abs(f.Shares) * f.Price
				bought[f.Asset] += f.Shares
				fills++
			}
			for i, q := range g.Positions() {
				if q < 0 || !near(q, before[i]+bought[i], 1e-9) {
					t.Fatalf("%s: bar %d: position %d is %g, its trades say %g", name, bar, i, q, before[i]+bought[i])
				}
				if lot := c.Execution.Lot; lot > 0 && q > 0 && !near(math.Round(q/lot)*lot, q, 1e-9) {
					t.Fatalf("%s: bar %d: a position of %g is no whole number of lots", name, bar, q)
				}
			}
			if scale := 1e-9 * max(1, value/1e4); g.Cash() < 0 || !near(g.Cash(), spent, scale) || !near(g.Value(), expected, scale) {
				t.Fatalf("%s: bar %d: cash %.12f and value %.12f, expected %.12f and %.12f", name, bar, g.Cash(), g.Value(), spent, expected)
			}
			if most := c.Weights.MaxTurnover; most > 0 {
				// Selling what is worth less than Dust, and slippage, come on top.
				if traded > most*whole*1.2 || c.Costs.Slippage == (trading.Slippage{}) && traded > most*whole+1e-4 {
					t.Fatalf("%s: bar %d: %g of %g is traded", name, bar, traded, whole)
				}
				capped++
				continue
			}
			free, lots := c.Costs.Participation == 0 && !c.Risk.On(), 0.0
			for i := range assets {
				free = free && decided[i]&filled[i] == trading.Both
				lots += c.Execution.Lot * prices[at*assets+i]
			}
			if !free {
				continue
			}
			met++
			for i, w := range weights[:assets] {
				price := prices[at*assets+i]
				if off := math.Abs(g.Positions()[i]*price - w*whole); off > lots+2*g.ts.Info[trading.InfoFees]+1e-6 {
					// Sales that are rounded down leave others without cash.
					t.Fatalf("%s: bar %d: %g of asset %d is off its target by %g", name, bar, w*whole, i, off)
				}
			}
		}
	}
	if steps != 180_000 || fills < 300_000 || met < 10_000 || capped != 40_000 {
		t.Errorf("%d steps with %d fills, %d targets that were met, %d steps with a cap", steps, fills, met, capped)
	}
}

// TestRebalanceKnowsNoOrder permutes the assets: all fills are permuted with them, to the bit.
func TestRebalanceKnowsNoOrder(t *testing.T) {
	const assets, bars = 6, 300
	m := oneSided(randomMarket(8, bars, assets, 2), 2)
	compared := 0
	for name, change := range sorted.All(rebalancings) {
		for seed := range uint64(10) {
			s := rng.New(seed).Split(name).Stream()
			order := make([]int, assets)
			s.Perm(order)
			a := start(t, open(t, m, weighing(change)), rng.New(1))
			b := start(t, open(t, permuted(m, order), weighing(change)), rng.New(1))
			weights, moved := make([]float64, assets+1), make([]float64, assets+1)
			for a.ts.Type != envs.Last {
				target(s, weights)
				moved[assets] = weights[assets]
				for to, from := range order {
					moved[to] = weights[from]
				}
				if err := errors.Join(a.Rebalance(weights, a.ts), b.Rebalance(moved, b.ts)); err != nil {
					t.Fatal(err)
				}
				if a.Cash() != b.Cash() || len(a.Fills()) != len(b.Fills()) {
					t.Fatalf("%s, permutation %d, bar %d: cash %v with %d fills and %v with %d", name, seed, a.Bar(), a.Cash(), len(a.Fills()), b.Cash(), len(b.Fills()))
				}
				for _, f := range b.Fills() {
					f.Asset = order[f.Asset]
					if compared++; !slices.Contains(a.Fills(), f) {
						t.Fatalf("%s, permutation %d, bar %d: the fill %+v, expected one of %+v", name, seed, a.Bar(), f, a.Fills())
					}
				}
			}
		}
	}
	if compared < 50_000 {
		t.Errorf("%d fills were compared", compared)
	}
}

// TestRebalanceByHand follows a target from all cash, a change that buys and sells, and what
// happens when an asset cannot be traded, or to one side only. A is at 10 and B at 20 throughout,
// C at 50; the fee is 1 %.
func TestRebalanceByHand(t *testing.T) {
	prices := slices.Repeat([][]float64{{10, 20, 50}}, 4)
	for _, c := range []struct {
		name    string
		change  func(*trading.Config)
		sides   [3]trading.Sides // at the second decision
		targets [2][4]float64
		want    [2][4]float64 // positions and cash
	}{
		{"bought out of the cash that is left over", nil, [3]trading.Sides{3, 3, 3}, [2][4]float64{{0.3, 0.4, 0, 0.3}, {0.5, 0.2, 0, 0.3}}, [2][4]float64{
			{30, 20, 0, 293}, // 700 are bought for a fee of 7.
			// 993 in all: A to 496.5, for 196.5; B to 198.6, for −201.4; fees of 1.965 and 2.014.
			{49.65, 9.93, 0, 293 + 201.4 - 2.014 - 196.5 - 1.965},
		}},
		{"scaled to the cash", nil, [3]trading.Sides{3, 3, 3}, [2][4]float64{{0.5, 0.5, 0, 0}, {0, 0, 1, 0}}, [2][4]float64{
			{50 / 1.01, 25 / 1.01, 0, 0},
			{0, 0, 1000 / 1.01 * 0.99 / 1.01 / 50, 0},
		}},
		{"one that cannot be traded keeps its position", nil, [3]trading.Sides{0, 3, 3}, [2][4]float64{{0.3, 0.4, 0, 0.3}, {0, 0.25, 0.25, 0.5}}, [2][4]float64{
			{30, 20, 0, 293},
			// 693 are free: a quarter is 173.25. B gives 226.75.
			{30, 173.25 / 20, 173.25 / 50, 293 + 226.75*0.99 - 173.25*1.01},
		}},
		{"one that cannot be sold", nil, [3]trading.Sides{trading.CanBuy, 3, 3}, [2][4]float64{{0.3, 0.4, 0, 0.3}, {0, 0.25, 0.25, 0.5}}, [2][4]float64{
			{30, 20, 0, 293}, {30, 173.25 / 20, 173.25 / 50, 293 + 226.75*0.99 - 173.25*1.01},
		}},
		{"all weight is on what cannot be bought", nil, [3]trading.Sides{3, 3, trading.CanSell}, [2][4]float64{{0.3, 0.4, 0, 0.3}, {0, 0, 1, 0}}, [2][4]float64{
			{30, 20, 0, 293}, {0, 0, 0, 293 + 700*0.99},
		}},
		{"half of the way, for the turnover", func(c *trading.Config) { c.Weights.MaxTurnover = 0.7 }, [3]trading.Sides{3, 3, 3}, [2][4]float64{{0.6, 0.8, 0, 0}, {0, 0, 0, 1}}, [2][4]float64{
			// The targets are no weights; see below.
			{30, 20, 0, 293}, {30 - 30*0.7*993/700, 20 - 20*0.7*993/700, 0, 293 + 0.7*993*0.99},
		}},
		{"too little to trade", func(c *trading.Config) { c.Weights.MinTrade = 0.2 }, [3]trading.Sides{3, 3, 3}, [2][4]float64{{0.3, 0.4, 0.1, 0.2}, {0.4, 0.6, 0, 0}}, [2][4]float64{
			{30, 20, 0, 293},
			// B, from 400 to 595.8, is 195.8, less than 198.6; so is A.
			{30, 20, 0, 293},
		}},
		{"whole lots of 4", func(c *trading.Config) { c.Execution.Lot = 4 }, [3]trading.Sides{3, 3, 3}, [2][4]float64{{0.3, 0.4, 0, 0.3}, {0, 0.3, 0, 0.7}}, [2][4]float64{
			// 30 shares are 28; 400 are 20. 680 and 6.8 are spent.
			{28, 20, 0, 313.2},
			// 993.2·0.3 = 297.96 leaves 14.898 shares: 5.1 are sold as 4.
			{0, 16, 0, 313.2 + 360*0.99},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := table(prices, prices)
			copy(m.Tradable[3:], c.sides[:])
			copy(m.Tradable[6:], c.sides[:])
			g := start(t, open(t, m, weighing(func(o *trading.Config) {
				o.InitialCash, o.FeeRate = 1000, 0.01
				if c.change != nil {
					c.change(o)
				}
			})), rng.New(1))
			if c.sides != [3]trading.Sides{3, 3, 3} {
				// The first target is filled before.
				m.AtOpen = slices.Repeat([]trading.Sides{trading.Both}, len(m.Tradable))
			}
			for k, w := range c.targets {
				if w[0]+w[1]+w[2]+w[3] > 1.01 {
					w = [4]float64{0.3, 0.4, 0, 0.3}
				}
				if err := g.Rebalance(w[:], g.ts); err != nil {
					t.Fatal(err)
				}
				for i, want := range c.want[k] {
					if got := append(slices.Clone(g.Positions()), g.Cash())[i]; !near(got, want, 1e-9) {
						t.Errorf("step %d: %d is %.12g, expected %.12g", k+1, i, got, want)
					}
				}
			}
		})
	}
}

// TestBadWeights holds that errors name the asset and change nothing.
func TestBadWeights(t *testing.T) {
	m := randomMarket(1, 40, 2, 1)
	g := start(t, open(t, m, weighing(nil)), rng.New(1))
	cases := map[string][]float64{
		"the weight of A is NaN":            {math.NaN(), 0.5, 0.5},
		"the weight of B is -0.1":           {0.6, -0.1, 0.5},
		"the weight of cash is +Inf":        {0.5, 0.5, math.Inf(1)},
		"sum to 0.9, expected 1":            {0.3, 0.3, 0.3},
		"2 weights, expected one for each ": {0.5, 0.5},
	}
	for want, w := range sorted.All(cases) {
		if err := g.Rebalance(w, g.ts); err == nil || !strings.Contains(err.Error(), want) || g.Bar() != 0 {
			t.Errorf("%q is not said: %v", want, err)
		}
	}
	if len(cases) != 5 {
		t.Errorf("%d cases", len(cases))
	}
	if err := start(t, open(t, m, config(nil)), rng.New(1)).Rebalance([]float64{0, 0, 1}, g.ts); err == nil || !strings.Contains(err.Error(), "takes orders") {
		t.Errorf("an environment of orders: %v", err)
	}
}

// TestSimplex compares projections with the conditions of Karush, Kuhn and Tucker, and both
// transforms with permutations of the action, to the bit, and with an action made of the weights.
func TestSimplex(t *testing.T) {
	const n = 7
	s := rng.New(4).Stream()
	rules := []trading.WeightRules{{}, {Simplex: trading.Softmax}, {Simplex: trading.Projection}}
	action, moved, back := make([]float32, n), make([]float32, n), make([]float32, n)
	weights, other, scratch, order := make([]float64, n), make([]float64, n), make([]float64, n), make([]int, n)
	compared, zeros := 0, 0
	for k := range 3000 {
		r, single := rules[k%3], make([]float32, n)
		for i := range action {
			action[i] = float32(2*s.Float64() - 1)
			if r.Simplex != trading.Projection {
				action[i] *= 5
			}
		}
		r.Of(weights, action, scratch)
		sum := 0.0
		theta := math.NaN()
		for i, w := range weights {
			if sum += w; w == 0 {
				zeros++
			} else if r.Simplex == trading.Projection {
				if math.IsNaN(theta) {
					theta = float64(action[i]) - w
				}
				if !near(float64(action[i])-w, theta, 1e-12) {
					t.Fatalf("%v of %v: the shifts %g and %g differ", weights, action, float64(action[i])-w, theta)
				}
			}
			single[i] = float32(w)
		}
		for i, w := range weights {
			if w < 0 || w == 0 && float64(action[i]) > theta+1e-12 {
				t.Fatalf("%v of %v: element %d is above the shift %g", weights, action, i, theta)
			}
		}
		if !near(sum, 1, 1e-12) {
			t.Fatalf("%+v: %v of %v sum to %g", r, weights, action, sum)
		}
		s.Perm(order)
		for to, from := range order {
			moved[to] = action[from]
		}
		r.Of(other, moved, scratch)
		for to, from := range order {
			if compared++; other[to] != weights[from] {
				t.Fatalf("%+v: permuted, %v is %v", r, weights[from], other[to])
			}
		}
		r.Action(back, single)
		r.Of(other, back, scratch)
		for i := range other {
			if !near(other[i], weights[i], 1e-6) {
				t.Fatalf("%+v: the action %v of %v means %v", r, back, weights, other)
			}
		}
	}
	if compared != 3000*n || zeros < 1000 {
		t.Errorf("%d weights were compared, %d are 0", compared, zeros)
	}
}

// TestRebalancingAllocatesNothing steps by actions, with all costs.
func TestRebalancingAllocatesNothing(t *testing.T) {
	for name, change := range sorted.All(rebalancings) {
		g := start(t, open(t, randomMarket(1, 400, 5, 2), weighing(change)), rng.New(1))
		actions := scores(16, 6)
		n := 0
		if allocs := testing.AllocsPerRun(300, func() {
			if err := g.Step(actions[n%len(actions)], g.ts); err != nil {
				t.Fatal(err)
			}
			n++
		}); allocs != 0 {
			t.Errorf("%s: %g allocations in a step", name, allocs)
		}
	}
}

func ExampleCheckWeights() {
	fmt.Println(trading.CheckWeights([]string{"IBM", "MSFT"}, []float64{0.5, math.NaN(), 0.5}))
	// Output: the weight of MSFT is NaN, expected a number that is not negative
}
