package indicator

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// walk is a random series with a flat stretch without volume in the middle.
func walk(seed uint64, n int) []bars.Bar {
	r := rand.New(rand.NewPCG(seed, 1))
	s := make([]bars.Bar, n)
	day := time.Date(2001, 1, 1, 9, 30, 0, 0, time.UTC)
	c := 30.0
	for i := range s {
		o := c * math.Exp(0.01*r.NormFloat64())
		c = o * math.Exp(0.02*r.NormFloat64())
		s[i] = bars.Bar{
			Time: day.Add(time.Duration(i) * 2 * time.Hour), Open: o, Close: c, High: max(o, c) * (1 + 0.01*r.Float64()), Low: min(o, c) * (1 - 0.01*r.Float64()),
			Volume: math.Round(1e6 * r.Float64()),
		}
		if i > n/3 && i < n/3+60 {
			p := s[n/3].Close
			s[i] = bars.Bar{Time: s[i].Time, Open: p, High: p, Low: p, Close: p}
			c = p
		}
	}
	return s
}

// variants are the parameter sets under which every kind is tested: the defaults and a small and an
// odd one.
func variants(k *Kind) [][]float64 {
	def, err := k.Complete(nil)
	if err != nil {
		panic(err)
	}
	list := [][]float64{def}
	switch {
	case len(k.Params) == 0:
	case k.Name == "macd":
		list = append(list, []float64{2, 3, 1}, []float64{5, 35, 5})
	default:
		small := make([]float64, len(def))
		odd := make([]float64, len(def))
		for i, p := range k.Params {
			small[i] = p.Min
			odd[i] = p.Min + 3
		}
		list = append(list, small, odd)
	}
	return list
}

func forAll(t *testing.T, f func(t *testing.T, k *Kind, p []float64)) {
	n := 0
	for _, k := range kinds {
		for _, p := range variants(k) {
			n++
			t.Run(k.Label(p), func(t *testing.T) { f(t, k, p) })
		}
	}
	if n < 60 {
		t.Errorf("%d variants", n)
	}
}

func TestDefinedExactlyAfterWarmup(t *testing.T) {
	series := walk(1, 400)
	forAll(t, func(t *testing.T, k *Kind, p []float64) {
		for o, values := range Run(k.New(p), len(k.Outputs), series) {
			for i, v := range values {
				if defined := !math.IsNaN(v) && !math.IsInf(v, 0); defined != (i >= k.Warmup(p)) {
					t.Fatalf("output %d at %d is %v; the warm-up is %d", o, i, v, k.Warmup(p))
				}
			}
		}
	})
}

// Values at t must not change when the bars after t do.
func TestPrefixInvariance(t *testing.T) {
	series := walk(2, 260)
	forAll(t, func(t *testing.T, k *Kind, p []float64) {
		full := Run(k.New(p), len(k.Outputs), series)
		other := walk(3, 260)
		for cut := 1; cut < len(series); cut += 7 {
			mixed := append(append([]bars.Bar(nil), series[:cut]...), other[cut:]...)
			for o, values := range Run(k.New(p), len(k.Outputs), mixed) {
				for i := range cut {
					if math.Float64bits(values[i]) != math.Float64bits(full[o][i]) && !(math.IsNaN(values[i]) && math.IsNaN(full[o][i])) {
						t.Fatalf("output %d at %d is %v, and %v when bars from %d on differ", o, i, full[o][i], values[i], cut)
					}
				}
			}
		}
	})
}

// Values long after the start must not depend on the start: to the bit where the window is finite,
// else to a tolerance.
func TestWarmupInvariance(t *testing.T) {
	series := walk(4, 2600)
	finite := map[string]bool{
		"sma": true, "bbands": true, "ichimoku": true, "stddev": true, "roc": true, "mfi": true, "stoch": true, "cci": true, "willr": true, "donchian": true,
	}
	seen := 0
	forAll(t, func(t *testing.T, k *Kind, p []float64) {
		full := Run(k.New(p), len(k.Outputs), series)
		for _, start := range []int{199, 399, 499, 999, 1999} {
			late := Run(k.New(p), len(k.Outputs), series[len(series)-start:])
			for o := range full {
				a, b := full[o][len(series)-1], late[o][start-1]
				switch same := a == b; {
				case k.Name == "obv" && p[0] == 0:
					if same {
						t.Errorf("a running total is the same with the last %d bars", start)
					}
				case finite[k.Name] || k.Name == "obv":
					if !same {
						t.Errorf("output %d: %v with all bars, %v with the last %d", o, a, b, start)
					}
				case start >= 999 && math.Abs(a-b) > 1e-9*max(1, math.Abs(a)):
					t.Errorf("output %d: %v with all bars, %v with the last %d", o, a, b, start)
				}
			}
			seen++
		}
	})
	if seen < 300 {
		t.Errorf("%d comparisons", seen)
	}
}

