// Package feed hands prepared market data to the trading environment.
package feed

import (
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/envs/market/trading"
)

// FromSet returns the set as a market with its splits. Features and prices are shared with the set,
// which must not change any more; only the tradable flags are new memory. A split of a single bar,
// which leaves no step, is left out.
func FromSet(s *prepared.Set) *trading.Data {
	m := &s.Manifest
	market := &trading.Market{
		Assets: m.Symbols, Features: make([]string, len(m.Features)), Dates: s.Times,
		X: s.X.Float32s(), Open: s.Open, Close: s.Close, Tradable: make([]bool, m.T*m.N),
	}
	scales := make([]trading.Scale, len(m.Features))
	for i, f := range m.Features {
		market.Features[i] = f.Name
		scales[i] = trading.Scale{Mean: f.Mean, Std: f.Std, Clip: f.Clip, Scaled: f.Scaled, Unit: string(f.Unit)}
	}
	for t := range m.T {
		for n := range m.N {
			market.Tradable[t*m.N+n] = s.Tradable(t, n)
		}
	}
	d := &trading.Data{
		Market: market, Splits: map[envs.Split]trading.Range{}, Scales: scales,
		Digests:   map[string]string{"data_sha256": m.DataSHA256, "data_config_sha256": m.ConfigSHA256},
		LookAhead: m.LookAhead,
		Notes:     m.Notes,
		Adjusted:  m.Adjusted,
	}
	for _, span := range m.Split.Named() {
		if span.Len() > 1 {
			d.Splits[envs.Split(span.Name)] = trading.Range{First: span.Lo, Last: span.Hi - 1}
		}
	}
	return d
}
