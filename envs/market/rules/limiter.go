package rules

import (
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// Limiter gives the rows of some symbols the limits of a book. Where a row has limits of its own,
// these hold, and what the book says is compared with them. A symbol whose first row is later than
// the first of all is taken to have been listed on that day.
type Limiter struct {
	book    Book
	first   bars.Date
	symbols []symbol
}

// symbol is what is known of one of them after its last row.
type symbol struct {
	name  string
	class uint8
	share Share
	// own says that there were limits of its own, so that a blank means that a day has none.
	own           bool
	close, factor float64
	low, high     int64
	Found
}

// Found counts the rows of a symbol by where their limits are from.
type Found struct {
	// Computed rows have the book's limits, Given ones their own.
	Computed int
	Given    int
	// Disagree counts those of Given that are not what the book says, and Announced the rows
	// without limits, of a symbol that has some, on days on which the book would limit them.
	Disagree  int
	Announced int
	// Unknown rows have no limits for want of a previous close.
	Unknown int
	// OffTick rows have prices that are no multiples of 0.01.
	OffTick int
	// Example is the first row of Disagree, and AnnouncedExample that of Announced.
	Example          string
	AnnouncedExample string
}

// NewLimiter returns a limiter for symbols, of which first is the first day with rows; zero is that
// of the first row that it is given.
func NewLimiter(b Book, symbols []string, first bars.Date) (*Limiter, error) {
	l := &Limiter{book: b, first: first, symbols: make([]symbol, len(symbols))}
	for i, name := range symbols {
		class, err := b.Class(name)
		if err != nil {
			return nil, fmt.Errorf("rules: %s: %w", b.Name(), err)
		}
		l.symbols[i] = symbol{name: name, class: class}
	}
	return l, nil
}

// Found returns what was found in the rows of a symbol.
func (l *Limiter) Found(i int) Found { return l.symbols[i].Found }

// Limit writes the limits of the next row of a symbol into its quote. Rows are as [bars.Clean]
// returns them, in the order of time, and quoted are the columns that they have.
func (l *Limiter) Limit(i int, r *bars.Record, quoted []bars.QuoteColumn) {
	s, q, day := &l.symbols[i], &r.Quote, bars.NewDate(r.Time)
	if l.first.IsZero() {
		l.first = day
	}
	number := func(c bars.QuoteColumn) float64 {
		if slices.Contains(quoted, c) && q[c] > 0 {
			return q[c]
		}
		return 0
	}
	if s.share.Day != day {
		if s.share.Day.IsZero() && l.first.Before(day) {
			s.share.Listed = day
		}
		if s.share.Day = day; !s.share.Listed.IsZero() {
			s.share.Since++
		}
		s.share.ST = number(bars.ST) == 1
		previous := number(bars.PrevClose)
		if previous == 0 && s.close > 0 {
			previous = s.close * s.factor / q[bars.Factor]
		}
		s.share.Previous = hundredths(previous)
		s.low, s.high = l.book.Limits(s.class, s.share)
	}
	s.close, s.factor = q[bars.RawClose], q[bars.Factor]
	for _, c := range []bars.QuoteColumn{bars.RawOpen, bars.RawClose} {
		if p := q[c] * 100; math.Abs(p-math.Round(p)) > offTick {
			s.OffTick++
			break
		}
	}
	low, high := number(bars.LimitDown), number(bars.LimitUp)
	switch {
	case low > 0 || high > 0:
		s.own = true
		s.Given++
		if s.high > 0 && (hundredths(low) != s.low || hundredths(high) != s.high) {
			if s.Disagree++; s.Disagree == 1 {
				s.Example = fmt.Sprintf("%s on %s: %.2f and %.2f, %s by the rules", s.name, day, low, high, s.limits())
			}
		}
	case s.own && s.high > 0 && !r.Suspended:
		if s.Announced++; s.Announced == 1 {
			s.AnnouncedExample = fmt.Sprintf("%s on %s, %s by the rules", s.name, day, s.limits())
		}
	case !s.own && s.high > 0:
		s.Computed++
		low, high = float64(s.low)/100, float64(s.high)/100
	case s.share.Previous == 0:
		s.Unknown++
	}
	q[bars.LimitDown], q[bars.LimitUp] = low, high
}

func (s *symbol) limits() string {
	return fmt.Sprintf("%d.%02d and %d.%02d", s.low/100, s.low%100, s.high/100, s.high%100)
}

// offTick is how far, in hundredths, a price may lie off the tick and still be meant to be on it:
// vendors store prices in float32.
const offTick = 0.05

// hundredths is the nearest number of them to a price; 0 for what is no price.
func hundredths(price float64) int64 {
	p := math.Round(price * 100)
	if !(p > 0 && p < 1<<53) {
		return 0
	}
	return int64(p)
}
