package trading

import (
	"fmt"
	"math"
	"time"

	"github.com/onnxrl/onnxrl/envs/risk"
)

// Account is cash and positions that are traded by the rules of a configuration. The environment
// has one over its market; whoever serves an agent has one over the bars that arrive. It is not
// safe for concurrent use.
type Account struct {
	config *Config
	cash   float64
	cents  int64 // the cash in hundredths while a trade is made under a rule book
	pos    []float64
	// fills are those of the last trade. Under a rule book executed are, and fills are made of them
	// when somebody asks: in training nobody does. bar is the number of theirs.
	fills     []Fill
	executed  []order
	bar       int
	step      tally
	unsettled unsettled
	orders    []int64 // [N] with those that are forced; nil before the first
	// sales [N] are those of a fill in shares; where nothing is sold they are -1 with limits on
	// risk or target weights, and else are not read.
	sales []float64
	// Of a fill, the assets that are bought and sold: the first of [N].
	buyers, sellers []int32
	guard           *guard // nil without limits on risk
	// watch measures the account's value, that of the guard where there is one; nil where neither
	// is asked for.
	watch *risk.Monitor
	rests rests
	// rebalancing is empty where actions are orders.
	rebalancing rebalancing
	trial       *Account // nil unless orders are executed elsewhere
}

// Fill is an executed order.
type Fill struct {
	// Asset is the column and Bar the row of the market at whose price it was executed.
	Asset, Bar int
	// Shares are bought when positive and sold when negative.
	Shares float64
	Price  float64
	// Fee was paid on top of, or taken from, the amount |Shares|·Price.
	Fee float64
}

// tally sums up the orders of one step.
type tally struct {
	fees, turnover       float64
	paid, moved          int64 // the same in hundredths while a trade is made under a rule book
	buys, sells, skipped int
}

// NewAccount returns an account of that many assets, all in cash.
func NewAccount(c Config, assets int) (*Account, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("account: %w", err)
	}
	a := newAccount(&c, assets)
	a.Reset()
	return a, nil
}

func newAccount(c *Config, assets int) *Account {
	a := &Account{config: c, pos: make([]float64, assets), fills: make([]Fill, 0, assets), sales: make([]float64, assets), buyers: make([]int32, assets), sellers: make([]int32, assets), guard: newGuard(c, assets), rests: newRests(c, assets)}
	if a.guard != nil {
		a.watch = a.guard.monitor
	}
	if a.rests.shares != nil {
		a.orders = make([]int64, assets)
	}
	if c.book != nil {
		a.executed = make([]order, 0, assets)
	}
	if c.Account.Settlement > 0 {
		a.unsettled.shares = make([]float64, assets)
	}
	if c.Actions == Weights {
		a.rebalancing = newRebalancing(assets)
	}
	return a
}

// Reset makes the account what an episode begins with.
func (a *Account) Reset() {
	clear(a.pos)
	clear(a.unsettled.shares)
	a.forgetRisk()
	a.rests.reset()
	a.cash = a.config.InitialCash
	a.forget()
}

// Hold replaces positions [N] and cash; all shares can be sold at once, no order rests, and the
// limits on risk have seen nothing. Numbers that are negative or not finite are an error that
// changes nothing; see [Account.Elsewhere] for debts.
func (a *Account) Hold(positions []float64, cash float64) error {
	if len(positions) != len(a.pos) {
		return fmt.Errorf("hold: %d positions for %d assets", len(positions), len(a.pos))
	}
	for i, q := range positions {
		if !(q >= 0) || math.IsInf(q, 0) {
			return fmt.Errorf("hold: the position %g in asset %d", q, i)
		}
		if a.config.book != nil && q != math.Trunc(q) {
			return fmt.Errorf("hold: the position %g in asset %d, expected whole shares beside data.rules: %s", q, i, a.config.book.Name())
		}
	}
	if !(cash >= 0) && (a.trial == nil || cash-cash != 0) || math.IsInf(cash, 0) {
		return fmt.Errorf("hold: the cash %g", cash)
	}
	copy(a.pos, positions)
	clear(a.unsettled.shares)
	a.forgetRisk()
	a.rests.reset()
	a.cash = cash
	a.forget()
	return nil
}

// Cash returns the cash.
func (a *Account) Cash() float64 { return a.cash }

// Positions returns the number of shares of each asset. The slice is the account's own: read it,
// and copy it to keep it.
func (a *Account) Positions() []float64 { return a.pos }

// Fills returns what the last Trade or Rebalance executed, sells first, each side in the order of
// the assets. The slice is overwritten by the next one.
func (a *Account) Fills() []Fill {
	for k := len(a.fills); k < len(a.executed); k++ {
		a.fills = append(a.fills, a.executed[k].fill(a.bar))
	}
	return a.fills
}

// forget forgets the last trade.
func (a *Account) forget() {
	a.fills, a.executed, a.step = a.fills[:0], a.executed[:0], tally{}
}

// Value is cash + Σ position · close.
func (a *Account) Value(close []float64) float64 {
	v := a.cash
	for i, q := range a.pos {
		// Before its first bar an asset has no price that could be multiplied by its position of 0.
		if q != 0 {
			v += q * close[i]
		}
	}
	return v
}

// ObservePosition writes what an agent observes of the positions [N]: shares of the account's
// value, or the plain numbers, as the configuration says.
func (a *Account) ObservePosition(dst []float32, close []float64, value float64) {
	weight := a.config.State.Scale == Weight
	for i, q := range a.pos {
		if q != 0 && weight {
			q *= close[i] / value
		}
		dst[i] = float32(q)
	}
}

// ObserveAccount writes the value, as a multiple of the cash that an episode begins with, and the
// number of the day since 1970 [2].
func (a *Account) ObserveAccount(to []float32, value float64, at time.Time) {
	WriteAccount(to, value/a.config.InitialCash, at)
}

// WriteAccount writes a value and the number of a day since 1970 [2], as AccountField has them.
func WriteAccount(to []float32, value float64, at time.Time) {
	y, month, d := at.Date()
	to[0] = float32(value)
	to[1] = float32(time.Date(y, month, d, 0, 0, 0, 0, time.UTC).Unix() / 86_400)
}

// ObserveCash is what an agent observes of the cash, scaled as the positions.
func (a *Account) ObserveCash(value float64) float32 {
	if a.config.State.Scale == Weight {
		return float32(a.cash / value)
	}
	return float32(a.cash)
}
