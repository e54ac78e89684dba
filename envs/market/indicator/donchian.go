package indicator

import "github.com/onnxrl/onnxrl/envs/market/bars"

// donchian is the channel of the highest high and the lowest low of the last n bars, this one
// included.
var donchian = Kind{
	Name: "donchian", Title: "Donchian channel", Params: period(20, 1), Each: true,
	Outputs: []Output{{"upper", Price}, {"middle", Price}, {"lower", Price}},
	Warmup:  func(p []float64) int { return int(p[0]) - 1 },
	New:     func(p []float64) Indicator { return &donchianState{newChannel(int(p[0]))} },
}

type donchianState struct{ channel }

func (s *donchianState) Next(b *bars.Bar, out []float64) {
	s.push(b)
	if !s.full() {
		undefined(out[:3])
		return
	}
	out[0], out[1], out[2] = s.high.value(), s.middle(), s.low.value()
}
