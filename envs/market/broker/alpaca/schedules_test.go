package alpaca

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/broker"
	"github.com/onnxrl/onnxrl/envs/market/broker/brokertest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

var start = time.Date(2026, 1, 5, 14, 30, 0, 0, time.UTC)

// connect returns a client of a double that waits for nothing.
func connect(t testing.TB, d *brokertest.Double) *Client {
	t.Helper()
	t.Setenv(KeyVariable, d.Key)
	t.Setenv(SecretVariable, d.Secret)
	c := Defaults()
	c.URL = "http://127.0.0.1:1"
	client, err := New(c, d.Transport())
	if err != nil {
		t.Fatal(err)
	}
	client.sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return client
}

// trader is a service that notes what it is about to do before it does it. What it has noted is
// all that is left of it when it ends.
type trader struct {
	Decision int             `json:"decision"`
	Tickets  []broker.Ticket `json:"tickets"` // of the present decision
	Done     []string        `json:"done"`    // client ids that the broker has
	No       []string        `json:"no"`      // client ids that it refuses
	Tally    *broker.Tally   `json:"tally"`
}

// crash is thrown where the program ends.
type crash struct{}

// schedule is a run of a trader against a double under faults.
type schedule struct {
	rng    *rand.Rand
	d      *brokertest.Double
	client *Client
	noted  []byte
	faults float64
	seen   [brokertest.Faults]int
	every  []broker.Ticket // of all decisions
}

var traded = []string{"AAA", "BBB", "CCC"}

const decisions = 4

// fault decides on a request; a crash is before or after it.
func (s *schedule) fault(*http.Request) brokertest.Fault {
	if s.rng.Float64() >= s.faults {
		return brokertest.None
	}
	f := brokertest.Fault(s.rng.IntN(int(brokertest.Hang)))
	s.seen[f]++
	return f
}

// crashing ends the program at requests, before they are sent or after they are answered.
type crashing struct {
	s    *schedule
	next http.RoundTripper
}

func (c crashing) RoundTrip(r *http.Request) (*http.Response, error) {
	s := c.s
	if s.rng.Float64() < s.faults/8 {
		panic(crash{})
	}
	resp, err := c.next.RoundTrip(r)
	if s.rng.Float64() < s.faults/8 {
		panic(crash{})
	}
	return resp, err
}

func (s *schedule) note(tr *trader) {
	b, err := json.Marshal(tr)
	if err != nil {
		panic(err)
	}
	s.noted = b
}

// tickets are those of a decision: a function of what is noted and the schedule's numbers.
func (s *schedule) tickets(tr *trader) (list []broker.Ticket) {
	for _, symbol := range traded {
		side, held := broker.Buy, 0.0
		for _, p := range tr.Tally.Positions() {
			if p.Symbol == symbol {
				held = p.Quantity
			}
		}
		quantity := float64(1 + s.rng.IntN(300))
		if held > 0 && s.rng.IntN(2) == 0 {
			side, quantity = broker.Sell, min(quantity, held)
		} else if s.rng.IntN(4) == 0 {
			quantity += float64(1+s.rng.IntN(999)) / 1000
		}
		t := broker.Ticket{
			ClientID: broker.ClientID("demo", start.AddDate(0, 0, tr.Decision), symbol, side, 0),
			Symbol:   symbol, Side: side, Quantity: quantity, Type: broker.Market, Force: broker.Day,
		}
		if s.rng.IntN(3) == 0 {
			t.Type, t.Price = broker.Limit, 100+float64(s.rng.IntN(1000))/100
		}
		list = append(list, t)
	}
	return list
}

// market changes prices and fills parts of what is open.
func (s *schedule) market() {
	for _, symbol := range traded {
		s.d.Price(symbol, 9500+s.rng.Int64N(1000))
	}
	s.d.Trade(func(string) float64 { return s.rng.Float64() * 1.3 })
}

// run is one life of the program, from what is noted until it ends or crashes.
func (s *schedule) run() (crashed bool, err error) {
	defer func() {
		switch p := recover(); p.(type) {
		case nil:
		case crash:
			crashed = true
		default:
			panic(p)
		}
	}()
	var tr trader
	if err := json.Unmarshal(s.noted, &tr); err != nil {
		return false, err
	}
	ctx := context.Background()
	look, err := broker.Look(ctx, s.client, tr.Tally.Since())
	if err != nil {
		return false, err
	}
	var open []string
	for _, t := range s.every {
		open = append(open, t.ClientID)
	}
	r := broker.Reconcile("demo", tr.Tally, open, look)
	if err := r.Err(broker.Refuse); err != nil {
		return false, fmt.Errorf("a difference: %w", err)
	}
	tr.Tally.Count(r.Filled...)
	s.note(&tr)
	for tr.Decision < decisions {
		if tr.Tickets == nil {
			tr.Tickets = s.tickets(&tr)
			s.note(&tr)
			s.every = append(s.every, tr.Tickets...)
		}
		for _, t := range tr.Tickets {
			if slices.Contains(tr.Done, t.ClientID) || slices.Contains(tr.No, t.ClientID) {
				continue
			}
			_, err := s.client.Submit(ctx, t)
			var no *broker.RefusedError
			if errors.As(err, &no) {
				tr.No = append(tr.No, t.ClientID)
			} else if err != nil {
				return false, err
			} else {
				tr.Done = append(tr.Done, t.ClientID)
			}
			s.note(&tr)
			s.market()
		}
		open, err := s.client.Open(ctx)
		if err != nil {
			return false, err
		}
		for _, o := range open {
			if s.rng.IntN(3) == 0 {
				if err := s.client.Cancel(ctx, o.ID); err != nil {
					return false, err
				}
			}
		}
		fills, err := s.client.Fills(ctx, tr.Tally.Since())
		if err != nil {
			return false, err
		}
		tr.Tally.Count(fills...)
		tr.Tickets = nil
		tr.Decision++
		s.note(&tr)
	}
	return false, nil
}

