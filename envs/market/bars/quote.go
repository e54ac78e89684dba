package bars

import (
	"fmt"
	"math"
	"slices"
	"strconv"
)

// QuoteColumn is one of the numbers of a Quote.
type QuoteColumn int

// The numbers of a Quote.
const (
	// Prices and volume as the source has them, before adjustment. A source that is not adjusted
	// has them in its bars only.
	RawOpen QuoteColumn = iota
	RawHigh
	RawLow
	RawClose
	RawVolume
	// Factor multiplies raw prices into adjusted ones. What it changes by on a date is what
	// dividends and splits have given to those who held before.
	Factor
	// PrevClose is the price that the exchange compares the day with, LimitUp and LimitDown the
	// highest and the lowest at which it lets trade, all before adjustment.
	PrevClose
	LimitUp
	LimitDown
	// Amount is the money that changed hands.
	Amount
	// ST is 1 on days on which the exchange gives the symbol special treatment, and else 0.
	ST
	// Dividend is the cash before tax, and Bonus the new shares, that the symbol gives on this day,
	// its ex-date, for a share held at the close before.
	Dividend
	Bonus
	// Spread is ask − bid, and Depth the shares offered and asked for on all levels of the book
	// that there are, as they were last within the bar.
	Spread
	Depth
	// QuoteColumns is the number of columns.
	QuoteColumns
)

var quoteNames = [QuoteColumns]string{"raw_open", "raw_high", "raw_low", "raw_close", "raw_volume", "factor", "prev_close", "limit_up", "limit_down", "amount", "st", "dividend", "bonus", "spread", "depth"}

// String returns the name, such as limit_up.
func (c QuoteColumn) String() string { return quoteNames[c] }

// QuoteNamed finds a column by its name.
func QuoteNamed(name string) (QuoteColumn, bool) {
	i := slices.Index(quoteNames[:], name)
	return QuoteColumn(i), i >= 0
}

// Quote is what is known of a bar besides what features see. Prices are in the asset's currency,
// before adjustment. A number that the source leaves blank is NaN; those of columns that it does
// not have mean nothing.
type Quote [QuoteColumns]float64

// Lacking says which of the columns that someone needs are not there.
func Lacking(needed, have []QuoteColumn) error {
	for _, c := range needed {
		if !slices.Contains(have, c) {
			return fmt.Errorf("the rows have no %v, which accounts trade by; name its column in source.columns", c)
		}
	}
	return nil
}

// divide notes what prices and volume were before somebody adjusted them by a factor. The source
// has them in float32, which holds six digits.
func (r *Record) divide(factor float64) error {
	if !(factor > 0) || math.IsInf(factor, 0) {
		return fmt.Errorf("the factor is %v", factor)
	}
	raw := func(price float64) float64 {
		v, err := strconv.ParseFloat(strconv.FormatFloat(price/factor, 'g', 6, 64), 64)
		if err != nil {
			return math.NaN() // not a number before
		}
		return v
	}
	q := &r.Quote
	q[RawOpen], q[RawHigh], q[RawLow], q[RawClose], q[RawVolume], q[Factor] = raw(r.Open), raw(r.High), raw(r.Low), raw(r.Close), math.Round(r.Volume*factor), factor
	return nil
}

// quoted lists the columns that rows have.
func (r resolved) quoted() []QuoteColumn {
	var list []QuoteColumn
	if r.adjustment.By != "none" || r.divided >= 0 {
		list = append(list, RawOpen, RawHigh, RawLow, RawClose, RawVolume, Factor)
	}
	for c, at := range r.quotes {
		if at >= 0 {
			list = append(list, QuoteColumn(c))
		}
	}
	return list
}

// keepRaw notes prices and volume before they are adjusted, unless the source had them.
func (r *Record) keepRaw() {
	q := &r.Quote
	if q[RawClose] > 0 {
		return
	}
	q[RawOpen], q[RawHigh], q[RawLow], q[RawClose], q[RawVolume], q[Factor] = r.Open, r.High, r.Low, r.Close, r.Volume, r.Factor
}

// mendRaw repeats what the rules have done to the adjusted prices and the volume.
func (r *Record) mendRaw() {
	q := &r.Quote
	q[RawHigh], q[RawLow] = max(q[RawOpen], q[RawHigh], q[RawLow], q[RawClose]), min(q[RawOpen], q[RawHigh], q[RawLow], q[RawClose])
	if !(q[RawVolume] > 0) {
		q[RawVolume] = 0
	}
}

// offLimits says that the open or the close is beyond a limit of the day by more than rounding.
func (r *Record) offLimits() bool {
	const slack = 1e-5
	q := &r.Quote
	up, down := q[LimitUp], q[LimitDown]
	return up > 0 && max(q[RawOpen], q[RawClose]) > up*(1+slack) || down > 0 && min(q[RawOpen], q[RawClose]) < down*(1-slack)
}

// Carried is the quote of a time without a row: the last price and factor, no trading, and no
// limits.
func (q *Quote) Carried() Quote {
	out := *q
	c := q[RawClose]
	out[RawOpen], out[RawHigh], out[RawLow], out[RawVolume], out[Amount] = c, c, c, 0, 0
	out[PrevClose], out[LimitUp], out[LimitDown], out[Dividend], out[Bonus], out[Spread], out[Depth] = 0, 0, 0, 0, 0, 0, 0
	return out
}
