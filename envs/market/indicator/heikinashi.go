package indicator

import "github.com/onnxrl/onnxrl/envs/market/bars"

// heikinAshi are averaged candles: the close is the mean of the four prices, the open the mean of
// the candle before.
var heikinAshi = Kind{
	Name: "heikin_ashi", Title: "Heikin-Ashi candles",
	Outputs: []Output{{"open", Price}, {"high", Price}, {"low", Price}, {"close", Price}},
	Warmup:  func([]float64) int { return 0 },
	New:     func([]float64) Indicator { return &heikinAshiState{} },
}

type heikinAshiState struct {
	started     bool
	open, close float64
}

func (s *heikinAshiState) Next(b *bars.Bar, out []float64) {
	if s.started {
		s.open = (s.open + s.close) / 2
	} else {
		s.open, s.started = (b.Open+b.Close)/2, true
	}
	s.close = (b.Open + b.High + b.Low + b.Close) / 4
	out[0], out[1], out[2], out[3] = s.open, max(b.High, s.open, s.close), min(b.Low, s.open, s.close), s.close
}
