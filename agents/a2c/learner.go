package a2c

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// learner updates the parameters once per rollout.
type learner struct {
	c      Config
	g      *graphs
	params *models.Params
	train  *minibatches
	// evaluate is nil without a correction.
	evaluate *minibatches
	// back is nil unless there are windows of a table and the encoder is trained; dz are then the
	// gradients of the features, [samples, series, width] for each encoder.
	back    *backward
	dz      [][]float32
	grads   *models.Segment
	rec     *recorder
	profile *agents.Profile
	// between is the setup's Between.
	between func(ctx context.Context, done, of int) error
	// sdeKey is what gSDE's matrices descend from.
	sdeKey rng.Key
	// total is the number of updates of the run, 0 when it is not known.
	total uint64

	opt    optim.Optimizer
	groups []optim.Group
	// updates counts the optimiser steps, which are also the versions of the policy.
	updates int64
	// replaced counts how often the parameters were replaced by saved ones.
	replaced int64

	// Inputs and outputs of train.
	policyWeight, valueWeight, entropyWeight, returns []float32
	logProb, entropy, value                           []float32
	// Outputs of evaluate.
	logPi, valuePi []float32
	// logStd is the parameter of a Gaussian policy; nil for others.
	logStd []float32
	// nextValue, advantage, target and rho, the importance weights, are [samples].
	nextValue, advantage, target, rho []float64
	metrics                           agents.Metrics
}

// newTraining compiles the learning program for a number of samples.
func newTraining(g *graphs, params *models.Params, grads *models.Segment, s agents.Setup, samples int) (*minibatches, error) {
	results := []string{logProbOutput, entropyOutput, agents.ValueOutput}
	loss := &autodiff.Objective{Losses: []autodiff.Loss{{Value: lossOutput}}, Stop: g.stops}
	if g.encodeGrad != nil && trainable(g.encodeGrad) {
		for _, name := range g.features {
			loss.Wrt, results = append(loss.Wrt, name), append(results, "grad/"+name)
		}
	}
	for _, p := range g.train.Specs {
		if p.Role == models.Trainable {
			loss.Wrt = append(loss.Wrt, p.Name)
		}
	}
	return newMinibatches(g.train, params, grads, s, samples, loss, results)
}

// init makes the learner of an agent, which its recorder already knows.
func (l *learner) init(a *Agent, rec *recorder) error {
	in := func(name string) []float32 { return a.train.in[name].Float32s() }
	out := func(name string) []float32 { return a.train.out[name].Float32s() }
	samples := len(rec.reward)
	*l = learner{
		c: a.c, g: a.graphs, params: a.params, train: a.train, evaluate: a.evaluate, back: a.back, grads: a.grads, rec: rec,
		profile: a.setup.Profile, between: a.setup.Between, sdeKey: a.setup.Key.Split("sde"), total: (uint64(a.setup.TotalEnvSteps) + uint64(samples) - 1) / uint64(samples),
		policyWeight: in(policyWeight), valueWeight: in(valueWeight), entropyWeight: in(entropyWeight), returns: in(returnsInput),
		logProb: out(logProbOutput), entropy: out(entropyOutput), value: out(agents.ValueOutput),
		nextValue: make([]float64, samples), advantage: make([]float64, samples), target: make([]float64, samples), metrics: agents.Metrics{},
	}
	if l.evaluate != nil {
		l.logPi, l.valuePi, l.rho = l.evaluate.out[logProbOutput].Float32s(), l.evaluate.out[agents.ValueOutput].Float32s(), make([]float64, samples)
	}
	if t := l.params.View(logStdParam); t != nil {
		l.logStd = t.Float32s()
	}
	if l.back != nil {
		for _, name := range l.g.features {
			l.dz = append(l.dz, out("grad/"+name))
		}
	}
	return l.newOptimizer()
}

// newOptimizer gives every parameter that the loss depends on the learning rate of its owner.
func (l *learner) newOptimizer() error {
	seg := l.params.Segment(models.Trainable)
	unreached := l.train.prog.Unreached()
	if l.back != nil {
		unreached = append(slices.Clone(unreached), l.back.prog.Unreached()...)
	}
	var list [2][]optim.Param
	for i, s := range seg.Specs() {
		if slices.Contains(unreached, s.Name) {
			continue
		}
		off, n := seg.Range(i)
		owner := 0
		if strings.HasPrefix(s.Name, critic+".") {
			owner = 1
		}
		list[owner] = append(list[owner], optim.Param{Name: s.Name, Offset: off, Len: n})
	}
	if bad := l.c.Optimizer.Unmatched(slices.Concat(list[:]...)); len(bad) > 0 {
		return fmt.Errorf("optimizer: patterns %q match no trainable parameter", bad)
	}
	for i, lr := range []float64{l.c.LearningRate, l.c.criticLearningRate()} {
		c := l.c.Optimizer.Config
		c.LR = lr
		groups, err := optim.Groups(c, seg.Floats(), l.grads.Floats(), list[i])
		if err != nil {
			return fmt.Errorf("optimizer: %w", err)
		}
		for k := range groups {
			// SetLR multiplies the schedule's factor by this.
			groups[k].LRScale = groups[k].LR
		}
		l.groups = append(l.groups, groups...)
	}
	var err error
	l.opt, err = optim.New(l.c.Optimizer.Config, optim.WithPool(l.train.prog.Pool()))
	return err
}

// stamp identifies the present parameters.
func (l *learner) stamp() stamp { return stamp{l.updates, l.replaced} }

// Ready implements agents.Learner: a rollout is complete.
// StepRounds implements agents.Stepper.
func (l *learner) StepRounds() int { return l.rec.rounds }

func (l *learner) Ready() bool { return l.rec.full() }

