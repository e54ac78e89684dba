package livetrade

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/broker"
	"github.com/onnxrl/onnxrl/envs/market/live"
)

// desk is what a machine knows of a broker that executes its orders. All of it follows from events.
type desk struct {
	config Execution
	name   string
	assets []string
	lot    float64

	tally *broker.Tally // nil before the first report of holdings
	// taken says that the portfolio holds what the tally does; before the first decision the bars
	// of a history may pass, to which no holdings belong.
	taken   bool
	differs int // positions that are not those of the broker, by the last report
	// tickets are those of which the broker may still execute something, or which it is to get, in
	// the order in which they were decided.
	tickets []*ticket
	// outbox are tickets, and fills executions, that no batch has yet. An event that leads to some
	// leads to a batch, once there are bars.
	outbox []*ticket
	fills  []deskFill
}

// standing is where a ticket stands.
type standing string

const (
	waiting standing = "waiting" // for the sales of its decision to end
	wanted  standing = "wanted"  // the broker is to get it
	placed  standing = "placed"  // it has it
)

// ticket is an order of a decision.
type ticket struct {
	broker.Ticket
	Asset int `json:"asset"`
	// Close is the price by which it was decided, and Decided when, by the clock.
	Close    float64   `json:"close"`
	Decided  time.Time `json:"decided"`
	Standing standing  `json:"standing"`
	Order    string    `json:"order,omitempty"` // the broker's id
	Filled   float64   `json:"filled"`
	// Cancel says that it is not wanted any more.
	Cancel bool `json:"cancel,omitempty"`
}

// deskFill is an execution and the ticket that it is of, empty where that is not known.
type deskFill struct {
	broker.Fill
	Ticket string `json:"ticket"`
}

// deskState is the form of a desk in a snapshot.
type deskState struct {
	Tally   *broker.Tally `json:"tally"`
	Taken   bool          `json:"taken"`
	Differs int           `json:"differs"`
	Tickets []*ticket     `json:"tickets"`
	Fills   []deskFill    `json:"fills"`
}

func newDesk(c *Config, p live.Pipeline, lot float64) *desk {
	return &desk{config: c.Execution, name: c.Name, assets: p.Assets, lot: lot}
}

func (d *desk) save() *deskState {
	if d == nil {
		return nil
	}
	return &deskState{Tally: d.tally, Taken: d.taken, Differs: d.differs, Tickets: d.tickets, Fills: d.fills}
}

func (d *desk) load(s *deskState) error {
	if (d == nil) != (s == nil) {
		return errors.New("one of the service with a broker cannot go on without, and the other way round")
	}
	if d == nil {
		return nil
	}
	for _, t := range s.Tickets {
		if t.Asset < 0 || t.Asset >= len(d.assets) || d.assets[t.Asset] != t.Symbol {
			return fmt.Errorf("the ticket %s is of no asset", t.ClientID)
		}
	}
	d.tally, d.taken, d.differs, d.tickets, d.fills = s.Tally, s.Taken, s.Differs, s.Tickets, s.Fills
	return nil
}

func (d *desk) find(clientID string) *ticket {
	if i := slices.IndexFunc(d.tickets, func(t *ticket) bool { return t.ClientID == clientID }); i >= 0 {
		return d.tickets[i]
	}
	return nil
}

// end forgets a ticket.
func (d *desk) end(t *ticket) {
	d.tickets = slices.DeleteFunc(d.tickets, func(x *ticket) bool { return x == t })
}

// news reports whether there is something that no batch has.
func (d *desk) news() bool { return d != nil && len(d.outbox)+len(d.fills) > 0 }

// withdraw leaves out what the broker does not have yet, as far as that is known, and asks for the
// end of the rest.
func (d *desk) withdraw() {
	d.tickets = slices.DeleteFunc(d.tickets, func(t *ticket) bool { return t.Standing == waiting })
	for _, t := range d.tickets {
		t.Cancel = true
	}
}

// busy reports whether something may still be executed of an asset.
func (d *desk) busy(asset int) bool {
	return slices.ContainsFunc(d.tickets, func(t *ticket) bool { return t.Asset == asset })
}

// quantity rounds a number of shares down to one that the broker takes.
func (d *desk) quantity(shares float64) float64 {
	const parts = 1e9
	switch {
	case d.lot > 0:
		return math.Floor(shares/d.lot+1e-9) * d.lot
	case d.config.Whole:
		return math.Floor(shares + 1e-9)
	}
	return math.Floor(shares*parts) / parts
}

// worth reports whether an order is worth to be given.
func (d *desk) worth(q, close float64) bool { return q > 0 && q*close >= d.config.Least }

// want makes a ticket of what a decision comes to for an asset; shares that are sold are negative.
func (d *desk) want(asset int, shares, close float64, decided, came time.Time) {
	side, q := broker.Buy, d.quantity(math.Abs(shares))
	if shares < 0 {
		side = broker.Sell
	}
	if !d.worth(q, close) {
		return
	}
	symbol := d.assets[asset]
	d.tickets = append(d.tickets, &ticket{
		Ticket: broker.Ticket{ClientID: broker.ClientID(d.name, decided, symbol, side, 0), Symbol: symbol, Side: side, Quantity: q, Type: broker.Market, Force: d.config.Force},
		Asset:  asset, Close: close, Decided: came, Standing: waiting,
	})
}

// release lets the broker get the sales that wait, and the purchases when no sale is left: these
// are cut to what the cash pays. It returns how many there are.
func (d *desk) release(came time.Time) (n int) {
	sales := false
	for _, t := range d.tickets {
		if t.Side != broker.Sell {
			continue
		}
		sales = true
		if t.Standing == waiting {
			t.Standing, t.Decided = wanted, came
			d.outbox = append(d.outbox, t)
			n++
		}
	}
	if sales {
		return n
	}
	cost, cash := 0.0, d.tally.Cash()
	for _, t := range d.tickets {
		c := t.Quantity * t.Close * (1 + d.config.Reserve)
		if t.Standing == waiting {
			cost += c
		} else {
			cash -= c * (1 - t.Filled/t.Quantity)
		}
	}
	part := 1.0
	if cost > cash {
		part = max(cash, 0) / cost
	}
	d.tickets = slices.DeleteFunc(d.tickets, func(t *ticket) bool {
		if t.Standing != waiting {
			return false
		}
		if t.Quantity = d.quantity(t.Quantity * part); !d.worth(t.Quantity, t.Close) {
			return true
		}
		t.Standing, t.Decided = wanted, came
		d.outbox = append(d.outbox, t)
		n++
		return false
	})
	return n
}

// holdings are the positions [N] of the tally in the assets.
func (d *desk) holdings() []float64 {
	list := make([]float64, len(d.assets))
	for _, p := range d.tally.Positions() {
		if i := slices.Index(d.assets, p.Symbol); i >= 0 {
			list[i] = max(p.Quantity, 0)
		}
	}
	return list
}
