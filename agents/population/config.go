package population

import (
	"cmp"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/tune"
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
	// IntervalSteps are the decisions that a router takes in a turn, over all of its environments.
	IntervalSteps int64 `yaml:"interval_steps"`
	// Every is how many generations of experts come before a turn of the router.
	Every int `yaml:"every"`
	// Population is the number of routers, 0 for 1: members of a search of their own over the same
	// experts, whose generations are the turns. The best on the validation split is published.
	Population int `yaml:"population,omitzero"`
	// Strategy decides what routers take after every EvolveEvery turns, 0 for 1; without one it is
	// mf_pbt of the variant owner.
	Strategy    configs.Kinded `yaml:"strategy,omitzero"`
	EvolveEvery int            `yaml:"evolve_every,omitzero"`
	// Space has the hyper-parameters of routers, as the experts' has theirs.
	Space tune.Space `yaml:"space,omitempty"`
}

// search is the document of the routers' search, of so many turns.
func (r *Router) search(turns int) (c evolve.Config, err error) {
	c = evolve.Defaults()
	// They have no base that could be read again: the experiment is made of two documents.
	c.Base, c.Population, c.Every, c.Space = "router.experiment", cmp.Or(r.Population, 1), cmp.Or(r.EvolveEvery, 1), r.Space
	c.IntervalSteps, c.Generations, c.Probe, c.Strategy = r.IntervalSteps, turns, 0, r.Strategy
	switch {
	case c.Strategy.Kind != "":
	case c.Population == 1:
		c.Strategy.Kind = "random_search" // Nobody takes anything.
	default:
		c.Strategy, err = configs.NewKinded("mf_pbt", map[string]string{"variant": evolve.Owner})
	}
	return c, err
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
	p.AtLeast("router.population", c.Router.Population, 0)
	p.AtLeast("router.evolve_every", c.Router.EvolveEvery, 0)
	p.Check(c.Router.Population > 1 || len(c.Router.Space) == 0 && c.Router.Strategy.Kind == "", "router.population", "is %d, and a router alone has nobody to be compared with: hyper-parameters that change are not selected; expected at least 2 with a strategy or a space", cmp.Or(c.Router.Population, 1))
	p.Check(c.Router.Every < 1 || c.Experts.Generations%c.Router.Every == 0, "router.every", "is %d, and the %d generations of experts are no multiple of it: the router has the last turn", c.Router.Every, c.Experts.Generations)
	return p.Err()
}

// Steps are the env steps of all experts, and the decisions of the routers.
func (c *Config) Steps() int64 {
	return int64(c.Experts.Population)*c.Experts.IntervalSteps*int64(c.Experts.Generations) + c.routing()*int64(c.turns())
}

// routing are the decisions of a turn, of all routers.
func (c *Config) routing() int64 {
	return int64(cmp.Or(c.Router.Population, 1)) * c.Router.IntervalSteps
}

// turns is how many turns the router has.
func (c *Config) turns() int { return c.Experts.Generations / c.Router.Every }
