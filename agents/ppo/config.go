package ppo

import (
	"strings"

	"github.com/onnxrl/onnxrl/agents/constraint"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/runtime/optim"
)

// Config describes a PPO agent. [Defaults] returns Stable-Baselines3's values.
type Config struct {
	// NSteps is the number of rounds between updates, BatchSize the samples of a
	// minibatch, −1 all of them, and NEpochs how often all samples are learnt from.
	NSteps    int `yaml:"n_steps"`
	BatchSize int `yaml:"batch_size"`
	NEpochs   int `yaml:"n_epochs"`
	// Gamma discounts what comes later, by as much for each step.
	Gamma float64 `yaml:"gamma"`
	// GAELambda weighs the returns over more and more steps in advantages; 1 takes the whole ones.
	GAELambda float64 `yaml:"gae_lambda"`
	// Correction is gae, or vtrace: advantages and targets from the values and probabilities of the
	// present policy, for each epoch.
	Correction string       `yaml:"correction"`
	VTrace     VTraceConfig `yaml:"vtrace"`
	// NormalizeAdvantage shifts and scales the advantages of each minibatch to mean 0 and
	// deviation 1.
	NormalizeAdvantage bool `yaml:"normalize_advantage"`

	// LearningRate, ClipRange and TargetKL are what their schedules begin with; these count env
	// steps, and those that last as long as the run need no number of steps.
	LearningRate         float64        `yaml:"learning_rate"`
	LearningRateSchedule optim.Schedule `yaml:"learning_rate_schedule,omitempty"`
	// ClipRange is how far the ratio of probabilities may go from 1 before it stops to count.
	ClipRange         float64        `yaml:"clip_range"`
	ClipRangeSchedule optim.Schedule `yaml:"clip_range_schedule,omitempty"`
	// ClipRangeVF is how far values may go from those of the rollout before they stop to count; 0
	// does not limit them. It follows ClipRangeSchedule in proportion.
	ClipRangeVF float64 `yaml:"clip_range_vf"`
	// VFClip says what counts of the loss of a limited value. clipped counts that of the limited
	// value alone, and larger the larger one of both, so that a value beyond its limit learns
	// its way back.
	VFClip string `yaml:"vf_clip"`
	// VFLoss is squared, (V − G)², or huber: half of that up to an error of HuberDelta, and linear
	// beyond (Huber 1964).
	VFLoss     string  `yaml:"vf_loss"`
	HuberDelta float64 `yaml:"huber_delta"`
	// NormalizeValue lets the value learn returns with mean 0 and deviation 1, by moving averages
	// that each minibatch moves on. It is none, running, or popart, which changes the last layer
	// with the averages so that no value does (van Hasselt et al. 2016, arXiv 1602.07714).
	NormalizeValue string `yaml:"normalize_value"`
	// TargetKL ends an update with the first minibatch whose approx_kl exceeds 1.5 times this; 0
	// never does.
	TargetKL         float64        `yaml:"target_kl"`
	TargetKLSchedule optim.Schedule `yaml:"target_kl_schedule,omitempty"`
	// EntCoef is the weight of the policy's entropy, which is maximised, and VFCoef that of the
	// value's loss.
	EntCoef float64 `yaml:"ent_coef"`
	VFCoef  float64 `yaml:"vf_coef"`
	// MaxGradNorm limits the norm of the whole gradient; 0 does not.
	MaxGradNorm float64 `yaml:"max_grad_norm"`
	// Optimizer is one of sgd, rmsprop, adam, adamw, lamb or lion; its learning rate is LearningRate.
	Optimizer optim.Config `yaml:"optimizer"`

	// Encoders is separate, a torso each for policy and value, or shared.
	Encoders string `yaml:"encoders"`
	// Central lets the value read the fields of the observation that the environment marks as
	// central, which no policy reads.
	Central bool `yaml:"central"`
	// PoliciesBy is a discrete field of the observation, such as agent or role, for each of whose
	// values policy and value have layers of their own; without one all rows share theirs. All of
	// them are computed for each row.
	PoliciesBy string `yaml:"policies_by,omitempty"`
	network.Config
	// LayerNorm normalises what the hidden layers read, and the result of each after its activation
	// (Ba et al. 2016, arXiv 1607.06450).
	LayerNorm bool `yaml:"layer_norm"`
	// OrthoInit begins the weights of hidden layers and heads orthogonal, with gain √2, 0.01 before
	// the policy and 1 before the value, and biases at 0. Without it they begin uniformly in
	// ±1/√inputs, as PyTorch's do. Encoders and memory begin as they do by themselves.
	OrthoInit bool `yaml:"ortho_init"`
	network.Exploration
	Recurrent Recurrent `yaml:"recurrent"`
	// Constraints keep what episodes cost beside the reward below limits.
	Constraints []constraint.Config `yaml:"constraints,omitzero"`

	// Options choose by patterns of names which parameters are trained.
	models.Options `yaml:",inline"`
}

