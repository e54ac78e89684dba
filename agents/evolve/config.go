package evolve

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/configs"
)

// Config is the document of a search.
type Config struct {
	// Base is the file of the base experiment, relative to the document's folder, or the name of a
	// shipped one. Its seed is that of the search, too.
	Base string `yaml:"base"`
	// Set is assigned to the experiment of every member.
	Set study.Assignments `yaml:"set,omitzero"`
	// Population is the number of members.
	Population int `yaml:"population"`
	// IntervalSteps are the env steps that every member takes in a generation, over all of its
	// environments, and Generations how many there are: together they are train.total_env_steps.
	IntervalSteps int64 `yaml:"interval_steps"`
	Generations   int   `yaml:"generations"`
	// Strategy decides what members take between generations: mf_pbt, pbt, pb2 or random_search.
	Strategy configs.Kinded `yaml:"strategy"`
	// Every is how many generations pass between two decisions of the strategy, which sees no
	// others; in between members go on as they are.
	Every int `yaml:"every"`
	// Diversity restarts members where policies lie too close to each other.
	Diversity Diversity `yaml:"diversity,omitzero"`
	// Replay is what all members record into and draw from; without one each has its own.
	Replay Replay `yaml:"replay,omitzero"`
	// Metric of the evaluation on the validation split is what members are ranked by; empty is
	// train.validation.metric. Direction is maximize or minimize.
	Metric    string `yaml:"metric"`
	Direction string `yaml:"direction"`
	// Probe is the number of observations that policies are compared on, rounded up to whole rounds
	// of a few environments; 0 compares none.
	Probe int `yaml:"probe"`
	// Space has the hyper-parameters of members, by key path: numbers, which begin as random ones
	// within the bounds. Without a space nothing but weights is selected.
	Space tune.Space `yaml:"space,omitempty"`
}

// Replay is one that off-policy members share: each learns from what the others did, too, weighed
// where the agent's document says so (agent.sharing, agent.vtrace). In a generation a member draws
// what it has done itself and what the others did in those before, so that members can train at
// once. A generation that is stopped begins again, because what its members have recorded is not
// saved.
type Replay struct {
	// Capacity is the number of transitions; 0 shares none.
	Capacity int `yaml:"capacity,omitzero"`
}

// Diversity says when a population has too little of it.
type Diversity struct {
	// Threshold is the mean action pairwise distance below which the worst member restarts, with
	// another skill where the experiment has skills; 0 restarts nobody.
	Threshold float64 `yaml:"threshold,omitzero"`
	// Patience is the number of generations between two restarts; 0 is 1.
	Patience int `yaml:"patience,omitzero"`
	// Rest is the number of generations at the end in which no member restarts.
	Rest int `yaml:"rest,omitzero"`
}

// Defaults returns the defaults: 16 members and MF-PBT as published.
func Defaults() Config {
	return Config{Population: 16, IntervalSteps: 10_000, Generations: 20, Strategy: configs.Kinded{Kind: "mf_pbt"}, Every: 1, Direction: tune.Maximize, Probe: 256}
}

// Validate reports what is wrong with the document by itself. Whether a population divides is found
// out by [Open], for --population may change it.
func (c Config) Validate() error {
	var p configs.Problems
	p.Check(c.Base != "", "base", "required: the file of the base experiment, or the name of a shipped one")
	p.AtLeast("population", c.Population, 1)
	p.AtLeast("interval_steps", c.IntervalSteps, 1)
	p.AtLeast("generations", c.Generations, 1)
	p.OneOf("direction", c.Direction, tune.Maximize, tune.Minimize)
	p.NonNegative("probe", c.Probe)
	p.AtLeast("every", c.Every, 1)
	p.AtLeast("replay.capacity", c.Replay.Capacity, 0)
	d := c.Diversity
	p.InRange("diversity.threshold", d.Threshold, 0, 1)
	p.AtLeast("diversity.patience", d.Patience, 0)
	p.AtLeast("diversity.rest", d.Rest, 0)
	p.Check(d.Threshold == 0 || c.Probe > 0, "diversity.threshold", "needs probe, the observations that policies are compared on")
	t := tune.Defaults()
	t.Space = c.Space
	p.Join("", t.Validate())
	for _, path := range c.Space.Paths() {
		p.Check(c.Space[path].Kind != tune.Categorical, "space."+path, "is categorical; a population changes numbers: %s, %s or %s", tune.Uniform, tune.LogUniform, tune.Int)
		p.Check(path != "train.num_envs", "space."+path, "members must have it in common: they take each other's environments")
	}
	return p.Err()
}

// Decode decodes the document of a search that was read at a path. The base's path is returned as
// it is found from the working directory, or the name of a shipped experiment.
func Decode(doc *configs.Document, path string) (c Config, base string, err error) {
	c = Defaults()
	if _, ok := doc.Lookup("env"); ok {
		return c, "", fmt.Errorf("%s is an experiment and not a search: a search has the keys base, strategy and space", path)
	}
	if err := doc.Decode(&c); err != nil {
		return c, "", err
	}
	_, err = ParseStrategy(c.Strategy)
	return c, study.BasePath(c.Base, path), err
}

// Strategist is the strategy of the search, unless its population does not divide.
func (c Config) Strategist() (Strategy, error) {
	s, err := ParseStrategy(c.Strategy)
	if err != nil {
		return nil, err
	}
	if err := s.Check(c.Population); err != nil {
		return nil, fmt.Errorf("population: %w", err)
	}
	return s, nil
}

// Experiment decodes the base, edited by the search's assignments and by sets, as --set takes them,
// into the document that all members share, without opening anything.
func Experiment(kinds experiment.Kinds, c Config, base string, sets []string) (e experiment.Config, err error) {
	doc, err := kinds.Read(base)
	if err != nil {
		return e, fmt.Errorf("base: %w", err)
	}
	if err := errors.Join(c.Set.Apply(doc), doc.Set(sets...), experiment.Absolute(doc)); err != nil {
		return e, err
	}
	return effective(kinds, c, doc)
}

// effective decodes an experiment as members train it.
func effective(kinds experiment.Kinds, c Config, doc *configs.Document) (e experiment.Config, err error) {
	if e, err = kinds.Decode(doc); err != nil {
		return e, c.Set.Place(err)
	}
	if len(e.Seeds) > 0 {
		return e, errors.New("seeds: members have seeds of their own, which descend from the key seed")
	}
	t := &e.Train
	t.Threads = max(1, t.Threads)
	t.TotalEnvSteps = c.IntervalSteps * int64(c.Generations)
	t.Checkpoint.KeepLast, t.Checkpoint.KeepBest = 1, 0
	// Members are evaluated at the end of a generation, and all end together.
	t.Validation.EverySteps, t.Validation.Patience, t.Validation.MinEvals = c.IntervalSteps, 0, 0
	t.Stop.RewardThreshold, t.Stop.MaxEpisodes = nil, 0
	return e, nil
}
