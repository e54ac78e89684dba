package livetrade

import (
	"errors"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/broker"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// The part of a machine for accounts whose orders a broker executes.

// The names of what the broker's reports tell, among risk events.
const (
	eventHoldings = "holdings"
	eventCash     = "cash"
	eventRefused  = "order_refused"
	eventMissed   = "order_missed"
)

// report takes one of the broker.
func (m *Machine) report(e *Event) error {
	r, err := readReport(e.Value)
	if err != nil {
		return err
	}
	d := m.desk
	if d == nil {
		return errors.New("the journal has reports of a broker, and the configuration has none")
	}
	switch r.Report {
	case reportHoldings:
		return m.takeHoldings(r)
	case reportDiffers:
		d.differs = r.Differs
		m.monitor.killIf(Kill, eventHoldings)
		d.withdraw()
		m.events = append(m.events, riskEvent{what: eventHoldings, on: true, value: float64(d.differs), action: Kill + ": " + r.Text})
	case reportCash:
		if d.tally == nil {
			return nil
		}
		m.events = append(m.events, riskEvent{what: eventCash, on: true, value: r.Cash, threshold: d.tally.Cash(), action: "the broker's is the account's"})
		d.tally.Adopt(r.Cash, d.tally.Positions(), nil)
		return m.holdAsBroker()
	case reportPlaced:
		if t := d.find(r.Ticket); t != nil {
			t.Standing, t.Order = placed, r.Order
		}
	case reportRefused, reportMissed:
		if t := d.find(r.Ticket); t != nil {
			what := eventRefused
			if r.Report == reportMissed {
				what = eventMissed
			}
			m.events = append(m.events, riskEvent{what: what, on: true, symbol: t.Symbol, value: t.Quantity, action: t.ClientID + ": " + r.Text})
			d.end(t)
		}
	case reportEnded:
		if t := d.find(r.Ticket); t != nil {
			if r.State == broker.Rejected {
				m.events = append(m.events, riskEvent{what: eventRefused, on: true, symbol: t.Symbol, value: t.Quantity, action: t.ClientID + ": rejected"})
			}
			d.end(t)
		}
	case reportFill:
		m.executed(r)
	}
	return nil
}

// takeHoldings makes the broker's positions and cash those of the account.
func (m *Machine) takeHoldings(r *report) error {
	d := m.desk
	if d.tally == nil {
		d.tally = broker.NewTally(r.At, r.Cash, r.Positions)
		return nil
	}
	list := make([]broker.Position, 0, len(r.Positions))
	for symbol, q := range sorted.All(r.Positions) {
		list = append(list, broker.Position{Symbol: symbol, Quantity: q})
	}
	d.tally.Adopt(r.Cash, list, nil)
	d.differs = 0
	m.events = append(m.events, riskEvent{what: eventHoldings, value: r.Cash, action: string(broker.Adopt) + ": " + r.Text})
	return m.holdAsBroker()
}

// holdAsBroker gives the account what the tally has.
func (m *Machine) holdAsBroker() error {
	if !m.desk.taken {
		return nil
	}
	return m.trader.Portfolio.Own(m.desk.holdings(), m.desk.tally.Cash())
}

// executed books a fill once.
func (m *Machine) executed(r *report) {
	d, f := m.desk, *r.Fill
	if d.tally == nil || len(d.tally.Count(f)) == 0 {
		return
	}
	ticketID := r.Ticket
	for _, t := range d.tickets {
		if t.ClientID == ticketID || t.Order != "" && t.Order == f.OrderID {
			t.Filled += f.Quantity
			ticketID = t.ClientID
		}
	}
	d.fills = append(d.fills, deskFill{f, ticketID})
	asset := slices.Index(d.assets, f.Symbol)
	if asset < 0 || !d.taken {
		return
	}
	shares := f.Quantity
	if f.Side == broker.Sell {
		shares = -shares
	}
	if !m.trader.Portfolio.Executed(asset, shares, f.Price, 0, f.Time) {
		m.monitor.killIf(Kill, eventHoldings)
		m.events = append(m.events, riskEvent{what: eventHoldings, on: true, symbol: f.Symbol, value: f.Quantity, action: Kill + ": the broker has sold more than was held"})
	}
}

// want makes tickets of what was decided, and writes those that the broker is to get at once. While
// messages are read that were there before the service began, decisions are of the past, and
// nothing is ordered.
func (m *Machine) want(came time.Time) {
	d := m.desk
	if m.gather.IsBehind() {
		return
	}
	at := m.trader.Feed.Time()
	for _, x := range m.trader.Portfolio.Intended() {
		if !d.busy(x.Asset) {
			d.want(x.Asset, x.Shares, x.Price, at, came)
		}
	}
	m.monitor.sending(came, d.release(came))
	m.writeTickets()
}

// writeTickets writes the orders that the broker is to get.
func (m *Machine) writeTickets() {
	b, d := &m.batch, m.desk
	for _, t := range d.outbox {
		b.begin(Orders, t.Symbol)
		b.str("id", t.ClientID)
		b.str("symbol", t.Symbol)
		b.str("order", string(t.Side))
		b.num("quantity", t.Quantity)
		b.num("close", t.Close)
		b.str("type", string(t.Type))
		b.str("force", string(t.Force))
		b.end()
	}
	clear(d.outbox)
	d.outbox = d.outbox[:0]
}

// writeExecuted writes the fills since the last batch.
func (m *Machine) writeExecuted() {
	b, d := &m.batch, m.desk
	for i := range d.fills {
		f := &d.fills[i]
		b.begin(Fills, f.Symbol)
		b.str("id", f.ID)
		b.str("order", f.Ticket)
		b.str("symbol", f.Symbol)
		shares := f.Quantity
		if f.Side == broker.Sell {
			shares = -shares
		}
		b.num("shares", shares)
		b.num("price", f.Price)
		b.num("fee", 0)
		b.str("executed", f.Time.UTC().Format(time.RFC3339Nano))
		b.end()
	}
	d.fills = d.fills[:0]
}
