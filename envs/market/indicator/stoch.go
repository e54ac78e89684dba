package indicator

import "github.com/onnxrl/onnxrl/envs/market/bars"

// stoch is the slow stochastic oscillator, 0..100: where the close lies in the range of the last
// bars, averaged (k) and averaged again (d). A range of zero counts as 0, as in TA-Lib.
var stoch = Kind{
	Name: "stoch", Title: "stochastic oscillator",
	Params:  []Param{{Name: "fast_k", Default: 5, Min: 1}, {Name: "slow_k", Default: 3, Min: 1}, {Name: "slow_d", Default: 3, Min: 1}},
	Outputs: []Output{{"k", Percent}, {"d", Percent}},
	Warmup:  func(p []float64) int { return int(p[0]) + int(p[1]) + int(p[2]) - 3 },
	New: func(p []float64) Indicator {
		return &stochState{channel: newChannel(int(p[0])), k: newWindow(int(p[1])), d: newWindow(int(p[2]))}
	},
}

type stochState struct {
	channel
	k, d window
}

func (s *stochState) Next(b *bars.Bar, out []float64) {
	undefined(out[:2])
	s.push(b)
	if !s.channel.full() {
		return
	}
	low := s.low.value()
	fast := 0.0
	if r := s.high.value() - low; r != 0 {
		fast = (b.Close - low) / r * 100
	}
	s.k.push(fast)
	if !s.k.full {
		return
	}
	k := s.k.mean()
	s.d.push(k)
	if s.d.full {
		out[0], out[1] = k, s.d.mean()
	}
}
