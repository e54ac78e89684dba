package brokertest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/broker"
	"github.com/onnxrl/onnxrl/envs/market/broker/alpaca"
	"github.com/onnxrl/onnxrl/envs/market/broker/brokertest"
)

var start = time.Date(2026, 1, 5, 14, 30, 0, 0, time.UTC)

// serve returns a client of a double behind a real server, whose market is open.
func serve(t *testing.T, d *brokertest.Double, edit func(*alpaca.Config)) *alpaca.Client {
	t.Helper()
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	t.Setenv(alpaca.KeyVariable, "key")
	t.Setenv(alpaca.SecretVariable, "secret")
	c := alpaca.Defaults()
	c.URL, c.Pause, c.MaxPause = server.URL, time.Millisecond, 2*time.Millisecond
	if edit != nil {
		edit(&c)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	client, err := alpaca.New(c, transport)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func market() *brokertest.Double {
	d := brokertest.New(10_000, start)
	d.Price("AAA", 1000)
	d.Price("BBB", 2500)
	d.Open(start)
	return d
}

func ticket(symbol string, side broker.Side, quantity float64, attempt int) broker.Ticket {
	return broker.Ticket{ClientID: broker.ClientID("demo", start, symbol, side, attempt), Symbol: symbol, Side: side, Quantity: quantity, Type: broker.Market, Force: broker.Day}
}

func submit(t *testing.T, c *alpaca.Client, k broker.Ticket, want broker.State) broker.Order {
	t.Helper()
	o, err := c.Submit(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	if o.State != want || o.Ticket != k || o.ID == "" {
		t.Fatalf("%+v, expected %+v, %s", o, k, want)
	}
	return o
}

// state expects that of an order, and how much of it is filled.
func state(t *testing.T, c *alpaca.Client, k broker.Ticket, want broker.State, filled float64) {
	t.Helper()
	o, err := c.Find(t.Context(), k.ClientID)
	if err != nil || o.State != want || o.Filled != filled {
		t.Fatalf("%v: %s, %v filled, %v; expected %s, %v", k.ClientID, o.State, o.Filled, err, want, filled)
	}
}

// An order goes through the states of the documentation.
func TestOrders(t *testing.T) {
	d := market()
	c := serve(t, d, nil)
	ctx := t.Context()
	buy := ticket("AAA", broker.Buy, 100, 0)
	submit(t, c, buy, broker.New)
	d.Trade(func(string) float64 { return 0.4 })
	state(t, c, buy, broker.PartiallyFilled, 40)
	submit(t, c, buy, broker.PartiallyFilled) // It is there: 422, then it is read.
	d.Trade(nil)
	state(t, c, buy, broker.Filled, 100)

	limit := ticket("BBB", broker.Buy, 0.5, 0)
	limit.Type, limit.Price = broker.Limit, 24.5
	o := submit(t, c, limit, broker.New)
	d.Trade(nil)
	state(t, c, limit, broker.New, 0) // It costs more than the limit.
	if err := c.Cancel(ctx, o.ID); err != nil {
		t.Fatal(err)
	}
	state(t, c, limit, broker.Canceled, 0)
	if err := c.Cancel(ctx, o.ID); err != nil {
		t.Errorf("an order that has ended: %v", err)
	}
	if err := c.Cancel(ctx, "nothing"); !errors.Is(err, broker.ErrNotFound) {
		t.Errorf("an order that is not there: %v", err)
	}
	limit.ClientID, limit.Quantity = limit.ClientID+"b", 10.25
	submit(t, c, limit, broker.New)
	d.Price("BBB", 2400)
	d.Trade(nil)
	state(t, c, limit, broker.Filled, 10.25)

	atClose, day, rejected := ticket("AAA", broker.Sell, 30, 0), ticket("AAA", broker.Sell, 20, 1), ticket("AAA", broker.Sell, 10, 2)
	atClose.Force = broker.AtClose
	submit(t, c, atClose, broker.New)
	submit(t, c, day, broker.New)
	submit(t, c, rejected, broker.New)
	d.Reject(rejected.ClientID)
	d.Close(start.Add(6 * time.Hour))
	state(t, c, atClose, broker.Filled, 30)
	state(t, c, day, broker.Expired, 0)
	state(t, c, rejected, broker.Rejected, 0)
	atOpen := ticket("AAA", broker.Buy, 5, 7)
	atOpen.Force = broker.AtOpen
	submit(t, c, atOpen, broker.New)
	if k, err := c.Clock(ctx); err != nil || k.Open || !k.NextOpen.After(k.Time) {
		t.Errorf("%+v, %v", k, err)
	}
	d.Open(start.Add(24 * time.Hour))
	state(t, c, atOpen, broker.Filled, 5)

	positions, err := c.Positions(ctx)
	if err != nil || len(positions) != 2 || positions[0] != (broker.Position{Symbol: "AAA", Quantity: 75, Entry: 10}) || positions[1] != (broker.Position{Symbol: "BBB", Quantity: 10.25, Entry: 24}) {
		t.Errorf("%+v, %v", positions, err)
	}
	a, err := c.Account(ctx)
	if want := 10_000 - 1000 - 24*10.25 + 300 - 50; err != nil || a.Cash != want || a.BuyingPower != want || a.Blocked || a.Currency != "USD" {
		t.Errorf("%+v, %v, expected %v", a, err, want)
	}
	fills, err := c.Fills(ctx, start)
	if err != nil || len(fills) != 5 {
		t.Fatalf("%+v, %v", fills, err)
	}
	tally := broker.NewTally(start, 10_000, nil)
	if n := len(tally.Count(fills...)) + len(tally.Count(fills...)); n != 5 || tally.Cash() != a.Cash {
		t.Errorf("%d fills, cash %v", n, tally.Cash())
	}
}

// A refusal has the broker's words, and nothing is there.
func TestRefused(t *testing.T) {
	d := market()
	c := serve(t, d, nil)
	cases := 0
	for _, x := range []struct {
		edit   func(*broker.Ticket)
		status int
		want   string
	}{
		{func(k *broker.Ticket) { k.Quantity = 1e6 }, 403, "insufficient buying power"},
		{func(k *broker.Ticket) { k.Side = broker.Sell }, 403, "insufficient qty available"},
		{func(k *broker.Ticket) { k.Symbol = "ZZZ" }, 422, "not found"},
		{func(k *broker.Ticket) { k.Quantity, k.Force = 0.5, broker.AtOpen }, 422, "fractional"},
		{func(k *broker.Ticket) { k.Type, k.Price = broker.Limit, 10.001 }, 422, "sub-penny"},
	} {
		k := ticket("AAA", broker.Buy, 1, cases)
		x.edit(&k)
		_, err := c.Submit(t.Context(), k)
		var no *broker.RefusedError
		if !errors.As(err, &no) || no.Status != x.status || !strings.Contains(no.Message, x.want) {
			t.Errorf("%v: %v, expected %d, %s", &k, err, x.status, x.want)
		}
		cases++
	}
	if ids := d.ClientIDs(); cases != 5 || len(ids) != 0 {
		t.Errorf("%d cases, orders %v", cases, ids)
	}
	k := ticket("AAA", broker.Buy, 1, 100)
	submit(t, c, k, broker.New)
	k.Quantity = 2
	var conflict *broker.ConflictError
	if _, err := c.Submit(t.Context(), k); !errors.As(err, &conflict) || conflict.Have.Quantity != 1 {
		t.Errorf("another order of the same id: %v", err)
	}
}

// Each fault is gone through, and there is one order.
func TestFaults(t *testing.T) {
	for f := brokertest.Throttle; f < brokertest.Faults; f++ {
		t.Run(fmt.Sprint(int(f)), func(t *testing.T) {
			d := market()
			var posts, gets atomic.Int64
			c := serve(t, d, func(c *alpaca.Config) {
				if f == brokertest.Hang {
					c.Timeout = 100 * time.Millisecond
					c.Attempts = 50
				}
			})
			d.Fault = func(r *http.Request) brokertest.Fault {
				if r.Method == http.MethodPost && posts.Add(1) == 1 || r.Method == http.MethodGet && gets.Add(1) == 1 {
					return f
				}
				return brokertest.None
			}
			submit(t, c, ticket("AAA", broker.Buy, 10, 0), broker.New)
			if _, err := c.Account(t.Context()); err != nil {
				t.Error(err)
			}
			if ids := d.ClientIDs(); len(ids) != 1 {
				t.Errorf("orders %v", ids)
			}
			again := f == brokertest.Throttle || f == brokertest.Fail || f == brokertest.Lose
			if n := posts.Load(); again && n < 2 || !again && f != brokertest.Hang && n != 1 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// A broker that is down for long leaves it open whether the order is there; nobody learns
// the key.
func TestDown(t *testing.T) {
	d := market()
	d.Fault = func(*http.Request) brokertest.Fault { return brokertest.FailLate }
	c := serve(t, d, func(c *alpaca.Config) { c.Attempts = 3 })
	k := ticket("AAA", broker.Buy, 10, 0)
	_, err := c.Submit(t.Context(), k)
	var lost *broker.LostError
	if !errors.As(err, &lost) || lost.ClientID != k.ClientID || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	d.Fault = func(*http.Request) brokertest.Fault { cancel(); return brokertest.Hang }
	if _, err := c.Submit(ctx, k); !errors.As(err, &lost) || !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	if _, err := c.Positions(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	d.Fault = nil
	submit(t, c, k, broker.New)
	if ids := d.ClientIDs(); len(ids) != 1 {
		t.Errorf("orders %v", ids)
	}
	t.Setenv(alpaca.SecretVariable, "another")
	c2 := serve(t, d, nil)
	d.Secret = "nobody knows"
	if _, err := c2.Account(t.Context()); err == nil || !strings.Contains(err.Error(), "401") || strings.Contains(err.Error(), d.Secret) {
		t.Errorf("a wrong key: %v", err)
	}
}

// One client and one double take requests at once, in pages, and a double goes on with its state.
func TestAtOnce(t *testing.T) {
	d := brokertest.New(10_000_000, start)
	d.Price("AAA", 100)
	d.Open(start)
	c := serve(t, d, nil)
	const each, workers = 70, 8
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				if _, err := c.Submit(t.Context(), ticket("AAA", broker.Buy, 2, w*each+i)); err != nil {
					t.Error(err)
				}
				if i%10 == 0 {
					if _, err := c.Open(t.Context()); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if open, err := c.Open(t.Context()); err != nil || len(open) != each*workers {
		t.Fatalf("%d open orders, %v", len(open), err)
	}
	b, err := d.Save()
	if err != nil {
		t.Fatal(err)
	}
	if d, err = brokertest.Load(b); err != nil {
		t.Fatal(err)
	}
	c = serve(t, d, nil)
	d.Trade(nil)
	look, err := broker.Look(t.Context(), c, start)
	if err != nil || len(look.Fills) != each*workers || len(look.Open) != 0 || look.Positions[0].Quantity != 2*each*workers {
		t.Fatalf("%d fills, %d open, %+v, %v", len(look.Fills), len(look.Open), look.Positions, err)
	}
}
