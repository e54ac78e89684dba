package train

import (
	"github.com/onnxrl/onnxrl/agents/actors"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
)

// Config is the train section of a run.
type Config struct {
	// NumEnvs is the number of environments that step together: rows of a batch, of which worlds of
	// several agents have one for each agent. 0 takes 8, and of worlds, and of several actors, the
	// next number that makes them whole.
	NumEnvs int `yaml:"num_envs"`
	// TotalEnvSteps is how many env steps are taken, over all environments. The last rollout is
	// taken whole: the run ends with the first learner step at or after this number.
	TotalEnvSteps int64 `yaml:"total_env_steps"`
	// LogIntervalSteps is the number of env steps between records of metrics.
	LogIntervalSteps int64 `yaml:"log_interval_steps"`
	// Threads is how many cores the run may keep busy, and in how many shards it splits batches; 0
	// decides once for all the cores there are. Results depend on it in the last bits, so the
	// effective configuration, from which a run is resumed anywhere, records what was decided.
	Threads int `yaml:"threads"`
	// Actors act while the learner learns, with parameters that may be a few updates old, for
	// algorithms that correct for that: impala and appo.
	Actors     actors.Config `yaml:"actors"`
	Checkpoint Checkpoint    `yaml:"checkpoint"`
	Validation Validation    `yaml:"validation"`
	Stop       Stop          `yaml:"stop"`
	// Normalize is how the run normalises observations and rewards. It is no key of this section: a
	// document has it among its wrappers.
	Normalize wrap.Normalize `yaml:"-"`
}

// Checkpoint says how often a run's state is saved and what is kept.
type Checkpoint struct {
	// EverySteps is the number of env steps between checkpoints: what a crash can cost. 0 saves
	// only at the beginning, at the end and when stopped. A policy that is the best so far is saved
	// in addition when KeepBest is not 0.
	EverySteps int64 `yaml:"every_steps"`
	// KeepLast is the number of checkpoints that are kept, the last ones, and KeepBest that of
	// those of the best policies.
	KeepLast int `yaml:"keep_last"`
	KeepBest int `yaml:"keep_best"`
}

// Validation says how often the greedy policy is evaluated on the validation split, and when a run
// ends early.
type Validation struct {
	// EverySteps is the number of env steps between evaluations, beside one before and one after
	// training; 0 never evaluates.
	EverySteps int64 `yaml:"every_steps"`
	// Metric is what the best policy has most of: a name that the program's evaluation offers, such
	// as sharpe or mean_reward. Empty is mean_reward, or what the program has for the environment.
	Metric string `yaml:"metric"`
	// Patience is the number of evaluations without an improvement by more than MinDelta after
	// which the run ends; 0 never does. The first MinEvals evaluations of a trained policy do not
	// count.
	Patience int     `yaml:"patience"`
	MinDelta float64 `yaml:"min_delta"`
	MinEvals int     `yaml:"min_evals"`
}

// Stop says when a run ends before its last env step, besides Validation.Patience.
type Stop struct {
	// RewardThreshold ends the run once an evaluation's mean_reward is at least this; absent never
	// does.
	RewardThreshold *float64 `yaml:"reward_threshold,omitempty"`
	// MaxEpisodes ends the run once so many episodes for each environment, that is MaxEpisodes ·
	// NumEnvs together, have come to their end, as Stable-Baselines3's StopTrainingOnMaxEpisodes
	// counts; 0 never does.
	MaxEpisodes int64 `yaml:"max_episodes"`
}

// Defaults returns the defaults: the specification's steps and logging, and one evaluation and
// checkpoint in every 20,000 env steps.
func Defaults() Config {
	return Config{
		TotalEnvSteps: 1_000_000, LogIntervalSteps: 1000, Actors: actors.Defaults(),
		Checkpoint: Checkpoint{EverySteps: 20_000, KeepLast: 3, KeepBest: 1},
		Validation: Validation{EverySteps: 20_000},
	}
}

// defaultEnvs is about how many environments step together where a configuration does not say.
const defaultEnvs = 8

// For returns the configuration with the number of environments of a factory, where that is left
// open.
func (c Config) For(f envs.Factory) Config {
	if c.NumEnvs > 0 {
		return c
	}
	whole := max(1, c.Actors.Count)
	if m, ok := wrap.FindFactory[envs.MultiFactory](f); ok {
		whole *= len(m.Agents())
	}
	c.NumEnvs = (defaultEnvs + whole - 1) / whole * whole
	return c
}

// Validate reports all problems of the section.
func (c Config) Validate() error {
	var p configs.Problems
	p.NonNegative("num_envs", c.NumEnvs)
	p.AtLeast("total_env_steps", c.TotalEnvSteps, 1)
	p.AtLeast("log_interval_steps", c.LogIntervalSteps, 1)
	p.NonNegative("threads", c.Threads)
	p.NonNegative("checkpoint.every_steps", c.Checkpoint.EverySteps)
	p.AtLeast("checkpoint.keep_last", c.Checkpoint.KeepLast, 1)
	p.NonNegative("checkpoint.keep_best", c.Checkpoint.KeepBest)
	p.NonNegative("validation.every_steps", c.Validation.EverySteps)
	p.NonNegative("validation.patience", c.Validation.Patience)
	p.NonNegative("validation.min_delta", c.Validation.MinDelta)
	p.NonNegative("validation.min_evals", c.Validation.MinEvals)
	p.Check(c.Validation.MinEvals == 0 || c.Validation.Patience > 0, "validation.min_evals", "is %d, but there is no validation.patience that could end the run", c.Validation.MinEvals)
	if t := c.Stop.RewardThreshold; t != nil {
		p.Check(*t-*t == 0, "stop.reward_threshold", "is %g, expected a finite number", *t)
		p.Check(c.Validation.EverySteps > 0, "stop.reward_threshold", "needs evaluations, and validation.every_steps is 0")
	}
	p.NonNegative("stop.max_episodes", c.Stop.MaxEpisodes)
	if c.Actors.On() {
		p.Check(c.NumEnvs%c.Actors.Count == 0, "actors.count", "is %d, expected a divisor of num_envs, which is %d", c.Actors.Count, c.NumEnvs)
		p.Check(!c.Normalize.On(), "actors.count", "cannot be combined with wrappers.normalize, whose statistics would be those of one actor")
	}
	return p.Err()
}
