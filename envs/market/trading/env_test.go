package trading_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestContract runs the suite over every word of the configuration.
func TestContract(t *testing.T) {
	m := randomMarket(1, 200, 4, 3)
	cases := map[string]func(*trading.Config){
		"defaults":   nil,
		"long":       func(c *trading.Config) { c.Window = 20 },
		"next close": func(c *trading.Config) { c.Execution.Fill = trading.NextClose },
		"same close": func(c *trading.Config) { c.Execution.Fill = trading.SameClose },
		"owner":      func(c *trading.Config) { c.Execution.CashSplit = trading.Owner },
		"lots":       func(c *trading.Config) { c.Execution.Lot = 1 },
		"log":        func(c *trading.Config) { c.Reward = trading.Log },
		"raw":        func(c *trading.Config) { c.State.Scale = trading.Raw },
		"terminate":  func(c *trading.Config) { c.Episode.End = trading.Terminate },
		"random": func(c *trading.Config) {
			c.Episode = trading.Episode{Kind: trading.Random, Length: 30, End: trading.Truncate}
		},
		"bare":   func(c *trading.Config) { c.State.IncludePos, c.State.IncludeCash = false, false },
		"no fee": func(c *trading.Config) { c.FeeRate = 0 },
	}
	for name, change := range sorted.All(rewards) {
		cases["reward "+name] = change
	}
	for name, change := range sorted.All(rebalancings) {
		cases["weights "+name] = func(c *trading.Config) {
			if c.Actions = trading.Weights; change != nil {
				change(c)
			}
		}
	}
	for _, name := range []string{"limits on risk", "rests", "owner rests in lots"} {
		cases[name] = executions[name]
	}
	cases["projection"] = func(c *trading.Config) { c.Actions, c.Weights.Simplex = trading.Weights, trading.Projection }
	ran := 0
	for name, change := range sorted.All(longtest.Few(t, cases, 8)) {
		t.Run(name, func(t *testing.T) {
			ran++
			c := config(change)
			r := envtest.Run(t, func() (envs.Env, error) { return open(t, m, c), nil }, envtest.Options{Key: rng.New(5), Steps: 800})
			if r.Saved < 10 || r.Episodes < 3 || r.Errors < 100 {
				t.Errorf("too little was checked: %+v", r)
			}
		})
	}
	t.Run("turnover within days", func(t *testing.T) {
		ran++
		m, c := intraday(1, 200, 4), config(func(c *trading.Config) { c.Risk.MaxTurnover = 0.2 })
		envtest.Run(t, func() (envs.Env, error) { return open(t, m, c), nil }, envtest.Options{Key: rng.New(5), Steps: 800})
	})
	t.Run("wrapped", func(t *testing.T) {
		ran++
		envtest.Run(t, func() (envs.Env, error) {
			return wrap.NewTimeLimit(open(t, m, config(nil)), 70)
		}, envtest.Options{Steps: 800})
	})
	if ran != 2+longtest.Cases(t, 31, 8) {
		t.Errorf("%d configurations ran", ran)
	}
}

func TestWindowIsAView(t *testing.T) {
	m := randomMarket(2, 60, 3, 5)
	g := start(t, open(t, m, config(func(c *trading.Config) { c.Window = 20 })), rng.New(1))
	compared := 0
	for bar := 19; bar < 59; bar++ {
		w := g.ts.Obs[0].Float32s()
		if g.Bar() != bar || g.ts.Rows[0] != int64(bar) || len(w) != 20*3*5 {
			t.Fatalf("at bar %d, row %d, %d values, expected bar %d", g.Bar(), g.ts.Rows[0], len(w), bar)
		}
		if &w[0] != &m.X[(bar-19)*15] {
			t.Fatalf("at bar %d the window is a copy", bar)
		}
		compared++
		g.play(trading.Buy, trading.Hold, trading.Sell)
	}
	if compared != 40 || g.ts.Type != envs.Last {
		t.Errorf("%d windows, last step is %v", compared, g.ts.Type)
	}
}