func TestNextDoesNotAllocate(t *testing.T) {
	series := walk(5, 300)
	forAll(t, func(t *testing.T, k *Kind, p []float64) {
		ind, out, i := k.New(p), make([]float64, len(k.Outputs)), 0
		if n := testing.AllocsPerRun(200, func() { ind.Next(&series[i], out); i++ }); n != 0 {
			t.Errorf("%v allocations per bar", n)
		}
	})
}

// Prices in another currency scale the outputs that are prices and leave the others alone.
func TestUnits(t *testing.T) {
	series := walk(6, 200)
	scaled := make([]bars.Bar, len(series))
	for i, b := range series {
		b.Open, b.High, b.Low, b.Close = 4*b.Open, 4*b.High, 4*b.Low, 4*b.Close
		scaled[i] = b
	}
	forAll(t, func(t *testing.T, k *Kind, p []float64) {
		a, b := Run(k.New(p), len(k.Outputs), series), Run(k.New(p), len(k.Outputs), scaled)
		for o, out := range k.Outputs {
			want := a[o][199]
			if out.Unit == Price || out.Unit == Spread {
				want *= 4
			}
			if math.Abs(b[o][199]-want) > 1e-9*max(1, math.Abs(want)) {
				t.Errorf("output %d (%s): %v, expected %v", o, out.Unit, b[o][199], want)
			}
		}
	})
}

func TestIchimokuAgainstItsDefinition(t *testing.T) {
	s := walk(7, 200)
	got := mustRun(t, "ichimoku", nil, s)
	mid := func(t, n int) float64 {
		hi, lo := math.Inf(-1), math.Inf(1)
		for _, b := range s[t-n+1 : t+1] {
			hi, lo = max(hi, b.High), min(lo, b.Low)
		}
		return (hi + lo) / 2
	}
	n := 0
	for i := 77; i < len(s); i++ {
		want := []float64{mid(i, 9), mid(i, 26), (mid(i-26, 9) + mid(i-26, 26)) / 2, mid(i-26, 52)}
		for o, w := range want {
			n++
			if got[o][i] != w {
				t.Fatalf("output %d at %d is %v, expected %v", o, i, got[o][i], w)
			}
		}
	}
	if n != 492 {
		t.Errorf("%d values", n)
	}
}

func TestVWAP(t *testing.T) {
	s := walk(8, 120)
	rolling, session := mustRun(t, "vwap", []float64{5}, s)[0], mustRun(t, "vwap", []float64{0}, s)[0]
	days := 0
	for i := 4; i < len(s); i++ {
		weigh := func(from int) float64 {
			m, v := 0.0, 0.0
			for _, b := range s[from : i+1] {
				m, v = m+typical(&b)*b.Volume, v+b.Volume
			}
			if v == 0 {
				return typical(&s[i])
			}
			return m / v
		}
		first := i
		for first > 0 && s[first-1].Time.YearDay() == s[i].Time.YearDay() {
			first--
		}
		if first == i {
			days++
		}
		if math.Abs(rolling[i]-weigh(i-4)) > 1e-12 || math.Abs(session[i]-weigh(first)) > 1e-12 {
			t.Fatalf("at %d: %v and %v, expected %v and %v", i, rolling[i], session[i], weigh(i-4), weigh(first))
		}
	}
	if days < 8 {
		t.Errorf("%d days", days)
	}
}

func TestCompleteNamesTheParameter(t *testing.T) {
	for _, c := range []struct {
		kind string
		p    []float64
		want string
	}{
		{"sma", []float64{0}, "period of sma must be at least 1"},
		{"sma", []float64{2.5}, "period of sma must be a whole number"},
		{"sma", []float64{1e9}, "at most 100000"},
		{"sma", []float64{math.NaN()}, "must be at least"},
		{"macd", []float64{26, 12}, "fast of macd must be below slow"},
		{"heikin_ashi", []float64{3}, "takes 0 parameters, found 1"},
		{"bbands", []float64{20, 2, 1}, "takes 2 parameters (period, deviations), found 3"},
	} {
		if _, err := Find(c.kind).Complete(c.p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %v: error %v, expected %q", c.kind, c.p, err, c.want)
		}
	}
	if got := Find("bbands").OutputNames([]float64{20, 2.5}); got[0] != "bbands_20_2.5_upper" {
		t.Errorf("names %v", got)
	}
}

func BenchmarkAllIndicators(b *testing.B) {
	series := walk(9, 1000)
	var inds []Indicator
	for _, k := range kinds {
		p, err := k.Complete(nil)
		if err != nil {
			b.Fatal(err)
		}
		inds = append(inds, k.New(p))
	}
	out := make([]float64, 4)
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		for _, ind := range inds {
			ind.Next(&series[i%len(series)], out)
		}
		i++
	}
}
