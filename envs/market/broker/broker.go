package broker

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Broker is an account at a broker. It is safe for concurrent use. Methods return the context's
// error when that ends; they try again by themselves what may be tried again.
type Broker interface {
	Account(ctx context.Context) (Account, error)
	// Positions are those that are not 0, by symbol.
	Positions(ctx context.Context) ([]Position, error)
	// Open lists orders that may still be filled, the oldest first.
	Open(ctx context.Context) ([]Order, error)
	// Submit makes one order of a ticket, however often it is called with it, and returns that. A
	// *RefusedError says that there is no order and will be none; a *ConflictError that there is
	// another one under the client id; a *LostError that it is not known whether there is one.
	Submit(ctx context.Context, t Ticket) (Order, error)
	// Find returns the order of a client id, or ErrNotFound.
	Find(ctx context.Context, clientID string) (Order, error)
	// Cancel asks for the end of an order by the broker's id. It is no error that it has ended.
	Cancel(ctx context.Context, id string) error
	// Fills lists the executions since a time, which may be some earlier ones too, in the order in
	// which they were made.
	Fills(ctx context.Context, since time.Time) ([]Fill, error)
	Clock(ctx context.Context) (Clock, error)
}

// Account is what an account holds beside positions.
type Account struct {
	ID          string
	Currency    string
	Cash        float64
	BuyingPower float64
	// Blocked says that the broker takes no orders.
	Blocked bool
}

// Position is what is held of a symbol; a short one is negative.
type Position struct {
	Symbol   string
	Quantity float64
	// Entry is the average price at which it was entered.
	Entry float64
}

// Clock is the broker's.
type Clock struct {
	Time                time.Time
	Open                bool
	NextOpen, NextClose time.Time
}

// Side is that of an order.
type Side string

// The sides.
const (
	Buy  Side = "buy"
	Sell Side = "sell"
)

// Type is how an order's price is found.
type Type string

// The types of orders.
const (
	Market Type = "market"
	Limit  Type = "limit"
)

// Force is how long an order stands.
type Force string

// Day stands until the close, AtOpen for the opening auction and AtClose for the closing one.
const (
	Day     Force = "day"
	AtOpen  Force = "opg"
	AtClose Force = "cls"
)

// Ticket is an order that is wanted.
type Ticket struct {
	ClientID string
	Symbol   string
	Side     Side
	Quantity float64
	Type     Type
	Price    float64 // of a limit order
	Force    Force
}

// Validate reports what no broker takes.
func (t *Ticket) Validate() error {
	switch {
	case t.ClientID == "":
		return errors.New("ticket: no client id")
	case len(t.ClientID) > MaxClientID:
		return fmt.Errorf("ticket %s: the client id has %d bytes, expected at most %d", t.ClientID, len(t.ClientID), MaxClientID)
	case t.Symbol == "":
		return fmt.Errorf("ticket %s: no symbol", t.ClientID)
	case t.Side != Buy && t.Side != Sell:
		return fmt.Errorf("ticket %s: side %q, expected buy or sell", t.ClientID, t.Side)
	case !(t.Quantity > 0 && t.Quantity <= 1e9):
		return fmt.Errorf("ticket %s: quantity %v, expected one above 0", t.ClientID, t.Quantity)
	case t.Type != Market && t.Type != Limit:
		return fmt.Errorf("ticket %s: type %q, expected market or limit", t.ClientID, t.Type)
	case t.Type == Limit && !(t.Price > 0):
		return fmt.Errorf("ticket %s: limit price %v, expected one above 0", t.ClientID, t.Price)
	case t.Force != Day && t.Force != AtOpen && t.Force != AtClose:
		return fmt.Errorf("ticket %s: time in force %q, expected day, opg or cls", t.ClientID, t.Force)
	}
	return nil
}

// State is that of an order.
type State string

// The states of orders. Those of brokers that mean the same are one.
const (
	New             State = "new"
	PartiallyFilled State = "partially_filled"
	Filled          State = "filled"
	Canceled        State = "canceled"
	Rejected        State = "rejected"
	Expired         State = "expired"
)

// Open reports whether an order of the state may still be filled.
func (s State) Open() bool { return s == New || s == PartiallyFilled }

// Order is one at the broker.
type Order struct {
	ID string // the broker's
	Ticket
	State State
	// Filled is how much of the quantity is, at FilledPrice on the average.
	Filled, FilledPrice float64
	Submitted           time.Time
}

// Fill is one execution.
type Fill struct {
	// ID is the broker's, for ever the same.
	ID       string
	OrderID  string
	Symbol   string
	Side     Side
	Quantity float64
	Price    float64
	Time     time.Time
}

// ErrNotFound says that the broker has no such order.
var ErrNotFound = errors.New("the broker has no such order")

// RefusedError is the broker's no: the order is not there and will not be.
type RefusedError struct {
	ClientID string
	Status   int // of HTTP
	Code     int // the broker's
	Message  string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("order %s: the broker refuses it: %s (status %d, code %d)", e.ClientID, e.Message, e.Status, e.Code)
}

// ConflictError says that the client id belongs to another order.
type ConflictError struct {
	Want Ticket
	Have Order
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("order %s: the broker has another one under this id: %s, expected %s", e.Want.ClientID, &e.Have.Ticket, &e.Want)
}

// LostError says that no answer came: the order may be there. To submit the same ticket again
// finds out.
type LostError struct {
	ClientID string
	Err      error
}

func (e *LostError) Error() string {
	return fmt.Sprintf("order %s: whether the broker has it is not known: %v", e.ClientID, e.Err)
}

func (e *LostError) Unwrap() error { return e.Err }

// String is what is wanted, without the client id.
func (t *Ticket) String() string {
	s := fmt.Sprintf("%s %v %s, %s", t.Side, t.Quantity, t.Symbol, t.Type)
	if t.Type == Limit {
		s += fmt.Sprintf(" %v", t.Price)
	}
	return s + ", " + string(t.Force)
}

// Is reports whether an order is that of a ticket.
func (o *Order) Is(t *Ticket) bool {
	return o.ClientID == t.ClientID && o.Symbol == t.Symbol && o.Side == t.Side && Same(o.Quantity, t.Quantity) &&
		o.Type == t.Type && o.Force == t.Force && (t.Type == Market || Same(o.Price, t.Price))
}
