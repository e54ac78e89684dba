package indicator

import (
	"math"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// sma is the mean of the last n closes.
var sma = Kind{
	Name: "sma", Title: "simple moving average", Params: period(20, 1), Each: true,
	Outputs: []Output{{"", Price}},
	Warmup:  func(p []float64) int { return int(p[0]) - 1 },
	New:     func(p []float64) Indicator { return &smaState{newWindow(int(p[0]))} },
}

type smaState struct{ window }

func (s *smaState) Next(b *bars.Bar, out []float64) {
	s.push(b.Close)
	out[0] = math.NaN()
	if s.full {
		out[0] = s.mean()
	}
}
