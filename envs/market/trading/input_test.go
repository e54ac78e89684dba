package trading_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestBadMarkets holds that what does not fit is refused with the place where it does not.
func TestBadMarkets(t *testing.T) {
	cases := map[string]func(*trading.Market){
		"X has 1 values":                    func(m *trading.Market) { m.X = m.X[:1] },
		"open has 119 values, expected 120": func(m *trading.Market) { m.Open = m.Open[1:] },
		"close has 0 values":                func(m *trading.Market) { m.Close = nil },
		"tradable has 121 values":           func(m *trading.Market) { m.Tradable = append(m.Tradable, trading.Both) },
		"0 bars of 3 assets":                func(m *trading.Market) { m.Dates = nil },
		"the date of bar 7, 2020-01-07":     func(m *trading.Market) { m.Dates[7] = m.Dates[6] },
		"feature \"b\" of C on 2020-01-03 is NaN": func(m *trading.Market) {
			m.X[(2*3+2)*2+1] = float32(math.NaN())
		},
		"the close of A on 2020-01-10 is 0":    func(m *trading.Market) { m.Close[9*3] = 0 },
		"the open of B on 2020-01-15 is -1":    func(m *trading.Market) { m.Open[14*3+1] = -1 },
		"the open of C on 2020-02-09 is +Inf":  func(m *trading.Market) { m.Open[39*3+2] = math.Inf(1) },
		"the close of C on 2020-02-08 is NaN,": func(m *trading.Market) { m.Close[38*3+2] = math.NaN() },
	}
	for want, change := range sorted.All(cases) {
		m := randomMarket(1, 40, 3, 2)
		change(m)
		if _, err := trading.NewSource(m, config(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said: %v", want, err)
		}
	}
	if len(cases) != 11 {
		t.Errorf("%d cases", len(cases))
	}
}

func TestBadConfigurations(t *testing.T) {
	all := config(func(c *trading.Config) {
		c.Window, c.InitialCash, c.FeeRate, c.BuyPct, c.SellPct, c.Reward = 0, -1, 1, 0, 1.5, "sharpe"
		c.Execution = trading.Execution{Fill: "open", CashSplit: "fare", Lot: -1}
		c.State.Scale, c.Episode, c.SafetySignals = "log", trading.Episode{Kind: "some", End: "never"}, []string{"loss", "loss", "volatility"}
	})
	_, err := trading.NewSource(randomMarket(1, 40, 3, 2), all)
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, key := range []string{"window", "initial_cash", "fee_rate", "buy_pct", "sell_pct", "reward", "execution.fill", "execution.cash_split", "execution.lot", "state.scale", "episode.kind", "episode.end", "safety_signals[1]", "safety_signals[2]"} {
		if !strings.Contains(err.Error(), key) {
			t.Errorf("the problem of %s is not said: %v", key, err)
		}
	}
	if err := trading.Defaults().Validate(); err != nil {
		t.Error(err)
	}
	if !config(func(c *trading.Config) { c.Execution.Fill = trading.SameClose }).LookAhead() || trading.Defaults().LookAhead() {
		t.Error("look-ahead is not told from what is not")
	}
}

func TestRangesThatDoNotFit(t *testing.T) {
	m := randomMarket(1, 40, 3, 2)
	if _, err := trading.NewSource(m, config(func(c *trading.Config) { c.Window = 40 })); err == nil || !strings.Contains(err.Error(), "window of 40 bars") {
		t.Errorf("a window as long as the data: %v", err)
	}
	s, err := trading.NewSource(m, config(func(c *trading.Config) {
		c.Window, c.Episode = 20, trading.Episode{Kind: trading.Random, Length: 10, End: trading.Truncate}
	}))
	if err != nil {
		t.Fatal(err)
	}
	for want, r := range sorted.All(map[string]trading.Range{
		"bars -1 to 30": {First: -1, Last: 30}, "bars 0 to 40 of 40": {First: 0, Last: 40}, "bars 7 to 7": {First: 7, Last: 7},
		"do not leave a step": {First: 0, Last: 19}, "episodes of 10 steps do not fit": {First: 0, Last: 28},
	}) {
		if _, err := s.Env(r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %q is not said: %v", r, want, err)
		}
	}
	for _, c := range []struct {
		from, to int
		want     trading.Range
	}{{0, 39, trading.Range{First: 0, Last: 39}}, {-5, 100, trading.Range{First: 0, Last: 39}}, {3, 9, trading.Range{First: 3, Last: 9}}} {
		if r, err := m.Between(day0.AddDate(0, 0, c.from), day0.AddDate(0, 0, c.to)); err != nil || r != c.want {
			t.Errorf("days %d to %d: %v, %v", c.from, c.to, r, err)
		}
	}
	if _, err := m.Between(day0.AddDate(0, 0, 50), day0.AddDate(0, 0, 60)); err == nil {
		t.Error("a range after the data is found")
	}
}

// TestKind opens environments from YAML, with the data section left to its owner.
func TestKind(t *testing.T) {
	m, closed := randomMarket(1, 100, 3, 2), 0
	load := func(_ context.Context, _ int, data configs.Section) (*trading.Data, error) {
		var c struct{ Path string }
		if err := data.Decode(&c); err != nil {
			return nil, err
		}
		if c.Path != "here" {
			return nil, data.Errorf("path", "there is nothing at %q", c.Path)
		}
		return &trading.Data{Market: m, Splits: map[envs.Split]trading.Range{envs.Train: {First: 0, Last: 59}, envs.Test: {First: 60, Last: 99}}, Close: func() error { closed++; return nil }}, nil
	}
	kinds := []envs.Kind{trading.Kind(load)}
	decode := func(text string) configs.Kinded {
		t.Helper()
		d, err := configs.Parse("run.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		var run struct {
			Env configs.Kinded `yaml:"env"`
		}
		if err := d.Decode(&run); err != nil {
			t.Fatal(err)
		}
		return run.Env
	}
	f, err := envs.Open(t.Context(), kinds, decode("env: {kind: trading, window: 10, fee_rate: 0.001, execution: {cash_split: owner}, episode: {kind: random, length: 20}, data: {path: here}}"))
	if err != nil {
		t.Fatal(err)
	}
	effective, err := configs.Marshal(f.Config())
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"window: 10", "fee_rate: 0.001", "cash_split: owner", "fill: next_open", "initial_cash: 10000", "length: 20", "path: here"} {
		if !strings.Contains(string(effective), line) {
			t.Errorf("the effective configuration lacks %q:\n%s", line, effective)
		}
	}
	for _, c := range []struct {
		split  envs.Split
		random bool
		steps  int
	}{{envs.Train, true, 20}, {envs.Test, false, 39}} {
		e, err := f.New(c.split, 0)
		if err != nil {
			t.Fatal(err)
		}
		if s := e.Spec(); s.Random != c.random || s.MaxSteps != c.steps {
			t.Errorf("%s: random %t, %d steps, expected %t and %d", c.split, s.Random, s.MaxSteps, c.random, c.steps)
		}
	}
	if _, err := f.New(envs.Valid, 0); err == nil || !strings.Contains(err.Error(), `no split "valid"`) {
		t.Errorf("a split that is not there: %v", err)
	}
	if err := f.Close(); err != nil || closed != 1 {
		t.Errorf("closed %d times, %v", closed, err)
	}
	for text, want := range sorted.All(map[string]string{
		"env: {kind: trading, windows: 10, data: {path: here}}":             "env.windows",
		"env: {kind: trading, data: {path: there}}":                         "env.data.path",
		"env: {kind: trading, data: {paths: here}}":                         "env.data.paths",
		"env: {kind: trading, execution: {fill: open}, data: {path: here}}": "env.execution.fill",
		"env: {kind: trading, window: 1.5, data: {path: here}}":             "env.window",
		"env: {kind: trading, window: 200, data: {path: here}}":             "window of 200 bars",
		"env: {kind: trading, episode: {kind: random}, data: {path: here}}": "env.episode.length",
		"env: {kind: trading, episode: {length: 5}, data: {path: here}}":    "full episodes",
	}) {
		if _, err := envs.Open(t.Context(), kinds, decode(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %q is not said: %v", text, want, err)
		}
	}
}

func TestWrongOrdersChangeNothing(t *testing.T) {
	g := start(t, open(t, randomMarket(1, 40, 3, 2), config(nil)), rng.New(1))
	g.play(trading.Buy, trading.Hold, trading.Buy)
	cash, value, bar, pos := g.Cash(), g.Value(), g.Bar(), append([]float64{}, g.Positions()...)
	var bad *envs.ActionError
	for _, a := range []*tensor.Tensor{nil, tensor.New(tensor.Int32, 3), tensor.New(tensor.Int64, 2), tensor.Of([]int64{0, 1, 3}, 3), tensor.Of([]int64{0, -1, 0}, 3)} {
		if err := g.Step(a, g.ts); !errors.As(err, &bad) {
			t.Errorf("%v gives %v", a, err)
		}
	}
	if g.Cash() != cash || g.Value() != value || g.Bar() != bar || g.Positions()[0] != pos[0] || g.Positions()[2] != pos[2] {
		t.Error("a wrong action has changed the portfolio")
	}
}
