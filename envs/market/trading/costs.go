package trading

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/rules"
)

// Costs are what trading costs besides fee_rate, which is the commission's rate, and how much of a
// bar an order may be. The zero Costs are none. A rule book of an exchange supplies Taxes.
type Costs struct {
	// Minimum is the least commission of an order, in currency.
	Minimum float64 `yaml:"minimum,omitzero"`
	// Taxes are taxes and fees of the exchange, fractions of the amount by side and date.
	Taxes []Tax `yaml:"taxes,omitzero"`
	// Slippage is what fills are worse than the price of the bar.
	Slippage Slippage `yaml:"slippage,omitzero"`
	// Participation is the largest part of a bar's volume that an order may be; 0 is no limit.
	Participation float64 `yaml:"participation,omitzero"`
	// MinVolume is the volume of a bar, in shares, below which nothing is filled at it; 0 is none.
	MinVolume float64 `yaml:"min_volume,omitzero"`
	// Rest is what becomes of the rest of an order that the volume or the depth of a bar was too
	// small for: cancel (the default), or carry, for orders: the rest is tried at the bars that
	// follow, before other purchases, until it is filled or another order for the asset than hold
	// takes its place. It is not observed.
	Rest string `yaml:"rest,omitzero"`
}

// Tax is a tax or a fee from a date on, until a later one of the same name and side.
type Tax struct {
	// Name tells taxes apart that are due beside each other, such as stamp_duty and transfer_fee.
	Name string `yaml:"name,omitzero"`
	// From is the first day; nothing is from the beginning.
	From bars.Date `yaml:"from,omitzero"`
	// Side is buy, sell or both.
	Side string `yaml:"side"`
	// Rate is the fraction of the amount.
	Rate float64 `yaml:"rate"`
}

// Slippage is what fills are worse than the price of the bar, though never beyond its limits.
type Slippage struct {
	// BP is half the spread, in basis points of the price. It is not for depth, which knows the
	// spread.
	BP float64 `yaml:"bp,omitzero"`
	// Impact is linear or sqrt: the price moves by Coefficient times the order's part of the bar's
	// volume, or the square root of it. Or it is depth, of data with the spread and the depth of a
	// book: the price moves by half the spread, and by Coefficient spreads times the order's part
	// of the depth. In a book of even density that reaches over so many spreads on each side, this
	// is what an order pays on average (Obizhaeva and Wang 2013, Optimal trading strategy and
	// supply/demand dynamics). What is beyond half the depth, one side, is cancelled, and where the
	// book is not known nothing is traded. Empty is none.
	Impact      string  `yaml:"impact,omitzero"`
	Coefficient float64 `yaml:"coefficient,omitzero"`
}

// The words of Costs.
const (
	Linear     = "linear"
	SquareRoot = "sqrt"
	OfDepth    = "depth"

	Cancel = "cancel"
	Carry  = "carry"
)

var sideNames = [...]string{Buy: "buy", Sell: "sell"}

func (c *Costs) check(p *configs.Problems) {
	p.NonNegative("costs.minimum", c.Minimum)
	p.NonNegative("costs.slippage.bp", c.Slippage.BP)
	p.Check(c.Slippage.BP < 1e4, "costs.slippage.bp", "%g, expected less than 10000", c.Slippage.BP)
	p.NonNegative("costs.min_volume", c.MinVolume)
	p.OneOf("costs.rest", c.Rest, "", Cancel, Carry)
	p.Check(c.Rest != Carry || c.UsesVolume() || c.UsesBook(), "costs.rest", "no bar is too small for an order: expected participation, min_volume or an impact of depth beside it")
	p.OneOf("costs.slippage.impact", c.Slippage.Impact, "", Linear, SquareRoot, OfDepth)
	if s := c.Slippage; s.Impact == OfDepth {
		p.Check(s.BP == 0, "costs.slippage.bp", "%g, but with the impact %s the spread is that of the book", s.BP, s.Impact)
		p.Check(s.Coefficient >= 0 && s.Coefficient <= 1e4, "costs.slippage.coefficient", "%g, expected a number of spreads in [0, 10000]", s.Coefficient)
	} else {
		p.Check(s.Coefficient >= 0 && s.Coefficient+s.BP/1e4 < 1, "costs.slippage.coefficient", "%g, expected a fraction in [0, 1), the spread included", s.Coefficient)
	}
	p.Check(c.UsesBook() || (c.Slippage.Impact == "") == (c.Slippage.Coefficient == 0), "costs.slippage.coefficient", "%g, with the impact %q", c.Slippage.Coefficient, c.Slippage.Impact)
	p.Check(c.Participation >= 0 && c.Participation <= 1, "costs.participation", "%g, expected a fraction in [0, 1]", c.Participation)
	for i, x := range c.Taxes {
		key := fmt.Sprintf("costs.taxes[%d]", i)
		p.OneOf(key+".side", x.Side, sideNames[Buy], sideNames[Sell], "both")
		p.Check(x.Rate >= 0 && x.Rate < 1, key+".rate", "%g, expected a fraction in [0, 1)", x.Rate)
		for k, y := range c.Taxes[:i] {
			p.Check(x.Name != y.Name || x.From != y.From || x.Side != y.Side && x.Side != "both" && y.Side != "both", key, "the same name, date and side as taxes[%d]", k)
		}
	}
}

