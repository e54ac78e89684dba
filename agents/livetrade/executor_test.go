package livetrade

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/broker"
)

// absent is a broker that has an order with a fill, and does not answer the first question for it.
type absent struct {
	broker.Broker
	order broker.Order
	fill  broker.Fill
	asked int
}

func (a *absent) Fills(context.Context, time.Time) ([]broker.Fill, error) {
	return []broker.Fill{a.fill}, nil
}
func (a *absent) Open(context.Context) ([]broker.Order, error) { return nil, nil }
func (a *absent) Find(context.Context, string) (broker.Order, error) {
	if a.asked++; a.asked == 1 {
		return broker.Order{}, errors.New("no answer")
	}
	return a.order, nil
}

// TestFillsAreToldAfterAnError: a fill counts when it is reported, and with its ticket, whatever
// goes wrong before.
func TestFillsAreToldAfterAnError(t *testing.T) {
	at := time.Date(2026, 1, 5, 15, 0, 0, 0, time.UTC)
	wants := broker.Ticket{ClientID: "demo:1", Symbol: "IBM", Side: broker.Buy, Quantity: 3, Type: broker.Market, Force: broker.Day}
	b := &absent{
		order: broker.Order{ID: "7", Ticket: wants, State: broker.Filled, Filled: 3},
		fill:  broker.Fill{ID: "f", OrderID: "7", Symbol: "IBM", Side: broker.Buy, Quantity: 3, Price: 10, Time: at},
	}
	c := Defaults()
	x := newExecutor(b, &c, []string{"IBM"}, func() time.Time { return at }, func(string) {})
	x.tally = broker.NewTally(at.Add(-time.Hour), 100, nil)
	x.show(&desk{tickets: []*ticket{{Ticket: wants, Standing: wanted, Decided: at}}})
	var told []reportKind
	tell := func(r report) error {
		told = append(told, r.Report)
		if r.Ticket != wants.ClientID {
			t.Errorf("%+v, expected the ticket %s", r, wants.ClientID)
		}
		return nil
	}
	if err := x.poll(t.Context(), tell); err == nil || len(told) != 0 {
		t.Errorf("%v: %v was told", err, told)
	}
	if err := x.poll(t.Context(), tell); err != nil {
		t.Fatal(err)
	}
	if want := []reportKind{reportPlaced, reportFill, reportEnded}; !slices.Equal(told, want) {
		t.Errorf("%v was told, expected %v", told, want)
	}
}
