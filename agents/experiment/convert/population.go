package convert

import "github.com/onnxrl/onnxrl/configs"

// population is the configuration that the description of the population system gives.
var population = form{
	from:  "population",
	marks: []string{"meta_router", "trainer", "experts.n_experts", "experts.skill_dim", "experts.mi_reward_weight"},
	base:  "population_owner.yaml",
	rules: table{
		"experts.n_experts":           to("experts.population"),
		"experts.skill_dim":           to(`experts.set["wrappers.skill.dim"]`),
		"experts.mi_reward_weight":    to(`experts.set["agent.diversity.beta"]`),
		"meta_router.kl_lambda":       (*translation).lambda,
		"meta_router.ent_coef":        to("router.experiment.agent.ent_coef"),
		"trainer.diversity_threshold": to("experts.diversity.threshold"),
		"trainer.training_schedule":   (*translation).schedule,
	},
}

// lambda translates what choosing differently is worth: it rises to the 0.2 of the description, and
// choosing who is seldom chosen counts, too.
func (t *translation) lambda(s configs.Section) {
	var kl float64
	if err := s.Decode(&kl); err != nil {
		t.add(err)
		return
	}
	t.set("router.experiment.env.diversity.kl_coef", kl, s)
	if kl > 0 {
		t.set("router.experiment.env.diversity.kl_coef_max", max(kl, 0.2), s)
		t.set("router.experiment.env.diversity.usage_coef", 0.01, s)
	}
}

// schedule translates how often router, experts and population have their turns, in outer steps: a
// generation of experts is what lies between two of theirs.
func (t *translation) schedule(s configs.Section) {
	type turn struct {
		Freq         int     `yaml:"freq"`
		Steps        int64   `yaml:"steps"`
		MutationRate float64 `yaml:"mutation_rate"`
		// LRRange are the bounds between which the learning rates of members evolve.
		LRRange []float64 `yaml:"lr_range"`
	}
	var c struct {
		Router     turn `yaml:"router"`
		Experts    turn `yaml:"experts"`
		Population turn `yaml:"population"`
	}
	c.Router, c.Experts, c.Population = turn{Freq: 10, Steps: 10_000}, turn{Freq: 5, Steps: 5_000}, turn{Freq: 20, MutationRate: 0.1}
	if err := s.Decode(&c); err != nil {
		t.add(err)
		return
	}
	// A router that trains more often than its experts has several turns after each generation.
	turns := 1
	if e, r := c.Experts.Freq, c.Router.Freq; r > 0 && r < e && e%r == 0 {
		turns = e / r
		t.set("router.turns", turns, s)
		t.set("router.every", 1, s)
	}
	type often struct {
		name string
		turn
		path string
	}
	of := []often{{"population", c.Population, "experts.every"}}
	if turns == 1 {
		of = append(of, often{"router", c.Router, "router.every"})
	}
	for _, x := range of {
		if c.Experts.Freq < 1 || x.Freq < 1 || x.Freq%c.Experts.Freq != 0 {
			also := ""
			if x.name == "router" {
				also = " or a divisor"
			}
			t.fail(s, "%s.freq is %d, expected a multiple%s of experts.freq, %d: a turn comes after whole generations of experts", x.name, x.Freq, also, c.Experts.Freq)
			return
		}
		t.set(x.path, x.Freq/c.Experts.Freq, s)
	}
	if c.Population.Freq%c.Router.Freq != 0 {
		t.fail(s, "population.freq is %d, expected a multiple of router.freq, %d: routers evolve after whole turns", c.Population.Freq, c.Router.Freq)
		return
	}
	t.set("router.evolve_every", c.Population.Freq/c.Router.Freq, s)
	// The population evolves twice: the second time judges what the first has changed. The multiple
	// is one of the router's turns, too.
	t.set("experts.generations", 2*c.Population.Freq/c.Experts.Freq, s)
	t.set("router.interval_steps", c.Router.Steps, s)
	t.set("experts.interval_steps", c.Experts.Steps, s)
	for _, of := range []string{"experts", "router"} {
		t.set(of+".strategy", map[string]any{"kind": "mf_pbt", "variant": "owner", "mutation": c.Population.MutationRate}, s)
	}
	t.rates(s, "experts", c.Experts.LRRange)
	t.rates(s, "router", c.Router.LRRange)
}

// rates translates the bounds of the learning rates of experts or routers.
func (t *translation) rates(s configs.Section, of string, bounds []float64) {
	switch len(bounds) {
	case 0:
	case 2:
		t.set(of+`.space["agent.learning_rate"]`, map[string]any{"kind": "loguniform", "low": bounds[0], "high": bounds[1]}, s)
	default:
		t.fail(s, "%s.lr_range has %d numbers, expected the least and the highest rate", of, len(bounds))
	}
}
