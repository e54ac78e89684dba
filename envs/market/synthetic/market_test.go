package synthetic_test

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/synthetic"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/feed"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// parse reads a recipe from a document.
func parse(t *testing.T, text string) (synthetic.Market, error) {
	t.Helper()
	doc, err := configs.Parse("market.yaml", []byte("market: "+text))
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Market configs.Kinded `yaml:"market"`
	}
	if err := doc.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return synthetic.New(c.Market)
}

func generate(t *testing.T, text string) *bars.Data {
	t.Helper()
	m, err := parse(t, text)
	if err != nil {
		t.Fatal(err)
	}
	return m.Generate()
}

// TestDigests holds the bits of markets fixed.
func TestDigests(t *testing.T) {
	for text, want := range sorted.All(map[string]string{
		"{kind: leading_indicator}":                               "c503b3f996a2ec28",
		"{kind: leading_indicator, seed: 2, assets: 2, bars: 50}": "425f072efb03f0fa",
		"{kind: leading_volume}":                                  "f0d9a729f67d07c9",
		"{kind: limit_trap}":                                      "93055e83564b38a7",
		"{kind: liquidation, move: 0.02, noise: 0.01}":            "ac26a4455084c651",
		"{kind: pairs}":                                           "b15b34f7e04c6f74",
		"{kind: momentum, assets: 2}":                             "15e1415c800d9dd0",
		"{kind: regimes, seed: 3}":                                "ef4d0b5ca7209146",
		"{kind: noise}":                                           "e12067666673755e",
		"{kind: noise, seed: 7, volatility: 0.02}":                "bb6e7b69ee146226",
	}) {
		a, b := generate(t, text), generate(t, text)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: two markets of one recipe differ", text)
		}
		if got := a.Files[0].SHA256[:16]; got != want {
			t.Errorf("%s: digest %s, expected %s", text, got, want)
		}
	}
}

// TestSignalTellsTheNextMove counts how often it does, and that it says nothing of the move of its
// own day.
func TestSignalTellsTheNextMove(t *testing.T) {
	d := generate(t, "{kind: leading_indicator, bars: 40000, assets: 2, accuracy: 0.8, move: 0.001, start: 1980-01-01}")
	if !slices.Equal(d.Extra, []string{"signal"}) || len(d.Series) != 2 {
		t.Fatalf("columns %v, %d series", d.Extra, len(d.Series))
	}
	for _, s := range d.Series {
		next, same, up := 0, 0, 0
		for i, r := range s.Records[:len(s.Records)-1] {
			after := s.Records[i+1]
			if after.Open != r.Close {
				t.Fatalf("day %d opens at %v after %v", i+1, after.Open, r.Close)
			}
			if d := r.Time.Weekday(); d == time.Saturday || d == time.Sunday || !after.Time.After(r.Time) {
				t.Fatalf("day %d is %v", i, r.Time)
			}
			if (r.Extra[0] > 0) == (after.Close > after.Open) {
				next++
			}
			if (r.Extra[0] > 0) == (r.Close > r.Open) {
				same++
			}
			if r.Extra[0] > 0 {
				up++
			}
			if move := math.Abs(r.Close/r.Open - 1); math.Abs(move-0.001) > 1e-12 || r.High < max(r.Open, r.Close) || r.Low > min(r.Open, r.Close) {
				t.Fatalf("day %d moves by %v within %v and %v", i, move, r.Low, r.High)
			}
		}
		n := float64(len(s.Records) - 1)
		// Four standard errors.
		if limit := 4 * 0.5 / math.Sqrt(n); math.Abs(float64(next)/n-0.8) > limit || math.Abs(float64(same)/n-0.5) > limit || math.Abs(float64(up)/n-0.5) > limit {
			t.Errorf("%s: the signal is right about the next day in %v, about its own in %v, and up in %v of all days", s.Symbol, float64(next)/n, float64(same)/n, float64(up)/n)
		}
	}
}

