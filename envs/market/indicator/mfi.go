package indicator

import (
	"math"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// mfi is the money flow index, 0..100: the share of typical price times volume on rising bars among
// the last n changes; 0 where hardly any money flowed, as in TA-Lib.
var mfi = Kind{
	Name: "mfi", Title: "money flow index", Params: period(14, 2), Each: true,
	Outputs: []Output{{"", Percent}},
	Volume:  true,
	Warmup:  func(p []float64) int { return int(p[0]) },
	New: func(p []float64) Indicator {
		return &mfiState{up: newWindow(int(p[0])), down: newWindow(int(p[0]))}
	},
}

type mfiState struct {
	up, down window
	started  bool
	typical  float64
}

func (s *mfiState) Next(b *bars.Bar, out []float64) {
	tp := typical(b)
	flow := tp * b.Volume
	if s.started {
		up, down := 0.0, 0.0
		if tp > s.typical {
			up = flow
		} else if tp < s.typical {
			down = flow
		}
		s.up.push(up)
		s.down.push(down)
	}
	s.started, s.typical = true, tp
	out[0] = math.NaN()
	if !s.up.full {
		return
	}
	up := s.up.sum()
	if total := up + s.down.sum(); total < 1 {
		out[0] = 0
	} else {
		out[0] = 100 * (up / total)
	}
}
