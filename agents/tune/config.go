package tune

import (
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/configs"
)

// Config is the section tune of a run's document.
type Config struct {
	// Trials is how many sets of parameters are tried, the pruned and the failed included; Parallel
	// how many at once. One at a time is reproducible, several at once are not: what a trial knows
	// of the others depends on who finishes first.
	Trials   int `yaml:"trials"`
	Parallel int `yaml:"parallel"`
	// Sampler is tpe or random. The first StartupTrials are random in any case.
	Sampler       string `yaml:"sampler"`
	StartupTrials int    `yaml:"startup_trials"`
	// Pruner is median or none: median ends a trial whose best evaluation so far is worse than the
	// median of what completed trials had at as many evaluations, once PruneAfter trials are
	// complete.
	Pruner     string `yaml:"pruner"`
	PruneAfter int    `yaml:"prune_after"`
	// PruneWarmup is the number of evaluations of a trial that do not prune it: a policy that
	// learns late is not given up at once. RL-Zoo's searches have a third of all.
	PruneWarmup int `yaml:"prune_warmup"`
	// Metric is what the last evaluation of a trial is compared by; empty is
	// train.validation.metric. Direction is maximize or minimize.
	Metric    string `yaml:"metric"`
	Direction string `yaml:"direction"`
	// StepsPerTrial is the number of env steps of a trial; 0 is train.total_env_steps.
	StepsPerTrial int64 `yaml:"steps_per_trial"`
	// Space has what may be chosen, by key path. Without a space nothing is tuned.
	Space Space `yaml:"space,omitempty"`
}

// The words of a Config.
const (
	TPE    = "tpe"
	Random = "random"

	Median = "median"
	None   = "none"

	Maximize = "maximize"
	Minimize = "minimize"
)

// Defaults returns the defaults, which are Optuna's: ten random trials before TPE, five complete
// ones before the median prunes, from the first evaluation on.
func Defaults() Config {
	return Config{Trials: 50, Parallel: 1, Sampler: TPE, StartupTrials: 10, Pruner: Median, PruneAfter: 5, Direction: Maximize}
}

// fixed are the keys that trials must share to be compared, or that are not theirs to choose.
var fixed = []string{"seed", "seeds", "tune", "eval", "publish", "train.validation", "train.stop", "train.total_env_steps", "train.threads", "train.checkpoint", "train.log_interval_steps", "env.kind", "agent.kind"}

// Validate reports all problems of the section.
func (c Config) Validate() error {
	var p configs.Problems
	p.AtLeast("trials", c.Trials, 1)
	p.AtLeast("parallel", c.Parallel, 1)
	p.OneOf("sampler", c.Sampler, TPE, Random)
	p.AtLeast("startup_trials", c.StartupTrials, 1)
	p.OneOf("pruner", c.Pruner, Median, None)
	p.AtLeast("prune_after", c.PruneAfter, 1)
	p.NonNegative("prune_warmup", c.PruneWarmup)
	p.OneOf("direction", c.Direction, Maximize, Minimize)
	p.NonNegative("steps_per_trial", c.StepsPerTrial)
	for _, path := range c.Space.Paths() {
		for _, f := range fixed {
			p.Check(path != f && !strings.HasPrefix(path, f+".") && !strings.HasPrefix(path, f+"["), "space."+path, "cannot be tuned: trials must have it in common")
		}
		p.Check(slices.Contains(fixed, path) || strings.Contains(path, "."), "space."+path, "expected the key path of a value, such as agent.gamma")
	}
	return p.Err()
}
