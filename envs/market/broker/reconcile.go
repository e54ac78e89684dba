package broker

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Snapshot is what a broker has.
type Snapshot struct {
	Account   Account
	Positions []Position // by symbol
	Open      []Order    // the oldest first
	Fills     []Fill     // since a time
}

// Look reads a snapshot with the fills since a time: again while fills are made meanwhile, so that
// positions are those that the fills lead to.
func Look(ctx context.Context, b Broker, since time.Time) (*Snapshot, error) {
	var s Snapshot
	var err error
	if s.Fills, err = b.Fills(ctx, since); err != nil {
		return nil, err
	}
	for {
		if s.Account, err = b.Account(ctx); err != nil {
			return nil, err
		}
		if s.Positions, err = b.Positions(ctx); err != nil {
			return nil, err
		}
		if s.Open, err = b.Open(ctx); err != nil {
			return nil, err
		}
		fills, err := b.Fills(ctx, since)
		if err != nil {
			return nil, err
		}
		if same := slices.Equal(fills, s.Fills); same {
			return &s, nil
		}
		s.Fills = fills
	}
}

// Rule says what becomes of a difference.
type Rule string

// Refuse makes a difference an error: somebody must look. Adopt goes on from what the broker has.
const (
	Refuse Rule = "refuse"
	Adopt  Rule = "adopt"
)

// Kind is that of a difference.
type Kind string

// The kinds of differences.
const (
	Missing  Kind = "missing"  // we expect a position, the broker has none
	Extra    Kind = "extra"    // the broker has a position that we do not expect
	Quantity Kind = "quantity" // both have one, of other quantities
)

// Difference is one of a symbol. Want counts what was filled while we were away.
type Difference struct {
	Symbol     string
	Kind       Kind
	Want, Have float64
}

func (d Difference) String() string {
	return fmt.Sprintf("%s: %s, the broker has %v, expected %v", d.Symbol, d.Kind, d.Have, d.Want)
}

// Reconciliation is what a comparison has found.
type Reconciliation struct {
	// Differences of positions, by symbol.
	Differences []Difference
	// Ours are open orders of the service, Foreign those of others on the same account.
	Ours, Foreign []Order
	// Unexpected are orders in Ours that we did not know of; Ended are the client ids of orders
	// that we took for open.
	Unexpected []Order
	Ended      []string
	// Filled are the fills that were not counted before.
	Filled []Fill
}

// Err is what stands against trading under a rule, a *MismatchError or nil. With [Adopt] there is
// nothing.
func (r *Reconciliation) Err(rule Rule) error {
	if rule == Adopt || len(r.Differences)+len(r.Foreign)+len(r.Unexpected) == 0 {
		return nil
	}
	return &MismatchError{r}
}

// MismatchError says what the broker has that is not expected.
type MismatchError struct{ *Reconciliation }

func (e *MismatchError) Error() string {
	var parts []string
	for _, d := range e.Differences {
		parts = append(parts, d.String())
	}
	for _, o := range e.Foreign {
		parts = append(parts, fmt.Sprintf("open order %s (%s) is of somebody else", o.ClientID, &o.Ticket))
	}
	for _, o := range e.Unexpected {
		parts = append(parts, fmt.Sprintf("open order %s (%s) is ours and not known", o.ClientID, &o.Ticket))
	}
	return "reconcile with the broker: " + strings.Join(parts, "; ")
}

// Reconcile compares what a service expects with what its broker has. tally is not changed and has
// the positions; open are the client ids of the orders that the service takes for open, or does
// not know whether they were taken. The fills of the snapshot are those since [Tally.Since].
func Reconcile(service string, tally *Tally, open []string, s *Snapshot) *Reconciliation {
	var r Reconciliation
	after := tally.clone()
	r.Filled = after.Count(s.Fills...)
	for _, o := range s.Open {
		switch {
		case !Ours(service, o.ClientID):
			r.Foreign = append(r.Foreign, o)
		case !slices.Contains(open, o.ClientID):
			r.Unexpected = append(r.Unexpected, o)
			r.Ours = append(r.Ours, o)
		default:
			r.Ours = append(r.Ours, o)
		}
	}
	for _, id := range open {
		if !slices.ContainsFunc(s.Open, func(o Order) bool { return o.ClientID == id }) {
			r.Ended = append(r.Ended, id)
		}
	}
	want, have := after.Positions(), s.Positions
	of := func(list []Position, symbol string) float64 {
		for _, p := range list {
			if p.Symbol == symbol {
				return p.Quantity
			}
		}
		return 0
	}
	for _, symbol := range symbols(want, have) {
		d := Difference{Symbol: symbol, Kind: Quantity, Want: of(want, symbol), Have: of(have, symbol)}
		switch {
		case Same(d.Want, d.Have):
			continue
		case d.Have == 0:
			d.Kind = Missing
		case d.Want == 0:
			d.Kind = Extra
		}
		r.Differences = append(r.Differences, d)
	}
	return &r
}
