package population

import (
	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/configs"
)

// Config is the document of a population.
type Config struct {
	// Experts are the members of a search, as its own document describes them: their experiment,
	// how many there are, and how they evolve.
	Experts evolve.Config `yaml:"experts"`
	// Router chooses between them.
	Router Router `yaml:"router"`
}

// Router says what trains on top of the experts, which are frozen meanwhile.
type Router struct {
	// Experiment is the document of its runs. The environment is of the kind meta; env.env and
	// env.experts are the experts' and are left out.
	Experiment configs.Section `yaml:"experiment"`
	// IntervalSteps are the decisions that the router takes in a turn, over all of its
	// environments.
	IntervalSteps int64 `yaml:"interval_steps"`
	// Every is how many generations of experts come before a turn of the router.
	Every int `yaml:"every"`
}

// Defaults returns the schedule of the owner of the system: of 20 outer steps experts train at
// every fifth for 5,000 env steps, the router at every tenth for 10,000 decisions, and the
// population evolves at the last; below a distance of 0.25 the worst of five experts begins anew.
func Defaults() Config {
	c := Config{Experts: evolve.Defaults(), Router: Router{IntervalSteps: 10_000, Every: 2}}
	c.Experts.Population, c.Experts.IntervalSteps, c.Experts.Every = 5, 5_000, 4
	c.Experts.Diversity.Threshold = 0.25
	return c
}

// Validate reports what is wrong with the document by itself.
func (c Config) Validate() error {
	var p configs.Problems
	p.AtLeast("experts.population", c.Experts.Population, 2)
	p.NotEmpty("router.experiment", c.Router.Experiment.Keys())
	p.AtLeast("router.interval_steps", c.Router.IntervalSteps, 1)
	p.AtLeast("router.every", c.Router.Every, 1)
	p.Check(c.Router.Every < 1 || c.Experts.Generations%c.Router.Every == 0, "router.every", "is %d, and the %d generations of experts are no multiple of it: the router has the last turn", c.Router.Every, c.Experts.Generations)
	return p.Err()
}

// Steps are the env steps of all experts, and the decisions of the router.
func (c *Config) Steps() int64 {
	return int64(c.Experts.Population)*c.Experts.IntervalSteps*int64(c.Experts.Generations) + c.Router.IntervalSteps*int64(c.turns())
}

// turns is how many turns the router has.
func (c *Config) turns() int { return c.Experts.Generations / c.Router.Every }
