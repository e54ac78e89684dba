package trading_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// rewards are those with parameters.
var rewards = map[string]func(*trading.Config){
	"excess":              func(c *trading.Config) { c.Reward = trading.Excess },
	"excess over B":       func(c *trading.Config) { c.Reward, c.RewardParams.Benchmark = trading.Excess, "B" },
	"differential Sharpe": func(c *trading.Config) { c.Reward, c.RewardParams.Eta = trading.DifferentialSharpe, 0.1 },
	"drawdown": func(c *trading.Config) {
		c.Reward, c.RewardParams = trading.Drawdown, trading.RewardParams{Penalty: 2, Turnover: 0.01}
	},
	"mean-CVaR": func(c *trading.Config) {
		c.Reward, c.RewardParams = trading.MeanCVaR, trading.RewardParams{Penalty: 0.5, Eta: 0.5, Level: 0.9}
	},
	"turnover": func(c *trading.Config) { c.RewardParams.Turnover = 0.1 },
}

// TestRewardsByHand holds A from the first open on, with half of the cash, without a fee, while it
// goes from 10 to 12, 9, 9 and 15: the value goes from 1000 to 1100, 950, 950 and 1250. B goes from
// 10 to 11 and stays.
func TestRewardsByHand(t *testing.T) {
	open10 := slices.Repeat([][]float64{{10, 10}}, 5)
	closes := [][]float64{{10, 10}, {12, 11}, {9, 11}, {9, 11}, {15, 11}}
	log := math.Log
	want := map[string][4]float64{
		// A's return and B's on average: 15 %, then −12.5 %, 0, and a third.
		"excess":        {log(1.1) - log(1.15), log(0.95/1.1) - log(0.875), 0, log(1250.0/950) - log(1+1.0/3)},
		"excess over B": {log(1.1) - log(1.1), log(0.95 / 1.1), 0, log(1250.0 / 950)},
		"drawdown":      {log(1.1) - 0.01*0.5, log(0.95/1.1) - 2*(1-0.95/1.1), 0, log(1250.0 / 950)},
		"turnover":      {0.1 - 0.1*0.5, 0.95/1.1 - 1, 0, 1250.0/950 - 1},
		// The value at risk begins at 0 and the mean size m at 0.1. A gain moves v down by
		// 0.5·m·0.1, a loss of 3/22 above it up by 0.5·m·0.9, with m after the step: 0.1 and
		// 0.1181818….
		"mean-CVaR": {0.1, -3.0/22 - 0.5*(3.0/22+0.005)/0.1, -0.5 * max(0-(-0.005+0.45*(0.05+1.5/22)), 0) / 0.1, 30.0 / 95},
	}
	// A and B are 0, then 0.01 and 0.001.
	r := -3.0 / 22
	a, b := 0.01, 0.001
	sharpe := func(r float64) float64 {
		x := (b*(r-a) - a*(r*r-b)/2) / math.Pow(b-a*a, 1.5)
		a, b = a+0.1*(r-a), b+0.1*(r*r-b)
		return x
	}
	want["differential Sharpe"] = [4]float64{0, sharpe(r), sharpe(0), sharpe(30.0 / 95)}
	compared := 0
	for name, change := range sorted.All(rewards) {
		g := start(t, open(t, table(open10, closes), config(func(c *trading.Config) {
			c.InitialCash, c.FeeRate, c.BuyPct = 1000, 0, 0.5
			change(c)
		})), rng.New(1))
		for k, x := range want[name] {
			order := int64(trading.Hold)
			if k == 0 {
				order = trading.Buy
			}
			g.play(order, trading.Hold)
			if compared++; !near(g.ts.Reward, x, 1e-12) {
				t.Errorf("%s: reward %d is %.15g, expected %.15g", name, k, g.ts.Reward, x)
			}
		}
	}
	if compared != 4*len(rewards) || len(want) != len(rewards) {
		t.Errorf("%d rewards were compared", compared)
	}
}

// TestValueAtRisk holds that the running estimate of mean_cvar finds the quantile: the penalty is
// due in about as many steps as its level says.
func TestValueAtRisk(t *testing.T) {
	const bars = 6000
	s, price := rng.New(9).Stream(), 100.0
	var prices [][]float64
	for range bars {
		price *= math.Exp(0.01 * s.Normal())
		prices = append(prices, []float64{price})
	}
	g := start(t, open(t, table(prices, prices), config(func(c *trading.Config) {
		c.FeeRate, c.BuyPct, c.Reward = 0, 1, trading.MeanCVaR
		c.Execution.Fill = trading.SameClose
	})), rng.New(1))
	due, n := 0, 0
	for g.ts.Type != envs.Last {
		before := g.Value()
		g.play(trading.Buy)
		if n++; n > 1000 && g.ts.Reward < g.Value()/before-1 {
			due++
		}
	}
	if share := float64(due) / float64(n-1000); math.Abs(share-0.05) > 0.01 {
		t.Errorf("a penalty in %g of the steps, expected 0.05", share)
	}
}

func TestBadRewards(t *testing.T) {
	cases := map[string]func(*trading.Config){
		"reward":                  func(c *trading.Config) { c.Reward = "sharpe" },
		"reward_params.benchmark": func(c *trading.Config) { c.RewardParams.Benchmark = "A" },
		"reward_params.eta":       func(c *trading.Config) { c.Reward, c.RewardParams.Eta = trading.DifferentialSharpe, 1 },
		"reward_params.penalty":   func(c *trading.Config) { c.Reward, c.RewardParams.Penalty = trading.Log, 1 },
		"reward_params.level":     func(c *trading.Config) { c.Reward, c.RewardParams.Level = trading.MeanCVaR, -0.1 },
		"reward_params.turnover":  func(c *trading.Config) { c.RewardParams.Turnover = math.Inf(1) },
		"none of the assets":      func(c *trading.Config) { c.Reward, c.RewardParams.Benchmark = trading.Excess, "SPY" },
		"weights":                 func(c *trading.Config) { c.Weights.MinTrade = 0.1 },
		"actions":                 func(c *trading.Config) { c.Actions = "both" },
		"weights.simplex":         func(c *trading.Config) { c.Actions, c.Weights.Simplex = trading.Weights, "sigmoid" },
	}
	for want, change := range sorted.All(cases) {
		if _, err := trading.NewSource(randomMarket(1, 40, 3, 2), config(change)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said: %v", want, err)
		}
	}
	if len(cases) != 10 {
		t.Errorf("%d cases", len(cases))
	}
}
