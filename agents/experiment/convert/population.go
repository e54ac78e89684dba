package convert

import "github.com/onnxrl/onnxrl/configs"

// population is the configuration that the description of the population system gives.
var population = form{
	from:  "population",
	marks: []string{"meta_router", "trainer", "experts.n_experts", "experts.skill_dim", "experts.mi_reward_weight"},
	base:  "population_demo.yaml",
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
	}
	var c struct {
		Router     turn `yaml:"router"`
		Experts    turn `yaml:"experts"`
		Population turn `yaml:"population"`
	}
	c.Router, c.Experts, c.Population = turn{10, 10_000, 0}, turn{5, 5_000, 0}, turn{20, 0, 0.1}
	if err := s.Decode(&c); err != nil {
		t.add(err)
		return
	}
	for _, x := range []struct {
		name string
		turn
		path string
	}{{"router", c.Router, "router.every"}, {"population", c.Population, "experts.every"}} {
		if c.Experts.Freq < 1 || x.Freq < 1 || x.Freq%c.Experts.Freq != 0 {
			t.fail(s, "%s.freq is %d, expected a multiple of experts.freq, %d: a turn comes after whole generations of experts", x.name, x.Freq, c.Experts.Freq)
			return
		}
		t.set(x.path, x.Freq/c.Experts.Freq, s)
	}
	t.set("router.interval_steps", c.Router.Steps, s)
	t.set("experts.interval_steps", c.Experts.Steps, s)
	t.set("experts.strategy", map[string]any{"kind": "mf_pbt", "variant": "owner", "mutation": c.Population.MutationRate}, s)
}
