package trading

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/rules"
)

// Under returns the configuration of accounts that are kept by a rule book, nil for none: they
// trade raw prices and whole shares, pay to the hundredth, and what the book says of lots, taxes
// and settlement holds. fee_rate and costs.minimum stay the broker's. A key that says otherwise is
// an error that names both.
func (c Config) Under(b rules.Book) (Config, error) {
	if b == nil || c.book == b {
		return c, nil
	}
	var p configs.Problems
	c.checkRules(&p, b.Name())
	c.book, c.Account.Prices, c.Account.Settlement = b, Raw, 1
	return c, p.Err()
}

// Ruled reports whether the configuration is under a rule book.
func (c *Config) Ruled() bool { return c.book != nil }

// CheckRules reports the keys that cannot be set beside the rule book of that name.
func (c Config) CheckRules(name string) error {
	var p configs.Problems
	c.checkRules(&p, name)
	return p.Err()
}

func (c *Config) checkRules(p *configs.Problems, name string) {
	book := "data.rules: " + name
	p.Check(c.Execution.Lot == 0, "execution.lot", "%g, and %s says how many shares an order has; leave one of the two out", c.Execution.Lot, book)
	p.Check(len(c.Costs.Taxes) == 0, "costs.taxes", "there are some, and %s says what taxes are due when; leave one of the two out", book)
	p.Check(c.Account.Settlement == 0, "account.settlement", "%d, and %s says when shares can be sold; leave one of the two out", c.Account.Settlement, book)
	p.Check(c.Account.Prices != Adjusted, "account.prices", "adjusted, and %s is for prices as they were quoted: leave one of the two out", book)
	whole := func(key string, v, unit float64) {
		p.Check(math.Abs(v/unit-math.Round(v/unit)) < 1e-6, key, "%g, expected a multiple of %g beside %s", v, unit, book)
	}
	whole("fee_rate", c.FeeRate, 1e-7)
	whole("costs.minimum", c.Costs.Minimum, 0.01)
	whole("initial_cash", c.InitialCash, 0.01)
}

// Ruled are the assets of a market under a rule book.
type Ruled struct {
	book    rules.Book
	classes []uint8 // [N]
	// present [class] says which there are.
	present []bool
	none    []Sides // [N]

	// Of a market: the terms of its days, the number of those of each bar, and the bars at whose
	// time all trading rests.
	days   [][]rules.Terms
	day    []int32
	halted []bool
	exact  bool // all prices are the nearest numbers to whole hundredths

	terms []rules.Terms // of the last Bar
}

// NewRuled returns assets under a book. One that the book has no rules for is an error.
func NewRuled(b rules.Book, assets []string) (*Ruled, error) {
	r := &Ruled{book: b, classes: make([]uint8, len(assets)), none: make([]Sides, len(assets))}
	for i, name := range assets {
		class, err := b.Class(name)
		if err != nil {
			return nil, fmt.Errorf("data.rules: %s: %w", b.Name(), err)
		}
		r.classes[i] = class
		for len(r.present) <= int(class) {
			r.present = append(r.present, false)
		}
		r.present[class] = true
	}
	return r, nil
}

// on appends the terms of a day by class.
func (r *Ruled) on(to []rules.Terms, day bars.Date) ([]rules.Terms, error) {
	for class, present := range r.present {
		var t rules.Terms
		if present {
			var err error
			if t, err = r.book.Terms(uint8(class), day); err != nil {
				return to, fmt.Errorf("data.rules: %s: %w", r.book.Name(), err)
			}
			if settled := r.book.Settlement(day); settled != 1 {
				return to, fmt.Errorf("data.rules: %s: shares can be sold after %d days, and accounts know 1", r.book.Name(), settled)
			}
		}
		to = append(to, t)
	}
	return to, nil
}

