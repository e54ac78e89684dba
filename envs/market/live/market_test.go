package live_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/indicator"
	"github.com/onnxrl/onnxrl/envs/market/live"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// variant is a way to prepare the random market.
type variant struct {
	name     string
	document string
	volume   bool
	zone     string
	step     time.Duration
	// quoted has limits, a factor of adjustment, and the spread and the depth of a book.
	quoted bool
}

const splits = "split: {train: [2010-01-04, 2010-07-31], valid: [2010-08-01, 2010-09-15], test: [2010-09-16, 2011-12-31]}\n"

var variants = []variant{
	{"the defaults", "window: 20\n" + splits, true, "", 24 * time.Hour, false},
	{"relative prices, logarithms, a limit", "window: 7\nsource: {extra: [limit, flag]}\nfeatures: {prices: relative, volume: log, extra: [limit], calendar: [weekday, month_day, year_day]}\nnormalization: {clip: 1.5, include: [OHLCV, indicators, extra]}\n" + splits, true, "", 24 * time.Hour, false},
	{"nothing dropped, without a flag", "window: 3\ndrop_undefined: false\nfeatures: {listed: false, indicators: {sma: [3], obv: [0], vwap: [0]}}\ncalendar: {gone_after: 3}\n" + splits, true, "", 24 * time.Hour, false},
	{"no volume, not scaled", "window: 1\nfeatures: {indicators: {rsi: [5], adx: [5]}}\nnormalization: {method: none}\n" + splits, false, "", 24 * time.Hour, false},
	{"indicators of volume alone", "window: 2\nfeatures: {ohlcv: false, volume: log, indicators: {mfi: [5], obv: [3], vwap: [4]}}\n" + splits, true, "", 24 * time.Hour, false},
	{"hours of a zone", "window: 9\nsource: {timezone: America/New_York}\nfeatures: {indicators: {vwap: [0], keltner: true, supertrend: [5, 2]}, calendar: [time_of_day, weekday]}\nsplit: {train: [2010-01-04, 2010-02-10], valid: [2010-02-11, 2010-02-20], test: [2010-02-21, 2011-12-31]}\n", true, "America/New_York", 5 * time.Hour, false},
	{"limits and a factor", "window: 5\nsource: {adjust: factor}\nfeatures: {indicators: {sma: [3]}}\n" + splits, true, "", 24 * time.Hour, true},
}

const times = 320

