package a2c

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/optim"
)

// learner updates the parameters once per rollout.
type learner struct {
	onpolicy.Learner
	// inUse says that an exploring actor uses the bank, so that what it computes is not computed
	// again.
	inUse bool
	c     Config
	g     *graphs
	train *minibatches
	// evaluate is nil without a correction.
	evaluate *minibatches
	// bank is nil unless there are windows of a table. z are then train's inputs of features, and
	// sample i is the window that ends with row last[i], in the chunk that begins at start[i].
	bank        *bank
	z           [][]float32
	last, start []int64
	// back is nil unless the encoder is trained, too; dz are then the gradients of the features,
	// [samples, series, width] for each encoder.
	back *backward
	dz   [][]float32
	// total is the number of updates of the run, 0 when it is not known.
	total int64

	// Inputs and outputs of train.
	policyWeight, valueWeight, entropyWeight, returns []float32
	logProb, entropy, value                           []float32
	// Outputs of evaluate.
	logPi, valuePi []float32
	// logMu are the log-probabilities with which the actions were drawn, and rho the importance
	// weights, [samples]; nil without a correction.
	logMu, rho []float64
}

// build makes the programs, the rollout and the optimiser.
func (l *learner) build() error {
	g, s := l.g, &l.Setup
	samples := l.c.NSteps * s.Envs
	var err error
	if l.train, err = l.newTraining(samples); err != nil {
		return err
	}
	if g.encode != nil {
		if l.bank, err = newBank(l, s.Envs); err != nil {
			return err
		}
		l.Programs = append(l.Programs, l.bank)
		if onpolicy.Trainable(g.encode) {
			if l.back, err = newBackward(l, samples); err != nil {
				return err
			}
			l.Programs = append(l.Programs, l.back.prog)
		}
	}
	// The programs wrote there while they were tried out.
	clear(l.Grads.Floats())
	f, err := l.NewForward(s.Envs)
	if err != nil {
		return err
	}
	l.Programs = append(l.Programs, f.Program)
	f.Inputs = l.features(f, l.bank)
	if g.Evaluate != nil {
		if l.evaluate, err = l.newMinibatches(g.Evaluate, samples, nil, []string{onpolicy.LogProbOutput, agents.ValueOutput}); err != nil {
			return err
		}
		l.logPi, l.valuePi = l.evaluate.out[onpolicy.LogProbOutput].Float32s(), l.evaluate.out[agents.ValueOutput].Float32s()
		l.logMu, l.rho = make([]float64, samples), make([]float64, samples)
	}
	l.bind(samples, f)
	return l.newOptimizer(l.c)
}

// features returns the inputs of features from a bank, nil without one.
func (l *learner) features(f *onpolicy.Forward, k *bank) onpolicy.Inputs {
	if k == nil {
		return nil
	}
	x := &features{bank: k, series: l.g.Frame.Series, learner: l}
	for _, name := range l.g.features {
		x.z = append(x.z, f.Program.Input(name).Float32s())
	}
	return x
}

// newTraining compiles the learning program for a number of samples.
func (l *learner) newTraining(samples int) (*minibatches, error) {
	g, results := l.g, []string{onpolicy.LogProbOutput, onpolicy.EntropyOutput, agents.ValueOutput}
	loss := &autodiff.Objective{Losses: []autodiff.Loss{{Value: onpolicy.LossOutput}}, Stop: g.Stops}
	if g.encodeGrad != nil && onpolicy.Trainable(g.encodeGrad) {
		for _, name := range g.features {
			loss.Wrt, results = append(loss.Wrt, name), append(results, "grad/"+name)
		}
	}
	for _, p := range g.Learn.Specs {
		if p.Role == models.Trainable {
			loss.Wrt = append(loss.Wrt, p.Name)
		}
	}
	return l.newMinibatches(g.Learn, samples, loss, results)
}