// TestEpisodeEnds holds the lengths and the two ways of ending.
func TestEpisodeEnds(t *testing.T) {
	m := randomMarket(3, 50, 2, 1)
	s, err := trading.NewSource(m, config(func(c *trading.Config) { c.Window = 10 }))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		r            trading.Range
		first, steps int
	}{{trading.Range{First: 0, Last: 49}, 9, 40}, {trading.Range{First: 20, Last: 30}, 20, 10}, {trading.Range{First: 5, Last: 10}, 9, 1}} {
		e, err := s.Env(c.r)
		if err != nil {
			t.Fatal(err)
		}
		g := start(t, e, rng.New(1))
		if g.Bar() != c.first || g.Spec().MaxSteps != c.steps {
			t.Errorf("%v: begins at %d with %d steps, expected %d and %d", c.r, g.Bar(), g.Spec().MaxSteps, c.first, c.steps)
		}
		n := 0
		for g.ts.Type != envs.Last {
			g.play(trading.Hold, trading.Hold)
			n++
		}
		if n != c.steps || !g.ts.Truncated() || g.Bar() != c.r.Last || g.ts.Reward != 0 {
			t.Errorf("%v: %d steps to bar %d, truncated %t, reward %g", c.r, n, g.Bar(), g.ts.Truncated(), g.ts.Reward)
		}
	}
}

// TestRandomStarts checks that random episodes begin at every possible bar and stay inside the
// range.
func TestRandomStarts(t *testing.T) {
	m := randomMarket(4, 40, 2, 1)
	e := open(t, m, config(func(c *trading.Config) {
		c.Window, c.Episode = 5, trading.Episode{Kind: trading.Random, Length: 25, End: trading.Truncate}
	}))
	seen := map[int]int{}
	ts := envs.NewTimeStep(e.Spec())
	for k := range 2000 {
		if err := e.Reset(rng.New(9).Split("episode", k), ts); err != nil {
			t.Fatal(err)
		}
		seen[e.Bar()]++
	}
	// Bars 4 to 14 leave 25 steps before bar 39.
	if len(seen) != 11 {
		t.Errorf("episodes begin at %d different bars, expected 11: %v", len(seen), seen)
	}
	for b, n := range sorted.All(seen) {
		if b < 4 || b > 14 || n < 100 {
			t.Errorf("%d of 2000 episodes begin at bar %d", n, b)
		}
	}
}

// TestParts: episodes lie in one of several ranges, every place where one may begin is as likely,
// and one part is the range itself.
func TestParts(t *testing.T) {
	m := randomMarket(4, 120, 2, 2)
	c := config(func(c *trading.Config) {
		c.Window, c.Episode = 5, trading.Episode{Kind: trading.Random, Length: 10, End: trading.Truncate}
	})
	s, err := trading.NewSource(m, c)
	if err != nil {
		t.Fatal(err)
	}
	// Episodes may begin at 4 to 9, nowhere, and at 60 to 63.
	parts := []trading.Range{{First: 0, Last: 19}, {First: 30, Last: 39}, {First: 60, Last: 73}}
	e, err := s.Parts(parts)
	if err != nil {
		t.Fatal(err)
	}
	if !e.Spec().Random || e.Spec().MaxSteps != 10 {
		t.Errorf("%+v", e.Spec())
	}
	starts, ts := map[int]int{}, envs.NewTimeStep(e.Spec())
	for i := range 4000 {
		if err := e.Reset(rng.New(uint64(i)), ts); err != nil {
			t.Fatal(err)
		}
		starts[e.Bar()]++
	}
	for bar, n := range sorted.All(starts) {
		if bar < 4 || bar > 9 && bar < 60 || bar > 63 || n < 300 || n > 500 {
			t.Errorf("%d of 4000 episodes begin at bar %d", n, bar)
		}
	}
	if len(starts) != 10 {
		t.Errorf("episodes begin at %d bars, expected 10", len(starts))
	}
	r := envtest.Run(t, func() (envs.Env, error) { return s.Parts(parts) }, envtest.Options{Key: rng.New(5), Steps: 400})
	if r.Saved < 10 || r.Episodes < 3 {
		t.Errorf("too little was checked: %+v", r)
	}
	whole, err := s.Env(parts[0])
	if err != nil {
		t.Fatal(err)
	}
	one, err := s.Parts(parts[:1])
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		for _, e := range []*trading.Env{whole, one} {
			if err := e.Reset(rng.New(uint64(i)), ts); err != nil {
				t.Fatal(err)
			}
		}
		if whole.Bar() != one.Bar() {
			t.Fatalf("episode %d begins at bar %d and %d", i, whole.Bar(), one.Bar())
		}
	}
	if _, err := s.Parts(parts[1:2]); err == nil {
		t.Error("parts that are too short are accepted")
	}
}
