package synthetic_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/synthetic"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// cycles are the columns of a market over whole cycles.
func cycles(days, bars int) synthetic.Seen {
	return synthetic.Seen{Column: func(name string) []float64 {
		values := make([]float64, bars)
		for i := range values {
			left := days - i%days
			if values[i] = float64(left) / float64(days); name == synthetic.Direction {
				values[i] = float64(1 - 2*(i/days%2))
			}
		}
		return values
	}}
}

// utility is what a sale is worth: what it costs, and the expected logarithm of binary moves of σ
// over the days on which x is held, log(1 − x²σ²)/2, times twice the aversion.
func utility(shares []float64, aversion, eta, noise float64) float64 {
	sum, before := 0.0, 1.0
	for _, x := range shares {
		sum += -eta*(before-x)*(before-x) + aversion*math.Log(1-x*x*noise*noise)
		before = x
	}
	return sum
}

// TestAlmgrenChriss compares the shares with the paper's difference equation, and what they are
// worth with others that are near.
func TestAlmgrenChriss(t *testing.T) {
	m := synthetic.DefaultLiquidation()
	m.Days, m.Noise = 8, 0.02
	compared := 0
	for _, c := range []struct{ aversion, eta float64 }{{0, 1e-3}, {0.5, 1e-3}, {0.5, 1e-4}, {5, 1e-3}} {
		shares, err := m.Shares(c.aversion, c.eta, cycles(m.Days, 2*m.Days))
		if err != nil {
			t.Fatal(err)
		}
		bought, sold := shares[:m.Days], shares[m.Days:]
		best, stream := utility(sold, c.aversion, c.eta, m.Noise), rng.New(1).Stream()
		for k, x := range sold {
			// The paper's difference equation: x(k−1) − 2x(k) + x(k+1) = (λσ²/η)·x(k).
			before, after := 1.0, 0.0
			if k > 0 {
				before = sold[k-1]
			}
			if k < len(sold)-1 {
				after = sold[k+1]
				if d := before - 2*x + after; math.Abs(d-c.aversion*m.Noise*m.Noise/c.eta*x) > 1e-12 {
					t.Errorf("%+v: after %d opens %v is left, and the second difference is %v", c, k+1, x, d)
				}
			}
			if bought[m.Days-1-k] != before {
				t.Errorf("%+v: %v is bought where %v was left", c, bought[m.Days-1-k], before)
			}
		}
		if sold[m.Days-1] != 0 {
			t.Errorf("%+v: %v is left in the end", c, sold[m.Days-1])
		}
		for range 200 {
			near := slices.Clone(sold)
			for k := range near[:m.Days-1] {
				near[k] = min(max(near[k]+0.05*stream.Normal(), 0), 1)
			}
			if utility(near, c.aversion, c.eta, m.Noise) > best {
				t.Errorf("%+v: %v is better than %v", c, near, sold)
			}
			compared++
		}
	}
	if compared != 800 {
		t.Errorf("%d schedules compared", compared)
	}
	for _, column := range []string{synthetic.Direction, synthetic.Remaining} {
		one := func(name string) []float64 {
			if name == column {
				return nil
			}
			return []float64{1}
		}
		if _, err := m.Shares(0, 1, synthetic.Seen{Column: one}); err == nil || !strings.Contains(err.Error(), column) {
			t.Errorf("without %s: %v", column, err)
		}
	}
}

