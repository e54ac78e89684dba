// Package leaguetest has worlds of the Standard league for tests of agents.
package leaguetest

import (
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/opponents"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Sit makes a world of so many levels with three competitors, drawn from a key as the league draws
// it. seat makes all agents in their order, of a name that is empty at the places of competitors,
// each with a key of its own. The places are returned.
func Sit(t testing.TB, key rng.Key, levels int, rules world.Rules, days world.Range, seat func(name string, key rng.Key) world.Agent) (*world.Table, []int) {
	t.Helper()
	f := league.DrawField(key, levels, 3)
	agents := make([]world.Agent, len(f.Defaults))
	for i, name := range f.Defaults {
		agents[i] = seat(name, key.Split("agent", i))
	}
	g := world.StandardLeague()
	g.Days, g.Rules = days, rules
	c, err := g.Draw(key, f.Sizes, make([]string, len(agents)))
	if err != nil {
		t.Fatal(err)
	}
	table, err := world.Sit(c, agents)
	if err != nil {
		t.Fatal(err)
	}
	return table, f.Places
}

// Agent returns an agent by rule, with fair dice.
func Agent(t testing.TB, name string, key rng.Key) world.Agent {
	t.Helper()
	kind, err := opponents.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return kind.New(opponents.FairDice(key))
}

// Hostile accepts three of ten offers, whatever they are, and offers the corners of the box.
func Hostile(key rng.Key) world.Synchronous { return &hostile{s: key.Stream()} }

type hostile struct {
	world.Quiet
	v *world.View
	s *rng.Stream
}

// Starts implements world.Agent.
func (h *hostile) Starts(v *world.View) { h.v = v }

func (h *hostile) corner(k int) negotiation.Reply {
	b := h.v.Box(k)
	pick := func(low, high int) int {
		if h.s.Bernoulli(0.5) {
			return low
		}
		return high
	}
	return negotiation.Propose(negotiation.Offer{Quantity: pick(b.Low.Quantity, b.High.Quantity), Time: pick(b.Low.Time, b.High.Time), Price: pick(b.Low.Price, b.High.Price)})
}

// FirstProposals implements world.Synchronous.
func (h *hostile) FirstProposals(replies []negotiation.Reply) {
	for k := range replies {
		replies[k] = h.corner(k)
	}
}

// CounterAll implements world.Synchronous.
func (h *hostile) CounterAll(heard []int, replies []negotiation.Reply) {
	for _, k := range heard {
		if replies[k] = h.corner(k); h.s.Bernoulli(0.3) {
			replies[k] = negotiation.Answer(negotiation.Accept)
		}
	}
}