// Policy implements agents.Learner.
func (l *learner) Policy() (*models.Network, *models.Params) { return l.g.policy, l.params }

// Step implements agents.Learner.
func (l *learner) Step(ctx context.Context) (agents.Metrics, error) {
	if !l.Ready() {
		return nil, fmt.Errorf("a2c: learn: %d of %d rounds are recorded", l.rec.t, l.rec.rounds)
	}
	watch := l.profile.Start()
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
	factor := l.factor()
	optim.SetLR(l.groups, factor)
	limit := l.c.MaxGradNorm
	if limit == 0 {
		limit = math.Inf(1)
	}
	norm, _, err := optim.ClipGlobalNorm(l.groups, limit)
	if err != nil {
		return nil, fmt.Errorf("a2c: learn: update %d: %w", l.updates, err)
	}
	if err := l.opt.Step(l.groups); err != nil {
		return nil, fmt.Errorf("a2c: learn: %w", err)
	}
	watch.Lap(agents.Optimising)
	l.updates++
	l.measure(norm, factor)
	l.rec.clear()
	return l.metrics, nil
}

// factor returns what the learning rates are multiplied by.
func (l *learner) factor() float64 {
	if l.c.relative() && l.total == 0 {
		return 1
	}
	return l.c.Schedule.WithInitial(1).At(uint64(l.updates), l.total)
}

// part returns what the programs of an update call between their runs: 0 is the correction's, 1 the
// learning one's and 2 the encoder's.
func (l *learner) part(ctx context.Context, k int) func(done, of int) error {
	return func(done, of int) error { return l.between(ctx, k*of+done, 3*of) }
}

// correct evaluates the rollout with the parameters that learn, which may be others than those that
// acted: values, and from the log-probabilities of what was done the importance weights.
func (l *learner) correct(ctx context.Context) error {
	if l.evaluate == nil {
		return nil
	}
	r := l.rec
	l.evaluate.copyFrom(l.train, len(l.rho))
	if err := l.evaluate.run(l.part(ctx, 0)); err != nil {
		return err
	}
	for i := range l.rho {
		r.value[i], l.rho[i] = float64(l.valuePi[i]), float64(l.logPi[i])
	}
	rlmath.Ratios(l.rho, l.rho, r.logMu)
	return nil
}

// targets computes returns and advantages of the rollout and from them the weights of the loss.
func (l *learner) targets() {
	r, n := l.rec, l.rec.envs
	rlmath.FoldTruncation(r.reward, r.discount, r.final, r.ended)
	copy(l.nextValue, r.value[n:])
	copy(l.nextValue[len(l.nextValue)-n:], r.bootstrap)
	if l.evaluate != nil {
		c := rlmath.VTraceConfig{Lambda: l.c.GAELambda, ClipRho: l.c.VTrace.ClipRho, ClipC: l.c.VTrace.ClipC, ClipPGRho: l.c.VTrace.ClipPGRho}
		rlmath.VTrace(l.target, l.advantage, r.reward, r.discount, r.value, l.nextValue, l.rho, c, n)
	} else {
		rlmath.GAE(l.advantage, r.reward, r.discount, r.value, l.nextValue, l.c.GAELambda, n)
		rlmath.AddTo(l.target, l.advantage, r.value)
	}
	if l.c.NormalizeAdvantage {
		rlmath.Normalize(l.advantage)
	}
	w := 1.0
	if l.c.Reduction == Mean {
		w /= float64(len(l.advantage))
	}
	for i, a := range l.advantage {
		l.policyWeight[i] = float32(-w * a)
		l.valueWeight[i] = float32(w * l.c.VFCoef)
		l.entropyWeight[i] = float32(-w * l.c.EntCoef)
		l.returns[i] = float32(l.target[i])
	}
}

// gradient runs the programs.
func (l *learner) gradient(ctx context.Context) error {
	if err := l.train.run(l.part(ctx, 1)); err != nil {
		return err
	}
	if l.back == nil {
		return nil
	}
	return l.back.run(l.part(ctx, 2), l.dz, l.rec.last, l.rec.start)
}

// measure computes the metrics of the update, which are means over the samples.
func (l *learner) measure(norm, factor float64) {
	n := float64(len(l.advantage))
	var policy, value, entropy, reward float64
	for i, a := range l.advantage {
		d := float64(l.value[i]) - l.target[i]
		policy -= float64(l.logProb[i]) * a
		value += d * d
		entropy += float64(l.entropy[i])
		reward += l.rec.earned[i]
	}
	policy, value, entropy, reward = policy/n, value/n, entropy/n, reward/n
	m := l.metrics
	m["train/loss"] = policy + l.c.VFCoef*value - l.c.EntCoef*entropy
	m["train/policy_loss"], m["train/value_loss"], m["train/entropy_loss"] = policy, value, -entropy
	m["train/entropy"], m["train/mean_reward"], m["train/grad_norm"] = entropy, reward, norm
	m["train/learning_rate"], m["train/learning_rate_critic"] = factor*l.c.LearningRate, factor*l.c.criticLearningRate()
	m["train/n_updates"] = float64(l.updates)
	if l.logStd != nil {
		m["train/std"] = meanExp(l.logStd)
	}
	if l.rho != nil {
		m["train/mean_rho"] = mean(l.rho)
	}
	// It is not defined when all returns are equal.
	delete(m, "train/explained_variance")
	if v := rlmath.ExplainedVariance(l.rec.value, l.target); !math.IsNaN(v) && !math.IsInf(v, 0) {
		m["train/explained_variance"] = v
	}
}

func meanExp(log []float32) float64 {
	sum := 0.0
	for _, x := range log {
		sum += math.Exp(float64(x))
	}
	return sum / float64(len(log))
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}
