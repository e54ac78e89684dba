package backtest

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/trading"
)

// Rule says which assets to be in. It must not be used by two runs at once.
type Rule interface {
	// Name is what tables call it.
	Name() string
	// Long reports whether to be in an asset, with everything known at the close of a bar. It is
	// asked for every bar in order, and within it for every asset.
	Long(m *trading.Market, bar, asset int) bool
}

// sharer is a rule that divides the cash between the accounts itself.
type sharer interface {
	// shares returns the parts [N] of the initial cash, which add up to 1, with what is known at
	// the first bar.
	shares(m *trading.Market, first int) []float64
}

// Accounts simulates a rule over the bars of Run: an account for each asset, with an equal share of
// the initial cash, is in the asset with all it has when the rule says so and the asset can be
// traded at the bars of the decision and of the fill. Prices, fills, lots and fees are those of the
// source's configuration; arithmetic is in float64. Orders that cannot be executed are repeated at
// the next bar, if the rule still says so.
func Accounts(ctx context.Context, s *trading.Source, bars trading.Range, rule Rule) (*Record, error) {
	e, err := s.Env(bars)
	if err != nil {
		return nil, fmt.Errorf("back-test %s: %w", rule.Name(), err)
	}
	m, c := s.Market(), s.Config()
	bars.First = bars.Last - e.Spec().MaxSteps
	if c.Episode.Kind != trading.Full {
		return nil, fmt.Errorf("back-test %s: the source has episodes over parts of the range, expected whole ones", rule.Name())
	}
	a := newAccounts(m, c, rule, bars.First)
	r := newRecord(rule.Name(), m, bars, c.LookAhead())
	if err := a.close(r, bars.First); err != nil {
		return nil, fmt.Errorf("back-test %s: %w", rule.Name(), err)
	}
	for bar := bars.First; bar < bars.Last; bar++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		a.step(r, rule, bar)
		if err := a.close(r, bar+1); err != nil {
			return nil, fmt.Errorf("back-test %s: %w", rule.Name(), err)
		}
		r.settle(m, bar, a.fills, a.in, a.out)
		r.Rewards = append(r.Rewards, r.Value[len(r.Value)-1]/r.Value[len(r.Value)-2]-1)
	}
	return r, nil
}

type accounts struct {
	m         *trading.Market
	c         trading.Config
	cash, pos []float64 // [N]
	// capped accounts could not trade all they wanted; bought is when the last purchase was.
	capped  []bool
	bought  []time.Time
	fills   []trading.Fill
	in, out []float64 // [N]
	bar     trading.Bar
}

func newAccounts(m *trading.Market, c trading.Config, rule Rule, first int) *accounts {
	n := len(m.Assets)
	a := &accounts{m: m, c: c, cash: make([]float64, n), pos: make([]float64, n), in: make([]float64, n), out: make([]float64, n), capped: make([]bool, n), bought: make([]time.Time, n)}
	for i := range a.cash {
		a.cash[i] = c.InitialCash / float64(n)
	}
	if own, ok := rule.(sharer); ok {
		for i, part := range own.shares(m, first) {
			a.cash[i] = part * c.InitialCash
		}
	}
	return a
}

// close records the accounts together at the close of a bar.
func (a *accounts) close(r *Record, bar int) error {
	cash, n := sum(a.cash), len(a.pos)
	value := cash
	for i, q := range a.pos {
		if q != 0 {
			value += q * a.m.Close[bar*n+i]
		}
	}
	return r.close(a.m, bar, value, cash, a.pos)
}

