package official

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// Calls writes what agents are asked and told, what they know at that time, and what they answer.
// It is for the agents of one world.
type Calls struct {
	out *json.Encoder
	err error
	// Answers counts answers about single negotiations.
	Answers int
}

// NewCalls returns what writes to w.
func NewCalls(w io.Writer) *Calls { return &Calls{out: json.NewEncoder(w)} }

// Err returns the first error of writing.
func (c *Calls) Err() error { return c.err }

// Of returns an agent that decides as another one does and whose calls are written down.
func (c *Calls) Of(a world.Synchronous) world.Synchronous {
	return &called{Synchronous: a, calls: c}
}

// call is a line; keys are those that module replay reads.
type call struct {
	Call  string `json:"call"`
	Agent int    `json:"agent"`
	// View has what the agent knows and has not been told before; see module view.
	View any `json:"view,omitempty"`
	// Heard are the slots of Offers.
	Heard    []int      `json:"heard,omitempty"`
	Offers   []offer    `json:"offers,omitempty"`
	Replies  []any      `json:"replies,omitempty"`
	Contract *agreement `json:"contract,omitempty"`
	// Slot is that of a negotiation that has failed, absent where it was of another day.
	Slot *int `json:"slot,omitempty"`
}

// offer is quantity, time and price.
type offer [3]int

func offerOf(o negotiation.Offer) offer { return offer{o.Quantity, o.Time, o.Price} }

// agreement is a contract as one side sees it.
type agreement struct {
	Side     int `json:"side"`
	Partner  int `json:"partner"`
	Quantity int `json:"quantity"`
	Time     int `json:"time"`
	Price    int `json:"price"`
}

// ofWorld, ofDay and ofMoment are parts of a view.
type ofWorld struct {
	Days           int        `json:"days"`
	Level          int        `json:"level"`
	Levels         int        `json:"levels"`
	Lines          int        `json:"lines"`
	Cost           int        `json:"cost"`
	Rounds         int        `json:"rounds"`
	Horizon        int        `json:"horizon"`
	StockShrinks   bool       `json:"stock_shrinks"`
	InitialBalance float64    `json:"initial_balance"`
	Catalog        [2]int     `json:"catalog"`
	Penalties      [2]float64 `json:"penalties"`
	Buys           bool       `json:"buys"`
	Sells          bool       `json:"sells"`
	Suppliers      int        `json:"suppliers"`
	Consumers      int        `json:"consumers"`
	Competitors    int        `json:"competitors"`
}

type ofDay struct {
	Today    int         `json:"today"`
	Stock    int         `json:"stock"`
	Balance  float64     `json:"balance"`
	Trading  [2]float64  `json:"trading"`
	Supply   [2]float64  `json:"supply"`
	Demand   [2]float64  `json:"demand"`
	Boxes    [2][2]offer `json:"boxes"`
	Partners []int       `json:"partners"`
	Buying   []bool      `json:"buying"`
	ofMoment
}

type ofMoment struct {
	Supplies []int `json:"supplies"`
	Sales    []int `json:"sales"`
	// RoundsDone and Running are of slots.
	RoundsDone []int  `json:"rounds_done"`
	Running    []bool `json:"running"`
}

// called is an agent whose calls are written down.
type called struct {
	world.Synchronous
	calls *Calls
	v     *world.View
}

// Memory implements world.Remembering, for an agent that does.
func (c *called) Memory() any {
	if r, ok := c.Synchronous.(world.Remembering); ok {
		return r.Memory()
	}
	return nil
}

func (c *called) write(l call) {
	l.Agent = c.v.Index()
	if err := c.calls.out.Encode(l); err != nil && c.calls.err == nil {
		c.calls.err = fmt.Errorf("write a call: %w", err)
	}
}

