package brokertest

import (
	"encoding/json"
	"fmt"
	"math/bits"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Units of quantities, prices and money in a double.
const (
	perShare  = 1_000_000_000
	perDollar = 1_000_000
)

// Double is an account and the market that it trades in. Its methods are safe for concurrent use.
type Double struct {
	// Key and Secret are what requests must carry.
	Key, Secret string
	// Fault is asked before each request; nil is none. FundsFirst refuses an order for want of
	// money before it is looked whether its client id is there already: the documentation does not
	// say.
	Fault      func(r *http.Request) Fault
	FundsFirst bool

	mu sync.Mutex
	s  state
}

// Fault is what happens to a request.
type Fault int

// The faults.
const (
	None     Fault = iota
	Throttle       // 429, without effect
	Fail           // 500, without effect
	FailLate       // 500, after the effect
	Lose           // no answer, without effect
	LoseLate       // no answer, after the effect
	Hang           // no answer until the client gives up, after the effect
	// Faults is their number.
	Faults
)

type state struct {
	Now       time.Time        `json:"now"`
	IsOpen    bool             `json:"is_open"`
	Cash      int64            `json:"cash"`
	Positions map[string]int64 `json:"positions"`
	Costs     map[string]int64 `json:"costs"` // of positions
	Prices    map[string]int64 `json:"prices"`
	Orders    []*order         `json:"orders"` // the oldest first
	Fills     []fill           `json:"fills"`
}

type order struct {
	ID        string     `json:"id"`
	ClientID  string     `json:"client_id"`
	Symbol    string     `json:"symbol"`
	Side      string     `json:"side"`
	Type      string     `json:"type"`
	Force     string     `json:"force"`
	Status    string     `json:"status"`
	Qty       int64      `json:"qty"`
	Limit     int64      `json:"limit"`
	Filled    int64      `json:"filled"`
	Paid      int64      `json:"paid"` // for what is filled
	Submitted time.Time  `json:"submitted"`
	Ended     *time.Time `json:"ended"`
}

func (o *order) open() bool { return o.Status == "new" || o.Status == "partially_filled" }

type fill struct {
	ID    string    `json:"id"`
	Order string    `json:"order"`
	Qty   int64     `json:"qty"`
	Price int64     `json:"price"`
	Cum   int64     `json:"cum"`
	Time  time.Time `json:"time"`
}

// New returns a double whose market is closed, with dollars in cash, at a time.
func New(cash int64, now time.Time) *Double {
	return &Double{Key: "key", Secret: "secret", s: state{
		Now: now.UTC(), Cash: cash * perDollar, Positions: map[string]int64{}, Costs: map[string]int64{}, Prices: map[string]int64{},
	}}
}

// Save is the state, which Load goes on from.
func (d *Double) Save() ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return json.Marshal(&d.s)
}

// Load returns a double with a state that was saved.
func Load(b []byte) (*Double, error) {
	d := New(0, time.Time{})
	return d, json.Unmarshal(b, &d.s)
}

// Price sets the price of a symbol, in cents.
func (d *Double) Price(symbol string, cents int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.s.Prices[symbol] = cents * (perDollar / 100)
}

// Give puts whole shares into the account, which no order has led to; a negative number takes
// them.
func (d *Double) Give(symbol string, shares int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.s.Positions[symbol] += shares * perShare
	if d.s.Positions[symbol] == 0 {
		delete(d.s.Positions, symbol)
	}
}

// Open opens the market at a time and fills the orders of the opening auction; those that it does
// not fill expire.
func (d *Double) Open(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.s.Now, d.s.IsOpen = now.UTC(), true
	for _, o := range d.s.Orders {
		if o.open() && o.Force == "opg" {
			d.fill(o, o.Qty)
			d.end(o, "expired")
		}
	}
}

// Trade fills the orders of the day that the present prices allow, each by as much of what is left
// as part says, between 0 and 1; nil is all. What is a part of a share is rounded down, but for
// orders of parts.
func (d *Double) Trade(part func(clientID string) float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.s.Now = d.s.Now.Add(time.Second)
	if !d.s.IsOpen {
		return
	}
	for _, o := range d.s.Orders {
		if !o.open() || o.Force != "day" {
			continue
		}
		left := o.Qty - o.Filled
		if part != nil {
			of := int64(part(o.ClientID) * float64(left))
			if o.Qty%perShare == 0 {
				of -= of % perShare
			}
			left = min(left, of)
		}
		d.fill(o, left)
	}
}

