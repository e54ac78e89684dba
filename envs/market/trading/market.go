package trading

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/rules"
	"github.com/onnxrl/onnxrl/envs/market/universe"
)

// Market is T bars of N assets with F features. The slices belong to whoever made them and must not
// change any more. Prices are in one currency.
type Market struct {
	Assets   []string    // [N]
	Features []string    // [F] names
	Dates    []time.Time // [T], ascending
	// X [T,N,F] holds the features, 0 where an asset is not listed.
	X []float32
	// Open and Close [T,N] are prices, carried forward over bars without trading. Before an asset
	// can be traded for the first time they are not read and may be NaN.
	Open, Close []float64
	// Tradable [T,N] says what can be bought and sold at the close of a bar, AtOpen at its open;
	// nil is the same as at the close, as it is where no limits are known.
	Tradable, AtOpen []Sides
	// Members [T,N] says who belongs to the universe: who does not cannot be bought, and what is
	// held of who is leaving is sold. nil where all always do. Tradable and AtOpen have the
	// purchases closed already, see [Market.Enrol].
	Members []universe.Membership
	// Gone [T,N] is not 0 where an asset had no row for so long that it counts as delisted; nil where
	// none ever is. ended [T,N] are the first of these bars, where accounts book them, see Overnight.
	Gone     []uint8
	ended    []bool
	recovery float64
	// Volume [T,N] is in shares, LimitUp and LimitDown [T,N] are the prices beyond which nothing is
	// traded, not positive where there is none; nil where they are not known.
	Volume, LimitUp, LimitDown []float64
	// Spread and Depth [T,N] are ask − bid and the shares of the book as they were last within the
	// bar, NaN or 0 where they are not known; nil where they never are.
	Spread, Depth []float64
	// Factor [T,N] is that of raw prices, see [RawPrices]; nil where nothing happens to positions.
	Factor []float64
	calm   []bool // [T] where nothing happens before a bar; nil where that is not known
	// Dividend and Bonus [T,N] are the cash and the new shares that an asset gives on its ex-date
	// for a share held at the close before, beside Factor; nil where only that is known.
	Dividend, Bonus []float64
	// Raw, unless nil, are the prices before adjustment, which accounts trade on request.
	Raw *RawPrices
	// Rules, unless nil, is the book by which accounts are kept.
	Rules rules.Book
	ruled *Ruled
	// Checked says that Validate has found nothing, when the market was stored for instance.
	Checked bool
	// Release, unless nil, gives back the memory of what was read so far and can be read again.
	// Environments call it now and then.
	Release func()
}

// Fill returns where orders of bar t are filled: the bar, and the tables [T,N] of prices and of
// what can be traded at them. fill is one of [Execution.Fill].
func (m *Market) Fill(fill string, t int) (bar int, prices []float64, sides []Sides) {
	switch {
	case fill == SameClose:
		return t, m.Close, m.Tradable
	case fill == NextClose:
		return t + 1, m.Close, m.Tradable
	case m.AtOpen == nil:
		return t + 1, m.Open, m.Tradable
	}
	return t + 1, m.Open, m.AtOpen
}

// Bar writes the bar at which orders that were decided on at another are filled, and that bar's
// prices and sides.
func (m *Market) Bar(b *Bar, c *Config, decided int) {
	number, prices, sides := m.Fill(c.Execution.Fill, decided)
	n := len(m.Assets)
	from, to := number*n, (number+1)*n
	b.Number, b.Date, b.Price, b.Tradable = number, m.Dates[number], prices[from:to], sides[from:to]
	b.Decided = m.Tradable[decided*n : (decided+1)*n]
	b.Members = nil
	if m.Members != nil {
		b.Members = m.Members[decided*n : (decided+1)*n]
	}
	if c.Costs.UsesBars() {
		row := func(column []float64) []float64 {
			if column == nil {
				return nil
			}
			return column[from:to]
		}
		b.Volume, b.LimitUp, b.LimitDown, b.Spread, b.Depth = row(m.Volume), row(m.LimitUp), row(m.LimitDown), row(m.Spread), row(m.Depth)
	}
	if m.ruled != nil {
		m.ruled.bar(b, c.Execution.Fill != NextOpen)
	}
}

// Len returns the number of bars.
func (m *Market) Len() int { return len(m.Dates) }