// step executes what the rule says at the close of a bar.
func (a *accounts) step(r *Record, rule Rule, bar int) {
	n := len(a.pos)
	b := &a.bar
	a.m.Bar(b, &a.c, bar)
	if b.Number > bar {
		a.overnight(b.Number)
	} else {
		defer a.overnight(bar + 1)
	}
	x := a.c.Charges(b)
	a.fills = a.fills[:0]
	fees, turnover, skipped := 0.0, 0.0, 0
	for i := range a.pos {
		long, order := rule.Long(a.m, bar, i) && !a.m.Leaves(bar, i), int64(trading.Hold)
		switch {
		case long && (a.pos[i] == 0 || a.capped[i]):
			order = trading.Buy
		case !long && a.pos[i] != 0:
			order = trading.Sell
		}
		if order != trading.Hold && !a.m.Tradable[bar*n+i].Allows(order) {
			// As in the environment, whose mask forbids it, nothing is ordered.
			order = trading.Hold
		}
		r.Actions = append(r.Actions, order)
		if order == trading.Hold {
			continue
		}
		if !b.Tradable[i].Allows(order) || !a.execute(&x, i, b.Number, order) {
			skipped++
			continue
		}
		f := a.fills[len(a.fills)-1]
		fees += f.Fee
		turnover += math.Abs(f.Shares) * f.Price
	}
	r.Fees, r.Turnover, r.Skipped = append(r.Fees, fees), append(r.Turnover, turnover), append(r.Skipped, skipped)
}

// overnight books what happens overnight before a bar.
func (a *accounts) overnight(bar int) {
	o, ok := a.m.Overnight(bar)
	for i, q := range a.pos {
		if ok && q != 0 {
			var cash float64
			a.pos[i], cash = o.Of(i, q, a.m.Rules != nil)
			a.cash[i] = max(a.cash[i]+cash, 0)
		}
	}
}

// execute moves an account into its asset, or out of it, as far as the volume of the bar allows. It
// reports false where that is less than one lot.
func (a *accounts) execute(x *trading.Charges, i, at int, order int64) bool {
	most, lot := x.Most(i), a.c.Execution.Lot
	if order == trading.Sell {
		shares := a.pos[i]
		if date := a.m.Dates[at]; a.c.Account.Settlement > 0 && date.YearDay() == a.bought[i].YearDay() && date.Year() == a.bought[i].Year() {
			return false
		}
		if x.Ruled() {
			return a.take(x.Sell(i, shares, shares), false)
		}
		if shares > most {
			if shares = most; lot > 0 {
				shares = math.Floor(shares/lot) * lot
			}
		}
		price := x.Price(order, i, shares)
		amount := shares * price
		fee := x.Fee(order, amount)
		if shares <= 0 || a.cash[i]+amount-fee < 0 {
			return false
		}
		a.fills = append(a.fills, trading.Fill{Asset: i, Bar: at, Shares: -shares, Price: price, Fee: fee})
		a.cash[i] += amount - fee
		a.pos[i] -= shares
		a.capped[i] = a.pos[i] > 0
		return true
	}
	if x.Ruled() {
		f := x.Buy(i, a.cash[i])
		return a.take(f, f.Shares >= most-1)
	}
	money := x.Spend(a.cash[i])
	price := x.Price(order, i, min(money/x.Price(order, i, 0), most))
	shares := money / price
	if a.capped[i] = shares > most; a.capped[i] {
		shares = most
	}
	if lot > 0 {
		shares = math.Floor(shares/lot) * lot
	}
	amount := shares * price
	if amount < trading.Dust {
		return false
	}
	fee := x.Fee(order, amount)
	a.fills = append(a.fills, trading.Fill{Asset: i, Bar: at, Shares: shares, Price: price, Fee: fee})
	// All of it is spent but for a rounding error, which may have either sign.
	a.cash[i] = max(a.cash[i]-amount-fee, 0)
	a.pos[i] += shares
	a.bought[i] = a.m.Dates[at]
	return true
}

// take books a fill under a rule book, unless it is of no shares.
func (a *accounts) take(f trading.Fill, capped bool) bool {
	i, amount := f.Asset, f.Shares*f.Price
	if left := a.cash[i] - amount - f.Fee; f.Shares != 0 && left > -0.005 {
		a.cash[i] = math.Round(left*100) / 100
		if a.pos[i] += f.Shares; f.Shares > 0 {
			a.bought[i] = a.m.Dates[f.Bar]
		}
		a.capped[i] = capped || f.Shares < 0 && a.pos[i] > 0
		a.fills = append(a.fills, f)
		return true
	}
	return false
}
