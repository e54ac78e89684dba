package feature

import (
	"math"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/indicator"
)

// Stream computes the rows of one asset, bar after bar. It is not safe for concurrent use.
type Stream struct {
	f      *Features
	states []indicator.Indicator
	// factors is nil where there are none.
	factors *factors
	close   float64 // of the bar before; 0 before the first
}

// Stream returns a stream before its first bar.
func (f *Features) Stream() *Stream {
	s := &Stream{f: f, factors: f.newFactors()}
	for _, c := range f.cfg.Indicators {
		s.states = append(s.states, c.New())
	}
	return s
}

// Next takes the asset's next bar, from its listing on, with the panel's extra columns, and writes
// the row, one value per column, into row. Values are not normalised. It returns false, and a row
// of zeros except for the listed flag, where the row is not defined.
func (s *Stream) Next(b *bars.Bar, extra []float64, status bars.Status, row []float64) bool {
	listed := status.Listed()
	n := s.Raw(b, extra, status, row)
	defined := listed
	for _, v := range row[:n] {
		defined = defined && v-v == 0 // neither NaN nor infinite
	}
	if !defined {
		s.f.Blank(row, listed)
	} else if s.f.cfg.Listed {
		row[n] = 1
	}
	return defined
}

// Raw takes the next bar like Next and writes the values of all columns but the listed flag, NaN
// where there is none. It returns how many.
func (s *Stream) Raw(b *bars.Bar, extra []float64, status bars.Status, row []float64) int {
	f, at := s.f, 0
	if f.cfg.OHLCV {
		at = s.ohlcv(b, row)
	}
	next := at
	for i, state := range s.states {
		n := f.outputs[i]
		state.Next(b, row[next:next+n])
		next += n
	}
	apply(f.form, row[at:next], b.Close)
	if s.factors != nil {
		s.factors.next(b, extra, status, row[next:])
		next += f.factors.Outputs()
	}
	for _, e := range f.extra {
		row[next] = extra[e]
		next++
	}
	for _, name := range f.angles {
		row[next], row[next+1] = math.Sincos(2 * math.Pi * fraction(name, b.Time))
		next += 2
	}
	if f.cfg.Timestamps {
		writeTimestamps(b.Time, row[next:])
		next += len(timestamps)
	}
	s.close = b.Close
	return next
}

// Blank writes the row of a stock that is not listed, or listed without defined features.
func (f *Features) Blank(row []float64, listed bool) {
	clear(row[:len(f.columns)])
	if f.cfg.Listed && listed {
		row[len(f.columns)-1] = 1
	}
}

// ohlcv writes prices and volume and returns how many values.
func (s *Stream) ohlcv(b *bars.Bar, row []float64) int {
	row[0], row[1], row[2], row[3] = b.Open, b.High, b.Low, b.Close
	if s.f.relative {
		before := s.close
		if !(before > 0) {
			before = math.NaN()
		}
		for i := range row[:4] {
			row[i] = row[i]/before - 1
		}
	}
	if !s.f.volumes {
		return 4
	}
	row[4] = b.Volume
	if s.f.logs {
		row[4] = math.Log1p(b.Volume)
	}
	return 5
}

// apply brings the indicators' outputs into their forms.
func apply(forms []form, row []float64, close float64) {
	for i, f := range forms {
		switch x := row[i]; f {
		case overClose:
			row[i] = x/close - 1
		case perClose:
			row[i] = x / close
		case logarithm:
			row[i] = math.Copysign(math.Log1p(math.Abs(x)), x)
		}
	}
}

// fraction is how much of a calendar's cycle has passed, 0..1.
func fraction(name string, t time.Time) float64 {
	switch name {
	case "time_of_day":
		h, m, sec := t.Clock()
		return float64(h*3600+m*60+sec) / 86400
	case "weekday":
		return float64(t.Weekday()) / 7
	case "month_day":
		return float64(t.Day()-1) / 31
	}
	return float64(t.YearDay()-1) / 366
}

// Rows runs asset n of a panel through a fresh stream and calls visit with every row from the
// listing on. The row is reused. Rows before the listing are those of [Features.Blank].
func (f *Features) Rows(p *bars.Panel, n int, visit func(t int, row []float64, defined bool)) {
	s, row := f.Stream(), make([]float64, len(f.columns))
	for t := range p.Times {
		i := p.Index(t, n)
		if p.Status[i] == bars.Unlisted {
			continue
		}
		visit(t, row, s.Next(&p.Bars[i], p.ExtraAt(t, n), p.Status[i], row))
	}
}
