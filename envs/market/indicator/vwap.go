package indicator

import (
	"math"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// vwap is the typical price weighted by volume: over the last n bars, or with period 0 since the
// first bar of the day, which is meant for intraday bars. Where nothing was traded it is the
// typical price of the bar.
var vwap = Kind{
	Name: "vwap", Title: "volume-weighted average price", Params: period(20, 0), Each: true,
	Outputs: []Output{{"", Price}},
	Volume:  true,
	Warmup:  func(p []float64) int { return max(int(p[0])-1, 0) },
	New: func(p []float64) Indicator {
		if p[0] == 0 {
			return &sessionVWAP{}
		}
		return &vwapState{newWindow(int(p[0])), newWindow(int(p[0]))}
	},
}

type vwapState struct{ money, volume window }

func (s *vwapState) Next(b *bars.Bar, out []float64) {
	tp := typical(b)
	s.money.push(tp * b.Volume)
	s.volume.push(b.Volume)
	out[0] = math.NaN()
	if !s.volume.full {
		return
	}
	if out[0] = tp; !isZero(s.volume.sum()) {
		out[0] = s.money.sum() / s.volume.sum()
	}
}

type sessionVWAP struct {
	year, day     int
	money, volume float64
}

func (s *sessionVWAP) Next(b *bars.Bar, out []float64) {
	if y, d := b.Time.Year(), b.Time.YearDay(); y != s.year || d != s.day {
		*s = sessionVWAP{year: y, day: d}
	}
	tp := typical(b)
	s.money += tp * b.Volume
	s.volume += b.Volume
	if out[0] = tp; !isZero(s.volume) {
		out[0] = s.money / s.volume
	}
}
