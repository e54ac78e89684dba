package feature

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/indicator"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// market is a random panel: symbol n is listed on day 30·n, the last symbol has gaps and ends
// early.
func market(t testing.TB, seed uint64, days, symbols int) *bars.Panel {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 2))
	start := time.Date(2010, 1, 4, 9, 30, 0, 0, time.UTC)
	var list []bars.Series
	for n := range symbols {
		s := bars.Series{Symbol: fmt.Sprintf("S%d", n)}
		c := 20 + 10*float64(n)
		for d := 30 * n; d < days; d++ {
			o := c * math.Exp(0.01*r.NormFloat64())
			c = o * math.Exp(0.02*r.NormFloat64())
			if n == symbols-1 && n > 0 && (d%17 == 3 || d > days-40) {
				continue
			}
			s.Records = append(s.Records, bars.Record{
				Bar: bars.Bar{
					Time: start.AddDate(0, 0, d), Open: o, Close: c, High: max(o, c) * (1 + 0.01*r.Float64()), Low: min(o, c) * (1 - 0.01*r.Float64()), Volume: math.Round(1e6 * r.Float64()),
				},
				Extra: []float64{float64(d)},
			})
		}
		list = append(list, s)
	}
	p, err := bars.Align(list, []string{"extra"}, bars.Calendar{GoneAfter: 10}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// everything is a configuration with every feature there is.
func everything(prices, volume string) Config {
	c := Config{OHLCV: true, Extra: []string{"extra"}, Calendar: []string{"weekday", "time_of_day", "year_day", "month_day"}, Listed: true, Prices: prices, Volume: volume}
	for _, k := range indicator.Kinds() {
		if err := c.Indicators.Add(k.Name); err != nil {
			panic(err)
		}
	}
	return c
}

func mustNew(t testing.TB, c Config) *Features {
	t.Helper()
	f, err := New(c, []string{"extra"}, true)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func configurations() map[string]Config {
	return map[string]Config{"levels": everything("level", "level"), "relative": everything("relative", "log"), "default": Default()}
}

func TestColumnsAndRows(t *testing.T) {
	p := market(t, 1, 260, 3)
	for name, c := range sorted.All(configurations()) {
		f := mustNew(t, c)
		cols := f.Columns()
		defined := 0
		for n := range p.Symbols {
			listed := 30 * n
			f.Rows(p, n, func(at int, row []float64, ok bool) {
				if len(row) != len(cols) {
					t.Fatalf("%s: %d values for %d columns", name, len(row), len(cols))
				}
				status := p.Status[p.Index(at, n)]
				if want := at >= listed+f.Warmup() && status.Listed(); ok != want {
					t.Fatalf("%s: %s on day %d is defined: %v; it is %v and was listed on day %d, and %d bars are needed", name, p.Symbols[n], at, ok, status, listed, f.Warmup())
				}
				flag := row[len(row)-1]
				if (flag == 1) != status.Listed() {
					t.Fatalf("%s: the listed flag is %v for a stock that is %v", name, flag, status)
				}
				for i, v := range row[:len(row)-1] {
					if math.IsNaN(v) || math.IsInf(v, 0) || !ok && v != 0 {
						t.Fatalf("%s: %s on day %d has %s = %v", name, p.Symbols[n], at, cols[i].Name, v)
					}
				}
				if ok {
					defined++
				}
			})
		}
		if defined < 250 {
			t.Errorf("%s: %d defined rows", name, defined)
		}
	}
	if w := mustNew(t, Default()).Warmup(); w != 77 {
		t.Errorf("the default features need %d bars, expected 77", w)
	}
	names := []string{}
	for _, c := range mustNew(t, Default()).Columns() {
		names = append(names, c.Name)
	}
	want := "open high low close volume sma_10 sma_20 sma_50 ema_12 ema_26 rsi_14 macd_12_26_9 macd_12_26_9_signal macd_12_26_9_hist atr_14 bbands_20_2_upper bbands_20_2_middle bbands_20_2_lower " +
		"ichimoku_9_26_52_tenkan ichimoku_9_26_52_kijun ichimoku_9_26_52_senkou_a ichimoku_9_26_52_senkou_b heikin_ashi_open heikin_ashi_high heikin_ashi_low heikin_ashi_close supertrend_10_3 " +
		"supertrend_10_3_direction listed"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("columns %s", got)
	}
}

// The price level of a stock must not matter to relative features, and logarithms must be small.
func TestRelativeFeaturesAreComparable(t *testing.T) {
	p := market(t, 2, 200, 1)
	f := mustNew(t, everything("relative", "log"))
	var first [][]float64
	f.Rows(p, 0, func(_ int, row []float64, _ bool) { first = append(first, slices.Clone(row)) })
	for i := range p.Bars {
		b := &p.Bars[i]
		b.Open, b.High, b.Low, b.Close = 8*b.Open, 8*b.High, 8*b.Low, 8*b.Close
	}
	compared := 0
	f.Rows(p, 0, func(at int, row []float64, ok bool) {
		for i, v := range row {
			compared++
			if math.Abs(v-first[at][i]) > 1e-9*max(1, math.Abs(v)) {
				t.Fatalf("%s on day %d is %v, and %v at an eighth of the price", f.Columns()[i].Name, at, v, first[at][i])
			}
			if u := f.Columns()[i].Unit; ok && (u == Ratio && math.Abs(v) > 1 || u == Log && math.Abs(v) > 20 || u == indicator.Price || u == indicator.Spread || u == indicator.Volume) {
				t.Fatalf("%s, in %s, is %v", f.Columns()[i].Name, u, v)
			}
		}
	})
	if compared != 200*len(f.Columns()) {
		t.Errorf("%d values", compared)
	}
}

// Every feature at t is the same when the bars after t are others.
func TestPrefixInvariance(t *testing.T) {
	p, other := market(t, 3, 220, 2), market(t, 4, 220, 2)
	compared := 0
	for name, c := range sorted.All(configurations()) {
		f := mustNew(t, c)
		for n := range p.Symbols {
			var full [][]float64
			f.Rows(p, n, func(_ int, row []float64, _ bool) { full = append(full, slices.Clone(row)) })
			for cut := 1; cut < len(p.Times); cut += 13 {
				mixed := *p
				mixed.Bars = slices.Clone(other.Bars)
				mixed.ExtraValues = slices.Clone(other.ExtraValues)
				mixed.Status = slices.Clone(other.Status)
				k := cut * len(p.Symbols)
				copy(mixed.Bars, p.Bars[:k])
				copy(mixed.ExtraValues, p.ExtraValues[:k])
				copy(mixed.Status, p.Status[:k])
				i := 0
				f.Rows(&mixed, n, func(at int, row []float64, _ bool) {
					if at < cut {
						for c, v := range row {
							compared++
							if math.Float64bits(v) != math.Float64bits(full[i][c]) {
								t.Fatalf("%s: %s of %s at %d depends on bars from %d on", name, f.Columns()[c].Name, p.Symbols[n], at, cut)
							}
						}
					}
					i++
				})
			}
		}
	}
	if compared < 100_000 {
		t.Errorf("%d values compared", compared)
	}
}

func TestFit(t *testing.T) {
	p := market(t, 5, 240, 3)
	f := mustNew(t, everything("level", "level"))
	stats, err := Fit(f, p, DefaultNormalization(), 20, 200)
	if err != nil {
		t.Fatal(err)
	}
	// The plain two-pass formula over the defined rows of the range.
	var rows [][]float64
	for n := range p.Symbols {
		f.Rows(p, n, func(at int, row []float64, ok bool) {
			if ok && at >= 20 && at < 200 {
				rows = append(rows, slices.Clone(row))
			}
		})
	}
	scaled := 0
	for i, s := range stats {
		mean, m2 := 0.0, 0.0
		for _, r := range rows {
			mean += r[i] / float64(len(rows))
		}
		for _, r := range rows {
			m2 += (r[i] - mean) * (r[i] - mean) / float64(len(rows))
		}
		col := f.Columns()[i]
		if s.Count != len(rows) {
			t.Fatalf("%s was fitted on %d rows, expected %d", col.Name, s.Count, len(rows))
		}
		if want := col.Group == OHLCV || col.Group == Indicators; s.Scaled != want {
			t.Errorf("%s is scaled: %v", col.Name, s.Scaled)
		}
		if !s.Scaled {
			if s.Apply(3) != 3 {
				t.Errorf("%s is changed", col.Name)
			}
			continue
		}
		scaled++
		if math.Abs(s.Mean-mean) > 1e-9*max(1, math.Abs(mean)) || math.Abs(s.Std-math.Sqrt(m2)) > 1e-9*max(1, s.Std) {
			t.Errorf("%s has mean %v and deviation %v, expected %v and %v", col.Name, s.Mean, s.Std, mean, math.Sqrt(m2))
		}
		if z := s.Apply(s.Mean + 2*s.Std); math.Abs(float64(z)-2) > 1e-5 {
			t.Errorf("%s scales two deviations to %v", col.Name, z)
		}
	}
	if scaled < 40 {
		t.Errorf("%d columns are scaled", scaled)
	}
	clipped := Statistic{Scaled: true, Std: 1, Clip: 3}
	if clipped.Apply(9) != 3 || clipped.Apply(-9) != -3 {
		t.Error("values are not clipped")
	}
}

func TestConstantColumnsBecomeZero(t *testing.T) {
	p := market(t, 6, 60, 1)
	for i := range p.Bars {
		p.Bars[i].Volume = 5
	}
	c := Config{OHLCV: true, Listed: true, Prices: "level", Volume: "level"}
	stats, err := Fit(mustNew(t, c), p, DefaultNormalization(), 0, 60)
	if err != nil {
		t.Fatal(err)
	}
	if s := stats[4]; !s.Constant || s.Apply(5) != 0 || s.Apply(6) != 1 {
		t.Errorf("volume %+v", s)
	}
}

func TestErrorsNameTheFeature(t *testing.T) {
	short := market(t, 7, 40, 1)
	if _, err := Fit(mustNew(t, Default()), short, DefaultNormalization(), 0, 40); err == nil ||
		!strings.Contains(err.Error(), "ichimoku_9_26_52_tenkan (needs 78 bars)") || strings.Contains(err.Error(), "rsi_14") || !strings.Contains(err.Error(), "no stock has more than 40 bars") {
		t.Errorf("error %v", err)
	}
	nan := market(t, 8, 40, 1)
	for i := range nan.ExtraValues {
		nan.ExtraValues[i] = math.NaN()
	}
	c := Config{Extra: []string{"extra"}, OHLCV: true, Prices: "level", Volume: "level"}
	if _, err := Fit(mustNew(t, c), nan, DefaultNormalization(), 5, 40); err == nil || !strings.Contains(err.Error(), "no value for any stock: [extra (blank or undefined in every row)]") {
		t.Errorf("error %v", err)
	}
	for want, c := range sorted.All(map[string]Config{
		"there are no features":                 {Listed: true, Prices: "level", Volume: "level"},
		`extra column "limit" is not read`:      {Extra: []string{"limit"}, Prices: "level", Volume: "level"},
		`calendar[0]: must be one of`:           {Calendar: []string{"moon"}, Prices: "level", Volume: "level"},
		`prices: must be one of level, relativ`: {OHLCV: true, Prices: "relativ", Volume: "level"},
	}) {
		if _, err := New(c, []string{"extra"}, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
	}
	for name, want := range sorted.All(map[string]string{"close": `two columns called "close"`, "symbol": `cannot be called "symbol"`}) {
		c := Config{OHLCV: true, Extra: []string{name}, Prices: "level", Volume: "level"}
		if _, err := New(c, []string{name}, true); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
	}
	if _, err := New(everything("level", "level"), []string{"extra"}, false); err == nil || !strings.Contains(err.Error(), "obv_0 needs volumes") {
		t.Errorf("error %v", err)
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	p := market(t, 9, 300, 1)
	f := mustNew(t, everything("relative", "log"))
	s, row, i := f.Stream(), make([]float64, len(f.Columns())), 0
	if n := testing.AllocsPerRun(200, func() { s.Next(&p.Bars[i], p.ExtraAt(i, 0), bars.Traded, row); i++ }); n != 0 {
		t.Errorf("%v allocations per bar", n)
	}
}

func BenchmarkDefaultFeatures(b *testing.B) {
	p := market(b, 10, 1000, 1)
	f := mustNew(b, Default())
	s, row, i := f.Stream(), make([]float64, len(f.Columns())), 0
	b.ReportAllocs()
	for b.Loop() {
		s.Next(&p.Bars[i%1000], nil, bars.Traded, row)
		i++
	}
}
