package sac

import (
	"math"

	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Conservative is the regulariser of CQL(H), which keeps down the values of actions that the data
// do not have.
type Conservative struct {
	// Weight is that of the regulariser.
	Weight float64 `yaml:"weight"`
	// NActionSamples is the number of actions of the policy at obs_tm1, of the policy at obs_t and
	// of uniform ones, each, that log Σ exp is estimated from; Discrete actions are all there.
	NActionSamples int `yaml:"n_action_samples"`
	// SoftQBackup has the entropy in the targets, as SAC does. Without, they have the value of the
	// policy's best action, or the expectation over Discrete ones.
	SoftQBackup bool `yaml:"soft_q_backup"`
	// AlphaLearningRate adjusts a multiplier of the weight, which begins at InitialAlpha, to where
	// the regulariser is AlphaThreshold: Lagrange's. 0 keeps it.
	AlphaLearningRate float64 `yaml:"alpha_learning_rate"`
	AlphaThreshold    float64 `yaml:"alpha_threshold"`
	InitialAlpha      float64 `yaml:"initial_alpha"`
}

// SetDefaults implements configs.Defaulter: what the authors' code has for locomotion, without a
// multiplier; the threshold is d3rlpy's.
func (c *Conservative) SetDefaults() {
	*c = Conservative{Weight: 5, NActionSamples: 10, AlphaThreshold: 10, InitialAlpha: 1}
}

// Validate implements configs.Validator.
func (c Conservative) Validate() error {
	var p configs.Problems
	p.NonNegative("weight", c.Weight)
	p.AtLeast("n_action_samples", c.NActionSamples, 1)
	p.NonNegative("alpha_learning_rate", c.AlphaLearningRate)
	p.Positive("initial_alpha", c.InitialAlpha)
	return p.Err()
}

// CQLDefaults returns the values of CQL (Kumar et al. 2020, arXiv 2006.04779): those of the
// authors' code for locomotion, over SAC's.
func CQLDefaults() Config {
	c := Defaults()
	c.LearningRate, c.CriticLearningRate, c.LearningStarts, c.Conservative = 1e-4, 3e-4, 0, &Conservative{}
	c.Conservative.SetDefaults()
	return c
}

// Inputs and outputs of the critics' graph with the regulariser.
const (
	// scaleOfGap [1] is its weight, gapOutput [1] the mean over rows of log Σ exp q − q(a_tm1),
	// summed up over critics.
	scaleOfGap = "sac.conservative"
	gapOutput  = "conservative_gap"
	// Noise of the policy's actions at obs_tm1 and at obs_t, and uniform actions in [−1, 1], each
	// [batch, samples·A].
	nowNoise      = "sac.conservative_noise"
	nextNoise     = "sac.conservative_noise_next"
	uniformAction = "sac.conservative_uniform"
)

// gap appends, summed up over critics, log Σ exp q − q(a_tm1), [batch], given the critics' values
// of the recorded actions: with the importance weights of where actions come from,
//
//	log Σ exp q ≈ log Σ exp {q(a) + A·log 2, a uniform;  q(a) − log π(a|obs_tm1);  q(a) − log π(a|obs_t)}
//
// and π(·|obs_t) too is evaluated at obs_tm1.
func (d *design) gap(l *layer.Graph, in network.Inputs, q []onnx.Value, actions onnx.Value) (onnx.Value, error) {
	var sum onnx.Value
	add := func(x onnx.Value) {
		if sum == "" {
			sum = x
			return
		}
		sum = l.Add(sum, x)
	}
	if !d.Frame.Continuous() {
		for _, x := range q {
			add(l.Neg(head.Pick(l, l.Op("LogSoftmax", []onnx.Value{x}, onnx.AttrInt("axis", 1)), actions)))
		}
		return sum, l.Err()
	}
	n, a := d.c.Conservative.NActionSamples, d.Frame.Dims
	now, err := d.policy(l, in)
	if err != nil {
		return "", err
	}
	next, err := d.policy(l.Again(), d.Acting.Inputs(l, offpolicy.NextPrefix))
	if err != nil {
		return "", err
	}
	list, less := []onnx.Value{}, []onnx.Value{}
	for i, p := range []*policy{now, next} {
		noise := l.Reshape(l.Observation([]string{nowNoise, nextNoise}[i], n*a), -1, n, a)
		mean, logStd := l.Unsqueeze(p.s.Gaussian.Mean, 1), l.Unsqueeze(p.s.Gaussian.LogStd, 1)
		u := l.Add(mean, l.Mul(l.Exp(logStd), noise))
		// log π = Σ (−noise²/2 − log σ − log √2π) − Σ log(1 − tanh²(u)).
		rows := l.Add(l.Add(l.Scale(l.Square(noise), 0.5), logStd), l.Scale(l.Add(u, l.Activate("softplus", l.Scale(u, -2))), -2))
		list, less = append(list, l.Activate("tanh", u)), append(less, l.Shift(l.Sum(rows, 2), float64(a)*(math.Log(2*math.Pi)/2+2*math.Ln2)))
	}
	list = append(list, l.Reshape(l.Observation(uniformAction, n*a), -1, n, a))
	less = append(less, l.Shift(l.Scale(less[0], 0), float64(a)*math.Ln2))
	ones := tensor.New(tensor.Float32, 1, 3*n, 1)
	for i := range ones.Float32s() {
		ones.Float32s()[i] = 1
	}
	c := l.In(offpolicy.CriticScope).Again()
	z, err := d.Torso.Build(c, in)
	if err != nil {
		return "", err
	}
	x := c.Concat(-1, c.Mul(c.Unsqueeze(z.Pooled, 1), c.Const(ones)), c.Concat(1, list...))
	p := head.Perceptron{Hidden: d.c.Layers(d.c.Hidden), Activation: d.c.Activation, Default: true}
	for i := range q {
		all := c.Add(c.Squeeze(p.Build(c.In(offpolicy.Numbered("q", i)), x, 1), 2), c.Concat(1, less...))
		// log Σ exp x = x₀ − log softmax(x)₀.
		first := c.Sub(c.Slice(all, 1, 0, 1), c.Slice(c.Op("LogSoftmax", []onnx.Value{all}, onnx.AttrInt("axis", 1)), 1, 0, 1))
		add(l.Sub(c.Squeeze(first, 1), q[i]))
	}
	return sum, l.Err()
}

// conservative is what a learner has of the regulariser; nil without.
type conservative struct {
	c *Conservative
	// scale and gap are the critics' input and output, noises and uniform inputs too.
	scale, gap []float32
	noises     [][]float32
	uniform    []float32
	stream     *rng.Stream
	alpha      *temperature
	critics    float64
}

// newAlpha returns the multiplier as it begins.
func (c *Conservative) newAlpha() (*temperature, error) {
	return newAdjusted("alpha", EntCoef{c.AlphaLearningRate > 0, c.InitialAlpha}, 0)
}

// bindConservative finds the buffers of the critics' program that are the regulariser's own.
func (l *learner) bindConservative() (err error) {
	if l.c.Conservative == nil {
		return nil
	}
	p := l.Critic
	x := &conservative{c: l.c.Conservative, scale: p.Input(scaleOfGap).Float32s(), gap: p.Output(gapOutput).Float32s(), critics: float64(l.c.Critics)}
	if l.Networks.Frame.Continuous() {
		x.noises, x.uniform = [][]float32{p.Input(nowNoise).Float32s(), p.Input(nextNoise).Float32s()}, p.Input(uniformAction).Float32s()
	}
	// A stream of its own leaves those of SAC as they are.
	x.stream = l.Stream("conservative")
	x.alpha, err = x.c.newAlpha()
	l.conservative = x
	return err
}

// draw draws what log Σ exp is estimated from.
func (x *conservative) draw() {
	if x == nil {
		return
	}
	for _, n := range x.noises {
		x.stream.FillNormal32(n, 0, 1)
	}
	x.stream.FillUniform32(x.uniform, -1, 1)
}

// maxAlpha bounds the multiplier, as in the authors' code.
const maxAlpha = 1e6

// weigh sets the weight of the update.
func (x *conservative) weigh() {
	if x != nil {
		x.scale[0] = float32(x.c.Weight * min(float64(x.alpha.alpha()), maxAlpha))
	}
}

// step adjusts the multiplier after the critics' program has run, and adds the regulariser up.
func (x *conservative) step(factor float64, sum *losses) error {
	if x == nil {
		return nil
	}
	gap := float64(x.gap[0]) / x.critics
	sum.Gap += gap
	sum.ConservativeAlpha += min(float64(x.alpha.alpha()), maxAlpha)
	if !x.alpha.auto {
		return nil
	}
	// The loss is −α·weight·(gap − threshold), and α = exp of what is adjusted.
	a := float64(x.alpha.alpha())
	if a > maxAlpha {
		return nil
	}
	_, err := x.alpha.step(a*x.c.Weight*(gap-x.c.AlphaThreshold), 0, factor*x.c.AlphaLearningRate)
	return err
}

// conservativeEditable are the keys that a learner takes while it lives.
var conservativeEditable = []string{"conservative.weight", "conservative.alpha_threshold", "conservative.alpha_learning_rate"}

// edited returns the regulariser with other values, in the state of the present one.
func (x *conservative) edited(c *Conservative) (*conservative, error) {
	if x == nil {
		return nil, nil
	}
	a, err := c.newAlpha()
	if err == nil {
		err = a.follow(x.alpha)
	}
	y := *x
	y.c, y.alpha = c, a
	return &y, err
}
