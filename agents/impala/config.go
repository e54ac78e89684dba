package impala

import (
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/runtime/optim"
)

// Config describes an IMPALA or APPO agent. [Defaults] returns IMPALA's values, and [APPODefaults]
// those of APPO; the package comment names their sources.
type Config struct {
	// NSteps is the number of rounds of an unroll. All unrolls of a batch, of train.num_envs rows
	// together, are learnt from at once, NEpochs times.
	NSteps  int `yaml:"n_steps"`
	NEpochs int `yaml:"n_epochs"`
	// Gamma discounts what comes later, by as much for each step.
	Gamma float64 `yaml:"gamma"`
	// GAELambda mixes the targets of V-trace with shorter ones; 1 takes the whole ones.
	GAELambda float64               `yaml:"gae_lambda"`
	VTrace    onpolicy.VTraceConfig `yaml:"vtrace"`
	// NormalizeAdvantage shifts and scales the advantages of a batch to mean 0 and deviation 1.
	NormalizeAdvantage bool `yaml:"normalize_advantage"`
	// ClipRange is how far the ratio of the probabilities of the policy that learns and of the one
	// that acted may go from 1 before it stops to count, APPO's surrogate; 0 is IMPALA's policy
	// gradient, which has no surrogate.
	ClipRange float64 `yaml:"clip_range"`

	// LearningRate is what its schedule begins with; this counts updates, and one that lasts as
	// long as the run needs no number of steps.
	LearningRate         float64        `yaml:"learning_rate"`
	LearningRateSchedule optim.Schedule `yaml:"learning_rate_schedule,omitempty"`
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
	network.Config
	// OrthoInit begins the weights of hidden layers and heads orthogonal, with gain √2, 0.01 before
	// the policy and 1 before the value, and biases at 0. Without it they begin uniformly in
	// ±1/√inputs, as PyTorch's do.
	OrthoInit bool `yaml:"ortho_init"`
	network.Exploration

	// Options choose by patterns of names which parameters are trained.
	models.Options `yaml:",inline"`
}

// The words of a Config.
const (
	Shared   = "shared"
	Separate = "separate"
)

// Defaults returns the values of RLlib's IMPALA.
func Defaults() Config {
	return Config{
		NSteps: 50, NEpochs: 1, Gamma: 0.99, GAELambda: 1, VTrace: onpolicy.VTraceConfig{ClipRho: 1, ClipC: 1, ClipPGRho: 1},
		LearningRate: 5e-4, LearningRateSchedule: optim.Schedule{Relative: true}, EntCoef: 0.01, VFCoef: 0.5, MaxGradNorm: 0.5, Optimizer: optim.Config{Kind: "adam"},
		Encoders: Separate, Config: network.Config{CrossAsset: encoder.CrossAssetDefaults(), Hidden: []int{64, 64}, Activation: "tanh"}, OrthoInit: true, Exploration: network.DefaultExploration(),
	}
}

// APPODefaults returns the values of Sample Factory's APPO.
func APPODefaults() Config {
	c := Defaults()
	c.NSteps, c.ClipRange, c.NormalizeAdvantage = 32, 0.1, true
	c.LearningRate, c.EntCoef, c.MaxGradNorm, c.Optimizer = 1e-4, 0.003, 4, optim.Config{Kind: "adam", Eps: 1e-6}
	return c
}

// Renamed implements configs.Renamer: what RLlib and Sample Factory call these.
func (Config) Renamed() map[string]string {
	return map[string]string{
		"rollout_fragment_length": "n_steps", "rollout": "n_steps", "num_sgd_iter": "n_epochs", "num_epochs": "n_epochs", "lr": "learning_rate",
		"entropy_coeff": "ent_coef", "exploration_loss_coeff": "ent_coef", "vf_loss_coeff": "vf_coef", "value_loss_coeff": "vf_coef", "grad_clip": "max_grad_norm",
		"vtrace_clip_rho_threshold": "vtrace.clip_rho", "vtrace_clip_pg_rho_threshold": "vtrace.clip_pg_rho", "vtrace_rho": "vtrace.clip_rho", "vtrace_c": "vtrace.clip_c",
		"clip_param": "clip_range", "ppo_clip_ratio": "clip_range",
	}
}

// Validate reports all problems of the configuration's own fields; whether it fits the environment
// is found out by New.
func (c Config) Validate() error {
	var p configs.Problems
	p.AtLeast("n_steps", c.NSteps, 1)
	p.AtLeast("n_epochs", c.NEpochs, 1)
	p.InRange("gamma", c.Gamma, 0, 1)
	p.InRange("gae_lambda", c.GAELambda, 0, 1)
	p.NonNegative("clip_range", c.ClipRange)
	p.Positive("learning_rate", c.LearningRate)
	p.Check(c.LearningRateSchedule.Follows(), "learning_rate_schedule.initial", "is %g, but the schedule begins with learning_rate", c.LearningRateSchedule.Initial)
	p.NonNegative("ent_coef", c.EntCoef)
	p.NonNegative("vf_coef", c.VFCoef)
	p.NonNegative("max_grad_norm", c.MaxGradNorm)
	p.Check(c.Optimizer.LR == 0, "optimizer.lr", "is %g, but the learning rate is learning_rate", c.Optimizer.LR)
	p.OneOf("encoders", c.Encoders, Shared, Separate)
	p.Check(len(c.Privileged) == 0 || c.Encoders == Separate, "privileged", "needs encoders: %s, so that the policy's layers read none of it", Separate)
	return p.Err()
}
