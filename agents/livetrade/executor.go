package livetrade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/broker"
)

// executor gives the tickets of a desk to a broker and tells what becomes of them. It decides
// nothing: what it tells becomes events, and the desk follows from these.
type executor struct {
	b      broker.Broker
	config Execution
	name   string
	assets []string
	now    func() time.Time
	say    func(string)

	reports chan report
	due     chan struct{} // there are other tickets than before

	mu      sync.Mutex
	tickets []ticket // as the desk has them

	// The fields below are the executor's own. tally has the fills that were reported.
	tally *broker.Tally
	// told has the broker's id of each client id that it has. Of cancelled ones the end was asked
	// for; ended are those of which it was told that they have, or that there will be no order.
	told            map[string]string
	canceled, ended map[string]bool
	// filled is what was told by the broker's id, and asked how often an order that has ended was
	// found with other fills.
	filled map[string]float64
	asked  map[string]int
	// suspect are the differences of the last check, which count if the next finds them again.
	suspect string
	unknown map[string]bool // client ids of which it was said that it is not known whether they are there
}

func newExecutor(b broker.Broker, c *Config, assets []string, now func() time.Time, say func(string)) *executor {
	return &executor{
		b: b, config: c.Execution, name: c.Name, assets: assets, now: now, say: say, reports: make(chan report), due: make(chan struct{}, 1),
		told: map[string]string{}, canceled: map[string]bool{}, ended: map[string]bool{}, filled: map[string]float64{}, asked: map[string]int{}, unknown: map[string]bool{},
	}
}

// changed reports whether the desk stands otherwise than was shown.
func (x *executor) changed(d *desk) bool {
	// Only the service shows, so that nobody writes meanwhile.
	return !slices.EqualFunc(d.tickets, x.tickets, func(a *ticket, b ticket) bool { return *a == b })
}

// show tells how the desk stands.
func (x *executor) show(d *desk) {
	x.mu.Lock()
	x.tickets = x.tickets[:0]
	for _, t := range d.tickets {
		x.tickets = append(x.tickets, *t)
	}
	x.mu.Unlock()
	select {
	case x.due <- struct{}{}:
	default:
	}
}

func (x *executor) shown() []ticket {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.tickets)
}

// begin compares what a desk expects with what the broker has, before anything is ordered, and
// calls tell with what has happened meanwhile. A difference is an error, unless it is to be
// adopted.
func (x *executor) begin(ctx context.Context, d *desk, tell func(report) error) error {
	clock, err := x.b.Clock(ctx)
	if err != nil {
		return err
	}
	since := clock.Time
	if d.tally != nil {
		since = d.tally.Since()
	}
	s, err := broker.Look(ctx, x.b, since)
	if err != nil {
		return err
	}
	if s.Account.Blocked {
		return fmt.Errorf("account %s: the broker takes no orders", s.Account.ID)
	}
	if err := x.long(s.Positions); err != nil {
		return err
	}
	if d.tally == nil {
		if err := x.first(s); err != nil {
			return err
		}
		if err := tell(report{Report: reportHoldings, At: clock.Time, Cash: s.Account.Cash, Positions: byName(s.Positions)}); err != nil {
			return err
		}
	}
	var open []string
	for _, t := range d.tickets {
		if t.Standing != waiting {
			open = append(open, t.ClientID)
		}
	}
	r := broker.Reconcile(x.name, d.tally, open, s)
	if err := r.Err(x.config.Differences); err != nil {
		return fmt.Errorf("%w (execution.differences: adopt goes on from what the broker has)", err)
	}
	if x.tally, err = cloneTally(d.tally); err != nil {
		return err
	}
	x.show(d)
	for _, t := range d.tickets {
		if t.Order != "" {
			x.filled[t.Order], x.told[t.ClientID] = t.Filled, t.Order
		}
	}
	if err := x.fills(ctx, s.Fills, tell); err != nil {
		return err
	}
	if len(r.Differences) > 0 {
		if err := x.adopt(s, r, tell); err != nil {
			return err
		}
	}
	for _, o := range r.Unexpected {
		x.say(fmt.Sprintf("order %s (%s) is ours and not known: it is cancelled", o.ClientID, &o.Ticket))
		if err := x.b.Cancel(ctx, o.ID); err != nil && !errors.Is(err, broker.ErrNotFound) {
			return err
		}
	}
	if err := x.work(ctx, tell); err != nil {
		return err
	}
	return x.poll(ctx, tell)
}

// long refuses short positions.
func (x *executor) long(list []broker.Position) error {
	for _, p := range list {
		if p.Quantity < 0 {
			return fmt.Errorf("the broker has a short position, %v %s: expected none", p.Quantity, p.Symbol)
		}
	}
	return nil
}

