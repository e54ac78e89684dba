package a2c

import (
	"math"

	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/runtime/optim"
)

// Config describes an A2C agent. [Defaults] returns Stable-Baselines3's values.
type Config struct {
	// Gamma discounts what comes later, by as much for each step.
	Gamma float64 `yaml:"gamma"`
	// EntCoef is the weight of the policy's entropy, which is maximised.
	EntCoef float64 `yaml:"ent_coef"`
	// VFCoef is the weight of the value's loss.
	VFCoef float64 `yaml:"vf_coef"`
	// GAELambda mixes the returns with shorter ones; 1 is the plain return of the rollout.
	GAELambda float64 `yaml:"gae_lambda"`
	// NormalizeAdvantage shifts and scales the advantages of a rollout to mean 0 and deviation 1.
	NormalizeAdvantage bool `yaml:"normalize_advantage"`
	// Correction is none, or vtrace for actions that another policy may have drawn:
	// log-probabilities and values are computed again by the policy that learns (Espeholt et al.
	// 2018, arXiv 1802.01561).
	Correction string                `yaml:"correction"`
	VTrace     onpolicy.VTraceConfig `yaml:"vtrace"`
	// NSteps is the number of rounds between updates.
	NSteps int `yaml:"n_steps"`
	// Reduction is mean, or sum, QTMRL's Σ over the rollout, which is not divided by the number of
	// samples. It matters to the clipping, and to optimisers that are not indifferent to
	// scale.
	Reduction string `yaml:"reduction"`

	// LearningRate is that of all parameters, unless CriticLearningRate is not 0, which is then the
	// critic's. Parameters below critic are the critic's, and a shared encoder is the actor's. The steps
	// of LearningRateSchedule are updates, and linear and cosine without steps take as long as the run. The critic's rate
	// changes in proportion.
	LearningRate         float64        `yaml:"learning_rate"`
	CriticLearningRate   float64        `yaml:"critic_learning_rate,omitempty"`
	LearningRateSchedule optim.Schedule `yaml:"learning_rate_schedule,omitempty"`
	// MaxGradNorm limits the norm of the whole gradient, actor and critic together; 0 does not.
	MaxGradNorm float64 `yaml:"max_grad_norm"`
	// Optimizer's learning rate is given above.
	Optimizer Optimizer `yaml:"optimizer"`

	// Encoder reads windows [W,N,F] or [W,F]; absent is timecnn with its defaults. Observations
	// without a window have none unless one is named.
	Encoder configs.Kinded `yaml:"encoder,omitempty" kinds:"encoder"`
	// LoRA trains adapters over an encoder that stays as it begins, see network.Config.
	LoRA *lora.Config `yaml:"lora,omitempty"`
	// Policy is the whole policy, see network.Config; encoder and hidden layers are then the
	// critic's alone.
	Policy configs.Kinded `yaml:"policy,omitempty" kinds:"encoder"`
	// Encoders is shared, one for actor and critic, or separate.
	Encoders string `yaml:"encoders"`
	// CrossAsset mixes the assets of a window [W,N,F].
	CrossAsset encoder.CrossAssetConfig `yaml:"cross_asset"`
	// Hidden and Activation are the layers of observations that are not windows of assets.
	Hidden     []int  `yaml:"hidden,flow"`
	Activation string `yaml:"activation"`
	// Privileged are fields of the observation that the critic alone reads, see network.Config; a
	// window is none of them.
	Privileged []string `yaml:"privileged,flow,omitempty"`
	// HiddenGain is that of these layers' orthogonal weights; 0 is the activation's own.
	HiddenGain float64 `yaml:"hidden_gain,omitempty"`
	// OrthoInit begins the weights of hidden layers and heads orthogonal, and biases at 0; without
	// it they begin uniformly in ±1/√inputs, as PyTorch's do. Encoders begin as they do by
	// themselves.
	OrthoInit bool `yaml:"ortho_init"`
	// Exploration is the noise of actions in a Box.
	network.Exploration `yaml:",inline"`
	// ShareWindows is auto, on or off: whether overlapping windows are encoded together. On is an
	// error where that is not possible.
	ShareWindows string `yaml:"share_windows"`

	// Options choose by patterns of names which parameters are trained.
	models.Options `yaml:",inline"`
}

// The words of a Config.
const (
	NoCorrection = "none"
	VTrace       = "vtrace"

	Sum  = "sum"
	Mean = "mean"

	Shared   = "shared"
	Separate = "separate"

	Auto = "auto"
	On   = "on"
	Off  = "off"
)

