package indicator

import (
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// cci is the commodity channel index: how far the typical price is from its mean of n bars, in
// units of 0.015 mean absolute deviations; 0 where there is no deviation.
var cci = Kind{
	Name: "cci", Title: "commodity channel index", Params: period(14, 2), Each: true,
	Outputs: []Output{{"", Number}},
	Warmup:  func(p []float64) int { return int(p[0]) - 1 },
	New:     func(p []float64) Indicator { return &cciState{newWindow(int(p[0]))} },
}

type cciState struct{ window }

func (s *cciState) Next(b *bars.Bar, out []float64) {
	tp := typical(b)
	s.push(tp)
	out[0] = math.NaN()
	if !s.full {
		return
	}
	m := s.mean()
	spread := 0.0
	for _, x := range s.all() {
		spread += math.Abs(x - m)
	}
	out[0] = 0
	// The mean of equal numbers may differ from them in the last bit, which would come out as a
	// large quotient.
	if d := tp - m; !equal(s.all()) && !isZero(d) && !isZero(spread) {
		out[0] = d / (0.015 * (spread / float64(s.n)))
	}
}

func equal(numbers []float64) bool {
	return !slices.ContainsFunc(numbers, func(x float64) bool { return x != numbers[0] })
}
