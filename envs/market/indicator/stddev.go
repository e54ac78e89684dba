package indicator

import (
	"math"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// stddev is the population standard deviation of the last n closes.
var stddev = Kind{
	Name: "stddev", Title: "standard deviation", Params: period(20, 2), Each: true,
	Outputs: []Output{{"", Spread}},
	Warmup:  func(p []float64) int { return int(p[0]) - 1 },
	New:     func(p []float64) Indicator { return &stddevState{newWindow(int(p[0]))} },
}

type stddevState struct{ window }

func (s *stddevState) Next(b *bars.Bar, out []float64) {
	s.push(b.Close)
	out[0] = math.NaN()
	if s.full {
		out[0] = s.deviation(s.mean())
	}
}
