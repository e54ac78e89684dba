package league

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/scml/opponents"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Spec says what is played.
type Spec struct {
	// Competitors are names of kinds of agents. PerWorld of them meet in a world, 0 for all; each
	// choice of so many plays.
	Competitors []string `json:"competitors"`
	PerWorld    int      `json:"per_world"`
	// Configs is how many configurations are drawn, which every choice plays; Runs is how often
	// each is played with each order of competitors.
	Configs int `json:"configs"`
	Runs    int `json:"runs"`
	// Processes are the lengths of chains, which configurations have in turn. Days is a range, both
	// ends included.
	Processes []int       `json:"processes"`
	Days      [2]int      `json:"days"`
	Seed      uint64      `json:"seed"`
	Rules     world.Rules `json:"rules"`
	// Limit is how long a call of an agent may take, as in world.Table; 0 is for ever.
	Limit time.Duration `json:"-"`
	// Find returns the kind of a name; nil is opponents.Find.
	Find func(name string) (*opponents.Kind, error) `json:"-"`
	// Watch, unless nil, looks over the shoulder of each competitor.
	Watch func(a world.Agent) Watched `json:"-"`
	// Follow, unless nil, is called before the first day of each world; several may be played at
	// once.
	Follow func(g *Game) (Follower, error) `json:"-"`
}

// Watched is an agent whose actions are counted.
type Watched interface {
	world.Agent
	// Actions returns how many offers and acceptances there were, and how many of them were unsafe.
	Actions() (all, unsafe int)
}

// Game is one world of a tournament before its first day.
type Game struct {
	// World, Config and Rotation are as in Row, Run counts those with the same order.
	World, Config, Rotation, Run int
	// Names are those of the kinds of all agents, Places the indices of those that compete.
	Names  []string
	Places []int
	Table  *world.Table
}

// Follower receives the progress of a game.
type Follower interface {
	// Day comes after each day.
	Day() error
	// Close comes after the last one, Discard instead where the game was not played to its end.
	Close() error
	Discard() error
}

// Kind returns the kind of a competitor.
func (s *Spec) Kind(name string) (*opponents.Kind, error) {
	if s.Find != nil {
		return s.Find(name)
	}
	return opponents.Find(name)
}

// Limit is how long the league waits for a call of an agent.
const Limit = 20 * time.Second

// Defaults are those of the league, for ten configurations.
func Defaults() Spec {
	return Spec{Limit: Limit, Configs: 10, Runs: 1, Processes: []int{2, 3, 4}, Days: [2]int{50, 200}, Rules: world.DefaultRules()}
}

// Validate reports all that is wrong.
func (s *Spec) Validate() error {
	var p configs.Problems
	p.Check(len(s.Competitors) >= 2, "competitors", "%d, expected 2 or more", len(s.Competitors))
	seen := map[string]bool{}
	for i, name := range s.Competitors {
		key := fmt.Sprintf("competitors[%d]", i)
		if _, err := s.Kind(name); err != nil {
			p.Addf(key, "%v", err)
		}
		p.Check(!seen[name], key, "%q competes twice", name)
		seen[name] = true
	}
	p.InRange("per_world", s.perWorld(), 2, float64(max(len(s.Competitors), 2)))
	p.AtLeast("configs", s.Configs, 1)
	p.AtLeast("runs", s.Runs, 1)
	p.NotEmpty("processes", s.Processes)
	for i, n := range s.Processes {
		p.AtLeast(fmt.Sprintf("processes[%d]", i), n, 2)
	}
	p.Check(s.Limit >= 0, "limit", "%v, expected 0 or more", s.Limit)
	p.AtLeast("days[0]", s.Days[0], 1)
	p.AtLeast("days[1]", s.Days[1], float64(s.Days[0]))
	p.Join("rules", s.Rules.Validate())
	if p.Err() == nil {
		// As numbers that do not overflow.
		n := float64(len(s.choices())) * float64(s.Configs) * float64(s.perWorld()) * float64(s.Runs)
		p.Check(n <= maxWorlds, "configs", "%.0f worlds come of %d configurations, %d runs and these competitors, expected %d at most", n, s.Configs, s.Runs, maxWorlds)
	}
	return p.Err()
}

// maxWorlds bounds a tournament to what is played in a lifetime.
const maxWorlds = 10_000_000

func (s *Spec) perWorld() int {
	if s.PerWorld == 0 {
		return len(s.Competitors)
	}
	return s.PerWorld
}

// Row is what a competitor scored in a world.
type Row struct {
	// World numbers the worlds, Config the configurations; Rotation is how far competitors have
	// moved on in their places.
	World    int     `json:"world"`
	Config   int     `json:"config"`
	Rotation int     `json:"rotation"`
	Levels   int     `json:"levels"`
	Days     int     `json:"days"`
	Agent    string  `json:"agent"`
	Level    int     `json:"level"`
	Name     string  `json:"competitor"`
	Score    float64 `json:"score"`
	Bankrupt bool    `json:"bankrupt"`
	// Short is the share of days on which less was made than owed.
	Short float64 `json:"short"`
	// Overflow is how many input units were in stock at the end of a day beyond what its lines use
	// in one, in the mean.
	Overflow float64 `json:"overflow"`
	// Actions counts offers and acceptances, and Unsafe those that were not safe, where somebody
	// watches.
	Actions int `json:"actions"`
	Unsafe  int `json:"unsafe"`
	// Faults is what the agent has done wrong.
	world.Faults
}

// Worlds returns the number of worlds.
func (s *Spec) Worlds() int { return len(s.choices()) * s.Configs * s.perWorld() * s.Runs }