// sb3Gain is the gain of hidden layers that Stable-Baselines3 takes for every activation.
const sb3Gain = math.Sqrt2

// Defaults returns the defaults of Stable-Baselines3's A2C; what it does not have is off.
func Defaults() Config {
	return Config{
		NSteps: 5, Gamma: 0.99, GAELambda: 1, VFCoef: 0.5, Reduction: Mean, Correction: NoCorrection, VTrace: onpolicy.VTraceConfig{ClipRho: 1, ClipC: 1, ClipPGRho: 1},
		LearningRate: 7e-4, LearningRateSchedule: optim.Schedule{Relative: true}, MaxGradNorm: 0.5, Optimizer: Optimizer{optim.Config{Kind: "rmsprop", Alpha: 0.99, Eps: 1e-5}},
		Encoders: Separate, CrossAsset: encoder.CrossAssetDefaults(), Hidden: []int{64, 64}, Activation: "tanh", HiddenGain: sb3Gain, OrthoInit: true,
		Exploration: network.DefaultExploration(), ShareWindows: Auto,
	}
}

// Optimizer is any of package optim. A document that names another kind than the default's does not
// inherit the default's other values, which are for that kind.
type Optimizer struct {
	optim.Config `yaml:",inline"`
}

// DecodeConfig implements configs.Decoder.
func (o *Optimizer) DecodeConfig(s configs.Section) error {
	c := o.Config
	if named, ok := s.Lookup("kind"); ok {
		var kind string
		if named.Decode(&kind) == nil && kind != c.Kind {
			c = optim.Config{}
		}
	}
	err := s.Decode(&c)
	o.Config = c
	return err
}

// Renamed implements configs.Renamer.
func (Config) Renamed() map[string]string {
	return map[string]string{
		"rollout_steps": "n_steps", "entropy_coef": "ent_coef", "value_coef": "vf_coef", "grad_clip": "max_grad_norm",
		"schedule": "learning_rate_schedule", "lr_actor": "learning_rate", "lr_critic": "critic_learning_rate",
	}
}

// criticLearningRate is the learning rate of the critic's parameters.
func (c Config) criticLearningRate() float64 {
	if c.CriticLearningRate > 0 {
		return c.CriticLearningRate
	}
	return c.LearningRate
}

// Validate reports all problems of the configuration's own fields; whether it fits the environment
// is found out by New.
func (c Config) Validate() error {
	var p configs.Problems
	p.InRange("gamma", c.Gamma, 0, 1)
	p.NonNegative("ent_coef", c.EntCoef)
	p.NonNegative("vf_coef", c.VFCoef)
	p.InRange("gae_lambda", c.GAELambda, 0, 1)
	p.AtLeast("n_steps", c.NSteps, 1)
	p.OneOf("reduction", c.Reduction, Sum, Mean)
	p.Positive("learning_rate", c.LearningRate)
	p.NonNegative("critic_learning_rate", c.CriticLearningRate)
	p.NonNegative("max_grad_norm", c.MaxGradNorm)
	p.Check(c.Optimizer.LR == 0, "optimizer.lr", "is %g, but the learning rate is learning_rate", c.Optimizer.LR)
	p.Check(c.LearningRateSchedule.Follows(), "learning_rate_schedule.initial", "is %g, but the schedule begins with learning_rate", c.LearningRateSchedule.Initial)
	p.OneOf("correction", c.Correction, NoCorrection, VTrace)
	p.NonNegative("hidden_gain", c.HiddenGain)
	p.Check(c.OrthoInit || c.HiddenGain == 0 || c.HiddenGain == sb3Gain, "hidden_gain", "is %g, the gain of orthogonal weights, but ortho_init is false", c.HiddenGain)
	p.OneOf("encoders", c.Encoders, Shared, Separate)
	p.Check(len(c.Privileged) == 0 || c.Encoders == Separate, "privileged", "needs encoders: %s, so that the policy's layers read none of it", Separate)
	p.Join("", c.network().Validate())
	p.OneOf("share_windows", c.ShareWindows, Auto, On, Off)
	return p.Err()
}

// network returns the part of the configuration that lies between inputs and heads.
func (c Config) network() network.Config {
	return network.Config{Encoder: c.Encoder, LoRA: c.LoRA, Policy: c.Policy, CrossAsset: c.CrossAsset, Hidden: c.Hidden, Activation: c.Activation, Privileged: c.Privileged}
}
