package indicator

import (
	"math"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// willr is Williams' %R, -100..0: how far the close is below the highest high of n bars, in percent
// of the range.
var willr = Kind{
	Name: "willr", Title: "Williams %R", Params: period(14, 2), Each: true,
	Outputs: []Output{{"", Percent}},
	Warmup:  func(p []float64) int { return int(p[0]) - 1 },
	New:     func(p []float64) Indicator { return &willrState{newChannel(int(p[0]))} },
}

type willrState struct{ channel }

func (s *willrState) Next(b *bars.Bar, out []float64) {
	s.push(b)
	out[0] = math.NaN()
	if !s.full() {
		return
	}
	high, low := s.high.value(), s.low.value()
	if out[0] = 0; high != low {
		out[0] = -100 * (high - b.Close) / (high - low)
	}
}