// UsesVolume says that fills depend on the volume of their bar.
func (c *Costs) UsesVolume() bool {
	return c.Participation > 0 || c.MinVolume > 0 || c.Slippage.Impact != "" && !c.UsesBook()
}

// UsesBook says that fills depend on the spread and the depth of their bar.
func (c *Costs) UsesBook() bool { return c.Slippage.Impact == OfDepth }

// UsesBars says that fills depend on more than prices: on volume, on the book, or on limits that
// slippage must not pass.
func (c *Costs) UsesBars() bool { return c.UsesVolume() || c.UsesBook() || c.Slippage.BP > 0 }

// rate is the sum of the taxes of a side on a date.
func (c *Costs) rate(side int64, date time.Time) (sum float64) {
	for i := range c.Taxes {
		x := &c.Taxes[i]
		if !x.due(side, date) {
			continue
		}
		later := false
		for k := range c.Taxes {
			y := &c.Taxes[k]
			later = later || y.Name == x.Name && x.From.Before(y.From) && y.due(side, date)
		}
		if !later {
			sum += x.Rate
		}
	}
	return sum
}

func (x *Tax) due(side int64, date time.Time) bool {
	return (x.Side == "both" || x.Side == sideNames[side]) && !x.From.After(date)
}

// Charges are the costs of one bar for a configuration. They allocate nothing.
type Charges struct {
	config *Config
	bar    *Bar
	rate   float64 // of the commission
	tax    [2]float64
	// plain says that there is the fee rate and nothing else, as in most trainings.
	plain bool
	// The commission under a rule book, and its minimum in hundredths.
	commission rules.Rate
	minimum    int64
	// The configuration of slippage and participation, with half the spread as a part of the
	// price.
	impact              impact
	spread, coefficient float64
	participation       float64
	leastVolume         float64
}

// impact is [Slippage.Impact], or that there is no slippage at all.
type impact uint8

const (
	unmoved impact = iota
	spreadOnly
	linear
	squareRoot
	ofDepth
)

func (s *Slippage) kind() impact {
	switch s.Impact {
	case Linear:
		return linear
	case SquareRoot:
		return squareRoot
	case OfDepth:
		return ofDepth
	}
	if s.BP == 0 {
		return unmoved
	}
	return spreadOnly
}

// Charges returns the costs of a bar.
func (c *Config) Charges(b *Bar) Charges {
	k := &c.Costs
	x := Charges{config: c, bar: b, rate: c.FeeRate, impact: k.Slippage.kind(), spread: k.Slippage.BP / 1e4, coefficient: k.Slippage.Coefficient, participation: k.Participation, leastVolume: k.MinVolume, plain: k.Minimum == 0 && len(k.Taxes) == 0 && !k.UsesBars() && c.Account.Settlement == 0 && b.Terms == nil}
	if b.Terms != nil {
		x.commission, x.minimum = rules.Rate(math.Round(c.FeeRate*1e7)), hundredths(k.Minimum)
	}
	if len(c.Costs.Taxes) > 0 {
		x.tax = [2]float64{Buy: c.Costs.rate(Buy, b.Date), Sell: c.Costs.rate(Sell, b.Date)}
	}
	return x
}

// Fee is what an order of that amount costs: commission, at least its minimum, and taxes.
func (x *Charges) Fee(side int64, amount float64) float64 {
	if x.plain {
		return amount * x.rate
	}
	return x.fee(side, amount)
}

func (x *Charges) fee(side int64, amount float64) float64 {
	return max(amount*x.rate, x.config.Costs.Minimum) + amount*x.tax[side]
}

// Spend is the amount of a purchase that costs all of that money, its fee included; it is negative
// where the money does not pay the least commission.
func (x *Charges) Spend(money float64) float64 {
	if x.plain {
		return money / (1 + x.rate)
	}
	amount := money / (1 + x.rate + x.tax[Buy])
	if least := x.config.Costs.Minimum; amount*x.rate < least {
		return (money - least) / (1 + x.tax[Buy])
	}
	return amount
}

