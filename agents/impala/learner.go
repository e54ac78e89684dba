package impala

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var _ agents.Unroller = (*learner)(nil)

// learner updates the parameters from one batch of unrolls, in a number of epochs.
type learner struct {
	onpolicy.Learner
	c Config
	// train and evaluate read the same inputs, a row for each sample; nil in an agent that acts
	// only.
	train, evaluate *program.Program
	// logMu are the log-probabilities of the policy that acted, and rho the ratios of the one that
	// learns to it, [samples].
	logMu, rho []float64
	// at is where in an update the learner is.
	at position

	// Inputs and outputs of train; old and floor are nil without a surrogate.
	policyWeight, valueWeight, entropyWeight, target, old, floor []float32
	logProb, entropy, value                                      []float32
	// Outputs of evaluate.
	logPi, valuePi []float32
	// masks are train's, which evaluate reads.
	masks *onpolicy.Masks
}

// position is where an update stands between two gradient steps.
type position struct {
	// Begun says that there is an update, whose rewards have the values of observations that
	// episodes were cut off at.
	Begun bool `json:"begun"`
	Epoch int  `json:"epoch"`
}

// compile makes the programs that learn.
func (l *learner) compile() error {
	s, n := &l.Setup, l.Networks
	samples := l.c.NSteps * s.Envs
	cfg := program.Config{Engine: s.Engine, Batch: samples, BatchSymbol: layer.Batch, Shards: s.Split(program.SplitFLOPs).Shards(n.Learn, layer.Batch, samples, 3), Weights: []string{policyWeight, floorInput, valueWeight, entropyWeight}}
	cfg.Objectives = []autodiff.Objective{{Losses: []autodiff.Loss{{Value: onpolicy.LossOutput}}, Stop: n.Stops}}
	cfg.Gradients = []*models.Segment{l.Grads}
	var err error
	if l.train, err = program.New(n.Learn, l.Params, cfg); err != nil {
		return err
	}
	l.Programs = append(l.Programs, l.train)
	// The program wrote there while it was tried out.
	clear(l.Grads.Floats())
	cfg = program.Config{Engine: s.Engine, Batch: samples, BatchSymbol: layer.Batch, Shards: cfg.Shards, Inputs: map[string]*tensor.Tensor{}}
	for _, name := range l.train.Inputs() {
		cfg.Inputs[name] = l.train.Input(name)
	}
	if l.evaluate, err = program.New(n.Evaluate, l.Params, cfg); err != nil {
		return err
	}
	// It reads the other's inputs, and is closed first.
	l.Programs = slices.Insert(l.Programs, 0, io.Closer(l.evaluate))
	in := func(name string) []float32 {
		if t := l.train.Input(name); t != nil {
			return t.Float32s()
		}
		return nil
	}
	out := func(p *program.Program, name string) []float32 { return p.Output(name).Float32s() }
	l.policyWeight, l.valueWeight, l.entropyWeight, l.target, l.old, l.floor = in(policyWeight), in(valueWeight), in(entropyWeight), in(targetInput), in(oldInput), in(floorInput)
	l.logProb, l.entropy, l.value = out(l.train, onpolicy.LogProbOutput), out(l.train, onpolicy.EntropyOutput), out(l.train, agents.ValueOutput)
	l.masks = l.NewMasks(l.train, samples)
	l.logPi, l.valuePi = out(l.evaluate, onpolicy.LogProbOutput), out(l.evaluate, agents.ValueOutput)
	return nil
}

// record makes the rollout, which is recorded where the programs read it, but for windows, of which
// it has the numbers of rows. f evaluates what returns end with.
func (l *learner) record(f *onpolicy.Forward) {
	samples, frame := l.c.NSteps*l.Setup.Envs, l.Networks.Frame
	r := onpolicy.NewRollout(&l.Learner, l.c.NSteps, l.c.Gamma, f, actionsInput, func(name string, f *envs.Field) *onpolicy.Column {
		dtype, shape := tensor.Bool, []int{frame.MaskLen()}
		switch {
		case name == actionsInput:
			dtype, shape = frame.Stored()
		case f != nil && f.Window != nil:
			return &onpolicy.Column{Name: name, Window: f.Window, Rows: make([]int64, samples)}
		case f != nil:
			dtype, shape = f.Space.DType(), f.Space.Shape()
		}
		if l.train != nil {
			if t := l.train.Input(name); t != nil {
				return onpolicy.NewColumn(name, t)
			}
		}
		return onpolicy.NewColumn(name, tensor.New(dtype, append([]int{samples}, shape...)...))
	})
	l.logMu, l.rho = make([]float64, samples), make([]float64, samples)
	r.OffPolicy = true
	r.Record = func(_ *vector.Batch, d *vector.Decision, at int) error {
		for e, p := range d.LogProb {
			l.logMu[at+e] = float64(p)
		}
		return nil
	}
}

