package onpolicy

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/pool"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Learner is what learners have in common: all of an agents.Learner but Step. An algorithm's
// learner embeds it.
type Learner struct {
	// Name stands in front of errors.
	Name     string
	Setup    agents.Setup
	Networks *Networks
	Params   *models.Params
	// Grads are the gradients of the trainable parameters.
	Grads   *models.Segment
	Rollout *Rollout

	Optimizer optim.Optimizer
	Groups    []optim.Group
	// Updates counts the learner steps, which are also the versions of the policy, and Replaced how
	// often the parameters were replaced by saved ones.
	Updates, Replaced int64

	// Advantage and Target are what a rollout's samples are learnt with, Next the values after
	// them, [samples].
	Advantage, Target, Next []float64
	// Scratch has room for numbers of samples, [samples], for [Rollout.Select].
	Scratch [2][]float64
	Metrics agents.Metrics
	// Programs are closed with the learner.
	Programs []io.Closer

	// sdeKey is what gSDE's matrices descend from, dropKey what dropout masks do.
	sdeKey, dropKey rng.Key
}

// Build makes the parameters, for networks that are complete. After an error Close frees what there
// is.
func (l *Learner) Build(name string, s agents.Setup, n *Networks) error {
	l.Name, l.Setup, l.Networks, l.Metrics = name, s, n, agents.Metrics{}
	l.sdeKey, l.dropKey = s.Key.Split("sde"), s.Key.Split("dropout")
	values := n.Values
	n.Values = nil
	var err error
	if l.Params, err = network.NewParams(&s, n.Policy.Specs, values, nil); err != nil {
		return err
	}
	l.Grads, err = l.Params.Segment(models.Trainable).Like()
	return err
}

// Editable are keys that learners take while they live, see agents.Editor.
var Editable = []string{"gamma", "gae_lambda", "vf_coef", "normalize_advantage", "learning_rate", "learning_rate_schedule", "max_grad_norm", "optimizer", "sde_sample_freq"}

// NewOptimizer groups the parameters by owner, which is the index of their learning rate, but for
// those that no loss depends on. It takes over the state of the optimiser that there was. After an
// error nothing has changed.
func (l *Learner) NewOptimizer(c optim.Config, workers *pool.Pool, unreached []string, owner func(name string) int, rates ...float64) error {
	seg := l.Params.Segment(models.Trainable)
	lists := make([][]optim.Param, len(rates))
	for i, s := range seg.Specs() {
		if off, n := seg.Range(i); !slices.Contains(unreached, s.Name) {
			k := owner(s.Name)
			lists[k] = append(lists[k], optim.Param{Name: s.Name, Offset: off, Len: n})
		}
	}
	if bad := c.Unmatched(slices.Concat(lists...)); len(bad) > 0 {
		return fmt.Errorf("optimizer: patterns %q match no trainable parameter", bad)
	}
	var all []optim.Group
	for k, rate := range rates {
		c.LR = rate
		groups, err := optim.Groups(c, seg.Floats(), l.Grads.Floats(), lists[k])
		if err != nil {
			return fmt.Errorf("optimizer: %w", err)
		}
		all = append(all, groups...)
	}
	o, err := optim.New(c, optim.WithPool(workers))
	if err == nil && l.Optimizer != nil {
		err = o.SetState(l.Optimizer.State())
	}
	if err != nil {
		return fmt.Errorf("optimizer: %w", err)
	}
	l.Groups, l.Optimizer = all, o
	return nil
}

// Ready implements agents.Learner: a rollout is complete.
func (l *Learner) Ready() bool { return l.Rollout.Full() }

// StepRounds implements agents.Stepper.
func (l *Learner) StepRounds() int { return l.Rollout.Rounds }

// Policy implements agents.Learner.
func (l *Learner) Policy() (*models.Network, *models.Params) {
	if n := l.Networks.Exported; n != nil {
		return n, l.Params
	}
	return l.Networks.Policy, l.Params
}

// Complete returns an error unless a rollout can be learnt from.
func (l *Learner) Complete() error {
	if !l.Ready() {
		return fmt.Errorf("%s: learn: %d of %d rounds are recorded", l.Name, l.Rollout.T, l.Rollout.Rounds)
	}
	if p := l.Rollout.Present; p != nil && !slices.Contains(p, true) {
		return fmt.Errorf("%s: learn: no row was present in any of the %d rounds", l.Name, l.Rollout.Rounds)
	}
	return nil
}

// Estimate computes advantages and targets from the values of the rollout, by generalised advantage
// estimation. Rewards are those of [rlmath.FoldTruncation] afterwards.
func (l *Learner) Estimate(lambda float64) {
	r := l.Rollout
	rlmath.FoldTruncation(r.Reward, r.Discount, r.Final, r.Ended)
	r.After(l.Next, r.Value)
	rlmath.GAE(l.Advantage, r.Reward, r.Discount, r.Value, l.Next, lambda, r.Envs)
	rlmath.AddTo(l.Target, l.Advantage, r.Value)
}

// Descend takes one step down the gradient, whose norm, which it returns, is limited before; a
// limit of 0 does not.
func (l *Learner) Descend(limit float64) (norm float64, err error) {
	if limit == 0 {
		limit = math.Inf(1)
	}
	if norm, _, err = optim.ClipGlobalNorm(l.Groups, limit); err != nil {
		return norm, err
	}
	return norm, l.Optimizer.Step(l.Groups)
}

// Measure writes the metrics of policy and values: std, and explained_variance where it is defined,
// which it is not when all returns are equal.
func (l *Learner) Measure() {
	if t := l.Params.View(LogStdParam); t != nil {
		sum := 0.0
		for _, x := range t.Float32s() {
			sum += math.Exp(float64(x))
		}
		l.Metrics["train/std"] = sum / float64(t.Len())
	}
	delete(l.Metrics, "train/explained_variance")
	r := l.Rollout
	if v := rlmath.ExplainedVariance(r.Select(l.Scratch[0], r.Value), r.Select(l.Scratch[1], l.Target)); !math.IsNaN(v) && !math.IsInf(v, 0) {
		l.Metrics["train/explained_variance"] = v
	}
}

// Close frees programs and parameters.
func (l *Learner) Close() error {
	var errs []error
	for _, p := range l.Programs {
		errs = append(errs, p.Close())
	}
	if l.Grads != nil {
		errs = append(errs, l.Grads.Close())
	}
	if l.Params != nil {
		errs = append(errs, l.Params.Close())
	}
	l.Programs, l.Grads, l.Params = nil, nil, nil
	return errors.Join(errs...)
}
