package indicator

import (
	"math"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// adx is Wilder's average directional index with the two directional indicators, each 0..100. The
// sums start with n-1 changes, as in TA-Lib.
var adx = Kind{
	Name: "adx", Title: "average directional index", Params: period(14, 2), Each: true,
	Outputs: []Output{{"", Percent}, {"plus_di", Percent}, {"minus_di", Percent}},
	Warmup:  func(p []float64) int { return 2*int(p[0]) - 1 },
	New:     func(p []float64) Indicator { return &adxState{n: float64(p[0]), average: wilder{n: int(p[0])}} },
}

type adxState struct {
	n                float64
	seen             float64 // changes so far
	started          bool
	high, low        float64
	tr               trueRange
	plus, minus, sum float64 // decaying sums of directional movements and true ranges
	average          wilder  // of dx
}

func (s *adxState) Next(b *bars.Bar, out []float64) {
	undefined(out[:3])
	r := s.tr.next(b)
	up, down := b.High-s.high, s.low-b.Low
	s.high, s.low = b.High, b.Low
	if !s.started {
		s.started = true
		return
	}
	if s.seen++; s.seen >= s.n {
		s.plus -= s.plus / s.n
		s.minus -= s.minus / s.n
		s.sum -= s.sum / s.n
	}
	if down > 0 && up < down {
		s.minus += down
	} else if up > 0 && up > down {
		s.plus += up
	}
	s.sum += r
	if s.seen < s.n {
		return
	}
	plus, minus := 0.0, 0.0
	if !isZero(s.sum) {
		plus, minus = 100*(s.plus/s.sum), 100*(s.minus/s.sum)
	}
	// Without any movement dx has no value: nothing is added to the first sum, and later the
	// average stays.
	dx := 0.0
	if total := plus + minus; !isZero(total) {
		dx = 100 * (math.Abs(minus-plus) / total)
	} else if s.average.seen == s.average.n {
		dx = s.average.value
	}
	if a := s.average.add(dx); !math.IsNaN(a) {
		out[0], out[1], out[2] = a, plus, minus
	}
}
