package world_test

import (
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// odd makes a given offer, and answers with a response.
type odd struct {
	world.Quiet
	o negotiation.Offer
	r negotiation.Response
}

func (a *odd) Propose(int) (negotiation.Offer, bool)               { return a.o, true }
func (a *odd) Respond(int, negotiation.Offer) negotiation.Response { return a.r }

// oddly does the same, synchronously.
type oddly struct {
	world.Quiet
	reply negotiation.Reply
}

func (a *oddly) FirstProposals(replies []negotiation.Reply)      { replies[0] = a.reply }
func (a *oddly) CounterAll(_ []int, replies []negotiation.Reply) { replies[0] = a.reply }

// TestNonsense breaks negotiations, is counted, and the world goes on: two days, on which the buyer
// begins and the seller would accept.
func TestNonsense(t *testing.T) {
	offers := []struct {
		q, t, p float64
		says    string
	}{
		{0, 0, 20, "0 units on day 0 at 20"},
		{31, 0, 20, "31 units on day 0 at 20"},
		{-3, 0, 20, "-3 units on day 0 at 20"},
		{1, 5, 20, "1 units on day 5 at 20"},
		{1, -1, 20, "1 units on day -1 at 20"},
		{1, 0, 17, "1 units on day 0 at 17"},
		{1, 0, 23, "1 units on day 0 at 23"},
		{math.NaN(), 0, 20, "-1 units on day 0 at 20"},
		{1, math.Inf(1), 20, "1 units on day -1 at 20"},
		{1, 0, math.NaN(), "1 units on day 0 at -1"},
		{1, 0, 1e300, "1 units on day 0 at -1"},
	}
	cases := 0
	play := func(seller, buyer world.Agent, faulty, nonsense int, says string) {
		cases++
		c := two(2, []int{10, 20, 30}, world.Factory{Cost: 2, Balance: 1000}, world.Factory{Cost: 4, Balance: 1000})
		w, err := world.Sit(c, []world.Agent{seller, buyer})
		if err != nil {
			t.Fatal(err)
		}
		days := 0
		for w.PlayDay() {
			days++
		}
		f, other := w.Faults(faulty), w.Faults(1-faulty)
		if days != 2 || len(w.Contracts()) > 0 || f.Nonsense != nonsense || f.Count() != nonsense || f.First != says || other.Count() != 0 {
			t.Errorf("%q: %d days, %d contracts, %+v and %+v", says, days, len(w.Contracts()), f, other)
		}
	}
	for _, k := range offers {
		o := negotiation.Truncate(k.q, k.t, k.p)
		expected := ", expected 1 … 30, 0 … 1 and 18 … 22"
		play(&steady{accepts: true}, &odd{o: o}, 1, 2, "day 0, propose: "+k.says+expected)
		play(&steady{accepts: true}, &oddly{reply: negotiation.Propose(o)}, 1, 2, "day 0, first proposals: "+k.says+expected)
		play(&odd{o: o}, &steady{}, 0, 2, "day 0, propose: "+k.says+expected)
		// A synchronous seller proposes before it answers, and both are wrong.
		play(&oddly{reply: negotiation.Propose(o)}, &steady{}, 0, 4, "day 0, first proposals: "+k.says+expected)
	}
	for _, r := range []negotiation.Response{-1, 4, 100} {
		says := ": response " + map[negotiation.Response]string{-1: "-1", 4: "4", 100: "100"}[r] + ", expected 0 … 3"
		play(&odd{r: r}, &steady{}, 0, 2, "day 0, respond"+says)
		play(&oddly{reply: negotiation.Answer(r)}, &steady{}, 0, 2, "day 0, counter all"+says)
	}
	if cases != 4*len(offers)+6 {
		t.Errorf("%d cases", cases)
	}
}

// stalling agents wait for a signal when they are asked for the n-th time, and say what they read
// of the world afterwards.
type stalling struct {
	steady
	n     int
	go_   chan struct{}
	asked int
	days  []int
	sums  chan int
}

func (a *stalling) Propose(k int) (negotiation.Offer, bool) {
	if a.asked++; a.asked == a.n {
		<-a.go_
		sum := 0
		for range 1000 {
			sum += a.v.Today() + a.v.SuppliesAt(a.v.Today()) + a.v.Stock() + a.v.Slots() + len(a.v.Suppliers()) + a.v.Box(k).High.Price
			runtime.Gosched()
		}
		a.sums <- sum
	}
	return a.steady.Propose(k)
}

func (a *stalling) DayBegins() { a.days = append(a.days, a.v.Today()) }

// TestAgentsThatStall are given up, and not called until they return; what they read meanwhile does
// not change under them. Others do not notice.
func TestAgentsThatStall(t *testing.T) {
	const days = 40
	a := &stalling{n: 3, go_: make(chan struct{}), sums: make(chan int, 1)}
	c := two(days, []int{10, 20, 30}, world.Factory{Cost: 2, Balance: 1e6}, world.Factory{Cost: 4, Balance: 1e6})
	w, err := world.Sit(c, []world.Agent{&steady{accepts: true}, a})
	if err != nil {
		t.Fatal(err)
	}
	w.Limit = 200 * time.Millisecond
	agreed := make([]int, days)
	for w.PlayDay() {
		day := w.Today()
		agreed[day] = len(w.SignedToday())
		switch day {
		case 2:
			if _, err := w.SaveState(); err == nil || err.Error() != "save the memory of B: it has not come back from a call" {
				t.Errorf("%v", err)
			}
		case 10:
			// It reads while the world is played on.
			close(a.go_)
		case 11:
			// As it was on day 2: day, nothing to come, the stock of two days, and one partner.
			if sum := <-a.sums; sum != 1000*(2+0+10+1+1+22) {
				t.Errorf("it read %d", sum)
			}
			for _, err := w.SaveState(); err != nil; _, err = w.SaveState() {
				time.Sleep(time.Millisecond)
			}
		}
	}
	if f := w.Faults(1); f.Stalls != 1 || f.Count() != 1 || f.First != "day 2, propose: no answer in 200ms" || w.Faults(0).Count() != 0 {
		t.Errorf("%+v", f)
	}
	for day, n := range agreed {
		if want := 1; day >= 2 && day <= 11 && n != 0 || (day < 2 || day > 11) && n != want {
			t.Errorf("day %d: %d agreements", day, n)
		}
	}
	if n := len(a.days); n < days-12 || n > days-9 || a.days[2] != 2 || a.days[n-1] != days-1 {
		t.Errorf("it was told of %v", a.days)
	}
	if w.World.View(1).Today() != days-1 || a.v.Today() != days-1 {
		t.Errorf("its view is of day %d", a.v.Today())
	}
	if _, err := w.SaveState(); err != nil {
		t.Error(err)
	}
}

// TestLimitChangesNothing where all agents return.
func TestLimitChangesNothing(t *testing.T) {
	run := func(limit time.Duration) string {
		c := two(10, []int{10, 20, 30}, world.Factory{Cost: 2, Balance: 1000}, world.Factory{Cost: 4, Balance: 1000})
		w, err := world.Sit(c, []world.Agent{&steady{accepts: true}, &steady{}})
		if err != nil {
			t.Fatal(err)
		}
		w.Limit = limit
		for w.PlayDay() {
		}
		state, err := w.SaveState()
		if err != nil {
			t.Fatal(err)
		}
		return string(state)
	}
	if run(0) != run(time.Minute) {
		t.Error("another world comes of it")
	}
}
