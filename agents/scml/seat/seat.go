package seat

import (
	"encoding/json"
	"fmt"

	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/envs/scml/opponents"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// seat is a factory in a world whose other agents play by themselves.
type seat struct {
	w      Worlds
	roster *scml.Roster
	// drawn is what the world was drawn from.
	drawn Worlds
	key   rng.Key
	table *world.Table
	place int
	// rivals are the places of the other competitors.
	rivals []int
	agent  *scml.Agent
	v      *world.View
	// signed, unless nil, receives the agent's contracts when they are in its books.
	signed func(c *world.Contract)
}

// begin draws a world and seats everybody.
func (s *seat) begin(key rng.Key, w Worlds) error {
	s.drawn = w
	draws := key.Split("worlds").Stream()
	between := func(list []int) int { return list[0] + draws.IntN(list[1]-list[0]+1) }
	f := league.DrawField(key, between(w.Levels), between(w.Competitors))
	own := draws.IntN(len(f.Places))
	s.key, s.place, s.rivals = key, f.Places[own], s.rivals[:0]
	agents, types := make([]world.Agent, len(f.Defaults)), make([]string, len(f.Defaults))
	for i, name := range f.Defaults {
		if name == "" {
			if i == s.place {
				agents[i], types[i] = world.Vacant{Sync: true}, scml.Type
				continue
			}
			name = w.Rivals[draws.IntN(len(w.Rivals))]
			s.rivals = append(s.rivals, i)
		}
		kind, err := s.roster.Find(name)
		if err != nil {
			return err
		}
		agents[i], types[i] = kind.New(opponents.FairDice(key.Split("agent", i))), kind.Type
	}
	g := world.StandardLeague()
	g.Days = world.Range{Low: float64(w.Days[0]), High: float64(w.Days[1])}
	c, err := g.Draw(key, f.Sizes, types)
	if err != nil {
		return err
	}
	if s.table, err = world.Sit(c, agents); err != nil {
		return err
	}
	s.v = s.table.View(s.place)
	return nil
}

// next plays on, and tells the agent the news, up to a decision of its own or the morning of a day,
// or the end of the world.
func (s *seat) next() *world.Question {
	for {
		q := s.table.Ask()
		switch q.Event {
		case world.Starts:
			s.agent.Starts(s.v)
		case world.Agreed:
			s.agent.Agreed(q.Contract)
			if s.signed != nil {
				s.signed(q.Contract)
			}
		case world.Failed:
			s.agent.Failed(q.Negotiation)
		case world.DayBegins:
			s.agent.Morning()
			return q
		case world.AskFirst, world.AskCounters, world.Over:
			return q
		}
	}
}

// overflow is how many input units the factory has beyond what its lines use in a day.
func (s *seat) overflow() float64 { return float64(max(0, s.table.Stock(s.place)-s.v.Lines())) }

// won reports whether no other competitor has a better score.
func (s *seat) won() bool {
	for _, r := range s.rivals {
		if s.table.Score(r) > s.table.Score(s.place) {
			return false
		}
	}
	return true
}

// Market is how many numbers the observation of the market has: perLevel for each of levels.
const (
	Market   = levels * perLevel
	levels   = 4
	perLevel = 4
)

// Levels writes what each level of a world looks like [Market]: how many agents there are, how many
// of them are bankrupt, and their mean stocks and balances.
func Levels(w *world.World, to []float32) {
	clear(to)
	c := w.Config()
	var count [levels]float64
	for i := range c.Factories {
		if l := c.Factories[i].Level; l < levels {
			count[l]++
		}
	}
	for i := range c.Factories {
		l := c.Factories[i].Level
		if l >= levels {
			continue
		}
		row := to[l*perLevel:]
		row[0] = float32(count[l] / 6)
		if w.Bankrupt(i) {
			row[1] += float32(1 / count[l])
		}
		row[2] += float32(float64(w.Stock(i)) / float64(10*c.Lines) / count[l])
		row[3] += float32(w.Score(i) / count[l])
	}
}

// savedSeat is the form of a saved one.
type savedSeat struct {
	Key rng.Key `json:"key"`
	// Worlds is what the world was drawn from, which may not be what others are going to be.
	Worlds Worlds          `json:"worlds"`
	Table  json.RawMessage `json:"table"`
	Agent  json.RawMessage `json:"agent"`
}

func (s *seat) save() (saved savedSeat, err error) {
	saved.Key, saved.Worlds = s.key, s.drawn
	if saved.Table, err = s.table.SaveState(); err != nil {
		return saved, err
	}
	saved.Agent, err = json.Marshal(s.agent.Memory())
	return saved, err
}

// load goes on where save was called, and returns the question that is open.
func (s *seat) load(saved savedSeat) (*world.Question, error) {
	if err := s.begin(saved.Key, saved.Worlds); err != nil {
		return nil, err
	}
	return s.loadSeat(saved)
}

// loadSeat is load in the world of the key, which has begun.
func (s *seat) loadSeat(saved savedSeat) (*world.Question, error) {
	if err := s.table.LoadState(saved.Table); err != nil {
		return nil, err
	}
	s.agent.Starts(s.v)
	if err := json.Unmarshal(saved.Agent, s.agent.Memory()); err != nil {
		return nil, fmt.Errorf("load the memory of the agent: %w", err)
	}
	s.agent.Resume()
	return s.table.Question(), nil
}
