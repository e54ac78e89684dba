package bars

import (
	"fmt"
	"math"
	"slices"
)

// actionColumns say what is known of corporate actions.
type actionColumns struct{ actions, factors bool }

func actionsOf(quoted []QuoteColumn) actionColumns {
	return actionColumns{slices.Contains(quoted, Dividend) || slices.Contains(quoted, Bonus), slices.Contains(quoted, Factor)}
}

// ByActions is the By of an [Adjustment] whose factors are made of dividends and bonus shares.
const ByActions = "actions"

// actionFactor makes the factor of adjustment of one symbol from its dividends and bonus shares, row
// after row in the order of time. It begins with 1; on an ex-date it is multiplied by the close before
// over the reference price of that day, as the exchanges of China compute it (Trading Rules of the
// Shanghai Stock Exchange and of the Shenzhen Stock Exchange, "ex-rights and ex-dividend": previous
// close less the cash, plus the price of rights times their number, divided by 1 and all new shares for
// one), without rights, of which there is no column, and without rounding to the tick. So the price of
// a day depends on what happened until then, and never on what comes later.
type actionFactor struct {
	factor, close float64 // 0 before the first row; the close is the last that is a price, as quoted
	day           Date
}

// next gives a row its factor. Of the rows of a day the first one counts; the others repeat it.
func (a *actionFactor) next(rec *Record) {
	if a.factor == 0 {
		a.factor = 1
	}
	if day := NewDate(rec.Time); day != a.day {
		a.day = day
		// A number that makes no sense is refused when the row is looked at.
		d, b := rec.Quote[Dividend], rec.Quote[Bonus]
		if !(d >= 0) {
			d = 0
		}
		if !(b >= 0) || math.IsInf(b, 0) {
			b = 0
		}
		if a.close > 0 && d < a.close {
			a.factor *= a.close * (1 + b) / (a.close - d)
		}
	}
	if rec.Factor = a.factor; rec.Close > 0 && !math.IsInf(rec.Close, 0) {
		a.close = rec.Close
	}
}

// makeFactors gives the rows of a series their factors, in the order of time.
func makeFactors(records []Record) {
	order := make([]*Record, len(records))
	for i := range records {
		order[i] = &records[i]
	}
	slices.SortStableFunc(order, func(x, y *Record) int { return x.Time.Compare(y.Time) })
	var a actionFactor
	for _, r := range order {
		a.next(r)
	}
}

// actions looks at the dividend and the bonus shares of a row. Those of the first bar of a day
// count; the others of it repeat them.
func (c *cleaner) actions(rec *Record) error {
	if !c.has.actions {
		return nil
	}
	before, q := c.before, &rec.Quote
	c.before = *rec
	for _, column := range []QuoteColumn{Dividend, Bonus} {
		if !(q[column] >= 0) {
			if q[column] < 0 {
				return fmt.Errorf("%s (%s, line %d): the %v %g, expected a number that is not negative", formatTime(rec.Time), rec.File, rec.Line, column, q[column])
			}
			q[column] = 0
		}
		if math.IsInf(q[column], 0) {
			return fmt.Errorf("%s (%s, line %d): the %v is %g", formatTime(rec.Time), rec.File, rec.Line, column, q[column])
		}
	}
	if !before.Time.IsZero() && NewDate(before.Time) == NewDate(rec.Time) {
		q[Dividend], q[Bonus] = 0, 0
		return nil
	}
	close := before.Quote[RawClose]
	if !(close > 0) {
		return nil
	}
	if q[Dividend] >= close {
		return fmt.Errorf("%s (%s, line %d): a dividend of %g a share, whose close before was %g; is it for several shares (source.per_shares)?", formatTime(rec.Time), rec.File, rec.Line, q[Dividend], close)
	}
	if !c.has.factors {
		return nil
	}
	gain, want := q[Factor]/before.Quote[Factor], close*(1+q[Bonus])/(close-q[Dividend])
	// Exchanges round the price of the ex-date to the tick, and vendors the factor.
	if math.Abs(gain/want-1) > 0.002+0.006/close {
		what := fmt.Sprintf("a dividend of %g and %g new shares for one at a close of %g mean a factor %.4f times the one before, and it is %.4f", q[Dividend], q[Bonus], close, want, gain)
		if c.report.OffActions == 0 {
			c.report.FirstOffAction = fmt.Sprintf("%s (%s, line %d): %s", formatTime(rec.Time), rec.File, rec.Line, what)
		}
		return c.found(&c.report.OffActions, rec, "", what)
	}
	return nil
}