// bind makes the rollout, which is recorded where the learning program reads it, and finds the
// program's buffers. f evaluates what returns end with.
func (l *learner) bind(samples int, f *onpolicy.Forward) {
	r := onpolicy.NewRollout(&l.Learner, l.c.NSteps, l.c.Gamma, f, actionsInput, func(name string, _ *envs.Field) *onpolicy.Column {
		if in := l.train.in[name]; in != nil {
			return onpolicy.NewColumn(name, in)
		}
		return nil
	})
	r.OffPolicy, r.Record = l.evaluate != nil, l.record
	in := func(name string) []float32 { return l.train.in[name].Float32s() }
	out := func(name string) []float32 { return l.train.out[name].Float32s() }
	l.policyWeight, l.valueWeight, l.entropyWeight, l.returns = in(policyWeight), in(valueWeight), in(entropyWeight), in(returnsInput)
	l.logProb, l.entropy, l.value = out(onpolicy.LogProbOutput), out(onpolicy.EntropyOutput), out(agents.ValueOutput)
	l.setTotal(l.Setup.TotalEnvSteps)
	if l.bank != nil {
		l.last, l.start = make([]int64, samples), make([]int64, samples)
		for _, name := range l.g.features {
			l.z = append(l.z, in(name))
		}
	}
	if l.back != nil {
		for _, name := range l.g.features {
			l.dz = append(l.dz, out("grad/"+name))
		}
	}
}

// setTotal finds the number of updates of a run of so many env steps.
func (l *learner) setTotal(envSteps int64) {
	samples := int64(l.Rollout.Samples())
	l.total = (envSteps + samples - 1) / samples
}

// Edit implements agents.Editor.
func (l *learner) Edit(config any, totalEnvSteps int64) error {
	if err := agents.Editable(l.c, config, append([]string{"ent_coef", "vtrace", "reduction", "critic_learning_rate"}, onpolicy.Editable...)...); err != nil {
		return err
	}
	c := config.(Config)
	if err := l.newOptimizer(c); err != nil {
		return fmt.Errorf("a2c: %w", err)
	}
	l.c, l.Rollout.Gamma = c, c.Gamma
	l.setTotal(totalEnvSteps)
	clear(l.Metrics)
	return nil
}

// newOptimizer gives every parameter that the loss depends on the learning rate of its owner.
func (l *learner) newOptimizer(c Config) error {
	unreached := l.train.prog.Unreached()
	if l.back != nil {
		unreached = append(slices.Clone(unreached), l.back.prog.Unreached()...)
	}
	owner := func(name string) int {
		if strings.HasPrefix(name, onpolicy.CriticScope+".") {
			return 1
		}
		return 0
	}
	if err := l.NewOptimizer(c.Optimizer.Config, l.train.prog.Pool(), unreached, owner, c.LearningRate, c.criticLearningRate()); err != nil {
		return err
	}
	for k := range l.Groups {
		// SetLR multiplies the schedule's factor by this.
		l.Groups[k].LRScale = l.Groups[k].LR
	}
	return nil
}

// record writes what the loss needs beside the rollout.
func (l *learner) record(b *vector.Batch, d *vector.Decision, at int) error {
	if l.logMu != nil {
		for e, p := range d.LogProb {
			l.logMu[at+e] = float64(p)
		}
	}
	if l.bank == nil {
		return nil
	}
	for e, row := range b.Rows[l.g.Frame.Series] {
		p, err := l.bank.find(int(row), l.stamp())
		if err != nil {
			return err
		}
		l.bank.copyTo(l.z, at+e, p, int(row))
		l.last[at+e], l.start[at+e] = row, int64(p.start)
	}
	return nil
}

// stamp identifies the present parameters.
func (l *learner) stamp() stamp { return stamp{l.Updates, l.Replaced} }

// Step implements agents.Learner.
func (l *learner) Step(ctx context.Context) (agents.Metrics, error) {
	if err := l.Complete(); err != nil {
		return nil, err
	}
	watch := l.Setup.Profile.Start()
	// Nothing is changed before the optimiser's step: an update that is stopped begins again.
	if err := l.correct(ctx); err != nil {
		return nil, fmt.Errorf("a2c: learn: %w", err)
	}
	l.targets()
	watch = watch.Lap(agents.Sampling)
	if err := l.gradient(ctx); err != nil {
		return nil, fmt.Errorf("a2c: learn: %w", err)
	}
	watch = watch.Lap(agents.Gradient)
	factor := l.c.LearningRateSchedule.Factor(l.c.LearningRate, l.Updates, l.total)
	optim.SetLR(l.Groups, factor)
	norm, err := l.Descend(l.c.MaxGradNorm)
	if err != nil {
		return nil, fmt.Errorf("a2c: learn: update %d: %w", l.Updates, err)
	}
	watch.Lap(agents.Optimising)
	l.Updates++
	l.measure(norm, factor)
	l.Rollout.Clear()
	return l.Metrics, nil
}

