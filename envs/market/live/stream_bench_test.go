package live_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/live"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/envs/market/stream"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// BenchmarkMessages is what a bar costs from its message to its features, those of QTMRL, of 16 and
// of 300 assets. An operation is a bar.
func BenchmarkMessages(b *testing.B) {
	for _, assets := range []int{16, 300} {
		doc, err := configs.Parse("test.yaml", fmt.Appendf(nil, `
synthetic: {kind: noise, seed: 3, bars: 300, assets: %d}
features:
  prices: relative
  volume: log
  indicators: {sma: [10, 20, 50], ema: [12, 26], rsi: [14], macd: [12, 26, 9], atr: [14], bbands: [20, 2.0], ichimoku: [9, 26, 52], heikin_ashi: true, supertrend: [10, 3.0]}
split: {train: [2000-01-03, 2000-12-31], valid: null, test: null}
`, assets))
		c := prepared.Default()
		if err == nil {
			err = doc.Decode(&c)
		}
		var d *bars.Data
		if err == nil {
			d, err = prepared.Read(c)
		}
		if err != nil {
			b.Fatal(err)
		}
		p := live.NewPipeline(&mustBuild(b, c, d).Manifest)
		for _, e := range []stream.Encoding{stream.JSON, stream.Protobuf} {
			values := walk(p.Assets, 500, e)
			b.Run(fmt.Sprintf("decode/%d/%s", assets, e), func(b *testing.B) {
				b.ReportAllocs()
				var m stream.Message
				for i := range b.N {
					if err := m.Decode(values[i%len(values)]); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(fmt.Sprintf("features/%d/%s", assets, e), func(b *testing.B) {
				b.ReportAllocs()
				var m stream.Message
				var g *stream.Gatherer
				var f *live.Feed
				for i := range b.N {
					k := i % len(values)
					if k == 0 {
						b.StopTimer()
						if f, err = live.New(p); err == nil {
							g, err = stream.NewGatherer(stream.DefaultRules(), p, func(string) {})
						}
						if err != nil {
							b.Fatal(err)
						}
						b.StartTimer()
					}
					if err := m.Decode(values[k]); err != nil {
						b.Fatal(err)
					}
					if err := g.Take(0, &m, m.Time); err != nil {
						b.Fatal(err)
					}
					at, rows, ok, err := g.Next()
					if ok && err == nil {
						err = f.Append(at, rows)
					}
					if err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// walk are messages of random walks, a day after another.
func walk(symbols []string, times int, e stream.Encoding) (list [][]byte) {
	r, price := rng.New(1).Stream(), make([]float64, len(symbols))
	for k := range times {
		for i, symbol := range symbols {
			if k == 0 {
				price[i] = 50
			}
			open := price[i]
			price[i] *= math.Exp(0.01 * r.Normal())
			cents := func(v float64) float64 { return math.Round(100*v) / 100 }
			rec := bars.Record{Factor: 1}
			rec.Bar = bars.Bar{Time: time.Date(2001, 1, 1+k, 0, 0, 0, 0, time.UTC), Open: cents(open), High: cents(1.001 * max(open, price[i])), Low: cents(0.999 * min(open, price[i])), Close: cents(price[i]), Volume: math.Round(1e6 * r.Float64())}
			list = append(list, e.Append(nil, symbol, &rec, nil, nil))
		}
	}
	return list
}