// market is a random one: A is there throughout but for single days, B is listed late, C ends
// early, D ends and comes back, E is suspended at times, and all have gaps. F has no row at all.
func market(t testing.TB, seed uint64, v variant) (prepared.Config, *bars.Data) {
	t.Helper()
	doc, err := configs.Parse("test.yaml", []byte(v.document))
	if err != nil {
		t.Fatal(err)
	}
	c := prepared.Default()
	c.Source.Path = "not read"
	if err := doc.Decode(&c); err != nil {
		t.Fatal(err)
	}
	if v.name == variants[0].name {
		// The defaults and every other kind beside them.
		for _, k := range indicator.Kinds() {
			if p, err := k.Complete(nil); err != nil || slices.ContainsFunc(c.Features.Indicators, func(o indicator.Configured) bool { return o.Label() == k.Label(p) }) {
				continue
			}
			if err := c.Features.Indicators.Add(k.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
	zone := time.UTC
	if v.zone != "" {
		if zone, err = time.LoadLocation(v.zone); err != nil {
			t.Fatal(err)
		}
	}
	r, books := rng.New(seed).Stream(), rng.New(seed).Split("books").Stream()
	d := &bars.Data{Adjustment: bars.Adjustment{By: "none"}, HasVolume: v.volume, Extra: c.Source.Extra, Files: []bars.File{{Name: "random"}}}
	start := time.Date(2010, 1, 4, 9, 30, 0, 0, zone)
	for i, symbol := range []string{"A", "B", "C", "D", "E", "F"} {
		s, price := bars.Series{Symbol: symbol}, 10*float64(i+1)
		first, last := 0, times
		switch symbol {
		case "B":
			first = 60 + r.IntN(100)
		case "C":
			last = 150 + r.IntN(100)
		case "F":
			last = 0
		}
		pause, factor := 200+r.IntN(20), 1.0
		if v.quoted {
			d.Adjustment.By = "factor"
			s.Quoted = []bars.QuoteColumn{bars.RawOpen, bars.RawHigh, bars.RawLow, bars.RawClose, bars.RawVolume, bars.Factor, bars.LimitUp, bars.LimitDown, bars.Spread, bars.Depth}
		}
		for k := first; k < last; k++ {
			open := price * math.Exp(0.01*r.Normal())
			price = open * math.Exp(0.02*r.Normal())
			if k > first && r.Float64() < 0.05 || symbol == "D" && k > pause && k < pause+35 {
				continue
			}
			rec := bars.Record{Factor: 1, File: "random", Line: k + 1, Suspended: symbol == "E" && r.Float64() < 0.1}
			rec.Bar = bars.Bar{Time: start.Add(time.Duration(k) * v.step), Open: open, Close: price, High: max(open, price) * (1 + 0.01*r.Float64()), Low: min(open, price) * (1 - 0.01*r.Float64()), Volume: math.NaN()}
			if v.volume {
				rec.Volume = math.Round(1e6*r.Float64()) + 1
			}
			if v.quoted {
				if r.Float64() < 0.05 {
					factor *= 0.5 + r.Float64()
				}
				rec.Factor = factor
				rec.Quote[bars.LimitUp], rec.Quote[bars.LimitDown] = 1.1*max(open, price), math.NaN()
				rec.Quote[bars.Spread], rec.Quote[bars.Depth] = 0.01*open*books.Float64(), 200*books.Float64()
				if books.Bernoulli(0.05) {
					rec.Quote[bars.Spread] = math.NaN()
				}
				switch u := r.Float64(); {
				case u < 0.1:
					rec.Quote[bars.LimitUp] = price
				case u < 0.2:
					rec.Quote[bars.LimitUp] = open
				case u < 0.3:
					rec.Quote[bars.LimitDown] = price
				case u < 0.4:
					rec.Quote[bars.LimitDown] = open
				}
			}
			for range d.Extra {
				x := r.Normal()
				if r.Float64() < 0.02 {
					x = math.NaN()
				}
				rec.Extra = append(rec.Extra, x)
			}
			s.Records = append(s.Records, rec)
		}
		d.Series = append(d.Series, s)
	}
	return c, d
}

// arrival is what comes at one time.
type arrival struct {
	at   time.Time
	rows []live.Row
}

// arrivals merges the rows of all series by time, without the help of package bars.
func arrivals(d *bars.Data) []arrival {
	byTime := map[int64][]live.Row{}
	when := map[int64]time.Time{}
	for i, s := range d.Series {
		for _, rec := range s.Records {
			k := rec.Time.UnixNano()
			if byTime[k] == nil {
				byTime[k], when[k] = make([]live.Row, len(d.Series)), rec.Time
			}
			row := live.Row{Bar: rec.Bar, Status: bars.Traded, Extra: rec.Extra}
			if f := rec.Factor; f != 1 || s.Quoted != nil {
				row.Quote = rec.Quote
				row.Quote[bars.RawOpen], row.Quote[bars.RawHigh], row.Quote[bars.RawLow], row.Quote[bars.RawClose] = rec.Open, rec.High, rec.Low, rec.Close
				row.Quote[bars.RawVolume], row.Quote[bars.Factor] = rec.Volume, f
				row.Open, row.High, row.Low, row.Close = rec.Open*f, rec.High*f, rec.Low*f, rec.Close*f
			}
			if rec.Suspended {
				row.Status = bars.Suspended
			}
			byTime[k][i] = row
		}
	}
	var list []arrival
	for k, rows := range sorted.All(byTime) {
		list = append(list, arrival{when[k], rows})
	}
	slices.SortFunc(list, func(a, b arrival) int { return a.at.Compare(b.at) })
	return list
}

func mustBuild(t testing.TB, c prepared.Config, d *bars.Data) *prepared.Set {
	t.Helper()
	set, err := prepared.Build(c, d)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func mustFeed(t testing.TB, set *prepared.Set) *live.Feed {
	t.Helper()
	f, err := live.New(live.NewPipeline(&set.Manifest))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func forVariants(t *testing.T, test func(t *testing.T, seed uint64, v variant)) {
	n, seeds := 0, longtest.Cases(t, 3, 1)
	for i, v := range variants {
		for seed := range uint64(seeds) {
			t.Run(fmt.Sprintf("%s %d", v.name, seed), func(t *testing.T) { test(t, 10*uint64(i)+seed, v) })
			n++
		}
	}
	if n != 7*seeds {
		t.Errorf("%d markets", n)
	}
}
