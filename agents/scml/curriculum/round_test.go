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
		decisions  []string
		from       []int
		next, best int
		patience   int
		done       bool
		pool       []string
	}{
		{nil, nil, -1, -1, 2, false, []string{"penguin"}},
		{[]string{Kept}, []int{-1}, 0, -1, 2, false, []string{"penguin"}},
		{[]string{Better, Kept, RolledBack}, []int{-1, 0, 1}, 0, 0, 2, true, []string{"penguin", "round-1"}},
		{[]string{Kept, Better, Better, Better}, []int{-1, 0, 1, 2}, 3, 3, 2, false, []string{"penguin", "round-3", "round-4"}},
		{[]string{Better, RolledBack, RolledBack, Better}, []int{-1, 0, 0, 0}, 3, 3, 2, false, []string{"penguin", "round-1", "round-4"}},
		{[]string{Kept, Kept, Kept}, []int{-1, 0, 1}, 2, -1, 0, false, []string{"penguin"}},
		// The next round does not begin with an agent that was worse than the baseline.
		{[]string{RolledBack, RolledBack}, []int{-1, -1}, -1, -1, 3, false, []string{"penguin"}},
		{[]string{RolledBack, Kept, RolledBack}, []int{-1, -1, 1}, -1, -1, 0, false, []string{"penguin"}},
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
		if c.before(n) != test.next || best(c.rounds) != test.best || c.done() != test.done || !slices.Equal(c.pool(n), test.pool) {
			t.Errorf("%v: next from %d, best %d, done %v, pool %v; expected %+v", test.decisions, c.before(n), best(c.rounds), c.done(), c.pool(n), test)
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
		// The baseline is the best before there is a better agent.
		{league.Standing{Score: 0.5}, league.Standing{Score: 1}, 0, true, RolledBack, false},
		{league.Standing{Score: 0.99}, league.Standing{Score: 1}, 0, true, Kept, false},
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
	if n != 10 {
		t.Errorf("%d cases", n)
	}
}

// TestFirstRound: a first round that is worse than the baseline is rolled back, though there is no
// other to go on from.
func TestFirstRound(t *testing.T) {
	c := &Curriculum{c: Defaults(), o: Options{Note: func(string) {}}}
	r := Round{From: -1}
	c.decide(&r, &league.Report{Standings: []league.Standing{{Name: nameBest, Score: 1}, {Name: nameAgent, Score: 0.9}}})
	if c.rounds = []Round{r}; r.Decision != RolledBack || r.Why != "scores 0.100 less than the best" || c.before(1) != -1 || best(c.rounds) != -1 {
		t.Errorf("%+v, next from %d", r, c.before(1))
	}
}

// TestWorseThanItBegan: a round is rolled back that is worse than the agent that it went on from, by
// how far each was from the best, though it is not much worse than this.
func TestWorseThanItBegan(t *testing.T) {
	for _, test := range []struct {
		// was is how far what it began with was from the best in its own trial.
		was, score float64
		decision   string
		why        string
	}{
		{-0.01, 0.96, Kept, "scores 0.040 less than the best"},
		{0.002, 0.956, RolledBack, "scores 0.046 less than what it began with"},
		{-0.01, 0.954, RolledBack, "scores 0.046 less than the best"},
		{-0.01, 1.01, Better, "scores 0.010 more than the best"},
	} {
		c := &Curriculum{c: Defaults(), o: Options{Note: func(string) {}}}
		c.c.Trial.Rollback.Score = 0.045
		c.rounds = []Round{
			{Round: 0, From: -1, Decision: Better},
			{Round: 1, From: 0, Decision: Kept, Agent: league.Standing{Score: 1.3 + test.was}, Best: league.Standing{Score: 1.3}},
		}
		r := Round{Round: 2, From: c.before(2)}
		c.decide(&r, &league.Report{Standings: []league.Standing{{Name: nameBest, Score: 1}, {Name: nameAgent, Score: test.score}}})
		if r.Decision != test.decision || r.Why != test.why {
			t.Errorf("%v: %s, because it %s", test.score, r.Decision, r.Why)
		}
	}
}

// TestRolledBackLayer: a layer whose last round was rolled back trains in the next one, so that those
// above it have something to stand on.
func TestRolledBackLayer(t *testing.T) {
	c := &Curriculum{}
	l := layer{Layer: &Layer{Last: 1}, name: "executor"}
	c.rounds = []Round{{Round: 0, From: -1, Decision: RolledBack}}
	if from := c.before(1); from != -1 || !c.trains(l, 1, from) {
		t.Errorf("after the only round was rolled back it does not train; the next goes on from %d", from)
	}
	c.rounds = append(c.rounds, Round{Round: 1, From: -1, Decision: Better})
	if c.trains(l, 2, 1) || c.trained(l, 1) != 1 || c.trained(l, 0) != 0 {
		t.Errorf("it has trained in round %d, and trains again: %v", c.trained(l, 1), c.trains(l, 2, 1))
	}
	c.rounds = append(c.rounds, Round{Round: 2, From: 1, Decision: Kept})
	if c.trained(l, 2) != 1 {
		t.Errorf("it has trained in round %d", c.trained(l, 2))
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
