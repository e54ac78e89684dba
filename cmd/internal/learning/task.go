package learning

import (
	"slices"

	"github.com/onnxrl/onnxrl/envs/cover"
)

// Task is a problem, an agent, and what the agent must reach. The rule is the same for all, and was
// written before any run: with the seeds given, the interquartile mean of the scores must reach the
// target, and so must the scores of all seeds but one in five. A score is the mean return of 100
// greedy episodes that neither training nor validation has seen, by the policy that was best in
// validation, which is the one that a run publishes. The policy at the end of training is reported
// beside it.
type Task struct {
	// Name is also that of the run document, unless Document is: one of this package, or a shipped
	// experiment. Sets edit it, as --set does.
	Name     string
	Document string
	Sets     []string
	// Target is the smallest score that counts as learnt, and Source where it comes from.
	Target float64
	Source string
	// Optimum says that scores are shares of what the best policy earns, in a market of which it is
	// known.
	Optimum bool
	// League says that the document is one of a league, see package league. In a matrix game the
	// score is the exploitability of the average policy, and final that of the newest, both
	// negative. In others it is the share of the points that the published policy, which takes its
	// best actions, has of the scripted player Against in Games games, half of them in each seat,
	// and final that of the same policy drawing its actions.
	League  bool
	Against string
	Games   int
	// World edits the document for these games.
	World []string
	// Long says that a seed takes hours: such a task, too, is only run where a pattern selects it.
	Long bool
	// Python says that environments are of a Python package, which not everybody has: such a task
	// is only run where a pattern selects it.
	Python bool
}

// episodes is how many a score is the mean of.
const episodes = 100

var (
	threshold = "Gymnasium's reward threshold"
	zoo       = "RL Baselines3 Zoo's result, a single run, with room for its spread"
	sb3Test   = "Stable-Baselines3's test of learning"
	contrib   = "sb3-contrib's test of learning"
	shareOf   = "a share of the optimum, which is computed"
	upright   = "set before the runs: swings up and stays there, with room of 50 below what is asked of SAC"
	halfWay   = "half of the way from random actions to a script that knows the task; Python's mpe2"
	ofGames   = "an exploitability of 0.05, where an equilibrium has 0"
	ofSearch  = "90 % of the points against a search of depth 4"
	ofCover   = "95 % of the optimum of package cover, which is computed"
)

// defaults is the row of a market of which the best policy is known: the settings of
// synthetic_market, which are those that onnxrl data init writes for data of one's own. They are
// the same for all markets. They were chosen on the seeds 101 and 102, and the target before them.
func defaults(kind string, sets ...string) Task {
	sets = append([]string{"env.data.synthetic.kind=" + kind}, sets...)
	return Task{Name: "synthetic_" + kind, Document: "synthetic_market", Sets: sets, Target: 0.6, Source: shareOf, Optimum: true}
}

// Tasks lists the tasks of "onnxrl bench learn".
func Tasks() []Task {
	return []Task{
		{Name: "cartpole_ppo", Target: 475, Source: threshold},
		{Name: "cartpole_maskable_ppo", Target: 475, Source: threshold},
		{Name: "cartpole_a2c", Target: 475, Source: threshold},
		{Name: "cartpole_dqn", Target: 475, Source: threshold},
		{Name: "cartpole_qrdqn", Target: 475, Source: threshold},
		{Name: "cartpole_openai_es", Target: 475, Source: threshold},
		{Name: "cartpole_cma_es", Target: 475, Source: threshold},
		{Name: "cartpole_impala", Target: 475, Source: threshold},
		{Name: "cartpole_appo", Target: 475, Source: threshold},
		{Name: "acrobot_ppo", Target: -100, Source: threshold},
		{Name: "pendulum_sac", Target: -200, Source: zoo},
		{Name: "pendulum_td3", Target: -200, Source: zoo},
		{Name: "pendulum_ddpg", Target: -200, Source: zoo},
		{Name: "pendulum_a2c", Target: -200, Source: zoo},
		{Name: "pendulum_cma_es", Target: -250, Source: upright},
		{Name: "mountaincar_continuous_a2c", Target: 90, Source: threshold},
		{Name: "mountaincar_continuous_sac", Target: 90, Source: threshold},
		{Name: "identity_ppo", Target: 90, Source: sb3Test},
		{Name: "identity_a2c", Target: 90, Source: sb3Test},
		{Name: "identity_dqn", Target: 90, Source: sb3Test},
		{Name: "identity_box_sac", Target: 90, Source: sb3Test},
		{Name: "identity_box_td3", Target: 90, Source: sb3Test},
		{Name: "identity_box_ddpg", Target: 90, Source: sb3Test},
		{Name: "invalid_maskable_ppo", Target: 90, Source: contrib},
		{Name: "cover_mappo", Target: 0.95 * cover.Optimum, Source: ofCover},
		{Name: "lunarlander_impala", Target: 200, Source: threshold, Python: true},
		{Name: "simple_spread_mappo", Target: -18.7, Source: halfWay, Python: true},
		{Name: "rps_league", Target: -0.05, Source: ofGames, League: true},
		{Name: "connect_four_league", Target: 0.9, Source: ofSearch, League: true, Against: "{kind: alpha_beta, depth: 4}", Games: 1000, World: []string{"experiment.env.world.opening=0"}, Long: true},
		{Name: "synthetic_leading", Target: 0.8, Source: shareOf, Optimum: true},
		defaults("leading_indicator", "env.data.features.extra=[signal]"),
		defaults("leading_volume"),
		defaults("momentum"),
		defaults("regimes"),
		defaults("pairs", "env.data.features.extra=[spread]"),
		defaults("limit_trap"),
		defaults("liquidation", "env.data.features.extra=[direction, remaining]", "env.actions=weights", "env.fee_rate=0", "env.costs={slippage: {impact: linear, coefficient: 0.001}}"),
	}
}

// Select returns the tasks whose names match one of the patterns of package path; without a pattern
// all but those that need a Python package or hours. A pattern that matches none is an error.
func Select(patterns []string) ([]Task, error) {
	tasks := Tasks()
	if len(patterns) == 0 {
		tasks = slices.DeleteFunc(tasks, func(t Task) bool { return t.Python || t.Long })
	}
	return Matching(tasks, patterns, func(t Task) string { return t.Name })
}
