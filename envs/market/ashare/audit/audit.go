// Package audit proves that accounts keep the rules of package ashare: it lets random policies
// trade a market and looks at every fill, with arithmetic of its own.
package audit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/ashare"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Report counts what was looked at and what was wrong.
type Report struct {
	// Bars of assets with trading, and those of them at whose close buys, or sales, are blocked.
	Traded       int `json:"traded"`
	BlockedBuys  int `json:"blocked_buys"`
	BlockedSells int `json:"blocked_sells"`
	Policies     int `json:"policies"`
	Steps        int `json:"steps"`
	Buys         int `json:"buys"`
	Sells        int `json:"sells"`
	// Fees are in fen.
	Fees ashare.Fen `json:"fees"`
	// Wrong counts what is against the rules, by kind; Examples are the first of each.
	Wrong    map[string]int `json:"wrong"`
	Examples []string       `json:"examples,omitempty"`
}

// Problems is the number of what is wrong.
func (r *Report) Problems() (n int) {
	for _, k := range r.Wrong {
		n += k
	}
	return n
}

// kinds are what is looked for, in words.
var kinds = []string{
	"blocked at a price that is not the limit of that side, or open at it", "fill outside the limits", "buy at the upper limit or sale at the lower one when it was decided on or at the price of the bar",
	"fill without trading", "order that is no lot", "sale of shares bought on the day", "fee that is not the book's", "cash that the fills do not explain", "position that the fills do not explain",
}

const (
	wrongBlock = iota
	outside
	atLimit
	suspended
	lots
	unsettled
	fees
	cash
	positions
)

type auditor struct {
	report  Report
	source  *trading.Source
	m       *trading.Market
	boards  []ashare.Board
	broker  ashare.Broker
	examine struct {
		held, bought []int64
		day          time.Time
		cash         int64
	}
}

// Random lets a number of random policies trade a range of the bars of a source whose market is
// under the rule book of package ashare: orders, each buy, sell or hold with equal probability, or
// weights that are drawn evenly from the simplex.
func Random(ctx context.Context, s *trading.Source, r trading.Range, policies int) (*Report, error) {
	c, m := s.Config(), s.Market()
	if m.Rules == nil || m.Rules.Name() != (ashare.Book{}).Name() {
		return nil, errors.New("audit: the market is not under the rule book ashare (data.rules)")
	}
	if c.Slots > 0 {
		return nil, errors.New("audit: environments with slots are not looked at")
	}
	if m.LimitUp == nil || m.LimitDown == nil {
		return nil, errors.New("audit: the market has no limits")
	}
	a := &auditor{source: s, m: m, report: Report{Wrong: map[string]int{}}}
	least, _ := ashare.FenOf(c.Costs.Minimum)
	a.broker = ashare.Broker{Rate: ashare.Rate(math.Round(c.FeeRate * 1e7)), Least: least}
	for _, name := range m.Assets {
		b, err := ashare.BoardOf(name)
		if err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
		a.boards = append(a.boards, b)
	}
	a.sides(r)
	for k := range policies {
		if err := a.play(ctx, r, rng.New(uint64(k))); err != nil {
			return nil, fmt.Errorf("audit: policy %d: %w", k, err)
		}
	}
	return &a.report, nil
}

func (a *auditor) wrong(kind int, bar, asset int, format string, args ...any) {
	name := kinds[kind]
	if a.report.Wrong[name]++; a.report.Wrong[name] == 1 {
		a.report.Examples = append(a.report.Examples, fmt.Sprintf("%s: %s on %s: %s", name, a.m.Assets[asset], a.m.Dates[bar].Format(time.DateOnly), fmt.Sprintf(format, args...)))
	}
}

// limits are those of an asset at a bar.
func (a *auditor) limits(at int) ashare.Limits {
	low, _ := ashare.FenOf(a.m.LimitDown[at])
	high, _ := ashare.FenOf(a.m.LimitUp[at])
	return ashare.Limits{Low: low, High: high, Limited: low > 0 && high > 0}
}

