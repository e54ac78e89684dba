package shield

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/league/leaguetest"
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/opponents"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// reckless accepts whatever it is offered, with a probability, and offers anything, also outside of
// the box and where it was not asked.
type reckless struct {
	world.Quiet
	v      *world.View
	s      *rng.Stream
	accept float64
}

func (r *reckless) Starts(v *world.View) { r.v = v }

func (r *reckless) any(k int) negotiation.Reply {
	b := r.v.Box(k)
	return negotiation.Propose(negotiation.Offer{Quantity: r.s.IntN(b.High.Quantity+4) - 1, Time: b.Low.Time + r.s.IntN(b.High.Time-b.Low.Time+3) - 1, Price: b.Low.Price + r.s.IntN(b.High.Price-b.Low.Price+3) - 1})
}

func (r *reckless) FirstProposals(replies []negotiation.Reply) {
	for k := range replies {
		replies[k] = r.any(k)
	}
}

func (r *reckless) CounterAll(heard []int, replies []negotiation.Reply) {
	for k := range replies {
		if r.s.Bernoulli(0.5) {
			replies[k] = r.any(k)
		}
	}
	for _, k := range heard {
		if replies[k] = r.any(k); r.s.Bernoulli(r.accept) {
			replies[k] = negotiation.Answer(negotiation.Accept)
		}
	}
}

// watch looks at each contract of a shielded agent, beside an account of its own that knows no open
// offers: nothing may have become worse.
type watch struct {
	*Shielded
	t                 testing.TB
	own               Ledger
	contracts, unsafe int
}

func (w *watch) Starts(v *world.View) {
	w.own.Starts(v)
	w.Shielded.Starts(v)
}

func (w *watch) DayBegins() {
	w.own.DayBegins()
	w.Shielded.DayBegins()
}

func (w *watch) Agreed(c *world.Contract) {
	side, v := Buy, w.own.v
	if c.Seller == v.Index() {
		side = Sell
	}
	// The books have it already.
	w.own.ahead()
	i := c.Time - v.Today()
	if side == Buy {
		w.own.in[i] -= c.Quantity
	} else {
		w.own.out[i] -= c.Quantity
	}
	before := w.own.measure()
	w.own.add(side, negotiation.Offer{Quantity: c.Quantity, Time: c.Time, Price: c.Price}, 1)
	w.contracts++
	if after := w.own.measure(); after.worse(before, side) {
		w.unsafe++
		w.t.Errorf("day %d, side %d: %+v took %+v to %+v", v.Today(), side, *c, before, after)
	}
	w.own.Agreed(c)
	w.Shielded.Agreed(c)
}

// play plays worlds of a field in which agents of a kind sit on the places of competitors, and
// returns their scores.
func play(t testing.TB, worlds, levels int, rules world.Rules, seat func(key rng.Key) world.Agent) (scores []float64) {
	t.Helper()
	for i := range worlds {
		key := rng.New(7).Split("world", levels, i)
		table, places := leaguetest.Sit(t, key, levels, rules, world.Range{Low: 25, High: 35}, func(name string, own rng.Key) world.Agent {
			if name == "" {
				return seat(own)
			}
			return leaguetest.Agent(t, name, own)
		})
		for table.PlayDay() {
		}
		for _, place := range places {
			scores = append(scores, table.Score(place))
		}
	}
	return scores
}

// TestSafe: whoever is inside, no contract of a shielded agent is one that it cannot keep, under
// the rules of the league and others.
func TestSafe(t *testing.T) {
	shrinks, edge := world.DefaultRules(), world.DefaultRules()
	shrinks.StockShrinks, edge.MiddleEdge = true, true
	agents, contracts, refused := 0, 0, 0
	for what, rules := range sorted.All(map[string]world.Rules{"official": world.DefaultRules(), "stock shrinks": shrinks, "four levels": edge}) {
		for levels := 2; levels <= 4; levels++ {
			for _, accept := range []float64{0.1, 1} {
				var list []*watch
				play(t, 3, levels, rules, func(key rng.Key) world.Agent {
					w := &watch{Shielded: Around(&reckless{s: key.Stream(), accept: accept}), t: t}
					list = append(list, w)
					return w
				})
				for _, w := range list {
					agents++
					contracts += w.contracts
					refused += w.Refused + w.Reduced
					if w.unsafe > 0 || w.Decisions == 0 && w.own.v.Slots() > 0 {
						t.Fatalf("%s, %d levels: %d of %d contracts are not safe, %+v", what, levels, w.unsafe, w.contracts, w.Counts)
					}
				}
			}
		}
	}
	if agents != 3*3*2*3*3 || contracts < 3000 || refused < contracts {
		t.Errorf("%d agents, %d contracts, %d refused or reduced", agents, contracts, refused)
	}
}