// first checks the account of a service that begins.
func (x *executor) first(s *broker.Snapshot) error {
	if x.config.Differences == broker.Adopt {
		return nil
	}
	for _, o := range s.Open {
		return fmt.Errorf("the account has an open order, %s (%s): expected none before the first decision", o.ClientID, &o.Ticket)
	}
	for _, p := range s.Positions {
		if !slices.Contains(x.assets, p.Symbol) {
			return fmt.Errorf("the account has %v %s, which the policy does not trade: expected an account of its own (execution.differences: adopt leaves it alone)", p.Quantity, p.Symbol)
		}
	}
	return nil
}

// run works until the context ends.
func (x *executor) run(ctx context.Context) {
	tell := func(r report) error {
		select {
		case x.reports <- r:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	timer := time.NewTimer(x.config.Poll)
	defer timer.Stop()
	checked := x.now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-x.due:
		case <-timer.C:
		}
		err := x.work(ctx, tell)
		busy := x.busy()
		if err == nil && busy {
			err = x.poll(ctx, tell)
		}
		if err == nil && !busy && x.now().Sub(checked) >= x.config.Check {
			checked = x.now()
			err = x.check(ctx, tell)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			// The broker will be asked again.
			x.say(fmt.Sprintf("broker: %v", err))
		}
		wait := x.config.Poll
		if !x.busy() {
			wait = min(x.config.Check, max(x.config.Check-x.now().Sub(checked), 0)+time.Millisecond)
		}
		timer.Reset(wait)
	}
}

// busy reports whether the broker may execute something.
func (x *executor) busy() bool {
	return slices.ContainsFunc(x.shown(), func(t ticket) bool { return t.Standing != waiting && !x.ended[t.ClientID] })
}

// work submits tickets, and cancels orders that are not wanted any more.
func (x *executor) work(ctx context.Context, tell func(report) error) error {
	for _, t := range x.shown() {
		if t.Standing == wanted {
			if _, done := x.told[t.ClientID]; !done && !x.ended[t.ClientID] {
				if err := x.submit(ctx, &t, tell); err != nil {
					return err
				}
			}
		}
		id := x.told[t.ClientID]
		if t.Cancel && id != "" && !x.ended[t.ClientID] && !x.canceled[t.ClientID] {
			if err := x.b.Cancel(ctx, id); err != nil && !errors.Is(err, broker.ErrNotFound) {
				return err
			}
			x.canceled[t.ClientID] = true
		}
	}
	return nil
}

// submit gives a ticket to the broker. One that is too late, or not wanted any more, is only looked
// for: an order that was sent before the program ended is there.
func (x *executor) submit(ctx context.Context, t *ticket, tell func(report) error) error {
	var o broker.Order
	var err error
	late := x.now().Sub(t.Decided) > x.config.Late
	if late || t.Cancel {
		if o, err = x.b.Find(ctx, t.ClientID); errors.Is(err, broker.ErrNotFound) {
			text := "it was not wanted any more before the broker had it"
			if late {
				text = fmt.Sprintf("the decision of %s was more than %v ago", t.Decided.UTC().Format(time.RFC3339), x.config.Late)
			}
			x.ended[t.ClientID] = true
			return tell(report{Report: reportMissed, Ticket: t.ClientID, Text: text})
		}
	} else {
		o, err = x.b.Submit(ctx, t.Ticket)
	}
	var refused *broker.RefusedError
	var conflict *broker.ConflictError
	var lost *broker.LostError
	switch {
	case errors.As(err, &refused):
		x.ended[t.ClientID] = true
		return tell(report{Report: reportRefused, Ticket: t.ClientID, Text: refused.Message})
	case errors.As(err, &conflict):
		x.ended[t.ClientID] = true
		return tell(report{Report: reportRefused, Ticket: t.ClientID, Text: conflict.Error()})
	case errors.As(err, &lost):
		// It is asked for again, until it is known.
		if !x.unknown[t.ClientID] && ctx.Err() == nil {
			x.unknown[t.ClientID] = true
			return err
		}
		return ctx.Err()
	case err != nil:
		return err
	}
	x.told[t.ClientID] = o.ID
	return tell(report{Report: reportPlaced, Ticket: t.ClientID, Order: o.ID, State: o.State})
}

// fills tells those that were not told.
func (x *executor) fills(ctx context.Context, list []broker.Fill, tell func(report) error) error {
	ticketOf := func(order string) string {
		for client, o := range x.told {
			if o == order {
				return client
			}
		}
		return ""
	}
	// Before anything is counted: what is counted must be told.
	if err := x.find(ctx, tell); err != nil {
		return err
	}
	for _, f := range x.tally.Count(list...) {
		ticket := ticketOf(f.OrderID)
		x.filled[f.OrderID] += f.Quantity
		if err := tell(report{Report: reportFill, Ticket: ticket, Fill: &f}); err != nil {
			return err
		}
	}
	return nil
}

