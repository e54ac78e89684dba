package walkforward

import (
	"math"
	"time"

	"github.com/onnxrl/onnxrl/export/report/performance"
)

// sample is what figures are made of: a record of one test range, or of all of them in a row.
type sample struct {
	// ends [T] are the dates at which the returns end.
	ends []time.Time
	// r, bench [T] are returns, of the record and of the market that months are classified by;
	// of [T] the other slices, too: shares of the value before the step.
	r, bench, turnover, fees, invested []float64
	// herfindahl, largest and participation are those of [Record].
	herfindahl, largest, participation float64
	periods, rate                      float64 // returns in a year, risk-free rate per return
}

// Figures are numbers of a record by the keys of the table below.
type Figures map[string]performance.Number

// Thresholds: the least change of a month in which the market rises or falls, and the share of a
// bar's turnover in money that 95 % of the trades may take.
const (
	trend    = 0.02
	impacted = 0.01
)

// figure is a number of a record. Those without a heading are in the files only.
type figure struct {
	key, heading string
	of           func(s *sample) float64
}

var figures = []figure{
	{"annual_return", "return", func(s *sample) float64 { return s.annual(s.r) }},
	{"sharpe", "Sharpe", func(s *sample) float64 { return performance.Sharpe(s.excess()) * math.Sqrt(s.periods) }},
	{"sortino", "Sortino", func(s *sample) float64 { return performance.Sortino(s.excess()) * math.Sqrt(s.periods) }},
	{"calmar", "Calmar", func(s *sample) float64 {
		if d := performance.MaxDrawdown(performance.Growth(s.r)); d < 0 {
			return s.annual(s.r) / -d
		}
		return math.NaN()
	}},
	{"volatility", "volatility", func(s *sample) float64 { return performance.Volatility(s.r) * math.Sqrt(s.periods) }},
	{"max_drawdown", "drawdown", func(s *sample) float64 { return performance.MaxDrawdown(performance.Growth(s.r)) }},
	{"turnover", "turnover", func(s *sample) float64 { return mean(s.turnover) * s.periods }},
	{"costs", "costs", func(s *sample) float64 { return mean(s.fees) * s.periods }},
	{"exposure", "invested", func(s *sample) float64 { return mean(s.invested) }},
	{"herfindahl", "Herfindahl", func(s *sample) float64 { return s.herfindahl }},
	{"largest_weight", "largest weight", func(s *sample) float64 { return s.largest }},
	{"beta", "beta", func(s *sample) float64 { return performance.Beta(s.excess(), performance.Excess(s.bench, s.rate)) }},
	{"return_up", "up", func(s *sample) float64 { return s.regime(1) }},
	{"return_sideways", "sideways", func(s *sample) float64 { return s.regime(0) }},
	{"return_down", "down", func(s *sample) float64 { return s.regime(-1) }},
	{"capacity", "capacity", func(s *sample) float64 { return impacted / s.participation }},
	{"total_return", "", func(s *sample) float64 { return performance.TotalReturn(s.r) }},
	{"bars", "", func(s *sample) float64 { return float64(len(s.r)) }},
}

// figures computes the table.
func (s *sample) figures() Figures {
	f := Figures{}
	for _, d := range figures {
		v := d.of(s)
		if math.IsInf(v, 0) {
			v = math.NaN()
		}
		f[d.key] = performance.Number(v)
	}
	return f
}

func (s *sample) excess() []float64 { return performance.Excess(s.r, s.rate) }

// annual is the compound return of a year of as many returns.
func (s *sample) annual(r []float64) float64 { return s.yearly(performance.TotalReturn(r), len(r)) }

// yearly makes a total return over n bars that of a year.
func (s *sample) yearly(total float64, n int) float64 {
	return math.Pow(1+total, s.periods/float64(n)) - 1
}

// regime is the annual return in the calendar months in which the market has risen (1), fallen (−1)
// or neither, by more than trend; NaN where there are none.
func (s *sample) regime(sign int) float64 {
	var in []float64
	for lo := 0; lo < len(s.r); {
		hi := lo + 1
		for hi < len(s.r) && s.ends[hi].Year() == s.ends[lo].Year() && s.ends[hi].Month() == s.ends[lo].Month() {
			hi++
		}
		month, was := performance.TotalReturn(s.bench[lo:hi]), 0
		switch {
		case month > trend:
			was = 1
		case month < -trend:
			was = -1
		}
		if was == sign {
			in = append(in, s.r[lo:hi]...)
		}
		lo = hi
	}
	if len(in) == 0 {
		return math.NaN()
	}
	return s.annual(in)
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// row is a record in the form that figures are made of, without the market.
func (r *Record) sample(dates []time.Time, o *Outcome) *sample {
	s := &sample{
		ends: dates[1:], r: performance.Returns(r.Value), turnover: r.Turnover, fees: r.Fees, invested: make([]float64, len(r.Turnover)),
		herfindahl: r.Herfindahl, largest: r.Largest, participation: float64(r.Participation), periods: o.PeriodsPerYear, rate: performance.PerPeriod(o.RiskFree, o.PeriodsPerYear),
	}
	for t := range s.invested {
		s.invested[t] = 1 - r.Cash[t]
	}
	return s
}

// join puts samples of consecutive test ranges in a row. Of capacities the least counts; a range in
// which nothing was traded has none.
func join(list []*sample) *sample {
	out := &sample{periods: list[0].periods, rate: list[0].rate, participation: math.NaN()}
	for _, s := range list {
		n := float64(len(s.r))
		out.ends, out.r, out.bench = append(out.ends, s.ends...), append(out.r, s.r...), append(out.bench, s.bench...)
		out.turnover, out.fees, out.invested = append(out.turnover, s.turnover...), append(out.fees, s.fees...), append(out.invested, s.invested...)
		out.herfindahl, out.largest = out.herfindahl+n*s.herfindahl, out.largest+n*s.largest
		if p := s.participation; !(p <= out.participation) && p > 0 {
			out.participation = p
		}
	}
	out.herfindahl, out.largest = out.herfindahl/float64(len(out.r)), out.largest/float64(len(out.r))
	return out
}
