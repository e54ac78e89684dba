package indicator

import (
	"math"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// obv is on-balance volume: volume counted positive on bars that close higher and negative on those
// that close lower. Period 0, the default, is the running total of TA-Lib, which starts with the
// first bar's volume and therefore depends on where the data begin. With a period n it is the total
// over the last n changes, which does not.
var obv = Kind{
	Name: "obv", Title: "on-balance volume", Params: period(0, 0), Each: true,
	Outputs: []Output{{"", Volume}},
	Volume:  true,
	Warmup:  func(p []float64) int { return int(p[0]) },
	New:     func(p []float64) Indicator { return &obvState{recent: newWindow(max(int(p[0]), 1)), n: int(p[0])} },
}

type obvState struct {
	n            int
	recent       window
	started      bool
	close, total float64
}

func (s *obvState) Next(b *bars.Bar, out []float64) {
	signed := 0.0
	switch {
	case !s.started:
		s.total = b.Volume
	case b.Close > s.close:
		signed = b.Volume
	case b.Close < s.close:
		signed = -b.Volume
	}
	s.total += signed
	if s.started {
		s.recent.push(signed)
	}
	s.started, s.close = true, b.Close
	switch {
	case s.n == 0:
		out[0] = s.total
	case s.recent.full:
		out[0] = s.recent.sum()
	default:
		out[0] = math.NaN()
	}
}
