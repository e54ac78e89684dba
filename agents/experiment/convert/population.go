package convert

// population is the configuration that the description of the population system gives. Its keys are
// known, so that nobody takes them for mistakes.
var population = form{
	from:  "population",
	marks: []string{"experts", "meta_router", "trainer"},
	rules: table{
		"experts.n_experts":           later,
		"experts.skill_dim":           later,
		"experts.mi_reward_weight":    later,
		"meta_router.kl_lambda":       later,
		"meta_router.ent_coef":        later,
		"trainer.diversity_threshold": later,
		"trainer.training_schedule":   later,
	},
}

var later = refused("known, comes with the population system, which this program does not have")