// TestLiquidationInTheEnvironment lets the best shares trade: they earn what was computed, and no
// other way does better, neither without noise, where that is exact, nor with risk.
func TestLiquidationInTheEnvironment(t *testing.T) {
	const cash, coefficient = 1000.0, 0.02
	for name, c := range sorted.All(map[string]struct {
		noise    float64
		reward   string
		aversion float64
	}{"certain": {0, "simple", 0}, "risky": {0.01, "log", 0.5}}) {
		t.Run(name, func(t *testing.T) {
			m := synthetic.DefaultLiquidation()
			m.Move, m.Noise, m.Turnover = 0.02, c.noise, cash
			f := open(t, fmt.Sprintf(`
window: 2
fee_rate: 0
initial_cash: %g
actions: weights
reward: %s
costs: {slippage: {impact: linear, coefficient: %g}}
episode: {kind: random, length: %d}
data:
  synthetic: {kind: liquidation, bars: 8000, move: %g, noise: %g, turnover: %g}
  features: {indicators: {}, extra: [direction, remaining], prices: relative, volume: log}
  split: {train: [2000-01-03, 2030-12-31]}
`, cash, c.reward, coefficient, 2*m.Days, m.Move, c.noise, m.Turnover))
			eta := coefficient * cash / m.Turnover
			market := f.(trading.Opened).Data().Market
			best, err := m.Shares(c.aversion, eta, synthetic.Seen{Column: func(name string) []float64 {
				return first(market.X, len(market.Features), slices.Index(market.Features, name))
			}})
			if err != nil {
				t.Fatal(err)
			}
			// The bars before a rise and a fall, as the columns say.
			rise := first(market.X, len(market.Features), slices.Index(market.Features, synthetic.Direction))
			policies := map[string]func(bar int) float64{
				"optimum": func(bar int) float64 { return best[bar] },
				"at once": func(bar int) float64 { return max(rise[bar], 0) },
				"half": func(bar int) float64 {
					if rise[bar] > 0 {
						return (1 + best[bar]) / 2
					}
					return best[bar] / 2
				},
				"never": func(int) float64 { return 0 },
				"hold":  func(int) float64 { return 1 },
			}
			made, err := f.New(envs.Train, 0)
			if err != nil {
				t.Fatal(err)
			}
			e := made.(*trading.Env)
			defer e.Close()
			ts := envs.NewTimeStep(e.Spec())
			earned, episodes := map[string]float64{}, 0
			var sums []float64
			for episode := range 600 {
				for name, share := range sorted.All(policies) {
					if err := e.Reset(rng.New(uint64(episode)), ts); err != nil {
						t.Fatal(err)
					}
					// A cycle begins after a fall.
					if rise[e.Bar()] < 0 || rise[e.Bar()-1] > 0 {
						continue
					}
					sum := 0.0
					for ts.Type != envs.Last {
						w := share(e.Bar())
						if err := e.Rebalance([]float64{w, 1 - w}, ts); err != nil {
							t.Fatal(err)
						}
						sum += ts.Reward
					}
					if earned[name] += sum; name == "optimum" {
						sums = append(sums, sum)
						episodes++
					}
				}
			}
			mean, square := 0.0, 0.0
			for _, s := range sums {
				mean += s / float64(episodes)
				square += s * s / float64(episodes)
			}
			se := math.Sqrt(max(square-mean*mean, 0) / float64(episodes))
			cycle, err := m.Shares(c.aversion, eta, cycles(m.Days, 2*m.Days))
			if err != nil {
				t.Fatal(err)
			}
			// The rise, and twice what a sale costs, of which a purchase is the mirror image.
			gain := m.Move + 2*utility(cycle[m.Days:], c.aversion, eta, m.Noise)
			if c.reward == "log" {
				gain += math.Log1p(m.Move) - m.Move
			}
			t.Logf("%d cycles: %.6f ± %.6f of %.6f; %v", episodes, mean, se, gain, earned)
			if episodes < 40 || math.Abs(mean-gain) > 3*se+gain/50 {
				t.Errorf("%d cycles earn %v ± %v, expected %v", episodes, mean, se, gain)
			}
			for name, sum := range sorted.All(earned) {
				if name != "optimum" && sum >= earned["optimum"] {
					t.Errorf("%s earns %v, the optimum %v", name, sum, earned["optimum"])
				}
			}
		})
	}
}
