package trading

import (
	"fmt"
	"math"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/universe"
	"github.com/onnxrl/onnxrl/envs/risk"
)

// guard keeps an account within the limits on risk. Nothing is allocated in a step.
type guard struct {
	monitor *risk.Monitor
	bound   risk.Bounds // of the last fill
	// traded is what was bought and sold on a day, such as 20240131.
	day    int
	traded float64
	// full [N] says for which assets the last close left no room under the limits.
	full []bool

	// Of the present fill: the value at its prices, before what trades cost, what may be held and
	// traded of it, what of each asset can be sold, in shares, and what a limit leaves of it.
	value, exposure, weight, turnover float64
	flat                              bool
	can, after, want                  []float64 // [N]
	terms                             []float64 // [2N]
	target                            []float64 // [N+1]
	stuck                             []bool    // [N]
}

// newGuard returns nil where there is no limit.
func newGuard(c *Config, n int) *guard {
	if !c.Risk.On() {
		return nil
	}
	numbers := make([]float64, 6*n+1)
	return &guard{
		monitor: newMonitor(c), full: make([]bool, n), stuck: make([]bool, n), can: numbers[:n:n], after: numbers[n : 2*n : 2*n], want: numbers[2*n : 3*n : 3*n],
		terms: numbers[3*n : 3*n : 5*n], target: numbers[5*n:],
	}
}

func (g *guard) reset() {
	if g != nil {
		g.bound, g.day, g.traded = 0, 0, 0
		clear(g.full)
	}
}

// newMonitor returns what watches the value of an account.
func newMonitor(c *Config) *risk.Monitor {
	m, err := risk.NewMonitor(c.Risk)
	if err != nil {
		panic("trading: a configuration that was not validated: " + err.Error())
	}
	return m
}

// Measure makes [Account.Risk] measure the drawdown and the CVaR of the account, whether the
// configuration has limits on them or not. What is traded remains the same. It belongs before the
// first bar.
func (a *Account) Measure() {
	if a.watch == nil {
		a.watch = newMonitor(a.config)
	}
	a.watch.Measure()
}

// Risk returns what watches the account's value, nil where the configuration has no limits on risk
// and there was no [Account.Measure]. Set its OnAlert to be told; observe nothing with it.
func (a *Account) Risk() *risk.Monitor { return a.watch }

// forgetRisk makes risk have seen nothing.
func (a *Account) forgetRisk() {
	if a.watch != nil {
		a.watch.Reset()
	}
	a.guard.reset()
}

// Bound returns which limits on risk have changed what the last Trade or Rebalance did.
func (a *Account) Bound() risk.Bounds {
	if a.guard == nil {
		return 0
	}
	return a.guard.bound
}

// Mark tells [Account.Risk] and the limits on risk what the account is worth at the closes [N] of a bar; whoever
// trades calls it before the decision at that bar. The same again changes nothing.
func (a *Account) Mark(at time.Time, close []float64) {
	switch g := a.guard; {
	case g != nil:
		a.watch.Observe(at, g.worth(a, close))
		g.fill(a, close)
	case a.watch != nil:
		a.watch.Observe(at, a.Value(close))
	}
}

// fill notes which assets there is no room for at the closes.
func (g *guard) fill(a *Account, close []float64) {
	value := g.worth(a, close)
	held := total(g.terms[1:])
	exposure, weight := g.monitor.Limits()
	for i, q := range a.pos {
		g.full[i] = held >= exposure*value || q != 0 && q*close[i] >= weight*value
	}
}

// worth is the value at prices; terms are the cash and the positions.
func (g *guard) worth(a *Account, price []float64) float64 {
	g.terms = append(g.terms[:0], a.cash)
	for i, q := range a.pos {
		if q != 0 {
			g.terms = append(g.terms, q*price[i])
		}
	}
	return total(g.terms)
}

// begin prepares a fill and returns the sides that the limits leave open.
func (g *guard) begin(a *Account, x *Charges) Sides {
	b := x.bar
	g.bound, g.value = 0, g.worth(a, b.Price)
	g.exposure, g.weight = g.monitor.Limits()
	g.exposure, g.weight, g.turnover = g.exposure*g.value, g.weight*g.value, math.Inf(1)
	if day := risk.DayOf(b.Date); day != g.day {
		g.day, g.traded = day, 0
	}
	if most := a.config.Risk.MaxTurnover; most > 0 {
		g.turnover = max(most*g.value-g.traded, 0)
	}
	for i, q := range a.pos {
		g.can[i] = 0
		if b.Tradable[i]&CanSell == 0 {
			continue
		}
		if g.can[i] = q; !x.plain {
			g.can[i] = x.atMost(i, min(q, x.Most(i), a.Settled(i, b.Date)), q)
		}
	}
	if g.flat = g.monitor.Flattens(); !g.monitor.Stopped() {
		return Both
	}
	g.bound |= risk.BoundDrawdown
	return CanSell
}

