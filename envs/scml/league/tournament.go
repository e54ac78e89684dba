package league

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/scml/market"
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
	// Configs is how many configurations are drawn for each choice, Runs how often each is played
	// with each order of competitors.
	Configs int `json:"configs"`
	Runs    int `json:"runs"`
	// Levels and Days are ranges, both ends included.
	Levels [2]int       `json:"levels"`
	Days   [2]int       `json:"days"`
	Seed   uint64       `json:"seed"`
	Rules  market.Rules `json:"rules"`
	// Find returns the kind of a name; nil is opponents.Find.
	Find func(name string) (*opponents.Kind, error) `json:"-"`
}

// find returns the kind of a competitor.
func (s *Spec) find(name string) (*opponents.Kind, error) {
	if s.Find != nil {
		return s.Find(name)
	}
	return opponents.Find(name)
}

// Defaults are those of the league, for ten configurations.
func Defaults() Spec {
	return Spec{Configs: 10, Runs: 1, Levels: [2]int{2, 4}, Days: [2]int{50, 200}, Rules: market.Defaults()}
}

// Validate reports all that is wrong.
func (s *Spec) Validate() error {
	var p configs.Problems
	p.Check(len(s.Competitors) >= 2, "competitors", "%d, expected 2 or more", len(s.Competitors))
	seen := map[string]bool{}
	for i, name := range s.Competitors {
		key := fmt.Sprintf("competitors[%d]", i)
		if _, err := s.find(name); err != nil {
			p.Addf(key, "%v", err)
		}
		p.Check(!seen[name], key, "%q competes twice", name)
		seen[name] = true
	}
	p.InRange("per_world", s.perWorld(), 2, float64(max(len(s.Competitors), 2)))
	p.AtLeast("configs", s.Configs, 1)
	p.AtLeast("runs", s.Runs, 1)
	p.AtLeast("levels[0]", s.Levels[0], 2)
	p.AtLeast("levels[1]", s.Levels[1], float64(s.Levels[0]))
	p.AtLeast("days[0]", s.Days[0], 1)
	p.AtLeast("days[1]", s.Days[1], float64(s.Days[0]))
	p.Join("rules", s.Rules.Validate())
	return p.Err()
}

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

// Play plays the index-th world and returns the rows of its competitors. It stops between days when
// ctx ends.
func (s *Spec) Play(ctx context.Context, index int) ([]Row, error) {
	k := s.perWorld()
	config, rest := index/(k*s.Runs), index%(k*s.Runs)
	rotation, run := rest/s.Runs, rest%s.Runs
	choice := s.choices()[config/s.Configs]
	key := rng.New(s.Seed).Split("config", config)
	draw := key.Split("size").Stream()
	levels := s.Levels[0] + draw.IntN(s.Levels[1]-s.Levels[0]+1)
	f := DrawField(key, levels, k)

	names := slices.Clone(f.Defaults)
	for i, place := range f.Places {
		names[place] = s.Competitors[choice[(i+rotation)%k]]
	}
	g := market.StandardLeague()
	g.Days, g.Rules = market.Range{Low: float64(s.Days[0]), High: float64(s.Days[1])}, s.Rules
	types, agents := make([]string, len(names)), make([]world.Agent, len(names))
	for i, name := range names {
		kind, err := s.find(name)
		if err != nil {
			return nil, err
		}
		types[i], agents[i] = kind.Type, kind.New(opponents.FairDice(key.Split("run", run).Split("agent", i)))
	}
	c, err := g.Draw(key, f.Sizes, types)
	if err != nil {
		return nil, err
	}
	t, err := world.Sit(c, agents)
	if err != nil {
		return nil, err
	}
	for t.PlayDay() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
	var rows []Row
	for _, place := range f.Places {
		rows = append(rows, Row{World: index, Config: config, Rotation: rotation, Levels: levels, Days: c.Days, Agent: c.Factories[place].ID, Level: c.Factories[place].Level, Name: names[place], Score: t.Score(place), Bankrupt: t.Bankrupt(place)})
	}
	return rows, nil
}

// Run plays all worlds from the first-th on, on workers processors, and hands over the rows of each
// in order of the worlds. The numbers do not depend on workers.
func (s *Spec) Run(ctx context.Context, first, workers int, done func(rows []Row) error) error {
	if err := s.Validate(); err != nil {
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
				rows, err := s.Play(ctx, i)
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
