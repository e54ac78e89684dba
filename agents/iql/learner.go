package iql

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// learner updates critics, v and actor.
type learner struct {
	offpolicy.Learner
	c Config
	// rec records for the replay and the clock.
	rec agents.Recorder
	// recorded is an output of targets, and given the input of the losses that it is copied to;
	// both are nil where nothing reads them. advantage is u, of which weights, the actor's, are
	// made. noises are what drawn actions are made of.
	recorded, given, advantage, weights []float32
	noises                              [][]float32
	// sum is over the updates of the present learner step.
	sum     losses
	metrics agents.Metrics
}

// losses are sums over updates.
type losses struct {
	Actor  float64 `json:"actor"`
	Critic float64 `json:"critic"`
	Weight float64 `json:"weight"`
}

// Step implements agents.Learner. Before learning_starts it updates nothing, and the metrics have
// no train/loss.
func (l *learner) Step(ctx context.Context) (agents.Metrics, error) {
	factor, took, err := l.Advance(ctx, func() error {
		l.sum = losses{}
		return nil
	}, func(factor float64) error { return l.update(factor, &l.sum) })
	if err != nil {
		return nil, fmt.Errorf("iql: learn: %w", err)
	}
	m := l.metrics
	m["train/n_updates"] = float64(l.Updates)
	if !took {
		return m, nil
	}
	k, sum := float64(l.Of), &l.sum
	m["train/learning_rate"] = factor * l.ActorDescent.Rate
	m["train/loss"], m["train/actor_loss"], m["train/critic_loss"] = (sum.Actor+sum.Critic)/k, sum.Actor/k, sum.Critic/k
	m["train/weight_mean"] = sum.Weight / k
	l.Sources.Measure(m)
	return m, nil
}

// update takes one step of everything.
func (l *learner) update(factor float64, sum *losses) error {
	watch := l.Setup.Profile.Start()
	if err := l.Draw(0); err != nil {
		return err
	}
	l.Sources.Count(nil)
	for _, x := range l.noises {
		l.Noise.FillNormal32(x, 0, 1)
	}
	return l.learn(factor, sum, watch.Lap(agents.Sampling))
}

// learn takes one step of everything on the batch that was drawn.
func (l *learner) learn(factor float64, sum *losses, watch agents.Stopwatch) error {
	if err := l.Targets.Run(); err != nil {
		return fmt.Errorf("targets: %w", err)
	}
	rlmath.TwinTargets(l.Y, l.Batch.Reward, l.Batch.Discount, l.NextQ, l.NextQ)
	copy(l.given, l.recorded)
	critic, err := l.DescendCritics(factor, &watch)
	if err != nil {
		return err
	}
	// Nothing reads the target networks before the next update.
	l.Follower.Move()
	watch = watch.Lap(agents.Optimising)
	if err := l.Ahead.Run(); err != nil {
		return fmt.Errorf("advantage: %w", err)
	}
	weight := l.weigh()
	actor, err := l.DescendActor(factor, &watch)
	if err != nil {
		return err
	}
	l.Updates++
	sum.Actor, sum.Critic, sum.Weight = sum.Actor+actor, sum.Critic+critic, sum.Weight+weight
	watch.Lap(agents.Optimising)
	return nil
}

// deviation is added to that of the advantages of a batch, as in the authors' code of AWR.
const deviation = 1e-5

// weigh makes weights of the advantages, and returns their mean.
func (l *learner) weigh() (mean float64) {
	n, shift, scale, factor := float64(len(l.weights)), 0.0, l.c.WeightTemp, 1.0
	switch l.c.Advantage {
	case ofPolicy:
		shift, factor = float64(slices.Max(l.advantage)), 0
		for _, u := range l.advantage {
			factor += math.Exp(scale * (float64(u) - shift))
		}
		factor = n / factor
	case ofReturn:
		square := 0.0
		for _, u := range l.advantage {
			shift, square = shift+float64(u)/n, square+float64(u)*float64(u)/n
		}
		scale /= math.Sqrt(max(square-shift*shift, 0)) + deviation
	}
	for i, u := range l.advantage {
		w := factor * math.Exp(scale*(float64(u)-shift))
		if l.c.MaxWeight > 0 {
			w = min(w, l.c.MaxWeight)
		}
		l.weights[i] = float32(w)
		mean += w / n
	}
	return mean
}

// Edit implements agents.Editor.
func (l *learner) Edit(config any, totalEnvSteps int64) error {
	if err := agents.Editable(l.c, config, offpolicy.Editable...); err != nil {
		return err
	}
	c := config.(Config)
	if err := l.Learner.Edit(&c.Settings, &c.CriticSettings, totalEnvSteps); err != nil {
		return fmt.Errorf("iql: %w", err)
	}
	l.c = c
	clear(l.metrics)
	return nil
}

// LoadState implements checkpoint.Stater.
func (l *learner) LoadState(r *checkpoint.Reader) error {
	clear(l.metrics)
	return l.Learner.LoadState(r)
}
