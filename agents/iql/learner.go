package iql

import (
	"context"
	"fmt"

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
	// weights are the actor's.
	recorded, given, weights []float32
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
	begun, err := l.Begin()
	if err != nil {
		return nil, fmt.Errorf("iql: learn: %w", err)
	}
	if begun {
		l.sum = losses{}
	}
	m := l.metrics
	m["train/n_updates"] = float64(l.Updates)
	if l.Of == 0 {
		return m, nil
	}
	factor := l.Factor()
	if err := l.Take(ctx, &l.Setup, func() error { return l.update(factor, &l.sum) }); err != nil {
		return nil, fmt.Errorf("iql: learn: %w", err)
	}
	k, sum := float64(l.Of), &l.sum
	m["train/n_updates"], m["train/learning_rate"] = float64(l.Updates), factor*l.ActorDescent.Rate
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
	return l.learn(factor, sum, watch.Lap(agents.Sampling))
}

// learn takes one step of everything on the batch that was drawn.
func (l *learner) learn(factor float64, sum *losses, watch agents.Stopwatch) error {
	if err := l.Targets.Run(); err != nil {
		return fmt.Errorf("targets: %w", err)
	}
	rlmath.TwinTargets(l.Y, l.Batch.Reward, l.Batch.Discount, l.NextQ, l.NextQ)
	copy(l.given, l.recorded)
	if err := l.Critic.Run(); err != nil {
		return fmt.Errorf("critics: %w", err)
	}
	watch = watch.Lap(agents.Gradient)
	critic := float64(l.CriticLoss[0])
	if err := l.CriticDescent.Step(critic, factor); err != nil {
		return fmt.Errorf("critics: %w", err)
	}
	// Nothing reads the target networks before the next update.
	l.Follower.Move()
	watch = watch.Lap(agents.Optimising)
	if err := l.Actor.Run(); err != nil {
		return fmt.Errorf("actor: %w", err)
	}
	watch = watch.Lap(agents.Gradient)
	actor := float64(l.ActorLoss[0])
	if err := l.ActorDescent.Step(actor, factor); err != nil {
		return fmt.Errorf("actor: %w", err)
	}
	weight := 0.0
	for _, w := range l.weights {
		weight += float64(w)
	}
	l.Updates++
	sum.Actor, sum.Critic, sum.Weight = sum.Actor+actor, sum.Critic+critic, sum.Weight+weight/float64(len(l.weights))
	watch.Lap(agents.Optimising)
	return nil
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
