package population

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/pretrain"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// Config is the document of a population.
type Config struct {
	// Pretrain trains an encoder on the bars of the training range before anybody acts.
	Pretrain Pretrain `yaml:"pretrain,omitzero"`
	// Experts are the members of a search, as its own document describes them: their experiment,
	// how many there are, and how they evolve.
	Experts evolve.Config `yaml:"experts"`
	// Router chooses between them.
	Router Router `yaml:"router"`
	// WalkForward says how the population is judged out of sample, beside which variants. Only onnxrl
	// train population and onnxrl walkforward read it.
	WalkForward configs.Section `yaml:"walkforward,omitempty"`
}

// Pretrain is an encoder that all experts have: agent.encoder of their experiment is its file,
// adapted where agent.lora says so and otherwise kept as it is.
type Pretrain struct {
	pretrain.Config `yaml:",inline"`
	// Router gives it to the router as well, as it is.
	Router bool `yaml:"router,omitzero"`
}

// Router says what trains on top of the experts, which are frozen meanwhile.
type Router struct {
	// Experiment is the document of its runs. The environment is of the kind meta; env.env and
	// env.experts are the experts' and are left out.
	Experiment configs.Section `yaml:"experiment"`
	// IntervalSteps are the decisions that a router takes in a turn, over all of its environments.
	IntervalSteps int64 `yaml:"interval_steps"`
	// Every is how many generations of experts come before a turn of the router; 0 has no router,
	// and the best expert is what is published.
	Every int `yaml:"every"`
	// Turns is how many turns of the router come after so many generations, 0 for 1: it trains so
	// many times as often as its experts, which stay as they are between them.
	Turns int `yaml:"turns,omitzero"`
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
// population evolves at the last; below a distance of 0.25 the worst of five experts restarts.
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
	if c.Router.On() {
		p.NotEmpty("router.experiment", c.Router.Experiment.Keys())
		p.AtLeast("router.interval_steps", c.Router.IntervalSteps, 1)
	}
	p.AtLeast("router.every", c.Router.Every, 0)
	p.AtLeast("router.turns", c.Router.Turns, 0)
	p.Check(c.Pretrain.On() || !c.Pretrain.Router, "pretrain.router", "is true, and there is nothing to pretrain: pretrain.fit is missing")
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
func (c *Config) turns() int {
	if !c.Router.On() {
		return 0
	}
	return c.Experts.Generations / c.Router.Every * max(c.Router.Turns, 1)
}

// after is how many generations of experts come before a turn.
func (r *Router) after(turn int) int { return (turn/max(r.Turns, 1) + 1) * r.Every }

// On reports whether there is a router.
func (r Router) On() bool { return r.Every > 0 }

// Decode decodes the document of a population that was read at a path, from which the base of its
// experts is found.
func Decode(doc *configs.Document, path string) (Config, error) {
	c := Defaults()
	if _, ok := doc.Lookup("experts"); !ok {
		return c, fmt.Errorf("%s: it has no experts; expected the document of a population, with the keys experts and router", path)
	}
	if err := doc.Decode(&c); err != nil {
		return c, err
	}
	c.Experts.Base = study.BasePath(c.Experts.Base, path)
	// The document is written into the population's directory.
	if _, err := os.Stat(c.Experts.Base); err == nil {
		if c.Experts.Base, err = objects.Abs(c.Experts.Base); err != nil {
			return c, err
		}
	}
	return c, nil
}

// document is the configuration as a document that decodes to it again: what is zero and has
// another default is in it.
func (c Config) document() (*configs.Document, error) {
	text, err := configs.Marshal(c)
	if err != nil {
		return nil, err
	}
	doc, err := configs.Parse("the population", text)
	if err == nil {
		err = doc.SetValue("experts.diversity.threshold", c.Experts.Diversity.Threshold)
	}
	return doc, err
}

// Document is what [Decode] decodes to the configuration, without the section walkforward.
func (c Config) Document() (*configs.Document, error) {
	c.WalkForward = configs.Section{}
	return c.document()
}

// Edit edits the document of a population, as --set does: keys of the document itself, and keys of
// its experts' experiment, such as env.data.source.path, which go into experts.set.
func Edit(doc *configs.Document, sets ...string) error {
	list := make([]string, len(sets))
	for i, one := range sets {
		path, value, ok := strings.Cut(one, "=")
		if list[i] = one; ok {
			list[i] = Place(path) + "=" + value
		}
	}
	return doc.Set(list...)
}

// Place is the key path in the document of a population of a key path of [Edit].
func Place(path string) string {
	head, _, _ := strings.Cut(path, ".")
	switch head, _, _ = strings.Cut(head, "["); head {
	case "pretrain", "experts", "router", "walkforward":
		return path
	}
	return "experts.set" + study.PathKey(path)
}