// Starts implements world.Agent.
func (c *called) Starts(v *world.View) {
	c.v = v
	shortfall, storage := v.MeanPenalties()
	rules := v.Rules()
	c.write(call{Call: "starts", View: ofWorld{
		Days: v.Days(), Level: v.Level(), Levels: v.Levels(), Lines: v.Lines(), Cost: v.Cost(), Rounds: v.Rounds(), Horizon: rules.Horizon, StockShrinks: rules.StockShrinks,
		InitialBalance: v.InitialBalance(), Catalog: [2]int{v.Catalog(v.Level()), v.Catalog(v.Level() + 1)}, Penalties: [2]float64{shortfall, storage},
		Buys: v.Buys(), Sells: v.Sells(), Suppliers: len(v.Suppliers()), Consumers: len(v.Consumers()), Competitors: len(v.Competitors()),
	}})
	c.Synchronous.Starts(v)
}

// DayBegins implements world.Agent.
func (c *called) DayBegins() {
	v := c.v
	total := func(t world.Total) [2]float64 { return [2]float64{float64(t.Quantity), t.Money} }
	box := func(b negotiation.Box) [2]offer { return [2]offer{offerOf(b.Low), offerOf(b.High)} }
	d := ofDay{
		Today: v.Today(), Stock: v.Stock(), Balance: v.Balance(), Trading: [2]float64{v.TradingPrice(v.Level()), v.TradingPrice(v.Level() + 1)},
		Supply: total(v.Supply()), Demand: total(v.Demand()), Boxes: [2][2]offer{box(v.InputBox()), box(v.OutputBox())},
		Partners: make([]int, v.Slots()), Buying: make([]bool, v.Slots()), ofMoment: c.moment(),
	}
	for k := range v.Slots() {
		d.Partners[k], d.Buying[k] = v.Partner(k), v.Buying(k)
	}
	c.write(call{Call: "day_begins", View: d})
	c.Synchronous.DayBegins()
}

func (c *called) moment() ofMoment {
	v := c.v
	var m ofMoment
	for day := v.Today(); day < min(v.Today()+v.Rules().Horizon+1, v.Days()); day++ {
		m.Supplies, m.Sales = append(m.Supplies, v.SuppliesAt(day)), append(m.Sales, v.SalesAt(day))
	}
	m.RoundsDone, m.Running = make([]int, v.Slots()), make([]bool, v.Slots())
	for k := range v.Slots() {
		n := v.Negotiation(k)
		m.RoundsDone[k], m.Running[k] = v.Round(k), n != nil && n.Status == negotiation.Running
	}
	return m
}

// Agreed implements world.Agent.
func (c *called) Agreed(k *world.Contract) {
	a := agreement{Side: 0, Partner: k.Seller, Quantity: k.Quantity, Time: k.Time, Price: k.Price}
	if k.Seller == c.v.Index() {
		a.Side, a.Partner = 1, k.Buyer
	}
	c.write(call{Call: "agreed", Contract: &a})
	c.Synchronous.Agreed(k)
}

// Failed implements world.Agent.
func (c *called) Failed(m *negotiation.Mechanism) {
	l := call{Call: "failed"}
	for k := range c.v.Slots() {
		if c.v.Negotiation(k) == m {
			l.Slot = &k
		}
	}
	c.write(l)
	c.Synchronous.Failed(m)
}

// FirstProposals implements world.Synchronous.
func (c *called) FirstProposals(replies []negotiation.Reply) {
	l := call{Call: "first_proposals", View: c.moment()}
	c.Synchronous.FirstProposals(replies)
	c.answer(l, replies)
}

// CounterAll implements world.Synchronous.
func (c *called) CounterAll(heard []int, replies []negotiation.Reply) {
	l := call{Call: "counter_all", View: c.moment(), Heard: append([]int{}, heard...)}
	for _, k := range heard {
		l.Offers = append(l.Offers, offerOf(c.v.Offer(k)))
	}
	c.Synchronous.CounterAll(heard, replies)
	c.answer(l, replies)
}

// answer writes a call with its replies: an offer, a word, or null where there is none.
func (c *called) answer(l call, replies []negotiation.Reply) {
	l.Replies = make([]any, len(replies))
	for k, r := range replies {
		switch {
		case !r.Given:
			continue
		case r.Offered:
			l.Replies[k] = offerOf(r.Offer)
		default:
			l.Replies[k] = r.Response.String()
		}
		c.calls.Answers++
	}
	c.write(l)
}
