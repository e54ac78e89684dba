package alpaca

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/broker"
)

// number is a decimal in a string. Some are null, which is 0.
type number float64

func (n *number) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*n = 0
		return nil
	}
	text := string(b)
	if b[0] == '"' {
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("%q: expected a number", text)
	}
	*n = number(v)
	return nil
}

func (n number) MarshalJSON() ([]byte, error) {
	return json.Marshal(strconv.FormatFloat(float64(n), 'f', -1, 64))
}

type account struct {
	ID          string `json:"id"`
	Status      string `json:"status"`
	Currency    string `json:"currency"`
	Cash        number `json:"cash"`
	BuyingPower number `json:"buying_power"`
	Blocked     bool   `json:"account_blocked"`
	NoTrading   bool   `json:"trading_blocked"`
	Suspended   bool   `json:"trade_suspended_by_user"`
}

type position struct {
	Symbol string `json:"symbol"`
	Qty    number `json:"qty"`
	Side   string `json:"side"`
	Entry  number `json:"avg_entry_price"`
}

type clock struct {
	Timestamp time.Time `json:"timestamp"`
	IsOpen    bool      `json:"is_open"`
	NextOpen  time.Time `json:"next_open"`
	NextClose time.Time `json:"next_close"`
}

// request is the body of a new order.
type request struct {
	ClientID string       `json:"client_order_id"`
	Symbol   string       `json:"symbol"`
	Side     broker.Side  `json:"side"`
	Qty      number       `json:"qty"`
	Type     broker.Type  `json:"type"`
	Limit    *number      `json:"limit_price,omitempty"`
	Force    broker.Force `json:"time_in_force"`
}

type order struct {
	ID          string    `json:"id"`
	ClientID    string    `json:"client_order_id"`
	Symbol      string    `json:"symbol"`
	Side        string    `json:"side"`
	Qty         number    `json:"qty"`
	Filled      number    `json:"filled_qty"`
	FilledPrice number    `json:"filled_avg_price"`
	Type        string    `json:"type"`
	Limit       number    `json:"limit_price"`
	Force       string    `json:"time_in_force"`
	Status      string    `json:"status"`
	Submitted   time.Time `json:"submitted_at"`
}

// states are those of the documentation. An order that is replaced has ended: its successor is
// another one. What is done for the day is not filled any more before the broker has ended it.
var states = map[string]broker.State{
	"new": broker.New, "accepted": broker.New, "pending_new": broker.New, "accepted_for_bidding": broker.New,
	"stopped": broker.New, "suspended": broker.New, "calculated": broker.New, "held": broker.New,
	"pending_cancel": broker.New, "pending_replace": broker.New, "done_for_day": broker.New,
	"partially_filled": broker.PartiallyFilled, "filled": broker.Filled,
	"canceled": broker.Canceled, "replaced": broker.Canceled, "rejected": broker.Rejected, "expired": broker.Expired,
}

func (o *order) order() (broker.Order, error) {
	state, ok := states[o.Status]
	if !ok {
		return broker.Order{}, fmt.Errorf("order %s: status %q is not known", o.ID, o.Status)
	}
	if state == broker.New && o.Filled > 0 {
		state = broker.PartiallyFilled
	}
	return broker.Order{
		ID: o.ID, State: state, Filled: float64(o.Filled), FilledPrice: float64(o.FilledPrice), Submitted: o.Submitted,
		Ticket: broker.Ticket{
			ClientID: o.ClientID, Symbol: o.Symbol, Side: broker.Side(o.Side), Quantity: float64(o.Qty),
			Type: broker.Type(o.Type), Price: float64(o.Limit), Force: broker.Force(o.Force),
		},
	}, nil
}

type activity struct {
	ID      string    `json:"id"`
	Kind    string    `json:"activity_type"`
	OrderID string    `json:"order_id"`
	Symbol  string    `json:"symbol"`
	Side    string    `json:"side"`
	Qty     number    `json:"qty"`
	Price   number    `json:"price"`
	Time    time.Time `json:"transaction_time"`
}

// fill is an execution. Those of short sales have a side of their own.
func (a *activity) fill() (broker.Fill, error) {
	f := broker.Fill{ID: a.ID, OrderID: a.OrderID, Symbol: a.Symbol, Side: broker.Side(a.Side), Quantity: float64(a.Qty), Price: float64(a.Price), Time: a.Time}
	if a.Side == "sell_short" {
		f.Side = broker.Sell
	}
	switch {
	case a.ID == "":
		return f, fmt.Errorf("an activity has no id")
	case a.Kind != "FILL", f.Side != broker.Buy && f.Side != broker.Sell, !(f.Quantity > 0):
		return f, fmt.Errorf("activity %s: %s, side %q, quantity %v: expected a fill", a.ID, a.Kind, a.Side, f.Quantity)
	}
	return f, nil
}

// problem is the body of an error.
type problem struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}
