package live

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
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
	// elsewhere says that somebody else executes what is decided.
	elsewhere bool
	// started says that there was a decision: the limits on risk begin at the first one's bar.
	started bool

	// The decision that is not executed yet: the orders, or target weights [N+1], the sides that
	// could be traded then, and when.
	pending bool
	orders  []int64
	weights []float64 // nil where actions are orders
	decided []trading.Sides
	at      time.Time
	// Quantities that costs depend on, [N]; nil where they do not.
	volume, up, down, spread, depth []float64
	// factor [N] are those at which positions are counted; nil where nothing happens to them.
	factor []float64
	// ended [N] are the assets that are gone, of which nothing is held after the first time; nil without account.delisting.
	ended []bool
	// ruled are the assets under a rule book and last [N] the closes that an ex price refers to;
	// nil without one.
	ruled    *trading.Ruled
	last     []float64
	position *tensor.Tensor
	cash     *tensor.Tensor
	mask     *tensor.Tensor
	tradable *tensor.Tensor
	books    *tensor.Tensor
}

// NewPortfolio returns a portfolio over the bars of a feed, all in cash. The configuration is that
// of the agent's environment; its window is the feed's.
func NewPortfolio(c trading.Config, f *Feed) (*Portfolio, error) {
	if c.Window != f.p.Window {
		return nil, fmt.Errorf("portfolio: windows of %d bars, the feed has %d", c.Window, f.p.Window)
	}
	n := len(f.assets)
	c, err := c.Under(f.book)
	if err != nil {
		return nil, fmt.Errorf("portfolio: %w", err)
	}
	a, err := trading.NewAccount(c, n)
	if err != nil {
		return nil, fmt.Errorf("portfolio: %w", err)
	}
	a.Measure() // Whoever trades wants to see it, limits or not.
	p := &Portfolio{
		feed: f, config: c, account: a, orders: make([]int64, n), decided: make([]trading.Sides, n),
		position: tensor.New(tensor.Float32, n), cash: tensor.New(tensor.Float32, 1), mask: tensor.New(tensor.Bool, 3*n), tradable: tensor.New(tensor.Uint8, n),
		books: tensor.New(tensor.Float32, 2),
	}
	if f.book != nil {
		if p.ruled, err = trading.NewRuled(f.book, f.p.Assets); err != nil {
			return nil, fmt.Errorf("portfolio: %w", err)
		}
		p.last = slices.Clone(f.rawClose)
	}
	if c.Account.Prices == trading.Raw && (f.factors || f.acts) {
		p.factor = slices.Clone(f.factor)
	}
	if c.Account.Delisting != nil {
		p.ended = make([]bool, n)
	}
	if c.Actions == trading.Weights {
		p.weights = make([]float64, n+1)
	}
	if c.Costs.UsesBars() {
		for _, column := range []*[]float64{&p.volume, &p.up, &p.down, &p.spread, &p.depth} {
			*column = make([]float64, n)
		}
	}
	p.observe()
	return p, nil
}

// prices are those of the last bar that the account trades.
func (p *Portfolio) prices() (open, close []float64) {
	if p.factor != nil {
		return p.feed.rawOpen, p.feed.rawClose
	}
	return p.feed.open, p.feed.close
}

// Update books what dividends and splits since the last one mean for raw positions, and what is paid
// for those in assets that are gone, executes what
// was decided at the bar before, once, and shows the present one.
func (p *Portfolio) Update() {
	_, close := p.prices()
	o := trading.Overnight{Close: close}
	if p.factor != nil {
		if o.Before, o.Now, o.Close = p.factor, p.feed.factor, p.last; p.feed.acts {
			o.Dividend, o.Bonus = p.feed.dividend, p.feed.bonus
		}
	}
	if d := p.config.Account.Delisting; d != nil {
		for i := range p.ended {
			p.ended[i] = p.feed.assets[i].status == bars.Gone
		}
		o.Ended, o.Recovery = p.ended, d.Recovery
	}
	if (o.Now != nil || o.Ended != nil) && !p.elsewhere {
		p.account.Book(&o, nil)
	}
	if p.factor != nil {
		copy(p.last, p.feed.rawClose)
		copy(p.factor, p.feed.factor)
	}
	if p.pending && p.feed.time.After(p.at) && !p.elsewhere {
		p.trade()
	}
	p.mark()
	p.observe()
}

// Decide takes the agent's orders, trading.Buy, Sell or Hold for each asset. They are executed at
// the next bar, or at once where the configuration fills at the same close.
func (p *Portfolio) Decide(orders []int64) error {
	if p.weights != nil {
		return errors.New("decide: the agent's actions are target weights and no orders")
	}
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
	p.decide()
	return nil
}

