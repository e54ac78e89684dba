package feed

import (
	"slices"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/envs/market/trading"
)

// FromSet returns the set as a market with its splits. Features and prices are shared with the set,
// which must not change any more; only the sides are new memory. A split of a single bar, which
// leaves no step, is left out.
func FromSet(s *prepared.Set) *trading.Data {
	m := &s.Manifest
	market := &trading.Market{
		Assets: m.Symbols, Features: make([]string, len(m.Features)), Dates: s.Times,
		X: s.X.Float32s(), Open: s.Open, Close: s.Close, Tradable: make([]trading.Sides, m.T*m.N),
	}
	scales := make([]trading.Scale, len(m.Features))
	for i, f := range m.Features {
		market.Features[i] = f.Name
		scales[i] = trading.Scale{Mean: f.Mean, Std: f.Std, Clip: f.Clip, Scaled: f.Scaled, Unit: string(f.Unit)}
	}
	market.Rules, _ = prepared.Book(m.Rules) // the set was made with it, or read and checked
	market.LimitUp, market.LimitDown = s.Quotes[bars.LimitUp], s.Quotes[bars.LimitDown]
	market.Spread, market.Depth = s.Quotes[bars.Spread], s.Quotes[bars.Depth]
	if slices.ContainsFunc(s.Volume, func(v float64) bool { return v > 0 }) {
		market.Volume = s.Volume
	}
	// Limits are of the prices that were quoted.
	open, close := s.Open, s.Close
	if q := s.Quotes; q[bars.Factor] != nil {
		open, close = q[bars.RawOpen], q[bars.RawClose]
		market.Raw = &trading.RawPrices{Open: open, Close: close, Factor: q[bars.Factor], LimitUp: market.LimitUp, LimitDown: market.LimitDown, Spread: market.Spread, Depth: market.Depth}
		if market.Volume != nil {
			market.Raw.Volume = q[bars.RawVolume]
		}
		market.Volume, market.LimitUp, market.LimitDown, market.Spread, market.Depth = nil, nil, nil, nil, nil
	}
	if dividend, bonus := s.Quotes[bars.Dividend], s.Quotes[bars.Bonus]; dividend != nil || bonus != nil {
		none := func(column []float64) []float64 {
			if column == nil {
				return make([]float64, m.T*m.N)
			}
			return column
		}
		if market.Raw == nil {
			// The prices are as they were quoted, and nothing but these is known.
			market.Raw = &trading.RawPrices{Open: open, Close: close, Factor: slices.Repeat([]float64{1}, m.T*m.N), Volume: market.Volume, LimitUp: market.LimitUp, LimitDown: market.LimitDown, Spread: market.Spread, Depth: market.Depth}
		}
		market.Raw.Dividend, market.Raw.Bonus = none(dividend), none(bonus)
	}
	up, down := s.Quotes[bars.LimitUp], s.Quotes[bars.LimitDown]
	if up != nil || down != nil {
		market.AtOpen = make([]trading.Sides, m.T*m.N)
	}
	at := func(column []float64, i int) float64 {
		if column == nil {
			return 0
		}
		return column[i]
	}
	for t := range m.T {
		for n := range m.N {
			i, traded := t*m.N+n, s.Tradable(t, n)
			market.Tradable[i] = trading.SidesAt(traded, close[i], at(down, i), at(up, i))
			if market.AtOpen != nil {
				market.AtOpen[i] = trading.SidesAt(traded, open[i], at(down, i), at(up, i))
			}
		}
	}
	if slices.Contains(s.Status, bars.Gone) {
		market.Gone = make([]uint8, len(s.Status))
		for i, status := range s.Status {
			if status == bars.Gone {
				market.Gone[i] = 1
			}
		}
	}
	if s.Members != nil {
		market.Enrol(s.Members)
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
	if len(m.TrainWithout) > 0 {
		for _, part := range m.Split.Train.Outside(m.TrainWithout) {
			if part.Len() > 1 {
				d.TrainParts = append(d.TrainParts, trading.Range{First: part.Lo, Last: part.Hi - 1})
			}
		}
	}
	return d
}
