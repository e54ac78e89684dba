package indicator

import "github.com/onnxrl/onnxrl/envs/market/bars"

// ema is the exponential average of closes with weight 2/(n+1), seeded by the mean of the first n.
var ema = Kind{
	Name: "ema", Title: "exponential moving average", Params: period(20, 1), Each: true,
	Outputs: []Output{{"", Price}},
	Warmup:  func(p []float64) int { return int(p[0]) - 1 },
	New:     func(p []float64) Indicator { return &emaState{newEMA(int(p[0]))} },
}

type emaState struct{ smooth }

func (s *emaState) Next(b *bars.Bar, out []float64) { out[0] = s.add(b.Close) }