// clip returns target weights [N+1] with what the limits do not allow given to the cash. The result
// is the guard's own.
func (g *guard) clip(weights []float64) []float64 {
	n := len(weights) - 1
	exposure, weight := g.monitor.Limits()
	assets := append(g.target[:0], weights...)[:n]
	over := false
	for i, w := range assets {
		if w > weight {
			assets[i], over = weight, true
			g.bind(risk.BoundWeight)
		}
	}
	sum := total(assets)
	if sum > exposure*(1+slack) {
		for i := range assets {
			assets[i] *= exposure / sum
		}
		sum, over = exposure, true
		g.bind(risk.BoundExposure)
	}
	if over {
		g.target[n] = max(1-sum, 0)
	}
	return g.target
}

// slack is what a limit may be passed by because of rounding, as a part of it.
const slack = 1e-12

// bind notes that a limit on positions has changed what is traded.
func (g *guard) bind(by risk.Bounds) {
	if g.bound |= by; g.monitor.Factor() < 1 {
		g.bound |= risk.BoundCVaR
	}
}

// cut changes the sales [N] of a fill in shares, -1 where there is none, so that they keep the
// limits: those that nobody demands within the turnover of the day, and so much more that no
// position and not all together are beyond theirs, as far as they can be sold.
func (g *guard) cut(a *Account, x *Charges, sales []float64) {
	price := x.bar.Price
	forced, free := g.terms[:0], g.want[:0]
	for i, q := range a.pos {
		switch {
		case (g.flat || leaves(x.bar.Members, i)) && q > 0 && g.can[i] > 0:
			sales[i] = q
			forced = append(forced, g.can[i]*price[i])
		case sales[i] > 0:
			free = append(free, min(sales[i], g.can[i])*price[i])
		}
	}
	if sum, left := total(free), max(g.turnover-total(forced), 0); sum > left {
		g.bound |= risk.BoundTurnover
		for i, v := range sales {
			if v <= 0 || g.flat || leaves(x.bar.Members, i) {
				continue
			}
			v = x.atMost(i, min(v, g.can[i])*(left/sum), a.pos[i])
			if sales[i] = v; v*price[i] < Dust {
				sales[i] = -1
				a.step.skipped++
			}
		}
	}
	// The value of each asset after the sales, in currency.
	for i, q := range a.pos {
		if g.after[i] = 0; q == 0 {
			continue
		}
		g.after[i] = (q - min(max(sales[i], 0), g.can[i])) * price[i]
		if g.after[i] > g.weight*(1+slack) {
			g.bind(risk.BoundWeight)
			g.reduce(a, x, i, g.weight, sales)
		}
	}
	if total(g.after) <= g.exposure*(1+slack) {
		return
	}
	g.bind(risk.BoundExposure)
	part := g.fit(a, price)
	for i, v := range g.after {
		if v > 0 {
			g.reduce(a, x, i, part*v, sales)
		}
	}
}

// fit returns the part of what is held after the sales that can stay under the limit on exposure,
// the same for all assets but those of which more is left when all is sold that can be.
func (g *guard) fit(a *Account, price []float64) (part float64) {
	clear(g.stuck)
	for again := true; again; {
		again = false
		rest, moving := g.terms[:0], g.want[:0]
		for i, v := range g.after {
			if g.stuck[i] {
				rest = append(rest, (a.pos[i]-g.can[i])*price[i])
			} else {
				moving = append(moving, v)
			}
		}
		part = 0
		if sum := total(moving); sum > 0 {
			part = max(g.exposure-total(rest), 0) / sum
		}
		for i, v := range g.after {
			if v > 0 && !g.stuck[i] && part*v < (a.pos[i]-g.can[i])*price[i] {
				g.stuck[i], again = true, true
			}
		}
	}
	return part
}

// reduce makes the sale of asset i at least so large that no more than a worth of most is held.
func (g *guard) reduce(a *Account, x *Charges, i int, most float64, sales []float64) {
	q, price := a.pos[i], x.bar.Price[i]
	if shares := min(x.atLeast(i, q-most/price, q), g.can[i]); shares > 0 {
		sales[i] = max(sales[i], shares)
		g.after[i] = (q - min(sales[i], g.can[i])) * price
	}
}

// atMost is the largest number of shares of asset i, up to so many, that whoever holds held of them
// can sell; participation and settlement apart.
func (x *Charges) atMost(i int, shares, held float64) float64 {
	if t := x.terms(i); t != nil {
		return float64(t.Lot.Sell(whole(shares), whole(held)))
	}
	if lot := x.config.Execution.Lot; lot > 0 && shares < held {
		return math.Floor(shares/lot) * lot
	}
	return shares
}

// atLeast is the smallest number of shares of asset i, not below so many, that whoever holds held
// of them can sell.
func (x *Charges) atLeast(i int, shares, held float64) float64 {
	if lot := x.config.Execution.Lot; lot > 0 {
		return min(math.Ceil(shares/lot-slack)*lot, held)
	}
	t := x.terms(i)
	if t == nil {
		return min(shares, held)
	}
	want, all := int64(math.Ceil(shares-slack)), whole(held)
	// Whole steps, with or without what is held below one, or the least order.
	odd, best := all%t.Lot.Step, all
	up := (want + t.Lot.Step - 1) / t.Lot.Step * t.Lot.Step
	for _, n := range [...]int64{up, odd, up + odd, up - t.Lot.Step + odd, t.Lot.Min} {
		if n >= want && n < best && t.Lot.Sell(n, all) == n {
			best = n
		}
	}
	return float64(best)
}

