package trading

import (
	"math"
	"slices"
)

// RawPrices are the prices of a market before adjustment, all [T,N].
type RawPrices struct {
	Open, Close []float64
	// Factor multiplies these into the adjusted prices. What it changes by is what dividends,
	// splits and rights gave on that date to those who held the asset at the close before.
	Factor []float64
	// Dividend and Bonus are those of [Market], nil where only the factor is known.
	Dividend, Bonus []float64
	// These are as in [Market].
	Volume, LimitUp, LimitDown, Spread, Depth []float64
}

// traded is the market as accounts see it: in adjusted prices, where nothing ever happens to a
// position, or in raw ones.
func (m *Market) traded(c *Config) *Market {
	r, out := m.Raw, *m
	switch {
	case r != nil && c.Account.Prices == Raw:
		out.Open, out.Close, out.Factor, out.Raw = r.Open, r.Close, r.Factor, nil
		out.Dividend, out.Bonus = r.Dividend, r.Bonus
		out.Volume, out.LimitUp, out.LimitDown, out.Spread, out.Depth = r.Volume, r.LimitUp, r.LimitDown, r.Spread, r.Depth
	case r != nil && c.Costs.UsesBars():
		out.Volume, out.LimitUp, out.LimitDown = r.adjusted(r.Volume, true), r.adjusted(r.LimitUp, false), r.adjusted(r.LimitDown, false)
		out.Spread, out.Depth = r.adjusted(r.Spread, false), r.adjusted(r.Depth, true)
	default:
		return m
	}
	return &out
}

// adjusted is a column of prices, or of shares, in adjusted units.
func (r *RawPrices) adjusted(column []float64, shares bool) []float64 {
	if column == nil {
		return nil
	}
	out := make([]float64, len(column))
	for i, v := range column {
		if out[i] = v * r.Factor[i]; shares {
			out[i] = v / r.Factor[i]
		}
	}
	return out
}

// VolumeAt returns the volume of a bar in the shares that accounts trade; 0 where it is not known.
func (m *Market) VolumeAt(bar, asset int) float64 {
	switch i, r := bar*len(m.Assets)+asset, m.Raw; {
	case m.Volume != nil:
		return m.Volume[i]
	case r != nil && r.Volume != nil:
		return r.Volume[i] / r.Factor[i]
	}
	return 0
}

// Overnight is what happens to positions in raw prices between the close of a bar and the next; all
// slices are [N].
type Overnight struct {
	// Before and Now are the factors of the two bars, nil where there are none, and Close the closes
	// of the first.
	Before, Now, Close []float64
	// Dividend and Bonus are the cash and the new shares for a share held before, where it is the
	// ex-date; nil where only factors are known.
	Dividend, Bonus []float64
	// Ended are the assets whose shares are paid for with Recovery of the close, because they are
	// gone; nil where none is.
	Ended    []bool
	Recovery float64
}

// delist notes where assets are gone for the first time, and what is paid for them.
func (m *Market) delist(d *Delisting) {
	m.ended = nil
	if d == nil || m.Gone == nil {
		return
	}
	n := len(m.Assets)
	m.ended, m.recovery = make([]bool, len(m.Gone)), d.Recovery
	for i := n; i < len(m.Gone); i++ {
		m.ended[i] = m.Gone[i] != 0 && m.Gone[i-n] == 0
	}
}

// Overnight returns what happens between the bars t−1 and t; ok is false where nothing does.
func (m *Market) Overnight(t int) (o Overnight, ok bool) {
	if m.Factor == nil && m.ended == nil || t == 0 {
		return o, false
	}
	n := len(m.Assets)
	from, to := t*n, (t+1)*n
	o = Overnight{Close: m.Close[from-n : from]}
	if m.Factor != nil {
		o.Before, o.Now = m.Factor[from-n:from], m.Factor[from:to]
	}
	if m.ended != nil {
		o.Ended, o.Recovery = m.ended[from:to], m.recovery
	}
	if m.Dividend != nil {
		o.Dividend, o.Bonus = m.Dividend[from:to], m.Bonus[from:to]
	}
	return o, true
}

// calmed notes the bars before which nothing happens. Where the memory of a market is given back it
// is not read for that.
func (m *Market) calmed() {
	if m.Factor == nil && m.ended == nil || m.Release != nil {
		return
	}
	m.calm = make([]bool, m.Len())
	for t := range m.calm {
		o, ok := m.Overnight(t)
		m.calm[t] = !ok || o.none()
	}
}

// none reports whether nothing happens to any position.
func (o *Overnight) none() bool {
	if slices.Contains(o.Ended, true) {
		return false
	}
	for i, f := range o.Now {
		// An asset without a factor is not listed.
		if b := o.Before[i]; f != b && !math.IsNaN(f) && !math.IsNaN(b) || o.Dividend != nil && (o.Dividend[i] > 0 || o.Bonus[i] > 0) {
			return false
		}
	}
	return true
}

// Of returns what shares of asset i become, and the cash that is paid for them. Dividends and bonus
// shares are booked as such. Where there are none and the factor changes, all that is known is
// booked as shares that are reinvested at once, at the price that the change implies, without
// costs: q becomes q·Now/Before. What has ended becomes cash. Whole shares are for accounts under a rule book: what is left of
// one is cash at the ex price, and cash is whole hundredths.
func (o *Overnight) Of(i int, shares float64, whole bool) (left, cash float64) {
	gain, dividend := 1.0, 0.0
	switch {
	case o.Ended != nil && o.Ended[i]:
		if cash = shares * o.Close[i] * o.Recovery; whole {
			cash = float64(hundredths(cash)) / 100
		}
		return 0, cash
	case o.Dividend != nil && (o.Dividend[i] > 0 || o.Bonus[i] > 0):
		dividend = max(o.Dividend[i], 0)
		gain, cash = 1+max(o.Bonus[i], 0), shares*dividend
	case o.Now != nil && o.Now[i] != o.Before[i]:
		gain = o.Now[i] / o.Before[i]
	default:
		return shares, 0
	}
	left = shares * gain
	if whole {
		grown := left
		// A number that is a hundredth of a share short was rounded.
		left = math.Floor(grown + 0.01)
		cash = float64(hundredths(cash+(grown-left)*(o.Close[i]-dividend)/gain)) / 100
	}
	return left, cash
}

// Book books what happens overnight. assets, unless nil, says which of the N each position is of,
// -1 for none.
func (a *Account) Book(o *Overnight, assets []int) {
	for i, q := range a.pos {
		if q == 0 {
			continue
		}
		k := i
		if assets != nil {
			k = assets[i]
		}
		if (o.Ended == nil || !o.Ended[k]) && o.Dividend == nil && (o.Now == nil || o.Now[k] == o.Before[k]) {
			continue
		}
		left, cash := o.Of(k, q, a.config.book != nil)
		a.rests.split(i, q, left)
		if a.pos[i] = left; cash != 0 {
			if a.cash += cash; a.config.book != nil {
				a.cash = max(float64(hundredths(a.cash))/100, 0)
			}
		}
	}
}

// AdjustedClose is the close of an asset without the jumps of dividends and splits, up to a factor
// that is the same for all bars.
func (m *Market) AdjustedClose(bar, asset int) float64 {
	i := bar*len(m.Assets) + asset
	if m.Factor == nil {
		return m.Close[i]
	}
	return m.Close[i] * m.Factor[i]
}
