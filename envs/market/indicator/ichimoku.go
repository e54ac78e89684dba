package indicator

import "github.com/onnxrl/onnxrl/envs/market/bars"

// ichimoku is the cloud: tenkan and kijun are the middles of the ranges of the last 9 and 26 bars.
// The spans are what was computed 26 bars (the kijun period) ago and drawn at this bar: the mean of
// tenkan and kijun, and the middle of the range of 52 bars. The chikou span is left out because it
// is a future close.
var ichimoku = Kind{
	Name: "ichimoku", Title: "Ichimoku cloud, without the span that looks ahead",
	Params:  []Param{{Name: "tenkan", Default: 9, Min: 1}, {Name: "kijun", Default: 26, Min: 1}, {Name: "senkou", Default: 52, Min: 1}},
	Outputs: []Output{{"tenkan", Price}, {"kijun", Price}, {"senkou_a", Price}, {"senkou_b", Price}},
	Warmup: func(p []float64) int {
		return int(max(max(p[0], p[1])-1+p[1], p[2]-1+p[1]))
	},
	New: func(p []float64) Indicator {
		shift := int(p[1])
		return &ichimokuState{
			tenkan: newChannel(int(p[0])), kijun: newChannel(shift), senkou: newChannel(int(p[2])),
			a: newWindow(shift + 1), b: newWindow(shift + 1), warm: int(max(p[0], p[1], p[2])),
		}
	},
}

type ichimokuState struct {
	tenkan, kijun, senkou channel
	a, b                  window // spans as computed at the last kijun+1 bars
	warm                  int    // bars until all three middles are defined
}

func (s *ichimokuState) Next(b *bars.Bar, out []float64) {
	s.tenkan.push(b)
	s.kijun.push(b)
	s.senkou.push(b)
	undefined(out[:4])
	if s.warm > 1 {
		s.warm--
		return
	}
	tenkan, kijun := s.tenkan.middle(), s.kijun.middle()
	s.a.push((tenkan + kijun) / 2)
	s.b.push(s.senkou.middle())
	if s.a.full {
		out[0], out[1], out[2], out[3] = tenkan, kijun, s.a.oldest(), s.b.oldest()
	}
}