// sides compares what can be bought and sold with the prices.
func (a *auditor) sides(r trading.Range) {
	m, n := a.m, len(a.m.Assets)
	for at := r.First * n; at < (r.Last+1)*n; at++ {
		if m.AtOpen[at]|m.Tradable[at] == 0 || m.Members != nil && !m.Member(at/n, at%n) {
			continue
		}
		a.report.Traded++
		l := a.limits(at)
		for _, c := range []struct {
			sides trading.Sides
			price float64
		}{{m.AtOpen[at], m.Open[at]}, {m.Tradable[at], m.Close[at]}} {
			if c.sides.Allows(trading.Buy) != l.MayBuy(c.price) || c.sides.Allows(trading.Sell) != l.MaySell(c.price) {
				a.wrong(wrongBlock, at/n, at%n, "at %g, limits %v and %v", c.price, l.Low, l.High)
			}
		}
		if !m.Tradable[at].Allows(trading.Buy) {
			a.report.BlockedBuys++
		}
		if !m.Tradable[at].Allows(trading.Sell) {
			a.report.BlockedSells++
		}
	}
}

// play lets one policy trade an episode.
func (a *auditor) play(ctx context.Context, r trading.Range, key rng.Key) error {
	e, err := a.source.Env(r)
	if err != nil {
		return err
	}
	ts := envs.NewTimeStep(e.Spec())
	if err := e.Reset(key.Split("episode"), ts); err != nil {
		return err
	}
	stream, n := key.Split("policy").Stream(), len(a.m.Assets)
	x := &a.examine
	x.held, x.bought, x.day = make([]int64, n), make([]int64, n), time.Time{}
	x.cash = int64(math.Round(e.Cash() * 100))
	orders, weights := tensor.New(tensor.Int64, n), make([]float64, n+1)
	a.report.Policies++
	for ts.Type != envs.Last {
		if err := ctx.Err(); err != nil {
			return err
		}
		bar := e.Bar()
		if e.Spec().Masked {
			for i := range orders.Int64s() {
				orders.Int64s()[i] = int64(stream.IntN(3))
			}
			err = e.Step(orders, ts)
		} else {
			sum := 0.0
			for i := range weights {
				weights[i] = -math.Log(1 - stream.Float64())
				sum += weights[i]
			}
			for i := range weights {
				weights[i] /= sum
			}
			err = e.Rebalance(weights, ts)
		}
		if err != nil {
			return err
		}
		a.report.Steps++
		a.step(e, bar)
	}
	return e.Close()
}

// step follows one step of an environment from a bar to the next.
func (a *auditor) step(e *trading.Env, bar int) {
	x := &a.examine
	number, prices, _ := a.m.Fill(a.source.Config().Execution.Fill, bar)
	if number > bar {
		a.overnight(number)
	}
	if day := a.m.Dates[number]; day.YearDay() != x.day.YearDay() || day.Year() != x.day.Year() {
		clear(x.bought)
		x.day = day
	}
	for _, f := range e.Fills() {
		a.fill(bar, f, prices)
	}
	if number == bar {
		a.overnight(bar + 1)
	}
	if got := int64(math.Round(e.Cash() * 100)); got != x.cash || x.cash < 0 {
		a.wrong(cash, bar, 0, "%v, the fills say %v", ashare.Fen(got), ashare.Fen(x.cash))
		x.cash = got
	}
	for i, q := range e.Positions() {
		if q != float64(x.held[i]) || q < 0 {
			a.wrong(positions, bar, i, "%g shares, the fills say %d", q, x.held[i])
			x.held[i] = int64(q)
		}
	}
}