// Whatever is lost, answered late or not at all, and wherever the program ends: every order that
// was decided is at the broker once or was refused, there is no other one, and the trader's
// positions and cash are those of the broker, to the billionth of a share and to the cent.
func TestSchedules(t *testing.T) {
	longtest.Slow(t)
	testSchedules(t, 200)
}

// TestManySchedules is TestSchedules with more seeds.
func TestManySchedules(t *testing.T) {
	longtest.Nightly(t)
	testSchedules(t, 2000)
}

func testSchedules(t *testing.T, n int) {
	var orders, refused, lives, lost, restarts int
	var seen [brokertest.Faults]int
	for seed := range n {
		s := &schedule{rng: rand.New(rand.NewPCG(16, uint64(seed))), d: brokertest.New(100_000, start)}
		s.faults = s.rng.Float64() * 0.4
		s.d.FundsFirst = s.rng.IntN(2) == 0
		for _, symbol := range traded {
			s.d.Price(symbol, 10_000)
		}
		s.d.Open(start)
		s.d.Fault = s.fault
		s.client = connect(t, s.d)
		s.client.config.Attempts = 1 + s.rng.IntN(5)
		s.client.transport = crashing{s, s.d.Transport()}
		s.note(&trader{Tally: broker.NewTally(start, 100_000, nil)})
		for life := 1; ; life++ {
			if life == 100 {
				s.faults = 0
			}
			crashed, err := s.run()
			lives++
			if err == nil && !crashed {
				break
			}
			var e *broker.LostError
			var status *statusError
			if errors.As(err, &e) {
				lost++
			} else if !crashed && !errors.As(err, &status) && s.faults == 0 {
				t.Fatalf("seed %d: %v", seed, err)
			}
			var mismatch *broker.MismatchError
			var conflict *broker.ConflictError
			if errors.As(err, &mismatch) || errors.As(err, &conflict) || life > 200 {
				t.Fatalf("seed %d, life %d: %v", seed, life, err)
			}
			s.market() // goes on without us
			if s.rng.IntN(4) == 0 {
				b, err := s.d.Save()
				if err != nil {
					t.Fatal(err)
				}
				old := s.d
				if s.d, err = brokertest.Load(b); err != nil {
					t.Fatal(err)
				}
				s.d.Fault, s.d.FundsFirst = old.Fault, old.FundsFirst
				s.client.transport = crashing{s, s.d.Transport()}
				restarts++
			}
		}
		s.faults = 0
		var tr trader
		if err := json.Unmarshal(s.noted, &tr); err != nil {
			t.Fatal(err)
		}
		s.market()
		s.d.Close(start.Add(7 * time.Hour))
		look, err := broker.Look(t.Context(), s.client, tr.Tally.Since())
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		tr.Tally.Count(look.Fills...)
		have := s.d.ClientIDs()
		slices.Sort(have)
		want := slices.Clone(tr.Done)
		slices.Sort(want)
		if !slices.Equal(have, want) {
			t.Fatalf("seed %d: the broker has orders\n%v\nexpected\n%v", seed, have, want)
		}
		if len(want)+len(tr.No) != len(s.every) || len(s.every) != decisions*len(traded) {
			t.Fatalf("seed %d: %d orders and %d refused of %d", seed, len(want), len(tr.No), len(s.every))
		}
		for _, o := range look.Open {
			t.Fatalf("seed %d: order %s is open after the close", seed, o.ClientID)
		}
		held := map[string]float64{}
		for _, p := range tr.Tally.Positions() {
			held[p.Symbol] = p.Quantity
		}
		for _, symbol := range traded {
			if held[symbol] != s.d.Shares(symbol) {
				t.Fatalf("seed %d: %v %s, the broker has %v", seed, held[symbol], symbol, s.d.Shares(symbol))
			}
		}
		if math.Abs(tr.Tally.Cash()-s.d.Cash()) >= 0.005 {
			t.Fatalf("seed %d: cash %v, the broker has %v", seed, tr.Tally.Cash(), s.d.Cash())
		}
		orders += len(want)
		refused += len(tr.No)
		for i, c := range s.seen {
			seen[i] += c
		}
	}
	t.Logf("%d schedules: %d orders, %d refused, %d lives, %d answers never came, %d restarts of the broker, faults %v", n, orders, refused, lives, lost, restarts, seen)
	if orders < 8*n || refused < n/20 || lives < 2*n || lost < n/100 || restarts < n/10 {
		t.Error("the schedules are too tame")
	}
	for f := brokertest.Throttle; f < brokertest.Hang; f++ {
		if seen[f] < n {
			t.Errorf("fault %d happened %d times", f, seen[f])
		}
	}
}