func (l *learner) newOptimizer(c Config) error {
	if l.train == nil {
		return nil
	}
	if err := l.NewOptimizer(c.Optimizer, l.train.Pool(), l.train.Unreached(), func(string) int { return 0 }, c.LearningRate); err != nil {
		return err
	}
	for k := range l.Groups {
		// SetLR multiplies the schedule's factor by this.
		l.Groups[k].LRScale = l.Groups[k].LR
	}
	return nil
}

// Edit implements agents.Editor. The graph has a surrogate only where there is a clip_range.
func (l *learner) Edit(config any, totalEnvSteps int64) error {
	if err := agents.Editable(l.c, config, append([]string{"ent_coef", "vtrace", "n_epochs", "clip_range"}, onpolicy.Editable...)...); err != nil {
		return err
	}
	c := config.(Config)
	if (c.ClipRange > 0) != (l.old != nil) {
		return &agents.RebuildError{Path: "clip_range"}
	}
	if err := l.newOptimizer(c); err != nil {
		return fmt.Errorf("%s: %w", l.Name, err)
	}
	l.c, l.Rollout.Gamma, l.Setup.TotalEnvSteps = c, c.Gamma, totalEnvSteps
	clear(l.Metrics)
	return nil
}

// Unroll implements agents.Unroller.
func (l *learner) Unroll() (*agents.Unroll, error) { return l.TakeUnroll(l.arrays()) }

// Join implements agents.Unroller.
func (l *learner) Join(u *agents.Unroll, first int) error {
	return l.JoinUnroll(u, first, func() network.Arrays { return l.arrays() })
}

// Step implements agents.Learner.
func (l *learner) Step(ctx context.Context) (agents.Metrics, error) {
	if err := l.Complete(); err != nil {
		return nil, err
	}
	if l.train == nil {
		return nil, fmt.Errorf("%s: learn: the agent was made to act only", l.Name)
	}
	r := l.Rollout
	if !l.at.Begun {
		rlmath.FoldTruncation(r.Reward, r.Discount, r.Final, r.Ended)
		l.at = position{Begun: true}
	}
	l.gather()
	samples := int64(r.Samples())
	factor := l.c.LearningRateSchedule.Factor(l.c.LearningRate, l.Updates, (l.Setup.TotalEnvSteps+samples-1)/samples)
	optim.SetLR(l.Groups, factor)
	norm := 0.0
	for ; l.at.Epoch < l.c.NEpochs; l.at.Epoch++ {
		if err := l.Setup.Between(ctx, l.at.Epoch, l.c.NEpochs); err != nil {
			return nil, fmt.Errorf("%s: learn: %w", l.Name, err)
		}
		var err error
		if norm, err = l.epoch(); err != nil {
			return nil, fmt.Errorf("%s: learn: update %d, epoch %d: %w", l.Name, l.Updates, l.at.Epoch, err)
		}
	}
	l.Updates++
	l.at = position{}
	l.measure(norm, factor)
	r.Clear()
	return l.Metrics, nil
}

// gather copies windows and dropout masks into the program, which has everything else.
func (l *learner) gather() {
	l.masks.FillRollout(l.Rollout, 0)
	for _, c := range l.Rollout.Fields {
		if c == nil || c.Window == nil {
			continue
		}
		t := l.train.Input(c.Name)
		if t == nil {
			continue
		}
		to := t.Bytes()
		for i := range l.Rollout.Samples() {
			to = to[copy(to, c.At(i)):]
		}
	}
}

// epoch takes one gradient step on the whole batch.
func (l *learner) epoch() (norm float64, err error) {
	watch := l.Setup.Profile.Start()
	if err := l.evaluate.Run(); err != nil {
		return 0, err
	}
	l.correct()
	l.weigh()
	watch = watch.Lap(agents.Sampling)
	if err := l.train.Run(); err != nil {
		return 0, err
	}
	watch = watch.Lap(agents.Gradient)
	norm, err = l.Descend(l.c.MaxGradNorm)
	watch.Lap(agents.Optimising)
	return norm, err
}