// part returns what the programs of an update call between their runs: 0 is the correction's, 1 the
// learning one's and 2 the encoder's.
func (l *learner) part(ctx context.Context, k int) func(done, of int) error {
	return func(done, of int) error { return l.Setup.Between(ctx, k*of+done, 3*of) }
}

// correct evaluates the rollout with the parameters that learn, which may be others than those that
// acted: values, and from the log-probabilities of what was done the importance weights.
func (l *learner) correct(ctx context.Context) error {
	if l.evaluate == nil {
		return nil
	}
	r := l.Rollout
	l.evaluate.copyFrom(l.train, len(l.rho))
	if err := l.evaluate.run(r, l.part(ctx, 0)); err != nil {
		return err
	}
	for i := range l.rho {
		r.Value[i], l.rho[i] = float64(l.valuePi[i]), float64(l.logPi[i])
	}
	rlmath.Ratios(l.rho, l.rho, l.logMu)
	return nil
}

// targets computes returns and advantages of the rollout and from them the weights of the loss.
func (l *learner) targets() {
	r, n := l.Rollout, l.Rollout.Envs
	if l.evaluate == nil {
		l.Estimate(l.c.GAELambda)
	} else {
		rlmath.FoldTruncation(r.Reward, r.Discount, r.Final, r.Ended)
		r.After(l.Next, r.Value)
		c := rlmath.VTraceConfig{Lambda: l.c.GAELambda, ClipRho: l.c.VTrace.ClipRho, ClipC: l.c.VTrace.ClipC, ClipPGRho: l.c.VTrace.ClipPGRho}
		rlmath.VTrace(l.Target, l.Advantage, r.Reward, r.Discount, r.Value, l.Next, l.rho, c, n)
	}
	there := r.Select(l.Scratch[0], l.Advantage)
	if l.c.NormalizeAdvantage {
		rlmath.Normalize(there)
		r.Spread(l.Advantage, there)
	}
	w := 1.0
	if l.c.Reduction == Mean {
		w /= float64(len(there))
	}
	for i, a := range l.Advantage {
		if !r.Has(i) {
			l.policyWeight[i], l.valueWeight[i], l.entropyWeight[i], l.returns[i] = 0, 0, 0, 0
			continue
		}
		l.policyWeight[i] = float32(-w * a)
		l.valueWeight[i] = float32(w * l.c.VFCoef)
		l.entropyWeight[i] = float32(-w * l.c.EntCoef)
		l.returns[i] = float32(l.Target[i])
	}
}

// gradient runs the programs.
func (l *learner) gradient(ctx context.Context) error {
	if err := l.train.run(l.Rollout, l.part(ctx, 1)); err != nil {
		return err
	}
	if l.back == nil {
		return nil
	}
	return l.back.run(l.part(ctx, 2), l.dz, l.last, l.start)
}

// measure computes the metrics of the update, which are means over the samples.
func (l *learner) measure(norm, factor float64) {
	var n, policy, value, entropy, reward float64
	for i, a := range l.Advantage {
		if !l.Rollout.Has(i) {
			continue
		}
		n++
		d := float64(l.value[i]) - l.Target[i]
		policy -= float64(l.logProb[i]) * a
		value += d * d
		entropy += float64(l.entropy[i])
		reward += l.Rollout.Earned[i]
	}
	policy, value, entropy, reward = policy/n, value/n, entropy/n, reward/n
	m := l.Metrics
	m["train/loss"] = policy + l.c.VFCoef*value - l.c.EntCoef*entropy
	m["train/policy_loss"], m["train/value_loss"], m["train/entropy_loss"] = policy, value, -entropy
	m["train/entropy"], m["train/mean_reward"], m["train/grad_norm"] = entropy, reward, norm
	m["train/learning_rate"], m["train/learning_rate_critic"] = factor*l.c.LearningRate, factor*l.c.criticLearningRate()
	m["train/n_updates"] = float64(l.Updates)
	if l.rho != nil {
		m["train/mean_rho"] = mean(l.Rollout.Select(l.Scratch[0], l.rho))
	}
	l.Measure()
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}
