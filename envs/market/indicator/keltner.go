package indicator

import (
	"math"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// keltner is the EMA of the typical price ± k average true ranges. Both averages are seeded so that
// their first values fall on the same bar, as in TA-Lib.
var keltner = Kind{
	Name: "keltner", Title: "Keltner channel",
	Params: []Param{
		{Name: "period", Default: 20, Min: 1}, {Name: "multiplier", Default: 2, Min: 0, Real: true}, {Name: "atr_period", Default: 10, Min: 1},
	},
	Outputs: []Output{{"upper", Price}, {"middle", Price}, {"lower", Price}},
	Warmup:  func(p []float64) int { return int(max(p[0]-1, p[2])) },
	New: func(p []float64) Indicator {
		n, atr := int(p[0]), int(p[2])
		warm := max(n-1, atr)
		return &keltnerState{
			skip: warm - (n - 1), skipRanges: warm - atr + 1, // the first bar has no true range
			k: p[1], average: newEMA(n), ranges: wilder{n: atr},
		}
	},
}

type keltnerState struct {
	skip, skipRanges int
	k                float64
	average          smooth
	tr               trueRange
	ranges           wilder
}

func (s *keltnerState) Next(b *bars.Bar, out []float64) {
	m, r := math.NaN(), s.tr.next(b)
	if s.skip > 0 {
		s.skip--
	} else {
		m = s.average.add(typical(b))
	}
	if s.skipRanges > 0 {
		s.skipRanges--
		r = math.NaN()
	} else {
		r = s.ranges.add(r)
	}
	if math.IsNaN(m) || math.IsNaN(r) {
		undefined(out[:3])
		return
	}
	out[0], out[1], out[2] = m+s.k*r, m, m-s.k*r
}