// TestResume goes on in the middle of a day with shielded agents whose memories were saved.
func TestResume(t *testing.T) {
	kind, err := opponents.Find("penguin")
	if err != nil {
		t.Fatal(err)
	}
	g := world.StandardLeague()
	g.Days = world.Range{Low: 12, High: 12}
	c, err := g.Draw(rng.New(5), []int{4, 4}, make([]string, 8))
	if err != nil {
		t.Fatal(err)
	}
	sit := func() *world.Table {
		agents := make([]world.Agent, 8)
		for i := range agents {
			agents[i] = Around(kind.New(opponents.FairDice(rng.New(uint64(i)))).(world.Synchronous))
		}
		table, err := world.Sit(c, agents)
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	whole := sit()
	for whole.PlayDay() {
	}
	parts, steps, resumed := sit(), 0, 0
	for parts.Step().Event != world.Over {
		if steps++; steps%37 != 0 {
			continue
		}
		state, err := parts.SaveState()
		if err != nil {
			t.Fatal(err)
		}
		parts = sit()
		if err := parts.LoadState(state); err != nil {
			t.Fatal(err)
		}
		resumed++
	}
	for i := range 8 {
		if whole.Balance(i) != parts.Balance(i) {
			t.Errorf("agent %d has %v, and %v in a world that was never stopped", i, parts.Balance(i), whole.Balance(i))
		}
	}
	if resumed < 20 {
		t.Errorf("it was resumed %d times", resumed)
	}
}

// TestRecklessIsNot: without the shield the same agents agree to what they cannot keep, so that the
// test above can fail.
func TestRecklessIsNot(t *testing.T) {
	var broken int
	for _, a := range []string{"random", "syncrandom"} {
		kind, err := opponents.Find(a)
		if err != nil {
			t.Fatal(err)
		}
		key := rng.New(3).Split(a)
		g := world.StandardLeague()
		g.Days = world.Range{Low: 30, High: 30}
		c, err := g.Draw(key, []int{4, 4}, make([]string, 8))
		if err != nil {
			t.Fatal(err)
		}
		agents := make([]world.Agent, 8)
		for i := range agents {
			agents[i] = kind.New(opponents.FairDice(key.Split("agent", i)))
		}
		table, err := world.Sit(c, agents)
		if err != nil {
			t.Fatal(err)
		}
		for table.PlayDay() {
			for i := range agents {
				broken += table.Outcome(i).Missing
			}
		}
	}
	if broken < 100 {
		t.Errorf("only %d units were missing", broken)
	}
}

// TestShieldTrades: in the same worlds and places, PenguinAgent in a shield scores what it scores
// without, within a standard error, and SyncRandomStdAgent more.
func TestShieldTrades(t *testing.T) {
	n := 0
	for name, gains := range sorted.All(longtest.Few(t, map[string]bool{"penguin": false, "syncrandom": true}, 1)) {
		kind, err := opponents.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		var sum, square, count float64
		for levels := 2; levels <= 3; levels++ {
			bare := play(t, 40, levels, world.DefaultRules(), func(key rng.Key) world.Agent { return kind.New(opponents.FairDice(key)) })
			safe := play(t, 40, levels, world.DefaultRules(), func(key rng.Key) world.Agent { return Around(kind.New(opponents.FairDice(key)).(world.Synchronous)) })
			for i := range bare {
				d := safe[i] - bare[i]
				sum, square, count = sum+d, square+d*d, count+1
			}
		}
		mean := sum / count
		se := math.Sqrt((square/count - mean*mean) / count)
		if count != 240 || gains && mean < 3*se || !gains && mean < -se {
			t.Errorf("%s: %.4f ± %.4f in %v places", name, mean, se, count)
		}
		n++
	}
	if n != longtest.Cases(t, 2, 1) {
		t.Errorf("%d agents", n)
	}
}

func BenchmarkMax(b *testing.B) {
	var l *Ledger
	play(b, 1, 3, world.DefaultRules(), func(key rng.Key) world.Agent {
		s := Around(&reckless{s: key.Stream(), accept: 0.5})
		l = &s.Ledger
		return s
	})
	o := negotiation.Offer{Quantity: 10, Time: l.v.Today(), Price: 15}
	l.Max(0, Buy, o)
	b.ReportAllocs()
	for b.Loop() {
		l.Max(0, Buy, o)
	}
}
