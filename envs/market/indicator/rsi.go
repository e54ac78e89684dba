package indicator

import (
	"math"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// rsi is Wilder's relative strength index, 0..100; 0 where prices have not moved at all, as in
// TA-Lib.
var rsi = Kind{
	Name: "rsi", Title: "relative strength index", Params: period(14, 2), Each: true,
	Outputs: []Output{{"", Percent}},
	Warmup:  func(p []float64) int { return int(p[0]) },
	New: func(p []float64) Indicator {
		n := int(p[0])
		return &rsiState{up: wilder{n: n}, down: wilder{n: n}}
	},
}

type rsiState struct {
	up, down wilder
	started  bool
	close    float64
}

func (s *rsiState) Next(b *bars.Bar, out []float64) {
	d := b.Close - s.close
	s.close = b.Close
	out[0] = math.NaN()
	if !s.started {
		s.started = true
		return
	}
	up, down := s.up.add(max(d, 0)), s.down.add(max(-d, 0))
	switch total := up + down; {
	case math.IsNaN(total):
	case isZero(total):
		out[0] = 0
	default:
		out[0] = 100 * (up / total)
	}
}