// find looks for tickets that the broker may have without our knowing, because its answer or the
// program was lost.
func (x *executor) find(ctx context.Context, tell func(report) error) error {
	for _, t := range x.shown() {
		if _, known := x.told[t.ClientID]; t.Standing != wanted || known || x.ended[t.ClientID] {
			continue
		}
		o, err := x.b.Find(ctx, t.ClientID)
		if errors.Is(err, broker.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		x.told[t.ClientID] = o.ID
		if err := tell(report{Report: reportPlaced, Ticket: t.ClientID, Order: o.ID, State: o.State}); err != nil {
			return err
		}
	}
	return nil
}

// patience is how often an order that has ended is asked for whose fills are not all there.
const patience = 10

// poll tells fills, and orders that have ended.
func (x *executor) poll(ctx context.Context, tell func(report) error) error {
	list, err := x.b.Fills(ctx, x.tally.Since())
	if err != nil {
		return err
	}
	if err := x.fills(ctx, list, tell); err != nil {
		return err
	}
	open, err := x.b.Open(ctx)
	if err != nil {
		return err
	}
	for _, t := range x.shown() {
		id := x.told[t.ClientID]
		if id == "" || x.ended[t.ClientID] || slices.ContainsFunc(open, func(o broker.Order) bool { return o.ID == id }) {
			continue
		}
		o, err := x.b.Find(ctx, t.ClientID)
		if err != nil && !errors.Is(err, broker.ErrNotFound) {
			return err
		}
		if err == nil && o.State.Open() {
			continue
		}
		// Those who list fills may know later than those who list orders.
		if !broker.Same(x.filled[id], o.Filled) {
			if x.asked[t.ClientID]++; x.asked[t.ClientID] < patience {
				continue
			}
			x.say(fmt.Sprintf("order %s: the broker has executed %v of it and lists %v", t.ClientID, o.Filled, x.filled[id]))
		}
		x.ended[t.ClientID] = true
		if err := tell(report{Report: reportEnded, Ticket: t.ClientID, Order: id, State: o.State}); err != nil {
			return err
		}
	}
	x.forget()
	return nil
}

// forget forgets tickets that the desk does not have any more.
func (x *executor) forget() {
	have := map[string]bool{}
	for _, t := range x.shown() {
		have[t.ClientID] = true
	}
	gone := func(client string) bool { return !have[client] }
	for client, order := range x.told {
		if gone(client) {
			delete(x.filled, order)
		}
	}
	maps.DeleteFunc(x.told, func(c, _ string) bool { return gone(c) })
	maps.DeleteFunc(x.canceled, func(c string, _ bool) bool { return gone(c) })
	maps.DeleteFunc(x.ended, func(c string, _ bool) bool { return gone(c) })
	maps.DeleteFunc(x.asked, func(c string, _ int) bool { return gone(c) })
	maps.DeleteFunc(x.unknown, func(c string, _ bool) bool { return gone(c) })
}

// cent is the smallest difference of cash that is reported.
const cent = 0.005

// check compares what is held while no order is open.
func (x *executor) check(ctx context.Context, tell func(report) error) error {
	s, err := broker.Look(ctx, x.b, x.tally.Since())
	if err != nil {
		return err
	}
	if x.busy() {
		return nil
	}
	r := broker.Reconcile(x.name, x.tally, nil, s)
	if err := x.fills(ctx, s.Fills, tell); err != nil {
		return err
	}
	text := ""
	for _, d := range r.Differences {
		text += d.String() + "; "
	}
	switch {
	case text != x.suspect:
		x.suspect = text // Positions may be known later than fills.
	case text == "":
		if math.Abs(s.Account.Cash-x.tally.Cash()) < cent || len(s.Open) > 0 {
			return nil
		}
		x.tally.Adopt(s.Account.Cash, x.tally.Positions(), nil)
		return tell(report{Report: reportCash, Cash: s.Account.Cash})
	case x.config.Differences == broker.Adopt:
		if err := x.long(s.Positions); err != nil {
			return err
		}
		x.suspect = ""
		return x.adopt(s, r, tell)
	default:
		// It is reported once: after that the account counts as what the broker has until
		// somebody looks.
		x.suspect = ""
		x.tally.Adopt(x.tally.Cash(), s.Positions, nil)
		return tell(report{Report: reportDiffers, Text: r.Err(broker.Refuse).Error(), Differs: len(r.Differences)})
	}
	return nil
}

// adopt tells that the broker's holdings are the account's.
func (x *executor) adopt(s *broker.Snapshot, r *broker.Reconciliation, tell func(report) error) error {
	x.tally.Adopt(s.Account.Cash, s.Positions, s.Fills)
	text := ""
	if err := r.Err(broker.Refuse); err != nil {
		text = err.Error()
	}
	return tell(report{Report: reportHoldings, Cash: s.Account.Cash, Positions: byName(s.Positions), Text: text})
}

func byName(list []broker.Position) map[string]float64 {
	m := map[string]float64{}
	for _, p := range list {
		m[p.Symbol] = p.Quantity
	}
	return m
}

func cloneTally(t *broker.Tally) (*broker.Tally, error) {
	text, err := json.Marshal(t)
	var c broker.Tally
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	return &c, err
}
