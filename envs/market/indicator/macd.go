package indicator

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// macd is the difference of a fast and a slow EMA, its own EMA (signal) and the difference of these
// two. The fast EMA is seeded by the mean of the bars that end where the slow one is seeded, as in
// TA-Lib; seeding it at its own start gives other values for the first hundred bars.
var macd = Kind{
	Name: "macd", Title: "moving average convergence/divergence",
	Params:  []Param{{Name: "fast", Default: 12, Min: 2}, {Name: "slow", Default: 26, Min: 2}, {Name: "signal", Default: 9, Min: 1}},
	Outputs: []Output{{"", Spread}, {"signal", Spread}, {"hist", Spread}},
	Warmup:  func(p []float64) int { return int(p[1]) + int(p[2]) - 2 },
	New: func(p []float64) Indicator {
		fast, slow := int(p[0]), int(p[1])
		return &macdState{skip: slow - fast, fast: newEMA(fast), slow: newEMA(slow), signal: newEMA(int(p[2]))}
	},
	check: func(p []float64) error {
		if p[0] >= p[1] {
			return fmt.Errorf("fast of macd must be below slow, are %v and %v", p[0], p[1])
		}
		return nil
	},
}

type macdState struct {
	skip               int
	fast, slow, signal smooth
}

func (s *macdState) Next(b *bars.Bar, out []float64) {
	undefined(out[:3])
	slow := s.slow.add(b.Close)
	if s.skip > 0 {
		s.skip--
		return
	}
	line := s.fast.add(b.Close) - slow
	if math.IsNaN(line) {
		return
	}
	// The three outputs become defined together.
	if signal := s.signal.add(line); !math.IsNaN(signal) {
		out[0], out[1], out[2] = line, signal, line-signal
	}
}
