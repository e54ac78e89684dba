package indicator

import (
	"math"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// supertrend is a stop line k average true ranges from the middle of the bar, which only moves in
// the direction of the trend and changes sides when the close crosses it. direction is 1 in a
// rising and -1 in a falling trend.
var supertrend = Kind{
	Name: "supertrend", Title: "SuperTrend",
	Params:  []Param{{Name: "period", Default: 10, Min: 1}, {Name: "multiplier", Default: 3, Min: 0, Real: true}},
	Outputs: []Output{{"", Price}, {"direction", Sign}},
	Warmup:  func(p []float64) int { return int(p[0]) },
	New: func(p []float64) Indicator {
		return &supertrendState{atr: atrState{average: wilder{n: int(p[0])}}, k: p[1]}
	},
}

type supertrendState struct {
	atr                 atrState
	k                   float64
	started, falling    bool
	upper, lower, close float64
}

func (s *supertrendState) Next(b *bars.Bar, out []float64) {
	r := s.atr.value(b)
	if math.IsNaN(r) {
		undefined(out[:2])
		s.close = b.Close
		return
	}
	mid := (b.High + b.Low) / 2
	upper, lower := mid+s.k*r, mid-s.k*r
	if s.started {
		// A band moves away from the price only after the price has closed beyond it.
		if upper > s.upper && s.close <= s.upper {
			upper = s.upper
		}
		if lower < s.lower && s.close >= s.lower {
			lower = s.lower
		}
		if s.falling {
			s.falling = b.Close <= upper
		} else {
			s.falling = b.Close < lower
		}
	}
	s.started, s.upper, s.lower, s.close = true, upper, lower, b.Close
	out[0], out[1] = lower, 1
	if s.falling {
		out[0], out[1] = upper, -1
	}
}
