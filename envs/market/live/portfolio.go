package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Portfolio is what an agent observes beside the window: position, cash and mask, to the bit those
// of the trading environment over the same bars, and the account that executes its orders by the
// same rules. At each time: [Feed.Append], [Portfolio.Update], the agent's decision,
// [Portfolio.Decide]. It is not safe for concurrent use.
type Portfolio struct {
	feed    *Feed
	config  trading.Config
	account *trading.Account
	value   float64

	// What was decided and is not executed yet: the orders, what could be traded then, and when.
	pending  bool
	orders   []int64
	decided  []bool
	at       time.Time
	position *tensor.Tensor
	cash     *tensor.Tensor
	mask     *tensor.Tensor
}

// NewPortfolio returns a portfolio over the bars of a feed, all in cash. The configuration is that
// of the agent's environment; its window is the feed's.
func NewPortfolio(c trading.Config, f *Feed) (*Portfolio, error) {
	if c.Window != f.p.Window {
		return nil, fmt.Errorf("portfolio: windows of %d bars, the feed has %d", c.Window, f.p.Window)
	}
	n := len(f.assets)
	a, err := trading.NewAccount(c, n)
	if err != nil {
		return nil, fmt.Errorf("portfolio: %w", err)
	}
	p := &Portfolio{
		feed: f, config: c, account: a, orders: make([]int64, n), decided: make([]bool, n),
		position: tensor.New(tensor.Float32, n), cash: tensor.New(tensor.Float32, 1), mask: tensor.New(tensor.Bool, 3*n),
	}
	p.observe()
	return p, nil
}

// Update executes what was decided at the bar before, once, and shows the present one.
func (p *Portfolio) Update() {
	if p.pending && p.feed.time.After(p.at) {
		price := p.feed.open
		if p.config.Execution.Fill == trading.NextClose {
			price = p.feed.close
		}
		p.trade(price)
		p.pending = false
	}
	p.observe()
}

// Decide takes the agent's orders, trading.Buy, Sell or Hold for each asset. They are executed at
// the next bar, or at once where the configuration fills at the same close.
func (p *Portfolio) Decide(orders []int64) error {
	if len(orders) != len(p.orders) {
		return fmt.Errorf("decide: %d orders for %d assets", len(orders), len(p.orders))
	}
	for i, o := range orders {
		if o < trading.Buy || o > trading.Hold {
			return fmt.Errorf("decide: the order %d for %s, expected %d to %d", o, p.feed.p.Assets[i], trading.Buy, trading.Hold)
		}
	}
	if !p.feed.begun {
		return errors.New("decide: there is no bar yet")
	}
	copy(p.orders, orders)
	copy(p.decided, p.feed.tradable)
	p.at, p.pending = p.feed.time, true
	if p.config.LookAhead() {
		p.trade(p.feed.close)
		p.pending = false
	}
	return nil
}

func (p *Portfolio) trade(price []float64) {
	p.account.Trade(p.orders, trading.Bar{Number: p.feed.rows - 1, Price: price, Decided: p.decided, Tradable: p.feed.tradable})
}

func (p *Portfolio) observe() {
	p.value = p.account.Value(p.feed.close)
	p.account.ObservePosition(p.position.Float32s(), p.feed.close, p.value)
	p.cash.Float32s()[0] = p.account.ObserveCash(p.value)
	trading.WriteMask(p.mask.Bools(), p.feed.tradable)
}

// Position [N], Cash [1] and Mask [3·N] are the inputs of an agent beside the window, as of the
// last Update, which writes the next into the same memory.
func (p *Portfolio) Position() *tensor.Tensor { return p.position }

// Cash is documented at Position.
func (p *Portfolio) Cash() *tensor.Tensor { return p.cash }

// Mask is documented at Position.
func (p *Portfolio) Mask() *tensor.Tensor { return p.mask }

// Value is the portfolio's value at the close of the last bar, as of the last Update.
func (p *Portfolio) Value() float64 { return p.value }

// Account returns what was traded. Change it through the portfolio only.
func (p *Portfolio) Account() *trading.Account { return p.account }

// Hold replaces the holdings, such as by those that a broker reports, forgets orders that are not
// executed yet, and shows the present bar.
func (p *Portfolio) Hold(positions []float64, cash float64) error {
	if err := p.account.Hold(positions, cash); err != nil {
		return err
	}
	p.pending = false
	p.observe()
	return nil
}

// portfolioState is the form of a saved portfolio.
type portfolioState struct {
	Cash      float64   `json:"cash"`
	Positions []float64 `json:"positions"`
	Pending   bool      `json:"pending"`
	Orders    []int64   `json:"orders"`
	Decided   []bool    `json:"decided"`
	At        time.Time `json:"at"`
}

// SaveState returns the holdings and what is not executed yet, as JSON. The feed is saved by
// itself.
func (p *Portfolio) SaveState() ([]byte, error) {
	return json.Marshal(portfolioState{Cash: p.account.Cash(), Positions: p.account.Positions(), Pending: p.pending, Orders: p.orders, Decided: p.decided, At: p.at})
}

// LoadState makes the portfolio what it was, over the present bar of its feed. What cannot be is an
// error that changes nothing.
func (p *Portfolio) LoadState(text []byte) error {
	var s portfolioState
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("load the state of a portfolio: %w", err)
	}
	if len(s.Orders) != len(p.orders) || len(s.Decided) != len(p.decided) || slices.ContainsFunc(s.Orders, func(o int64) bool { return o < trading.Buy || o > trading.Hold }) {
		return fmt.Errorf("load the state of a portfolio: the orders %v decided on %d assets, expected %d", s.Orders, len(s.Decided), len(p.orders))
	}
	if err := p.Hold(s.Positions, s.Cash); err != nil {
		return fmt.Errorf("load the state of a portfolio: %w", err)
	}
	copy(p.orders, s.Orders)
	copy(p.decided, s.Decided)
	p.pending, p.at = s.Pending, p.feed.wall(s.At)
	return nil
}