// leaves reports whether an asset leaves the universe.
func leaves(members []universe.Membership, i int) bool {
	return members != nil && members[i] == universe.Leaving
}

// room cuts purchases [N] in currency to what the limits leave room for, after the sales of the
// fill; what is not positive is none.
func (g *guard) room(a *Account, x *Charges, want []float64) {
	price := x.bar.Price
	held, terms := g.after, g.terms[:0]
	for i, q := range a.pos {
		if held[i] = 0; q != 0 {
			held[i] = q * price[i]
		}
	}
	for i, d := range want {
		if d <= 0 {
			continue
		}
		if most := max(g.weight-held[i], 0); d > most {
			d, want[i] = most, most
			g.bind(risk.BoundWeight)
		}
		terms = append(terms, d)
	}
	sum, part := total(terms), 1.0
	if left := max(g.exposure-total(held), 0); sum > left*(1+slack) {
		part = left / sum
		g.bind(risk.BoundExposure)
	}
	if left := max(g.turnover-g.amounts(a), 0); sum*part > left*(1+slack) {
		part = left / sum
		g.bound |= risk.BoundTurnover
	}
	if part < 1 {
		for i, d := range want {
			if d > 0 {
				want[i] = d * part
			}
		}
	}
}

// amounts is what the fills bought and sold.
func (g *guard) amounts(a *Account) float64 {
	terms := g.terms[:0]
	for _, f := range a.Fills() {
		terms = append(terms, math.Abs(f.Shares)*f.Price)
	}
	return total(terms)
}

// end books what was traded, and notes what should have been sold and is still there.
func (g *guard) end(a *Account, x *Charges) {
	g.traded += g.amounts(a)
	const most = 1 + 1e-9
	held := g.terms[:0]
	for i, q := range a.pos {
		if q == 0 {
			continue
		}
		v := q * x.bar.Price[i]
		if held = append(held, v); g.flat && v >= Dust || v > g.weight*most {
			g.bound |= risk.Unsold
		}
	}
	if total(held) > g.exposure*most {
		g.bound |= risk.Unsold
	}
}

// close masks the purchases [3·N] that the limits forbid, and leaves selling alone of what they
// will sell.
func (g *guard) close(mask []bool, pos []float64) {
	if g == nil {
		return
	}
	stopped, flat := g.monitor.Stopped(), g.monitor.Flattens()
	for i, q := range pos {
		of := mask[i*actions : (i+1)*actions]
		if stopped || g.full[i] {
			of[Buy] = false
		}
		if flat && q > 0 && of[Sell] {
			of[Hold] = false
		}
	}
}

// WriteTradable writes 1 for each asset [N] that can be traded with those sides, and else 0: where
// risk has stopped buying, only what is held and can be sold, and nothing where it sells all.
func (a *Account) WriteTradable(tradable []uint8, sides []Sides) {
	WriteTradable(tradable, sides)
	if a.guard == nil || !a.guard.monitor.Stopped() {
		return
	}
	for i, s := range sides {
		if s&CanSell == 0 || a.pos[i] == 0 || a.guard.monitor.Flattens() {
			tradable[i] = 0
		}
	}
}

// RiskMemory is what the limits on risk remember of an account, for JSON.
type RiskMemory struct {
	risk.Memory
	// Traded is what was bought and sold on TradedOn, a day such as 20240131.
	Traded   float64 `json:"traded,omitzero"`
	TradedOn int     `json:"traded_on,omitzero"`
}

// RiskMemory returns what [Account.Risk] and the limits on risk remember, nil where there is neither.
func (a *Account) RiskMemory() *RiskMemory {
	if a.watch == nil {
		return nil
	}
	m := &RiskMemory{Memory: a.watch.Memory()}
	if a.guard != nil {
		m.Traded, m.TradedOn = a.guard.traded, a.guard.day
	}
	return m
}

// RestoreRisk makes [Account.Risk] and the limits on risk what they were when RiskMemory was called;
// nil is that they have seen nothing. It belongs after [Account.Hold], at a bar with those closes
// [N]. Where there is neither it does nothing. What cannot be is an error that changes nothing.
func (a *Account) RestoreRisk(m *RiskMemory, close []float64) error {
	if a.watch == nil {
		return nil
	}
	if m == nil {
		a.forgetRisk()
		return nil
	}
	if !(m.Traded >= 0) || math.IsInf(m.Traded, 0) || m.TradedOn < 0 {
		return fmt.Errorf("risk: %g traded on the day %d", m.Traded, m.TradedOn)
	}
	if err := a.watch.Restore(m.Memory); err != nil {
		return err
	}
	if g := a.guard; g != nil {
		g.traded, g.day, g.bound = m.Traded, m.TradedOn, 0
		g.fill(a, close)
	}
	return nil
}
