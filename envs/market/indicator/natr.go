package indicator

import "github.com/onnxrl/onnxrl/envs/market/bars"

// natr is the average true range in percent of the close.
var natr = Kind{
	Name: "natr", Title: "normalised average true range", Params: period(14, 1), Each: true,
	Outputs: []Output{{"", Percent}},
	Warmup:  atr.Warmup,
	New:     func(p []float64) Indicator { return &natrState{atrState{average: wilder{n: int(p[0])}}} },
}

type natrState struct{ atrState }

func (s *natrState) Next(b *bars.Bar, out []float64) {
	out[0] = s.value(b) / b.Close * 100
	if isZero(b.Close) {
		out[0] = 0
	}
}