// Validate reports slices that do not fit together, features that are not finite, dates out of
// order, and prices that are not positive from the first bar at which an asset can be traded.
func (m *Market) Validate() error {
	t, n, f := len(m.Dates), len(m.Assets), len(m.Features)
	if t < 2 || n < 1 || f < 1 {
		return fmt.Errorf("market: %d bars of %d assets with %d features, expected at least 2, 1 and 1", t, n, f)
	}
	var errs []error
	length := func(name string, got, want int) {
		if got != want {
			errs = append(errs, fmt.Errorf("market: %s has %d values, expected %d", name, got, want))
		}
	}
	length("X", len(m.X), t*n*f)
	length("open", len(m.Open), t*n)
	length("close", len(m.Close), t*n)
	length("tradable", len(m.Tradable), t*n)
	if m.AtOpen != nil {
		length("tradable at the open", len(m.AtOpen), t*n)
	}
	if m.Factor != nil {
		length("factor", len(m.Factor), t*n)
	}
	if m.Members != nil {
		length("members", len(m.Members), t*n)
	}
	if m.Gone != nil {
		length("gone", len(m.Gone), t*n)
	}
	optional := func(name string, column []float64) {
		if column != nil {
			length(name, len(column), t*n)
		}
	}
	optional("dividend", m.Dividend)
	optional("bonus", m.Bonus)
	optional("volume", m.Volume)
	optional("upper limit", m.LimitUp)
	optional("lower limit", m.LimitDown)
	optional("spread", m.Spread)
	optional("depth", m.Depth)
	if r := m.Raw; r != nil {
		length("raw open", len(r.Open), t*n)
		length("raw close", len(r.Close), t*n)
		length("raw factor", len(r.Factor), t*n)
		optional("raw dividend", r.Dividend)
		optional("raw bonus", r.Bonus)
		optional("raw volume", r.Volume)
		optional("raw upper limit", r.LimitUp)
		optional("raw lower limit", r.LimitDown)
		optional("raw spread", r.Spread)
		optional("raw depth", r.Depth)
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for i := 1; i < t; i++ {
		if !m.Dates[i].After(m.Dates[i-1]) {
			return fmt.Errorf("market: the date of bar %d, %s, does not come after %s", i, m.Dates[i].Format(time.DateOnly), m.Dates[i-1].Format(time.DateOnly))
		}
	}
	for i, x := range m.X {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			return fmt.Errorf("market: feature %q of %s on %s is %g", m.Features[i%f], m.Assets[i/f%n], m.Dates[i/f/n].Format(time.DateOnly), x)
		}
	}
	type column struct {
		name, what string
		values     []float64
	}
	columns := []column{{"open", "price", m.Open}, {"close", "price", m.Close}}
	if m.Factor != nil {
		columns = append(columns, column{"factor", "number", m.Factor})
	}
	if r := m.Raw; r != nil {
		columns = append(columns, column{"raw open", "price", r.Open}, column{"raw close", "price", r.Close}, column{"factor", "number", r.Factor})
	}
	listed := make([]bool, n)
	for i, s := range m.Tradable {
		a := i % n
		if listed[a] = listed[a] || s != 0; !listed[a] {
			continue
		}
		for _, c := range columns {
			if v := c.values[i]; !(v > 0 && !math.IsInf(v, 0)) {
				return fmt.Errorf("market: the %s of %s on %s is %g, expected a positive %s", c.name, m.Assets[a], m.Dates[i/n].Format(time.DateOnly), v, c.what)
			}
		}
	}
	return nil
}

// Range is a run of bars, both ends included: the first decision is taken at First, and the last
// one at Last-1.
type Range struct{ First, Last int }

// Between returns the bars from the first one not before from to the last one not after to.
func (m *Market) Between(from, to time.Time) (Range, error) {
	r := Range{First: len(m.Dates), Last: -1}
	for i, d := range m.Dates {
		if !d.Before(from) {
			r.First = min(r.First, i)
		}
		if !d.After(to) {
			r.Last = i
		}
	}
	if r.Last <= r.First {
		return Range{}, fmt.Errorf("market: fewer than two bars between %s and %s", from.Format(time.DateOnly), to.Format(time.DateOnly))
	}
	return r, nil
}