// Price is what an order for so many shares of asset i is filled at.
func (x *Charges) Price(side int64, i int, shares float64) float64 {
	b := x.bar
	price := b.Price[i]
	if b.Terms != nil && !b.exact {
		// Vendors store prices in float32.
		if p := price * 100; float64(int64(p)) != p {
			price = float64(hundredths(price)) / 100
		}
	}
	if x.impact == unmoved {
		return price
	}
	move := x.spread
	switch x.impact {
	case linear, squareRoot:
		part := 1.0
		if v := b.Volume[i]; shares < v {
			part = shares / v
		}
		if x.impact == squareRoot {
			part = math.Sqrt(part)
		}
		move += x.coefficient * part
	case ofDepth:
		move = 1
		if x.quoted(i) {
			move = min((0.5+x.coefficient*shares/b.Depth[i])*b.Spread[i]/price, 1)
		}
	}
	if side == Sell {
		price *= 1 - move
		if b.LimitDown != nil && b.LimitDown[i] > price {
			price = b.LimitDown[i]
		}
		return price
	}
	price *= 1 + move
	if b.LimitUp != nil && b.LimitUp[i] > 0 && b.LimitUp[i] < price {
		price = b.LimitUp[i]
	}
	return price
}

// Most is the largest number of shares of asset i that an order may be.
func (x *Charges) Most(i int) float64 {
	if x.impact == ofDepth {
		return x.mostOfDepth(i)
	}
	return x.mostOfVolume(i)
}

func (x *Charges) mostOfVolume(i int) float64 {
	if x.participation == 0 && x.leastVolume == 0 {
		return math.Inf(1)
	}
	switch v := x.bar.Volume[i]; {
	case !(v > 0) || v < x.leastVolume:
		return 0
	case x.participation == 0:
		return math.Inf(1)
	default:
		return x.participation * v
	}
}

func (x *Charges) mostOfDepth(i int) float64 {
	if !x.quoted(i) {
		return 0
	}
	return min(x.mostOfVolume(i), x.bar.Depth[i]/2)
}

// quoted says that the book of asset i is known.
func (x *Charges) quoted(i int) bool { return x.bar.Depth[i] > 0 && x.bar.Spread[i] >= 0 }

// CostsText says in a sentence what trades cost.
func (c *Config) CostsText() string {
	k := &c.Costs
	if c.book == nil && k.Minimum == 0 && len(k.Taxes) == 0 && k.Slippage == (Slippage{}) && !c.Costs.UsesVolume() {
		return fmt.Sprintf("Fees are %g %% of every trade's amount; there is no slippage, no spread and no market impact, and cash earns nothing.", c.FeeRate*100)
	}
	parts := []string{fmt.Sprintf("a commission of %g %% of the amount", c.FeeRate*100)}
	if k.Minimum > 0 {
		parts[0] += fmt.Sprintf(", at least %g", k.Minimum)
	}
	if c.book != nil && !c.freed {
		parts = append(parts, "the taxes and fees of the day by the rule book "+c.book.Name())
	}
	for _, t := range k.Taxes {
		text := fmt.Sprintf("%g %%", t.Rate*100)
		if t.Name != "" {
			text = t.Name + " of " + text
		}
		if t.Side != "both" {
			text += " on a " + map[string]string{"buy": "purchase", "sell": "sale"}[t.Side]
		}
		if !t.From.IsZero() {
			text += " from " + t.From.String()
		}
		parts = append(parts, text)
	}
	slip, rest := "no slippage, no spread and no market impact", "cancelled"
	if k.Rest == Carry {
		rest = "carried over to the bars that follow"
	}
	if k.Slippage != (Slippage{}) {
		slip = fmt.Sprintf("fills are %g basis points worse than the price of their bar", k.Slippage.BP)
		switch k.Slippage.Impact {
		case "":
		case OfDepth:
			slip = fmt.Sprintf("fills are half the spread of the book worse than the price of their bar, and %g spreads times the order's part of its depth; what is more than one side of it is %s", k.Slippage.Coefficient, rest)
		default:
			part := map[string]string{Linear: "the order's part", SquareRoot: "the square root of the order's part"}[k.Slippage.Impact]
			slip += fmt.Sprintf(" and %g times %s of its volume", k.Slippage.Coefficient, part)
		}
	}
	if k.Participation > 0 {
		slip += fmt.Sprintf("; what is more than %g %% of a bar's volume is %s", k.Participation*100, rest)
	}
	if k.MinVolume > 0 {
		slip += fmt.Sprintf("; at bars of less than %g shares an order is %s", k.MinVolume, rest)
	}
	return fmt.Sprintf("Trades cost %s; %s; cash earns nothing.", strings.Join(parts, ", "), slip)
}