// Rebalance is Decide with target weights [N+1], of the assets and, last, of the cash, where the
// agent's actions are these.
func (p *Portfolio) Rebalance(weights []float64) error {
	switch {
	case p.weights == nil:
		return errors.New("rebalance: the agent's actions are orders and no target weights")
	case !p.feed.begun:
		return errors.New("rebalance: there is no bar yet")
	}
	if err := trading.CheckWeights(p.feed.p.Assets, weights); err != nil {
		return fmt.Errorf("rebalance: %w", err)
	}
	copy(p.weights, weights)
	p.decide()
	return nil
}

// decide keeps what is decided until it is executed.
func (p *Portfolio) decide() {
	copy(p.decided, p.feed.tradable)
	p.at, p.pending, p.started = p.feed.time, true, true
	if p.config.LookAhead() && !p.elsewhere {
		p.trade()
	}
}

// trade executes what is pending at the last bar.
func (p *Portfolio) trade() {
	var b trading.Bar
	p.bar(&b, p.config.Execution.Fill == trading.NextOpen)
	if p.weights != nil {
		p.account.Rebalance(p.weights, &b)
	} else {
		p.account.Trade(p.orders, &b)
	}
	p.pending = false
}

// bar makes b the last one, for trades at its open or at its close.
func (p *Portfolio) bar(b *trading.Bar, atOpen bool) {
	open, close := p.prices()
	*b = trading.Bar{Number: p.feed.rows - 1, Date: p.feed.time, Price: close, Volume: p.volume, LimitUp: p.up, LimitDown: p.down, Spread: p.spread, Depth: p.depth, Decided: p.decided, Tradable: p.feed.tradable}
	if atOpen {
		b.Price, b.Tradable = open, p.feed.atOpen
	}
	for i := range p.volume {
		a := &p.feed.assets[i]
		p.volume[i], p.up[i], p.down[i] = a.bar.Volume, a.quote[bars.LimitUp], a.quote[bars.LimitDown]
		p.spread[i], p.depth[i] = a.quote[bars.Spread], a.quote[bars.Depth]
		if p.feed.adjusts {
			p.volume[i] = a.quote[bars.RawVolume]
		}
		if f := a.quote[bars.Factor]; p.feed.adjusts && p.factor == nil {
			p.volume[i], p.up[i], p.down[i] = p.volume[i]/f, p.up[i]*f, p.down[i]*f
			p.spread[i], p.depth[i] = p.spread[i]*f, p.depth[i]/f
		}
	}
	if p.ruled != nil {
		if err := p.ruled.Bar(b, !atOpen); err != nil {
			panic(err) // The feed refuses the bars of such days.
		}
	}
}

// mark tells the limits on risk of the present bar.
func (p *Portfolio) mark() {
	if !p.feed.begun {
		return
	}
	_, close := p.prices()
	if !p.started {
		// They begin again at each bar and refuse nothing.
		_ = p.account.RestoreRisk(nil, close)
	}
	p.account.Mark(p.feed.time, close)
}

func (p *Portfolio) observe() {
	_, close := p.prices()
	p.value = p.account.Value(close)
	p.account.ObservePosition(p.position.Float32s(), close, p.value)
	p.cash.Float32s()[0] = p.account.ObserveCash(p.value)
	p.account.ObserveAccount(p.books.Float32s(), p.value, p.feed.time)
	p.account.WriteMask(p.mask.Bools(), p.feed.tradable, p.feed.time)
	p.account.WriteTradable(tensor.Data[uint8](p.tradable), p.feed.tradable)
}

// Position [N], Cash [1] and Mask [3·N] are the inputs of an agent beside the window, as of the
// last Update, which writes the next into the same memory.
func (p *Portfolio) Position() *tensor.Tensor { return p.position }

// Cash is documented at Position.
func (p *Portfolio) Cash() *tensor.Tensor { return p.cash }

// Mask is documented at Position.
func (p *Portfolio) Mask() *tensor.Tensor { return p.mask }

// Tradable [N] is uint8, as Position an input where there is no mask.
func (p *Portfolio) Tradable() *tensor.Tensor { return p.tradable }

// Books [2] are the value and the day of trading.AccountField, as Position an input.
func (p *Portfolio) Books() *tensor.Tensor { return p.books }

// Value is the portfolio's value at the close of the last bar, as of the last Update.
func (p *Portfolio) Value() float64 { return p.value }

// Closes [N] are the prices of the present bar that positions are worth; the caller must not change
// them. Before its first bar an asset has none.
func (p *Portfolio) Closes() []float64 {
	_, close := p.prices()
	return close
}

// Account returns what was traded. Change it through the portfolio only.
func (p *Portfolio) Account() *trading.Account { return p.account }

// Hold replaces the holdings, such as by those that a broker reports, forgets orders that are not
// executed yet, lets the limits on risk begin again, and shows the present bar.
func (p *Portfolio) Hold(positions []float64, cash float64) error {
	if err := p.account.Hold(positions, cash); err != nil {
		return err
	}
	p.pending, p.started = false, false
	if p.factor != nil {
		copy(p.factor, p.feed.factor)
		copy(p.last, p.feed.rawClose)
	}
	p.mark()
	p.observe()
	return nil
}

