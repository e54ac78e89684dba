package curriculum

import (
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/league"
)

// rounds makes a log of decisions; each goes on from where the package says.
func rounds(c *Curriculum, decisions ...string) {
	c.rounds = nil
	for i, d := range decisions {
		c.rounds = append(c.rounds, Round{Round: i, From: c.before(i), Decision: d, Validation: map[string]float64{"manager": float64(i)}})
	}
}

func TestWhereRoundsGoOn(t *testing.T) {
	for _, test := range []struct {
		decisions          []string
		from               []int
		next, best, chosen int
		patience           int
		done               bool
		pool               []string
	}{
		{nil, nil, -1, -1, -1, 2, false, []string{"penguin"}},
		{[]string{Kept}, []int{-1}, 0, -1, 0, 2, false, []string{"penguin"}},
		{[]string{Better, Kept, RolledBack}, []int{-1, 0, 1}, 0, 0, 0, 2, true, []string{"penguin", "round-1"}},
		{[]string{Kept, Better, Better, Better}, []int{-1, 0, 1, 2}, 3, 3, 3, 2, false, []string{"penguin", "round-3", "round-4"}},
		{[]string{Better, RolledBack, RolledBack, Better}, []int{-1, 0, 0, 0}, 3, 3, 3, 2, false, []string{"penguin", "round-1", "round-4"}},
		{[]string{Kept, Kept, Kept}, []int{-1, 0, 1}, 2, -1, 2, 0, false, []string{"penguin"}},
	} {
		c := &Curriculum{c: Defaults()}
		c.c.Rounds, c.c.Pool = 10, Pool{Rivals: []string{"penguin"}, Selves: 2}
		c.c.Trial.Patience = test.patience
		rounds(c, test.decisions...)
		for i, r := range c.rounds {
			if r.From != test.from[i] {
				t.Errorf("%v: round %d goes on from %d, expected %d", test.decisions, i, r.From, test.from[i])
			}
		}
		n := len(test.decisions)
		if c.before(n) != test.next || best(c.rounds) != test.best || c.chosen() != test.chosen || c.done() != test.done || !slices.Equal(c.pool(n), test.pool) {
			t.Errorf("%v: next from %d, best %d, chosen %d, done %v, pool %v; expected %+v", test.decisions, c.before(n), best(c.rounds), c.chosen(), c.done(), c.pool(n), test)
		}
	}
}

func TestDecide(t *testing.T) {
	n := 0
	for _, test := range []struct {
		agent, best league.Standing
		validation  float64
		first       bool
		decision    string
		joined      bool
	}{
		{league.Standing{Score: 1.1}, league.Standing{Score: 1}, 9, false, Better, false},
		{league.Standing{Score: 1}, league.Standing{Score: 1}, 0, false, Kept, false},
		{league.Standing{Score: 1}, league.Standing{Score: 1}, 9, false, Kept, true},
		{league.Standing{Score: 0.9}, league.Standing{Score: 1}, 9, false, RolledBack, true},
		{league.Standing{Score: 1.1, Short: 0.3}, league.Standing{Score: 1, Short: 0.2}, 0, false, RolledBack, false},
		{league.Standing{Score: 1.1, Overflow: 9}, league.Standing{Score: 1, Overflow: 1}, 0, false, RolledBack, false},
		{league.Standing{Score: 1.1, WinRate: 0.2}, league.Standing{Score: 1, WinRate: 0.5}, 0, false, RolledBack, false},
		{league.Standing{Score: 0.5}, league.Standing{Score: 1}, 0, true, Kept, false},
		{league.Standing{Score: 1.1}, league.Standing{Score: 1}, 0, true, Better, false},
	} {
		c := &Curriculum{c: Defaults(), o: Options{Note: func(string) {}}}
		c.c.Pool.Reserve = []string{"ultra"}
		if rounds(c, Better); test.first {
			rounds(c, Kept)
		}
		r := Round{Round: 1, From: 0, Validation: map[string]float64{"manager": test.validation}}
		test.agent.Name, test.best.Name = nameAgent, nameBest
		c.decide(&r, &league.Report{Standings: []league.Standing{test.best, test.agent}})
		if r.Decision != test.decision || r.Why == "" || slices.Equal(r.Joined, []string{"ultra"}) != test.joined {
			t.Errorf("%+v: %s, because it %s; %v joined", test, r.Decision, r.Why, r.Joined)
		}
		n++
	}
	if n != 9 {
		t.Errorf("%d cases", n)
	}
}

// TestRatings: who wins three games in four is rated so much higher as these odds are.
func TestRatings(t *testing.T) {
	var rows []league.Row
	for i := range 400 {
		a, b := 1.0, 2.0
		if i%4 > 0 {
			a, b = b, a
		}
		rows = append(rows, league.Row{World: i, Name: "a", Score: a}, league.Row{World: i, Name: "b", Score: b})
	}
	list := ratings(rows)
	if len(list) != 2 || list[0].Name != "a" || list[0].Games != 400 {
		t.Fatalf("%+v", list)
	}
	if d, want := list[0].Elo-list[1].Elo, 400*math.Log10(3); math.Abs(d-want) > 5 {
		t.Errorf("a is rated %v above b, expected %v", d, want)
	}
}
