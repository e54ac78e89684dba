package td3

import (
	"context"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/diversity"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/agents/rlmath"
)

// learner updates critics and actor.
type learner struct {
	offpolicy.Learner
	c Config
	// rec records for the replay and restarts noise.
	rec agents.Recorder
	// noise is what is added to the actions of targets; nil without smoothing.
	noise []float32
	// values are those that λ is computed from; both are nil without bc.
	values, lambda []float32
	// loss is the actor's newest.
	loss float64
	// sum is over the updates of the present learner step.
	sum     losses
	metrics agents.Metrics
}

// Step implements agents.Learner. Before learning_starts it updates nothing, and the metrics have
// no train/loss; they have train/actor_loss once the actor was updated.
func (l *learner) Step(ctx context.Context) (agents.Metrics, error) {
	factor, took, err := l.Advance(ctx, func() error {
		l.sum = losses{}
		return l.Constraints.Begin(l.Of > 0)
	}, func(factor float64) error { return l.update(factor, &l.sum) })
	if err != nil {
		return nil, fmt.Errorf("td3: learn: %w", err)
	}
	m := l.metrics
	m["train/n_updates"] = float64(l.Updates)
	if !took {
		return m, nil
	}
	sum := &l.sum
	if sum.Actors > 0 {
		l.loss = sum.Actor / float64(sum.Actors)
	}
	critic := sum.Critic / float64(l.Of)
	m["train/critic_loss"], m["train/learning_rate"] = critic, factor*l.ActorDescent.Rate
	m["train/loss"] = critic + l.loss
	l.Sources.Measure(m)
	l.Diversity.Measure(m)
	l.Constraints.Measure(m)
	if l.Updates >= int64(l.c.PolicyDelay) {
		m["train/actor_loss"] = l.loss
	}
	return m, nil
}

// losses are sums over updates; Actors counts those of the actor.
type losses struct {
	Actor  float64 `json:"actor"`
	Critic float64 `json:"critic"`
	Actors int     `json:"actors"`
}

// update takes one step of the critics and, every policy_delay times, of the actor and the target
// networks.
func (l *learner) update(factor float64, sum *losses) error {
	watch := l.Setup.Profile.Start()
	if err := l.draw(); err != nil {
		return err
	}
	return l.learn(factor, sum, watch.Lap(agents.Sampling))
}

// draw samples a batch and the noise of the target policy.
func (l *learner) draw() error {
	if err := l.Draw(0); err != nil {
		return err
	}
	l.Sources.Count(nil)
	if l.noise != nil {
		l.Noise.FillNormal32(l.noise, 0, l.c.TargetPolicyNoise)
		limit := float32(l.c.TargetNoiseClip)
		for i, x := range l.noise {
			l.noise[i] = min(max(x, -limit), limit)
		}
	}
	return nil
}

// learn takes a step on the batch and the noise that were drawn.
func (l *learner) learn(factor float64, sum *losses, watch agents.Stopwatch) error {
	if err := l.Targets.Run(); err != nil {
		return fmt.Errorf("targets: %w", err)
	}
	rlmath.TwinTargets(l.Y, l.Batch.Reward, l.Batch.Discount, l.NextQ, l.NextQ)
	l.Constraints.Feed(nil)
	critic, err := l.DescendCritics(factor, &watch)
	if err != nil {
		return err
	}
	sum.Critic += critic
	watch = watch.Lap(agents.Optimising)
	l.Updates++
	if l.Updates%int64(l.c.PolicyDelay) != 0 {
		return nil
	}
	if err := l.weigh(); err != nil {
		return err
	}
	actor, err := l.DescendActor(factor, &watch)
	if err != nil {
		return err
	}
	l.Follower.Move()
	sum.Actor, sum.Actors = sum.Actor+actor, sum.Actors+1
	watch.Lap(agents.Optimising)
	return nil
}

// weigh computes λ = alpha/mean |q₁(obs_tm1, π(obs_tm1))|, through which nothing flows.
func (l *learner) weigh() error {
	if l.lambda == nil {
		return nil
	}
	if err := l.Ahead.Run(); err != nil {
		return fmt.Errorf("values: %w", err)
	}
	l.lambda[0] = l.c.BC.Lambda(l.values)
	return nil
}

// Edit implements agents.Editor.
func (l *learner) Edit(config any, totalEnvSteps int64) error {
	if err := agents.Editable(l.c, config, append([]string{"policy_delay", "target_policy_noise", "target_noise_clip", "action_noise", "bc.alpha", "constraints"}, slices.Concat(offpolicy.Editable, diversity.Editable)...)...); err != nil {
		return err
	}
	c := config.(Config)
	if (c.TargetPolicyNoise > 0) != (l.noise != nil) {
		return &agents.RebuildError{Path: "target_policy_noise"}
	}
	set := l.Constraints.Set()
	if err := set.Editable(c.Constraints); err != nil {
		return err
	}
	if err := l.Learner.Edit(&c.Settings, &c.CriticSettings, totalEnvSteps); err != nil {
		return fmt.Errorf("td3: %w", err)
	}
	l.c = c
	set.Edit(c.Constraints)
	l.Explore(offpolicy.Exploration{Noise: c.ActionNoise})
	l.Diversity.Edit(c.Diversity)
	clear(l.metrics)
	return nil
}