// Resume is Hold with what the limits on risk remember of these holdings at the close of the
// present bar, nil to begin again. An error changes nothing.
func (p *Portfolio) Resume(positions []float64, cash float64, memory *trading.RiskMemory) error {
	_, close := p.prices()
	was := p.account.RiskMemory()
	if err := p.account.RestoreRisk(memory, close); err != nil {
		return err
	}
	if err := p.Hold(positions, cash); err != nil {
		_ = p.account.RestoreRisk(was, close) // It was the account's own.
		return err
	}
	if memory == nil {
		return nil
	}
	_ = p.account.RestoreRisk(memory, close) // As before.
	p.started = true
	p.observe()
	return nil
}

// portfolioState is the form of a saved portfolio.
type portfolioState struct {
	Cash      float64   `json:"cash"`
	Positions []float64 `json:"positions"`
	Pending   bool      `json:"pending"`
	Orders    []int64   `json:"orders"`
	Weights   []float64 `json:"weights,omitempty"`
	// Decided says which assets could be bought at the decision, Sellable, where that differs,
	// which could be sold.
	Decided  []bool    `json:"decided"`
	Sellable []bool    `json:"sellable,omitempty"`
	At       time.Time `json:"at"`
	Factor   []float64 `json:"factor,omitempty"`
	Last     []float64 `json:"last,omitempty"`
	// Unsettled are shares that were bought on Day.
	Unsettled []float64 `json:"unsettled,omitempty"`
	Day       time.Time `json:"day,omitzero"`
	// Sales and Purchases are the rests of orders, in shares and in currency.
	Sales     []float64 `json:"sales,omitempty"`
	Purchases []float64 `json:"purchases,omitempty"`
	// Risk is there after the first decision.
	Risk *trading.RiskMemory `json:"risk,omitempty"`
}

// SaveState returns the holdings and what is not executed yet, as JSON. The feed is saved by
// itself.
func (p *Portfolio) SaveState() ([]byte, error) {
	s := portfolioState{Cash: p.account.Cash(), Positions: p.account.Positions(), Pending: p.pending, Orders: p.orders, Weights: p.weights, At: p.at, Factor: p.factor, Last: p.last}
	s.Unsettled, s.Day = p.account.Unsettled()
	s.Sales, s.Purchases = p.account.Rests()
	if p.started {
		s.Risk = p.account.RiskMemory()
	}
	for _, d := range p.decided {
		s.Decided, s.Sellable = append(s.Decided, d.Allows(trading.Buy)), append(s.Sellable, d.Allows(trading.Sell))
	}
	if slices.Equal(s.Decided, s.Sellable) {
		s.Sellable = nil
	}
	return json.Marshal(s)
}

// LoadState makes the portfolio what it was, over the present bar of its feed. What cannot be is an
// error that changes nothing.
func (p *Portfolio) LoadState(text []byte) error {
	var s portfolioState
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("load the state of a portfolio: %w", err)
	}
	if s.Sellable == nil {
		s.Sellable = s.Decided
	}
	if len(s.Orders) != len(p.orders) || len(s.Sellable) != len(p.decided) || len(s.Decided) != len(p.decided) || slices.ContainsFunc(s.Orders, func(o int64) bool { return o < trading.Buy || o > trading.Hold }) {
		return fmt.Errorf("load the state of a portfolio: the orders %v decided on %d assets, expected %d", s.Orders, len(s.Decided), len(p.orders))
	}
	if len(s.Weights) != len(p.weights) {
		return fmt.Errorf("load the state of a portfolio: %d target weights, expected %d", len(s.Weights), len(p.weights))
	}
	if s.Pending && p.weights != nil {
		if err := trading.CheckWeights(p.feed.p.Assets, s.Weights); err != nil {
			return fmt.Errorf("load the state of a portfolio: %w", err)
		}
	}
	if len(s.Factor) != len(p.factor) || len(s.Last) != len(p.last) {
		return fmt.Errorf("load the state of a portfolio: %d factors of raw prices, expected %d", len(s.Factor), len(p.factor))
	}
	if err := p.Resume(s.Positions, s.Cash, s.Risk); err != nil {
		return fmt.Errorf("load the state of a portfolio: %w", err)
	}
	p.account.HoldUnsettled(s.Unsettled, p.feed.wall(s.Day))
	p.account.HoldRests(s.Sales, s.Purchases)
	copy(p.factor, s.Factor)
	copy(p.last, s.Last)
	copy(p.orders, s.Orders)
	copy(p.weights, s.Weights)
	for i := range p.decided {
		p.decided[i] = 0
		if s.Decided[i] {
			p.decided[i] |= trading.CanBuy
		}
		if s.Sellable[i] {
			p.decided[i] |= trading.CanSell
		}
	}
	p.pending, p.at = s.Pending, p.feed.wall(s.At)
	p.observe() // The mask depends on what is settled.
	return nil
}
