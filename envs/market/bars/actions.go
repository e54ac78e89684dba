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