// read notes what holds at the bars of a market.
func (r *Ruled) read(m *Market) error {
	r.day, r.halted = make([]int32, m.Len()), make([]bool, m.Len())
	// Where the memory of a market is given back it is not read for that.
	r.exact = m.Release == nil && inHundredths(m.Open) && inHundredths(m.Close)
	known := map[string]int32{}
	for t, at := range m.Dates {
		r.halted[t] = r.book.Halted(at)
		if t > 0 && sameDay(at, m.Dates[t-1]) {
			r.day[t] = r.day[t-1]
			continue
		}
		terms, err := r.on(nil, bars.NewDate(at))
		if err != nil {
			return err
		}
		key := fmt.Sprint(terms)
		if _, ok := known[key]; !ok {
			known[key] = int32(len(r.days))
			r.days = append(r.days, terms)
		}
		r.day[t] = known[key]
	}
	return nil
}

// bar writes what holds at a bar of the market; atClose says that its orders are filled at closes.
func (r *Ruled) bar(b *Bar, atClose bool) {
	b.Class, b.Terms, b.exact = r.classes, r.days[r.day[b.Number]], r.exact
	if atClose && r.halted[b.Number] {
		b.Tradable = r.none
	}
}

// Bar writes what holds on the day of a bar that is of no market, whose orders are filled at its
// close or at its open. What it writes is valid until the next call.
func (r *Ruled) Bar(b *Bar, atClose bool) (err error) {
	r.terms, err = r.on(r.terms[:0], bars.NewDate(b.Date))
	b.Class, b.Terms, b.exact = r.classes, r.terms, false
	if atClose && r.book.Halted(b.Date) {
		b.Tradable = r.none
	}
	return err
}

// terms are those of an asset, nil without a rule book.
func (x *Charges) terms(i int) *rules.Terms {
	if x.bar.Terms == nil {
		return nil
	}
	return &x.bar.Terms[x.bar.Class[i]]
}

// inHundredths reports whether numbers are what whole hundredths are read as.
func inHundredths(prices []float64) bool {
	for _, p := range prices {
		if p > 0 && float64(hundredths(p))/100 != p {
			return false
		}
	}
	return true
}

// hundredths is a sum of money in its smallest unit.
func hundredths(money float64) int64 {
	if money < 0 {
		return -int64(0.5 - money*100)
	}
	return int64(money*100 + 0.5)
}

// whole is the number of whole shares in a number that may have been rounded.
func whole(shares float64) int64 { return int64(shares*(1+1e-12) + 1e-6) }

// levied is what an order costs under a rule book, in hundredths, each part rounded.
func (x *Charges) levied(t *rules.Terms, side int, amount, shares int64) int64 {
	fee := max(x.commission.Of(amount), x.minimum)
	if !x.config.freed {
		for k := range t.Levies[side] {
			fee += t.Levies[side][k].Of(amount, shares)
		}
	}
	return fee
}

// feeOn is what a purchase of asset i for an amount costs.
func (x *Charges) feeOn(i int, amount float64) float64 {
	t := x.terms(i)
	if t == nil {
		return x.Fee(Buy, amount)
	}
	return float64(x.levied(t, rules.Buy, hundredths(amount), whole(amount/x.bar.Price[i]))) / 100
}

// order is one under a rule book: money in hundredths, the amount without the fee. Shares are
// negative in one that was executed as a sale.
type order struct {
	asset               int
	shares, amount, fee int64
}

// purchase returns what is bought of asset i under a rule book for an amount before fees, out of a
// budget that pays for all.
func (x *Charges) purchase(t *rules.Terms, i int, amount, budget float64) (o order) {
	o.asset = i
	most := x.Most(i)
	want := amount / x.bar.Price[i]
	if want > most {
		want = most
	}
	price := x.Price(Buy, i, want)
	if want = amount / price; want > most {
		want = most
	}
	pays := int64(budget*100 + 1e-6)
	for o.shares = t.Lot.Buy(whole(want)); o.shares > 0; {
		o.amount = hundredths(float64(o.shares) * price)
		if o.fee = x.levied(t, rules.Buy, o.amount, o.shares); o.amount+o.fee <= pays {
			break
		}
		over := float64(o.amount+o.fee-pays) / 100
		o.shares = t.Lot.Buy(min(o.shares-1, o.shares-whole(over/price)))
	}
	return o
}