// overnight books what happens overnight before a bar: shares and cash. With what is left of a
// share at the ex price they are worth what there was, to the fen.
func (a *auditor) overnight(bar int) {
	o, ok := a.m.Overnight(bar)
	for i, q := range a.examine.held {
		if q == 0 || !ok {
			continue
		}
		left, money := o.Of(i, float64(q), true)
		if o.Ended != nil && o.Ended[i] {
			if want := math.Round(100*float64(q)*o.Close[i]*o.Recovery) / 100; left != 0 || math.Abs(money-want) > 0.0051 {
				a.wrong(cash, bar, i, "%d shares of what is gone became %g and %g, expected 0 and %g", q, left, money, want)
			}
			a.examine.held[i] = 0
			a.examine.cash += int64(math.Round(money * 100))
			continue
		}
		if o.Now == nil {
			continue
		}
		gain, ex := o.Now[i]/o.Before[i], 0.0
		if ex = o.Close[i] / gain; o.Dividend != nil && (o.Dividend[i] > 0 || o.Bonus[i] > 0) {
			gain = 1 + o.Bonus[i]
			ex = (o.Close[i] - o.Dividend[i]) / gain
		}
		if before, after := float64(q)*o.Close[i], left*ex+money; math.Abs(before-after) > 0.0051 {
			a.wrong(cash, bar, i, "%d shares worth %g became %g and %g, worth %g", q, before, left, money, after)
		}
		a.examine.held[i] = int64(left)
		a.examine.cash += int64(math.Round(money * 100))
	}
}

// fill looks at one fill of an order that was decided on at a bar.
func (a *auditor) fill(decided int, f trading.Fill, prices []float64) {
	x, n := &a.examine, len(a.m.Assets)
	at, i := f.Bar*n+f.Asset, f.Asset
	rules, err := ashare.On(bars.NewDate(a.m.Dates[f.Bar]))
	if err != nil {
		a.wrong(fees, f.Bar, i, "%v", err)
		return
	}
	board, side, shares := a.boards[i], ashare.Buy, int64(f.Shares)
	if shares < 0 {
		side, shares = ashare.Sell, -shares
	}
	l, before := a.limits(at), a.limits(decided*n+i)
	if f.Price < float64(l.Low)/100-1e-9 || l.Limited && f.Price > float64(l.High)/100+1e-9 {
		a.wrong(outside, f.Bar, i, "%+v, limits %v and %v", f, l.Low, l.High)
	}
	if a.m.Volume != nil && !(a.m.Volume[at] > 0) || a.m.Tradable[at]|a.m.AtOpen[at] == 0 {
		a.wrong(suspended, f.Bar, i, "%+v", f)
	}
	lot, held := rules.Lot(board), x.held[i]
	exact, _ := ashare.FenOf(f.Price * float64(shares))
	if side == ashare.Buy {
		a.report.Buys++
		if !l.MayBuy(prices[at]) || !before.MayBuy(a.m.Close[decided*n+i]) {
			a.wrong(atLimit, f.Bar, i, "%+v, limits %v and %v", f, l.Low, l.High)
		}
		if float64(shares) != f.Shares || lot.Buy(shares) != shares {
			a.wrong(lots, f.Bar, i, "%+v", f)
		}
		x.cash -= int64(exact)
		x.held[i] += shares
		x.bought[i] += shares
	} else {
		a.report.Sells++
		if !l.MaySell(prices[at]) || !before.MaySell(a.m.Close[decided*n+i]) && !a.m.Leaves(decided, i) {
			a.wrong(atLimit, f.Bar, i, "%+v, limits %v and %v", f, l.Low, l.High)
		}
		if float64(shares) != -f.Shares || lot.Sell(shares, held) != shares {
			a.wrong(lots, f.Bar, i, "%+v of %d", f, held)
		}
		if shares > held-x.bought[i] {
			a.wrong(unsettled, f.Bar, i, "%+v of %d, of which %d were bought on the day", f, held, x.bought[i])
		}
		x.cash += int64(exact)
		x.held[i] -= shares
	}
	fee, whole := ashare.FenOf(f.Fee)
	if want := rules.Costs(board, side, exact, shares, a.broker).Total(); !whole || fee != want {
		a.wrong(fees, f.Bar, i, "%+v, by the book %v", f, want)
	}
	x.cash -= int64(fee)
	a.report.Fees += fee
}
