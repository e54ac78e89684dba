package indicator

import (
	"math"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// atr is Wilder's average true range.
var atr = Kind{
	Name: "atr", Title: "average true range", Params: period(14, 1), Each: true,
	Outputs: []Output{{"", Spread}},
	Warmup:  func(p []float64) int { return int(p[0]) },
	New:     func(p []float64) Indicator { return &atrState{average: wilder{n: int(p[0])}} },
}

type atrState struct {
	trueRange
	average wilder
}

// value is the average after the bar, NaN while undefined.
func (s *atrState) value(b *bars.Bar) float64 {
	r := s.next(b)
	if math.IsNaN(r) {
		return r
	}
	return s.average.add(r)
}

func (s *atrState) Next(b *bars.Bar, out []float64) { out[0] = s.value(b) }