// Renamed implements configs.Renamer.
func (Config) Renamed() map[string]string {
	return map[string]string{"rollout_steps": "n_steps", "entropy_coef": "ent_coef", "value_coef": "vf_coef", "grad_clip": "max_grad_norm", "rho_bar": "vtrace.clip_rho", "c_bar": "vtrace.clip_c"}
}

// VTraceConfig holds the thresholds of the importance weights; see rlmath.VTraceConfig. λ is
// gae_lambda.
type VTraceConfig struct {
	// ClipRho limits the ratios of probabilities in the errors of the values, and ClipC those that
	// carry them back.
	ClipRho float64 `yaml:"clip_rho"`
	ClipC   float64 `yaml:"clip_c"`
}

// Validate implements configs.Validator.
func (c VTraceConfig) Validate() error {
	var p configs.Problems
	p.Positive("clip_rho", c.ClipRho)
	p.Positive("clip_c", c.ClipC)
	return p.Err()
}

// Recurrent describes the memory of a policy.
type Recurrent struct {
	// Kind is lstm, or none.
	Kind string `yaml:"kind"`
	// Hidden is the width of each of Layers layers.
	Hidden int `yaml:"hidden"`
	Layers int `yaml:"layers"`
	// Critic is separate, an LSTM of its own for the value, or shared: the value reads the
	// policy's, which it does not train.
	Critic string `yaml:"critic"`
	// Length is the number of rounds that gradients go back through; 0 is the whole rollout. A
	// minibatch has BatchSize/Length sequences, at least one. The graph grows with it: 16 rounds of
	// one layer each for policy and value are 1,300 nodes, and 128 are 10,000, which take 20 times
	// as long to compile.
	Length int `yaml:"length"`
}

// The words of a Config.
const (
	GAE    = "gae"
	VTrace = "vtrace"

	Shared   = "shared"
	Separate = "separate"

	None = "none"
	LSTM = "lstm"

	Clipped = "clipped"
	Larger  = "larger"

	Squared = "squared"
	Huber   = "huber"

	Running = "running"
	PopArt  = "popart"
)

// Defaults returns the defaults of Stable-Baselines3's PPO, and of sb3-contrib's RecurrentPPO for a
// policy with memory.
func Defaults() Config {
	return Config{
		NSteps: 2048, BatchSize: 64, NEpochs: 10, Gamma: 0.99, GAELambda: 0.95, Correction: GAE, VTrace: VTraceConfig{ClipRho: 1, ClipC: 1}, NormalizeAdvantage: true,
		LearningRate: 3e-4, ClipRange: 0.2, VFCoef: 0.5, VFClip: Clipped, VFLoss: Squared, HuberDelta: 10, NormalizeValue: None, MaxGradNorm: 0.5, Optimizer: optim.Config{Kind: "adam", Eps: 1e-5},
		Encoders: Separate, Config: network.Config{CrossAsset: encoder.CrossAssetDefaults(), Hidden: []int{64, 64}, Activation: "tanh"}, OrthoInit: true,
		Exploration: network.DefaultExploration(), Recurrent: Recurrent{Kind: None, Hidden: 256, Layers: 1, Critic: Separate, Length: 16},
	}
}

