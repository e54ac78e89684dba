package alpaca

import (
	"fmt"

	api "github.com/alpacahq/alpaca-trade-api-go/v3/alpaca"
	"github.com/shopspring/decimal"

	"github.com/onnxrl/onnxrl/envs/market/broker"
)

// states are those of the documentation. An order that is replaced has ended: its successor is
// another one. What is done for the day is not filled any more before the broker has ended it.
var states = map[string]broker.State{
	"new": broker.New, "accepted": broker.New, "pending_new": broker.New, "accepted_for_bidding": broker.New,
	"stopped": broker.New, "suspended": broker.New, "calculated": broker.New, "held": broker.New,
	"pending_cancel": broker.New, "pending_replace": broker.New, "done_for_day": broker.New,
	"partially_filled": broker.PartiallyFilled, "filled": broker.Filled,
	"canceled": broker.Canceled, "replaced": broker.Canceled, "rejected": broker.Rejected, "expired": broker.Expired,
}

// number is a decimal that may be missing, which is 0.
func number(d *decimal.Decimal) float64 {
	if d == nil {
		return 0
	}
	return d.InexactFloat64()
}

func orderOf(o *api.Order) (broker.Order, error) {
	state, ok := states[o.Status]
	if !ok {
		return broker.Order{}, fmt.Errorf("order %s: status %q is not known", o.ID, o.Status)
	}
	if state == broker.New && o.FilledQty.IsPositive() {
		state = broker.PartiallyFilled
	}
	return broker.Order{
		ID: o.ID, State: state, Filled: o.FilledQty.InexactFloat64(), FilledPrice: number(o.FilledAvgPrice), Submitted: o.SubmittedAt,
		Ticket: broker.Ticket{
			ClientID: o.ClientOrderID, Symbol: o.Symbol, Side: broker.Side(o.Side), Quantity: number(o.Qty),
			Type: broker.Type(o.Type), Price: number(o.LimitPrice), Force: broker.Force(o.TimeInForce),
		},
	}, nil
}

// fillOf is an execution. Those of short sales have a side of their own.
func fillOf(a *api.AccountActivity) (broker.Fill, error) {
	f := broker.Fill{
		ID: a.ID, OrderID: a.OrderID, Symbol: a.Symbol, Side: broker.Side(a.Side), Quantity: a.Qty.InexactFloat64(), Price: a.Price.InexactFloat64(), Time: a.TransactionTime,
	}
	if a.Side == "sell_short" {
		f.Side = broker.Sell
	}
	switch {
	case a.ID == "":
		return f, fmt.Errorf("an activity has no id")
	case a.ActivityType != "FILL", f.Side != broker.Buy && f.Side != broker.Sell, !(f.Quantity > 0):
		return f, fmt.Errorf("activity %s: %s, side %q, quantity %v: expected a fill", a.ID, a.ActivityType, a.Side, f.Quantity)
	}
	return f, nil
}
