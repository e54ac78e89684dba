package broker

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 1, 5, 15, 0, 0, 0, time.UTC)

func TestClientID(t *testing.T) {
	id := ClientID("demo", now, "AAPL", Buy, 0)
	if id != "demo:20260105T150000:AAPL:buy:0" || id != ClientID("demo", now.In(time.FixedZone("", 3600)), "AAPL", Buy, 0) {
		t.Error(id)
	}
	seen := map[string]bool{id: true}
	for _, other := range []string{
		ClientID("demo2", now, "AAPL", Buy, 0), ClientID("demo", now.Add(time.Nanosecond), "AAPL", Buy, 0), ClientID("demo", now, "AAP", Buy, 0),
		ClientID("demo", now, "AAPL", Sell, 0), ClientID("demo", now, "AAPL", Buy, 1),
	} {
		if seen[other] {
			t.Errorf("%s twice", other)
		}
		seen[other] = true
	}
	if len(seen) != 6 || !Ours("demo", id) || Ours("dem", id) || Ours("demo", ClientID("demo2", now, "AAPL", Buy, 0)) {
		t.Error(seen)
	}
}

func TestTickets(t *testing.T) {
	good := Ticket{ClientID: "a", Symbol: "A", Side: Buy, Quantity: 1, Type: Market, Force: Day}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	cases := 0
	for _, edit := range []func(*Ticket){
		func(k *Ticket) { k.ClientID = "" }, func(k *Ticket) { k.ClientID = strings.Repeat("a", 129) }, func(k *Ticket) { k.Symbol = "" },
		func(k *Ticket) { k.Side = "short" }, func(k *Ticket) { k.Quantity = 0 }, func(k *Ticket) { k.Quantity = math.NaN() },
		func(k *Ticket) { k.Type = "stop" }, func(k *Ticket) { k.Type = Limit }, func(k *Ticket) { k.Force = "gtc" },
	} {
		k := good
		edit(&k)
		if k.Validate() == nil {
			t.Errorf("%+v", k)
		}
		cases++
	}
	if cases != 9 {
		t.Errorf("%d cases", cases)
	}
}

func fill(id, symbol string, side Side, quantity, price float64, at time.Time) Fill {
	return Fill{ID: id, Symbol: symbol, Side: side, Quantity: quantity, Price: price, Time: at}
}

// Fills are counted once, however often they are read, also by a tally that was saved, and when
// one becomes known after a later one.
func TestTally(t *testing.T) {
	tally := NewTally(now, 1000, map[string]float64{"B": 3})
	tally.Count(fill("old", "A", Buy, 7, 1, now.Add(-time.Second)))
	first, second := fill("1", "A", Buy, 0.3, 10, now.Add(time.Second)), fill("2", "A", Buy, 0.6, 10, now)
	if n := len(tally.Count(first)) + len(tally.Count(first, second)) + len(tally.Count(second, first)); n != 2 {
		t.Errorf("%d fills", n)
	}
	b, err := json.Marshal(tally)
	if err != nil {
		t.Fatal(err)
	}
	var again Tally
	if err := json.Unmarshal(b, &again); err != nil {
		t.Fatal(err)
	}
	again.Count(first, second, fill("3", "A", Sell, 0.9, 20, now.Add(72*time.Hour)), fill("4", "B", Buy, 1, 1, now.Add(60*time.Hour)))
	if got := again.Positions(); !reflect.DeepEqual(got, []Position{{Symbol: "B", Quantity: 4}}) || math.Abs(again.Cash()-1008) > 1e-9 {
		t.Errorf("%+v, cash %v", got, again.Cash())
	}
	if len(again.state.Seen) != 2 || !again.Since().Equal(now.Add(48*time.Hour)) {
		t.Errorf("%v since %v", again.state.Seen, again.Since())
	}
	if err := json.Unmarshal([]byte(`{"cash":1}`), &again); err == nil {
		t.Error("a tally without positions")
	}
}

func TestReconcile(t *testing.T) {
	tally := NewTally(now, 1000, map[string]float64{"A": 10, "B": 5, "C": 1})
	order := func(id string) Order { return Order{Ticket: Ticket{ClientID: id, Symbol: "A"}, State: New} }
	snapshot := &Snapshot{
		Positions: []Position{{Symbol: "A", Quantity: 12}, {Symbol: "C", Quantity: 2}, {Symbol: "D", Quantity: 4}},
		Open:      []Order{order("demo:1"), order("demo:3"), order("other:1")},
		Fills:     []Fill{fill("1", "A", Buy, 2, 10, now)},
	}
	r := Reconcile("demo", tally, []string{"demo:1", "demo:2"}, snapshot)
	want := []Difference{{"B", Missing, 5, 0}, {"C", Quantity, 1, 2}, {"D", Extra, 0, 4}}
	if !reflect.DeepEqual(r.Differences, want) || len(r.Ours) != 2 || len(r.Foreign) != 1 || len(r.Unexpected) != 1 || len(r.Ended) != 1 || r.Ended[0] != "demo:2" || len(r.Filled) != 1 {
		t.Errorf("%+v", r)
	}
	var mismatch *MismatchError
	err := r.Err(Refuse)
	if !errors.As(err, &mismatch) {
		t.Fatal(err)
	}
	for _, part := range []string{"B: missing", "C: quantity", "D: extra", "other:1", "demo:3"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v: nothing of %s", err, part)
		}
	}
	if err := r.Err(Adopt); err != nil {
		t.Error(err)
	}
	if tally.Cash() != 1000 {
		t.Error("the comparison has counted")
	}
	tally.Adopt(500, snapshot.Positions, snapshot.Fills)
	snapshot.Open = snapshot.Open[:1]
	r = Reconcile("demo", tally, []string{"demo:1"}, snapshot)
	if err := r.Err(Refuse); err != nil || len(r.Filled) != 0 || tally.Cash() != 500 {
		t.Errorf("after adopting: %v, %+v", err, r)
	}
}