// Validate reports all problems of the configuration's own fields; whether it fits the environment
// is found out by New.
func (c Config) Validate() error {
	var p configs.Problems
	p.AtLeast("n_steps", c.NSteps, 1)
	p.Check(c.BatchSize >= 1 || c.BatchSize == -1, "batch_size", "must be at least 1, or -1 for all samples of a rollout, is %d", c.BatchSize)
	p.AtLeast("n_epochs", c.NEpochs, 1)
	p.InRange("gamma", c.Gamma, 0, 1)
	p.InRange("gae_lambda", c.GAELambda, 0, 1)
	p.OneOf("correction", c.Correction, GAE, VTrace)
	p.Check(len(c.Constraints) == 0 || c.Correction == GAE, "constraints", "needs correction: %s", GAE)
	p.Positive("learning_rate", c.LearningRate)
	p.Positive("clip_range", c.ClipRange)
	p.NonNegative("clip_range_vf", c.ClipRangeVF)
	p.OneOf("vf_clip", c.VFClip, Clipped, Larger)
	p.OneOf("vf_loss", c.VFLoss, Squared, Huber)
	p.Positive("huber_delta", c.HuberDelta)
	p.OneOf("normalize_value", c.NormalizeValue, None, Running, PopArt)
	p.Check(c.NormalizeValue == None || c.Correction == GAE, "normalize_value", "needs correction: %s", GAE)
	p.NonNegative("target_kl", c.TargetKL)
	p.Check(c.TargetKL > 0 || isZero(c.TargetKLSchedule), "target_kl_schedule", "is given without a target_kl to begin with")
	p.NonNegative("ent_coef", c.EntCoef)
	p.NonNegative("vf_coef", c.VFCoef)
	p.NonNegative("max_grad_norm", c.MaxGradNorm)
	p.Check(c.Optimizer.LR == 0, "optimizer.lr", "is %g, but the learning rate is learning_rate", c.Optimizer.LR)
	for _, s := range []struct {
		key string
		optim.Schedule
	}{{"learning_rate_schedule", c.LearningRateSchedule}, {"clip_range_schedule", c.ClipRangeSchedule}, {"target_kl_schedule", c.TargetKLSchedule}} {
		p.Check(s.Follows(), s.key+".initial", "is %g, but the schedule begins with %s", s.Initial, strings.TrimSuffix(s.key, "_schedule"))
	}
	p.OneOf("encoders", c.Encoders, Shared, Separate)
	apart := c.Encoders == Separate && (c.Recurrent.Kind == None || c.Recurrent.Critic == Separate)
	const needs = "needs encoders: separate and recurrent.critic: separate, so that the policy's layers read none of it"
	p.Check(len(c.Privileged) == 0 || apart, "privileged", needs)
	p.Check(!c.Central || apart, "central", needs)
	if c.PoliciesBy != "" {
		p.Check(c.Encoders == Separate && c.Recurrent.Kind == None && c.Policy.Kind == "" && !c.UseSDE && c.NormalizeValue != PopArt, "policies_by", "needs encoders: %s, and neither recurrent.kind, policy, use_sde nor normalize_value: %s", Separate, PopArt)
	}
	return p.Err()
}

// isZero reports whether nothing of a schedule is given.
func isZero(s optim.Schedule) bool {
	return s.Kind == "" && s.Initial == 0 && s.Final == 0 && s.Steps == 0 && s.Gamma == 0 && s.Every == 0 && len(s.Points) == 0 && s.Warmup == 0
}

// Validate reports the problems of the section.
func (r Recurrent) Validate() error {
	var p configs.Problems
	p.OneOf("kind", r.Kind, None, LSTM)
	p.AtLeast("hidden", r.Hidden, 1)
	p.AtLeast("layers", r.Layers, 1)
	p.OneOf("critic", r.Critic, Separate, Shared)
	p.NonNegative("length", r.Length)
	return p.Err()
}