// Close fills the orders of the closing auction and ends the day: orders that are open expire.
func (d *Double) Close(now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.s.Now = now.UTC()
	for _, o := range d.s.Orders {
		if o.open() && o.Force == "cls" && d.s.IsOpen {
			d.fill(o, o.Qty)
		}
		if o.open() && (o.Force != "opg" || d.s.IsOpen) {
			d.end(o, "expired")
		}
	}
	d.s.IsOpen = false
}

// Reject ends an order that was taken, as an exchange does that does not want it.
func (d *Double) Reject(clientID string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.s.Orders {
		if o.ClientID == clientID {
			d.end(o, "rejected")
		}
	}
}

func (d *Double) end(o *order, status string) {
	if o.open() {
		now := d.s.Now
		o.Status, o.Ended = status, &now
	}
}

// fill executes a quantity of an order at the present price, if its limit allows that.
func (d *Double) fill(o *order, qty int64) {
	price := d.s.Prices[o.Symbol]
	if qty <= 0 || o.Type == "limit" && (o.Side == "buy" && price > o.Limit || o.Side == "sell" && price < o.Limit) {
		return
	}
	amount := times(qty, price)
	held := d.s.Positions[o.Symbol]
	if o.Side == "buy" {
		d.s.Cash -= amount
		d.s.Costs[o.Symbol] += amount
		held += qty
	} else {
		d.s.Cash += amount
		d.s.Costs[o.Symbol] -= muldiv(d.s.Costs[o.Symbol], qty, held)
		held -= qty
	}
	d.s.Positions[o.Symbol] = held
	if held == 0 {
		delete(d.s.Positions, o.Symbol)
		delete(d.s.Costs, o.Symbol)
	}
	o.Filled += qty
	o.Paid += amount
	o.Status = "partially_filled"
	if o.Filled == o.Qty {
		now := d.s.Now
		o.Status, o.Ended = "filled", &now
	}
	d.s.Fills = append(d.s.Fills, fill{
		ID:    fmt.Sprintf("%s%03d::%s", d.s.Now.Format("20060102150405"), d.s.Now.Nanosecond()/1e6, uuid(2, len(d.s.Fills))),
		Order: o.ID, Qty: qty, Price: price, Cum: o.Filled, Time: d.s.Now,
	})
}

// uuid makes the n-th id of a kind.
func uuid(kind, n int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", kind, n) }

// times is the value of shares, rounded.
func times(qty, price int64) int64 { return muldiv(qty, price, perShare) }

// muldiv is a·b/c of numbers that are not negative, rounded.
func muldiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	lo, carry := bits.Add64(lo, uint64(c)/2, 0)
	q, _ := bits.Div64(hi+carry, lo, uint64(c))
	return int64(q)
}

// ClientIDs lists those of all orders, the oldest first.
func (d *Double) ClientIDs() (ids []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, o := range d.s.Orders {
		ids = append(ids, o.ClientID)
	}
	return ids
}

// Cash is in dollars.
func (d *Double) Cash() float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return float64(d.s.Cash) / perDollar
}

// Shares is what is held of a symbol.
func (d *Double) Shares(symbol string) float64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return float64(d.s.Positions[symbol]) / perShare
}

// available is the cash that no open order needs.
func (d *Double) available() int64 {
	cash := d.s.Cash
	for _, o := range d.s.Orders {
		if o.open() && o.Side == "buy" {
			cash -= d.needs(o, o.Qty-o.Filled)
		}
	}
	return cash
}

// needs is what a buy of a quantity may cost.
func (d *Double) needs(o *order, qty int64) int64 {
	if o.Type == "limit" {
		return times(qty, o.Limit)
	}
	return times(qty, d.s.Prices[o.Symbol]/100*104)
}

// decimal reads a number of at most so many decimals.
func decimal(text string, unit int64, decimals int) (int64, bool) {
	whole, part, _ := strings.Cut(text, ".")
	if len(part) > decimals || whole == "" || strings.ContainsAny(text, "+-eE_") {
		return 0, false
	}
	v, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || v > 1e9 {
		return 0, false
	}
	v *= unit
	if part != "" {
		f, err := strconv.ParseInt(part, 10, 64)
		if err != nil {
			return 0, false
		}
		for range len(part) {
			unit /= 10
		}
		v += f * unit
	}
	return v, true
}

// show writes a number of units.
func show(v, unit int64) string {
	sign := ""
	if v < 0 {
		sign, v = "-", -v
	}
	digits := len(strconv.FormatInt(unit, 10)) - 1
	text := fmt.Sprintf("%s%d.%0*d", sign, v/unit, digits, v%unit)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

func (d *Double) byID(id string) *order {
	if i := slices.IndexFunc(d.s.Orders, func(o *order) bool { return o.ID == id }); i >= 0 {
		return d.s.Orders[i]
	}
	return nil
}
