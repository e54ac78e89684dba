package indicator

import (
	"math"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// roc is the change of the close over n bars in percent; 0 where the older close is 0.
var roc = Kind{
	Name: "roc", Title: "rate of change", Params: period(10, 1), Each: true,
	Outputs: []Output{{"", Percent}},
	Warmup:  func(p []float64) int { return int(p[0]) },
	New:     func(p []float64) Indicator { return &rocState{newWindow(int(p[0]) + 1)} },
}

type rocState struct{ window }

func (s *rocState) Next(b *bars.Bar, out []float64) {
	s.push(b.Close)
	out[0] = math.NaN()
	if !s.full {
		return
	}
	if out[0] = 0; s.oldest() != 0 {
		out[0] = (b.Close/s.oldest() - 1) * 100
	}
}