// correct computes targets and advantages by V-trace under the present policy. The values that
// sequences end with, after the rollout and where an episode was cut off, remain those of the
// policy that acted. With a surrogate advantages are not weighed by min(ρ̄, ρ), because it weighs
// them by ρ itself.
func (l *learner) correct() {
	r, n := l.Rollout, l.Rollout.Envs
	for i := range l.rho {
		r.Value[i], l.rho[i] = float64(l.valuePi[i]), float64(l.logPi[i])
		if !r.Has(i) {
			l.rho[i] = l.logMu[i]
		}
	}
	rlmath.Ratios(l.rho, l.rho, l.logMu)
	r.After(l.Next, r.Value)
	c := rlmath.VTraceConfig{Lambda: l.c.GAELambda, ClipRho: l.c.VTrace.ClipRho, ClipC: l.c.VTrace.ClipC, ClipPGRho: l.c.VTrace.ClipPGRho}
	rlmath.VTrace(l.Target, l.Advantage, r.Reward, r.Discount, r.Value, l.Next, l.rho, c, n)
	if l.c.ClipRange == 0 {
		return
	}
	for i := range l.Advantage {
		// The error of the step after, by the targets.
		e := 0.0
		if i+n < len(l.Target) {
			e = l.Target[i+n] - r.Value[i+n]
		}
		l.Advantage[i] = r.Reward[i] + r.Discount[i]*(l.Next[i]+l.c.GAELambda*e) - r.Value[i]
	}
}

// weigh writes the inputs of the loss.
func (l *learner) weigh() {
	r := l.Rollout
	there := r.Select(l.Scratch[0], l.Advantage)
	if l.c.NormalizeAdvantage {
		rlmath.Normalize(there)
		r.Spread(l.Advantage, there)
	}
	w := 1 / float64(len(there))
	for i, a := range l.Advantage {
		if !r.Has(i) {
			l.policyWeight[i], l.valueWeight[i], l.entropyWeight[i], l.target[i] = 0, 0, 0, 0
			if l.old != nil {
				l.old[i], l.floor[i] = l.logPi[i], 0
			}
			continue
		}
		l.policyWeight[i] = float32(-w * a)
		l.valueWeight[i] = float32(w * l.c.VFCoef)
		l.entropyWeight[i] = float32(-w * l.c.EntCoef)
		l.target[i] = float32(l.Target[i])
		if l.old != nil {
			l.old[i], l.floor[i] = float32(l.logMu[i]), float32(-w*a*(1+math.Copysign(l.c.ClipRange, a)))
		}
	}
}

// measure computes the metrics of the update, which are means over the samples of its last epoch,
// before its gradient step.
func (l *learner) measure(norm, factor float64) {
	r := l.Rollout
	var n, policy, value, entropy, clipped, kl, rho float64
	for i, a := range l.Advantage {
		if !r.Has(i) {
			continue
		}
		n++
		d := float64(l.value[i]) - l.Target[i]
		value += d * d
		entropy += float64(l.entropy[i])
		x := l.rho[i]
		rho += x
		kl += x - 1 - math.Log(x)
		if l.c.ClipRange == 0 {
			policy -= float64(l.logProb[i]) * a
			continue
		}
		policy -= min(x*a, min(max(x, 1-l.c.ClipRange), 1+l.c.ClipRange)*a)
		if math.Abs(x-1) > l.c.ClipRange {
			clipped++
		}
	}
	policy, value, entropy = policy/n, value/n, entropy/n
	m := l.Metrics
	m["train/loss"] = policy + l.c.VFCoef*value - l.c.EntCoef*entropy
	m["train/policy_loss"], m["train/value_loss"], m["train/entropy_loss"] = policy, value, -entropy
	m["train/entropy"], m["train/grad_norm"] = entropy, norm
	m["train/mean_rho"], m["train/approx_kl"] = rho/n, kl/n
	m["train/learning_rate"], m["train/n_updates"] = factor*l.c.LearningRate, float64(l.Updates)
	if l.c.ClipRange > 0 {
		m["train/clip_fraction"] = clipped / n
	}
	l.Measure()
}
