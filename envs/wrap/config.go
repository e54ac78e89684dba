package wrap

import (
	"github.com/onnxrl/onnxrl/configs"
)

// Config is the wrappers section of a run: what stands between an environment and the agent. The
// zero Config changes nothing.
type Config struct {
	// TimeLimit truncates episodes after so many steps; 0 does not.
	TimeLimit int `yaml:"time_limit"`
	// FrameStack observes the last steps together.
	FrameStack Frames `yaml:"frame_stack"`
	// Skill adds a skill to the observation, which policies are conditioned on.
	Skill Skills `yaml:"skill,omitzero"`
	// RescaleAction lets the policy act in [-1, 1] where the environment has other bounds.
	RescaleAction bool `yaml:"rescale_action"`
	// ClipAction lets the policy choose any numbers, which are clipped to the bounds.
	ClipAction bool `yaml:"clip_action"`
	// Normalize scales observations and rewards by statistics of the run.
	Normalize Normalize `yaml:"normalize"`
}

// Frames is a stack of the last observations.
type Frames struct {
	// Frames is how many observations a stack has; 0 and 1 stack nothing.
	Frames int `yaml:"frames"`
	// Initial is what stands for the observations before an episode's first one: first, that one
	// itself, as Gymnasium's FrameStackObservation has it by default, or zero, as
	// Stable-Baselines3's VecFrameStack has it.
	Initial string `yaml:"initial"`
	// Flat makes one vector of the observations of the stack, the oldest first. Otherwise the stack
	// is a new first axis, which networks take for the time axis of a window.
	Flat bool `yaml:"flat"`
}

// The words of Frames.Initial.
const (
	InitialFirst = "first"
	InitialZero  = "zero"
)

// On reports whether anything is stacked.
func (f Frames) On() bool { return f.Frames > 1 }

// Normalize says what is normalised, with the meaning and the defaults of Stable-Baselines3's
// VecNormalize. Package normalize does it, for whole vectors: the statistics are over all
// environments.
type Normalize struct {
	// Obs scales observations to mean 0 and deviation 1, dimension by dimension.
	Obs bool `yaml:"obs"`
	// Fields are the parts of the observation that are scaled; empty are all in float32 that are no
	// windows over a table.
	Fields []string `yaml:"fields,flow"`
	// Reward divides rewards by the standard deviation of the running discounted return. The mean
	// is not subtracted.
	Reward bool `yaml:"reward"`
	// Gamma discounts that return. Where it is left open, a run takes the agent's, as RL-Zoo does;
	// [Normalize.Discount] is 0.99 then.
	Gamma *float64 `yaml:"gamma"`
	// ClipObs and ClipReward limit what is scaled, in absolute value.
	ClipObs    float64 `yaml:"clip_obs"`
	ClipReward float64 `yaml:"clip_reward"`
	// Epsilon is added to variances, under the root.
	Epsilon float64 `yaml:"epsilon"`
}

// Discount returns what the running return is discounted with.
func (n Normalize) Discount() float64 {
	if n.Gamma == nil {
		return 0.99
	}
	return *n.Gamma
}

// On reports whether anything is normalised.
func (n Normalize) On() bool { return n.Obs || n.Reward }

// Defaults returns a configuration that changes nothing, with what holds as soon as something is
// asked for.
func Defaults() Config {
	return Config{FrameStack: Frames{Initial: InitialFirst, Flat: true}, Normalize: Normalize{ClipObs: 10, ClipReward: 10, Epsilon: 1e-8}}
}

// Validate reports all problems of the section; whether it fits an environment is found out by
// [Apply].
func (c Config) Validate() error {
	var p configs.Problems
	p.NonNegative("time_limit", c.TimeLimit)
	return p.Err()
}

// Validate reports all problems of the stack.
func (f Frames) Validate() error {
	var p configs.Problems
	p.NonNegative("frames", f.Frames)
	p.OneOf("initial", f.Initial, InitialFirst, InitialZero)
	return p.Err()
}

// Validate reports all problems of the normalisation.
func (n Normalize) Validate() error {
	var p configs.Problems
	p.InRange("gamma", n.Discount(), 0, 1)
	p.Positive("clip_obs", n.ClipObs)
	p.Positive("clip_reward", n.ClipReward)
	p.Positive("epsilon", n.Epsilon)
	p.Check(len(n.Fields) == 0 || n.Obs, "fields", "%q are named, but obs is false", n.Fields)
	seen := map[string]bool{}
	for _, f := range n.Fields {
		p.Check(!seen[f], "fields", "%q is given twice", f)
		seen[f] = true
	}
	return p.Err()
}
