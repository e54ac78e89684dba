package indicator

import "github.com/onnxrl/onnxrl/envs/market/bars"

// bbands are Bollinger's bands: mean and mean ± k population standard deviations of the last n
// closes.
var bbands = Kind{
	Name: "bbands", Title: "Bollinger bands",
	Params:  []Param{{Name: "period", Default: 20, Min: 2}, {Name: "deviations", Default: 2, Min: 0, Real: true}},
	Outputs: []Output{{"upper", Price}, {"middle", Price}, {"lower", Price}},
	Warmup:  func(p []float64) int { return int(p[0]) - 1 },
	New:     func(p []float64) Indicator { return &bbandsState{newWindow(int(p[0])), p[1]} },
}

type bbandsState struct {
	window
	k float64
}

func (s *bbandsState) Next(b *bars.Bar, out []float64) {
	s.push(b.Close)
	if !s.full {
		undefined(out[:3])
		return
	}
	m := s.mean()
	d := s.k * s.deviation(m)
	out[0], out[1], out[2] = m+d, m, m-d
}
