package league

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/configs"
)

// Config is the document of a league.
type Config struct {
	// Members are there from the beginning and never change: scripted players, and models that
	// others have trained, as files or as versions of an artefact store.
	Members []Fixed `yaml:"members"`
	// IntervalSteps are the env steps that the learner takes in a generation, over all of its
	// environments. What it is after each of the Generations is a member from then on.
	IntervalSteps int64 `yaml:"interval_steps"`
	Generations   int   `yaml:"generations"`
	// Matchmaking says whom the learner plays.
	Matchmaking Matchmaking `yaml:"matchmaking"`
	// Games is how many a new member plays with each of the others for the record, an equal number
	// in each deal of the seats, rounded up.
	Games int `yaml:"games"`
	// Experiment is the document of the learner. Its environment is of the kind versus;
	// env.opponents is the league's and left out.
	Experiment configs.Section `yaml:"experiment"`
}

// Matchmaking says how often the learner plays whom in a generation.
type Matchmaking struct {
	// Kind is latest, what the learner was after the last generation; uniform, all that it was
	// before; or prioritised, all of them by how often it loses.
	Kind string `yaml:"kind"`
	// Weighting is how prioritised weighs a member that the learner beats with probability p: hard,
	// (1−p)^power, or variance, p·(1−p).
	Weighting string `yaml:"weighting"`
	// Power is that of hard: the greater, the more the learner meets those that it loses against.
	Power float64 `yaml:"power"`
	// Fixed is the share of episodes against Members, among which the same rule divides it, and
	// Latest that of plain self-play, against the learner as it was after the last generation. The
	// rest is the kind's. Before there is anybody else all are against Members.
	Fixed  float64 `yaml:"fixed"`
	Latest float64 `yaml:"latest"`
	// Window is how many generations back the learner plays what it was; 0 is all.
	Window int `yaml:"window"`
}

// The words of Matchmaking.
const (
	Latest      = "latest"
	Uniform     = "uniform"
	Prioritised = "prioritised"

	Hard     = "hard"
	Variance = "variance"
)

// Defaults returns the defaults: prioritised fictitious self-play with the square of the
// probability of losing and 35 % of plain self-play, which are those of AlphaStar's main agents,
// and a fifth of the episodes against Members, which AlphaStar has none of.
func Defaults() Config {
	return Config{IntervalSteps: 100_000, Generations: 20, Games: 40, Matchmaking: Matchmaking{Kind: Prioritised, Weighting: Hard, Power: 2, Fixed: 0.2, Latest: 0.35}}
}

// Validate reports what is wrong with the document by itself.
func (c Config) Validate() error {
	var p configs.Problems
	checkMembers(&p, c.Members)
	p.AtLeast("interval_steps", c.IntervalSteps, 1)
	p.AtLeast("generations", c.Generations, 1)
	p.AtLeast("games", c.Games, 1)
	m := c.Matchmaking
	p.OneOf("matchmaking.kind", m.Kind, Latest, Uniform, Prioritised)
	p.OneOf("matchmaking.weighting", m.Weighting, Hard, Variance)
	p.Positive("matchmaking.power", m.Power)
	p.InRange("matchmaking.fixed", m.Fixed, 0, 1)
	p.InRange("matchmaking.latest", m.Latest, 0, 1)
	p.Check(m.Fixed+m.Latest <= 1, "matchmaking.latest", "is %g, and with fixed of %g more than 1", m.Latest, m.Fixed)
	p.AtLeast("matchmaking.window", m.Window, 0)
	p.NotEmpty("experiment", c.Experiment.Keys())
	for i, o := range c.Members {
		_, ok := generationOf(o.Called())
		p.Check(!ok, fmt.Sprintf("members[%d].name", i), "%q is what the learner is called after a generation", o.Called())
	}
	return p.Err()
}

// search is the document of the search whose only member is the learner.
func (c *Config) search() evolve.Config {
	s := evolve.Defaults()
	s.Base, s.Population, s.Every, s.Probe = "experiment", 1, 1, 0
	s.IntervalSteps, s.Generations, s.Strategy = c.IntervalSteps, c.Generations, configs.Kinded{Kind: "random_search"}
	return s
}

// Decode decodes the document of a league that was read at a path.
func Decode(doc *configs.Document, path string) (Config, error) {
	c := Defaults()
	if _, ok := doc.Lookup("members"); !ok {
		return c, fmt.Errorf("%s: members: a pool without members: expected the document of a league, with the keys members and experiment", path)
	}
	return c, doc.Decode(&c)
}

// Load reads the document in a file, or the shipped one of that name, with edits, without opening
// anything.
func Load(path string, sets []string) (Config, error) {
	doc, err := experiment.Document(path)
	if err == nil {
		err = doc.Set(sets...)
	}
	if err != nil {
		return Config{}, err
	}
	return Decode(doc, path)
}

// Check reports what is wrong with the experiment, without opening anything.
func (c *Config) Check(kinds experiment.Kinds) error {
	doc, err := c.experiment("")
	if err == nil {
		_, err = kinds.Decode(doc)
	}
	return err
}

// Name is what the learner is called after a generation.
func Name(generation int) string { return fmt.Sprintf("generation-%d", generation) }

// generationOf is the generation that a name is of.
func generationOf(name string) (g int, ok bool) {
	n, err := fmt.Sscanf(name, "generation-%d", &g)
	return g, err == nil && n == 1
}