// TestNoiseIsAMartingale compares the mean of returns with 0, overnight and by day, alone and
// weighted with the return before.
func TestNoiseIsAMartingale(t *testing.T) {
	d := generate(t, "{kind: noise, bars: 40000, assets: 3, volatility: 0.002, start: 1980-01-01}")
	checked := 0
	for _, s := range d.Series {
		var night, day, after, square float64
		n := float64(len(s.Records) - 1)
		for i, r := range s.Records[1:] {
			before := s.Records[i]
			a, b := r.Open/before.Close-1, r.Close/r.Open-1
			night, day, after = night+a/n, day+b/n, after+b*math.Copysign(1, before.Close-before.Open)/n
			whole := r.Close/before.Close - 1
			square += whole * whole / n
		}
		for name, v := range sorted.All(map[string]float64{"overnight": night, "by day": day, "after a rise or fall": after}) {
			if math.Abs(v) > 4*0.002/math.Sqrt(n) {
				t.Errorf("%s: mean return %s %v", s.Symbol, name, v)
			}
			checked++
		}
		if v := math.Sqrt(square); math.Abs(v/0.002-1) > 0.02 {
			t.Errorf("%s: volatility %v", s.Symbol, v)
		}
	}
	if checked != 9 {
		t.Errorf("%d means checked", checked)
	}
}