// sale returns what is sold of asset i under a rule book by whoever holds held shares and may sell
// up to that many.
func (x *Charges) sale(t *rules.Terms, i int, want, held float64) (o order) {
	o.asset = i
	if most := x.Most(i); want > most {
		want = most
	}
	if o.shares = t.Lot.Sell(whole(want), whole(held)); o.shares > 0 {
		o.amount = hundredths(float64(o.shares) * x.Price(Sell, i, float64(o.shares)))
		o.fee = x.levied(t, rules.Sell, o.amount, o.shares)
	}
	return o
}

// spend is about the amount of a purchase of asset i that costs all of that money under a rule
// book; [Charges.purchase] makes it fit.
func (x *Charges) spend(t *rules.Terms, i int, money float64) float64 {
	rate, fixed := x.rate, 0.0
	if money*rate < x.config.Costs.Minimum {
		rate, fixed = 0, x.config.Costs.Minimum
	}
	if x.config.freed {
		return (money - fixed) / (1 + rate)
	}
	for k := range t.Levies[rules.Buy] {
		l := &t.Levies[rules.Buy][k]
		part := float64(l.OfAmount) * 1e-7
		if l.OfPar != 0 {
			part += float64(l.OfPar) * 1e-7 / x.bar.Price[i]
		}
		if least := float64(l.Least) / 100; part*money < least {
			fixed += least
		} else {
			rate += part
		}
	}
	return (money - fixed) / (1 + rate)
}

// Ruled reports whether orders are executed by a rule book.
func (x *Charges) Ruled() bool { return x.bar.Terms != nil }

// Buy returns the purchase of asset i under a rule book that some money pays for, its fee included;
// one of no shares where it pays for none.
func (x *Charges) Buy(i int, money float64) Fill {
	t := x.terms(i)
	o := x.purchase(t, i, x.spend(t, i, money), money)
	return o.fill(x.bar.Number)
}

// Sell returns the sale of up to want shares of asset i under a rule book by whoever holds held of
// them; one of no shares where none can be sold.
func (x *Charges) Sell(i int, want, held float64) Fill {
	o := x.sale(x.terms(i), i, want, held)
	o.shares = -o.shares
	return o.fill(x.bar.Number)
}

// fill is the order executed at the bar of a number.
func (o *order) fill(bar int) Fill {
	f := Fill{Asset: o.asset, Bar: bar, Shares: float64(o.shares), Fee: float64(o.fee) / 100}
	if o.shares != 0 {
		f.Price = float64(o.amount) / math.Abs(float64(100*o.shares))
	}
	return f
}

// counted makes the cash what the fills of the side that is done have left of it under a rule book,
// and sums them up.
func (a *Account) counted() {
	if a.config.book != nil {
		a.cash = float64(a.cents) / 100
		a.step.fees, a.step.turnover = float64(a.step.paid)/100, float64(a.step.moved)/100
	}
}

// note notes an order that was executed under a rule book.
func (a *Account) note(o order) {
	a.step.paid += o.fee
	a.step.moved += o.amount
	a.executed = append(a.executed, o)
}

// buyWhole is buy under a rule book. It reports whether something was bought.
func (a *Account) buyWhole(x *Charges, t *rules.Terms, i int, amount, budget float64) bool {
	o := x.purchase(t, i, amount, budget)
	if o.shares <= 0 {
		return false
	}
	a.pos[i] += float64(o.shares)
	if a.unsettled.shares != nil {
		a.unsettled.shares[i] += float64(o.shares)
	}
	a.cents -= o.amount + o.fee
	a.step.buys++
	a.note(o)
	return true
}

// sellWhole is sell under a rule book.
func (a *Account) sellWhole(x *Charges, t *rules.Terms, i int, want float64) bool {
	o := x.sale(t, i, min(want, a.settled(i)), a.pos[i])
	if o.shares <= 0 || o.amount < o.fee && (a.config.Actions == Weights || o.amount+a.cents < o.fee) {
		return false
	}
	a.pos[i] -= float64(o.shares)
	a.cents += o.amount - o.fee
	a.step.sells++
	o.shares = -o.shares
	a.note(o)
	return true
}