// choices lists the competitors that meet, by index.
func (s *Spec) choices() [][]int {
	var list [][]int
	var choose func(chosen []int, from int)
	choose = func(chosen []int, from int) {
		if len(chosen) == s.perWorld() {
			list = append(list, slices.Clone(chosen))
			return
		}
		for i := from; i < len(s.Competitors); i++ {
			choose(append(chosen, i), i+1)
		}
	}
	choose(nil, 0)
	return list
}

// play plays the index-th world and returns the rows of its competitors. It stops between days when
// ctx ends.
func (s *Spec) play(ctx context.Context, kinds map[string]*opponents.Kind, index int) ([]Row, error) {
	k := s.perWorld()
	drawn, rest := index/(k*s.Runs), index%(k*s.Runs)
	choice, config := s.choices()[drawn/s.Configs], drawn%s.Configs
	rotation, run := rest/s.Runs, rest%s.Runs
	key := rng.New(s.Seed).Split("config", config)
	levels := s.Processes[config%len(s.Processes)]
	f := DrawField(key, levels, k)

	names := slices.Clone(f.Defaults)
	for i, place := range f.Places {
		names[place] = s.Competitors[choice[(i+rotation)%k]]
	}
	g := world.StandardLeague()
	g.Days, g.Rules = world.Range{Low: float64(s.Days[0]), High: float64(s.Days[1])}, s.Rules
	types, agents := make([]string, len(names)), make([]world.Agent, len(names))
	for i, name := range names {
		types[i], agents[i] = kinds[name].Type, kinds[name].New(opponents.FairDice(key.Split("run", run).Split("agent", i)))
	}
	watched := make([]Watched, len(names))
	if s.Watch != nil {
		for _, place := range f.Places {
			watched[place] = s.Watch(agents[place])
			agents[place] = watched[place]
		}
	}
	c, err := g.Draw(key, f.Sizes, types)
	if err != nil {
		return nil, err
	}
	t, err := world.Sit(c, agents)
	if err != nil {
		return nil, err
	}
	t.Limit = s.Limit
	short, overflow := make([]int, len(names)), make([]int, len(names))
	game := &Game{World: index, Config: config, Rotation: rotation, Run: run, Names: names, Places: f.Places, Table: t}
	err = s.days(ctx, game, func() {
		for _, place := range f.Places {
			if t.Outcome(place).Missing > 0 {
				short[place]++
			}
			overflow[place] += max(0, t.Stock(place)-c.Lines)
		}
	})
	if err != nil {
		return nil, err
	}
	var rows []Row
	for _, place := range f.Places {
		r := Row{World: index, Config: config, Rotation: rotation, Levels: levels, Days: c.Days, Agent: c.Factories[place].ID, Level: c.Factories[place].Level, Name: names[place], Score: t.Score(place), Bankrupt: t.Bankrupt(place), Short: float64(short[place]) / float64(c.Days), Overflow: float64(overflow[place]) / float64(c.Days)}
		if w := watched[place]; w != nil {
			r.Actions, r.Unsafe = w.Actions()
		}
		r.Faults = t.Faults(place)
		rows = append(rows, r)
	}
	return rows, nil
}

// days plays all days of a game, and calls day after each.
func (s *Spec) days(ctx context.Context, g *Game, day func()) error {
	var f Follower
	if s.Follow != nil {
		var err error
		if f, err = s.Follow(g); err != nil {
			return err
		}
	}
	for g.Table.PlayDay() {
		day()
		err := ctx.Err()
		if f != nil {
			err = errors.Join(f.Day(), err)
		}
		if err != nil && f != nil {
			err = errors.Join(err, f.Discard())
		}
		if err != nil {
			return err
		}
	}
	if f == nil {
		return nil
	}
	return f.Close()
}

// kinds finds the kinds of all who may sit in a world.
func (s *Spec) kinds() (map[string]*opponents.Kind, error) {
	kinds := map[string]*opponents.Kind{}
	for i := range opponents.Kinds {
		if k := &opponents.Kinds[i]; k.Default {
			kinds[k.Name] = k
		}
	}
	for _, name := range s.Competitors {
		k, err := s.Kind(name)
		if err != nil {
			return nil, err
		}
		kinds[name] = k
	}
	return kinds, nil
}

// Run plays all worlds from the first-th on, on workers processors, and hands over the rows of each
// in order of the worlds. The numbers do not depend on workers.
func (s *Spec) Run(ctx context.Context, first, workers int, done func(rows []Row) error) error {
	if err := s.Validate(); err != nil {
		return err
	}
	kinds, err := s.kinds()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	type played struct {
		rows []Row
		err  error
	}
	n := s.Worlds()
	results := make([]chan played, n)
	for i := range results {
		results[i] = make(chan played, 1)
	}
	next := make(chan int)
	var wait sync.WaitGroup
	for range max(1, min(workers, n-first)) {
		wait.Go(func() {
			for i := range next {
				rows, err := s.play(ctx, kinds, i)
				results[i] <- played{rows, err}
			}
		})
	}
	wait.Go(func() {
		defer close(next)
		for i := first; i < n; i++ {
			select {
			case next <- i:
			case <-ctx.Done():
				return
			}
		}
	})
	defer wait.Wait()
	defer cancel(nil)
	for i := first; i < n; i++ {
		select {
		case r := <-results[i]:
			if r.err != nil {
				return fmt.Errorf("world %d: %w", i, r.err)
			}
			if err := done(r.rows); err != nil {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
