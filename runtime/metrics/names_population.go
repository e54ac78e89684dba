package metrics

// Metrics of searches whose members evolve. The label search is the directory of the search below
// runs/; a population has two, its experts and its router.
var (
	Generation         = gauge(Population, "onnxrl_population_generation", "Generations that are finished", "search")
	GenerationsPlanned = gauge(Population, "onnxrl_population_generations_planned", "Generations after which the search ends", "search")
	GenerationTime     = gauge(Population, "onnxrl_population_generation_timestamp_seconds", "When the newest generation ended, or the search began in this process, in seconds since 1970", "search")
	MAPD               = gauge(Population, "onnxrl_mapd", "Mean action pairwise distance of the policies of the newest generation, 0 to 1", "search")
	BestScore          = gauge(Population, "onnxrl_population_best_score", "Best score of the newest generation, of the metric that members are ranked by", "search")
	MemberScore        = gauge(Population, "onnxrl_member_score", "Score of a member after the newest generation", "search", "member")
	MemberDistance     = gauge(Population, "onnxrl_member_distance", "Mean distance of a member's policy to those of the others, 0 to 1", "search", "member")
	MemberHyper        = gauge(Population, "onnxrl_member_hyperparameter", "Hyper-parameter of a member in the newest generation, by its path in the document", "search", "member", "path")
	Intervals          = counter(Population, "onnxrl_population_intervals_total", "Training intervals of members that have ended: finished, rolled_back where the member diverged, failed where the search ended by it", "search", "result")
	IntervalSeconds    = buckets(Population, "onnxrl_population_interval_seconds", "Time of a training interval of a member", intervals, "search")
	Takes              = counter(Population, "onnxrl_population_takes_total", "Beginnings of members' generations, by kind: begin, keep, clone, migrate, restart", "search", "action")
)

// IntervalResults are the values of the label result of [Intervals].
func IntervalResults() []string {
	return []string{IntervalFinished, IntervalRolledBack, IntervalFailed}
}

// Values of the label result of [Intervals].
const (
	IntervalFinished   = "finished"
	IntervalRolledBack = "rolled_back"
	IntervalFailed     = "failed"
)