// TestBadRecipes are refused where they stand in the document.
func TestBadRecipes(t *testing.T) {
	for text, want := range sorted.All(map[string]string{
		"{kind: trend}":                            `unknown kind "trend"`,
		"{kind: noise, accuracy: 1}":               "accuracy",
		"{kind: noise, volatility: 0}":             "market.volatility",
		"{kind: leading_indicator, accuracy: 0.4}": "market.accuracy",
		"{kind: leading_volume, accuracy: 1.4}":    "market.accuracy",
		"{kind: momentum, change: 0}":              "market.change",
		"{kind: regimes, move: 1}":                 "market.move",
		"{kind: liquidation, turnover: 0}":         "market.turnover",
		"{kind: liquidation, days: 0}":             "market.days",
		"{kind: pairs, levels: 0}":                 "market.levels",
		"{kind: pairs, rest: 1}":                   "market.rest",
		"{kind: limit_trap, rise: 0.1}":            "market.rise",
		"{kind: limit_trap, locked: 3}":            "market.locked",
		"{kind: limit_trap, hazard: 0.2}":          "market.hazard",
		"{kind: leading_indicator, bars: 1}":       "market.bars",
		"{kind: noise, bars: 10000000, assets: 9}": "more than",
	}) {
		if _, err := parse(t, text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "market.yaml:1") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

const document = `
window: 5
initial_cash: 1.0e+9
fee_rate: 0.0005
data:
  synthetic: %s
  features: {indicators: {rsi: [14]}, %s prices: relative, volume: log}
  split: {train: [2000-01-03, 2013-12-31], test: [2014-01-01, 2016-12-31]}
`

// TestOptimumInTheEnvironment lets the best policy of each market trade it, prepared. The
// environment pays exactly what the optimum counts with, the mean reward is the gain that was
// computed, and no simpler policy does better.
func TestOptimumInTheEnvironment(t *testing.T) {
	longtest.Slow(t)
	if [3]int{synthetic.Buy, synthetic.Sell, synthetic.Hold} != [3]int{trading.Buy, trading.Sell, trading.Hold} {
		t.Fatal("actions are numbered differently")
	}
	solved := 0
	for _, k := range synthetic.Kinds() {
		recipe, extra := fmt.Sprintf("{kind: %s, bars: 4400}", k.Name), ""
		m, err := parse(t, recipe)
		if err != nil {
			t.Fatal(err)
		}
		known, ok := m.(synthetic.Known)
		if !ok {
			continue
		}
		switch m.(type) {
		case synthetic.LeadingIndicator:
			extra = "extra: [signal],"
		case synthetic.Pairs:
			extra = "extra: [spread],"
		}
		t.Run(k.Name, func(t *testing.T) { inEnvironment(t, known, fmt.Sprintf(document, recipe, extra)) })
		solved++
	}
	if solved != 6 {
		t.Errorf("%d markets", solved)
	}
}

// batches is a mean, and its standard error by the means of parts that are longer than what is
// earned in one is remembered in the next.
func batches(x []float64) (mean, se float64) {
	const length = 250
	n, square := float64(len(x)/length), 0.0
	for part := range slices.Chunk(x[:len(x)/length*length], length) {
		m := 0.0
		for _, v := range part {
			m += v / length
		}
		mean, square = mean+m/n, square+m*m/n
	}
	return mean, math.Sqrt((square - mean*mean) / (n - 1))
}

const limitDown = bars.LimitDown

// seenOf is what an agent sees of bars before they are prepared.
func seenOf(d *bars.Data) synthetic.Seen {
	records := d.Series[0].Records
	n := len(records)
	seen, column := synthetic.Seen{Open: make([]float64, n), Close: make([]float64, n), Volume: make([]float64, n)}, make([]float64, n)
	for i, r := range records {
		if seen.Open[i], seen.Close[i], seen.Volume[i] = r.Open, r.Close, r.Volume; len(r.Extra) > 0 {
			column[i] = r.Extra[0]
		}
	}
	seen.Column = func(string) []float64 { return column }
	return seen
}

// TestOptimumInTheLongRun lets the best policy of each market trade it for 200,000 bars by the
// optimum's own rules: its mean reward is the gain.
func TestOptimumInTheLongRun(t *testing.T) {
	longtest.Nightly(t)
	const bars, seeds = 20_000, 10
	terms := synthetic.Terms{FeeRate: 0.001, BuyPct: 0.2, SellPct: 0.5}
	for _, name := range []string{"leading_indicator", "leading_volume", "limit_trap", "momentum", "pairs", "regimes"} {
		var best *synthetic.Optimum
		var rewards []float64
		for seed := range seeds {
			m, err := parse(t, fmt.Sprintf("{kind: %s, seed: %d, bars: %d, start: 1900-01-01}", name, seed, bars+1))
			if err != nil {
				t.Fatal(err)
			}
			if best == nil {
				if best, err = synthetic.Solve(m.(synthetic.Known), terms); err != nil {
					t.Fatal(err)
				}
			}
			d := m.Generate()
			states, err := m.(synthetic.Known).States(seenOf(d))
			if err != nil {
				t.Fatal(err)
			}
			n := len(d.Series)
			shares, orders := make([]float64, n), make([]int, n)
			for i := range bars {
				best.Decide(orders, shares, states[i])
				move := make(synthetic.Move, n)
				for k, s := range d.Series {
					before, after := s.Records[i], s.Records[i+1]
					move[k] = synthetic.Change{Night: after.Open/before.Close - 1, Day: after.Close/after.Open - 1}
					move[k].Closed.Sell = len(s.Quoted) > 0 && after.Open <= after.Quote[limitDown]
				}
				rewards = append(rewards, terms.Outcome(shares, orders, move))
			}
		}
		mean, se := batches(rewards)
		t.Logf("%s: %.6f ± %.6f of %.6f", name, mean, se, best.Gain)
		if math.Abs(mean-best.Gain) > 3*se || se > best.Gain/15 || len(rewards) != bars*seeds {
			t.Errorf("%s: mean reward %v ± %v, expected %v", name, mean, se, best.Gain)
		}
	}
}

// first is a column of rows of the given width.
func first[T float32 | float64](table []T, width, column int) []float64 {
	out := make([]float64, 0, len(table)/width)
	for ; column < len(table); column += width {
		out = append(out, float64(table[column]))
	}
	return out
}

// open returns the environments of a document's env section; the test closes them.
func open(t *testing.T, text string) envs.Factory {
	t.Helper()
	doc, err := configs.Parse("env.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	var section configs.Section
	if err := doc.Decode(&section); err != nil {
		t.Fatal(err)
	}
	f, err := trading.Kind(feed.Load).Open(context.Background(), section)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func inEnvironment(t *testing.T, m synthetic.Known, text string) {
	f := open(t, text)
	terms := synthetic.Terms{FeeRate: 0.0005, BuyPct: 0.2, SellPct: 0.5}
	best, err := synthetic.Solve(m, terms)
	if err != nil {
		t.Fatal(err)
	}
	market := f.(trading.Opened).Data().Market
	n := len(market.Assets)
	states, err := m.States(synthetic.Seen{Open: first(market.Open, n, 0), Close: first(market.Close, n, 0), Volume: first(market.Volume, n, 0), Column: func(name string) []float64 {
		column := slices.Index(market.Features, name)
		return first(market.X, len(market.Assets)*len(market.Features), column)
	}})
	if err != nil {
		t.Fatal(err)
	}
	shares := func(e *trading.Env) []float64 {
		held := make([]float64, n)
		for i, p := range e.Positions() {
			held[i] = p * market.Close[e.Bar()*n+i] / e.Value()
		}
		return held
	}
	// Each asset is bought or sold.
	each := func(buy func(bar, asset int) bool) func(e *trading.Env, orders []int) {
		return func(e *trading.Env, orders []int) {
			for i := range orders {
				orders[i] = trading.Sell
				if buy(e.Bar(), i) {
					orders[i] = trading.Buy
				}
			}
		}
	}
	rises := func(bar, i int) bool { return market.Close[bar*n+i] > market.Open[bar*n+i] }
	policies := map[string]func(e *trading.Env, orders []int){
		"optimum": func(e *trading.Env, orders []int) { best.Decide(orders, shares(e), states[e.Bar()]) },
		"follow":  each(rises),
		"revert":  each(func(bar, i int) bool { return !rises(bar, i) }),
		"buy":     each(func(int, int) bool { return true }),
	}
	if s, err := m.States(synthetic.Seen{}); err == nil && len(s) > 0 {
		t.Error("states of nothing")
	}
	means := map[string]float64{}
	for name, decide := range sorted.All(policies) {
		made, err := f.New(envs.Train, 0)
		if err != nil {
			t.Fatal(err)
		}
		e := made.(*trading.Env)
		ts := envs.NewTimeStep(e.Spec())
		if err := e.Reset(rng.New(1), ts); err != nil {
			t.Fatal(err)
		}
		action, orders := tensor.New(tensor.Int64, n), make([]int, n)
		var rewards []float64
		for ts.Type != envs.Last {
			decide(e, orders)
			at, after, move := e.Bar(), shares(e), make(synthetic.Move, n)
			for i, order := range orders {
				action.Int64s()[i] = int64(order)
				from, to := at*n+i, at*n+n+i
				move[i] = synthetic.Change{Night: market.Open[to]/market.Close[from] - 1, Day: market.Close[to]/market.Open[to] - 1}
				filled := market.Tradable
				if market.AtOpen != nil {
					filled = market.AtOpen
				}
				open := market.Tradable[from] & filled[to]
				move[i].Closed = synthetic.Closed{Buy: open&trading.CanBuy == 0, Sell: open&trading.CanSell == 0}
			}
			if err := e.Step(action, ts); err != nil {
				t.Fatal(err)
			}
			want := terms.Outcome(after, orders, move)
			for i, s := range shares(e) {
				if math.Abs(ts.Reward-want) > 1e-9 || math.Abs(s-after[i]) > 1e-6 {
					t.Fatalf("%s at bar %d: reward %v and share %v, expected %v and %v", name, e.Bar(), ts.Reward, s, want, after[i])
				}
			}
			rewards = append(rewards, ts.Reward)
		}
		mean, se := batches(rewards)
		if means[name] = mean; name == "optimum" && (math.Abs(mean-best.Gain) > 3*se || len(rewards) < 3000) {
			t.Errorf("mean reward %v ± %v over %d bars, expected %v", mean, se, len(rewards), best.Gain)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("gain %.6f, means %v", best.Gain, means)
	if best.Gain < 1e-4 || means["follow"] > means["optimum"] || means["revert"] > means["optimum"] || means["buy"] > means["optimum"]/2 {
		t.Errorf("mean rewards %v of a gain of %v", means, best.Gain)
	}
}
