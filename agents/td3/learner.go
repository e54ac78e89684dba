package td3

import (
	"context"
	"errors"
	"fmt"
	"math"

	"onnxrl/agents"
	"onnxrl/agents/replay"
	"onnxrl/agents/rlmath"
	"onnxrl/models"
	"onnxrl/models/program"
	"onnxrl/runtime/crew"
	"onnxrl/runtime/optim"
	"onnxrl/runtime/rng"
)

// learner updates critics and actor.
type learner struct {
	c       Config
	g       *graphs
	params  *models.Params
	rec     *recorder
	buffer  *replay.Uniform
	hands   *crew.Crew
	profile *agents.Profile
	key     rng.Key
	envs    int
	total   uint64

	streams        *rng.Set
	sample, smooth *rng.Stream

	// targets, critic and actor are the programs of an update, in this order.
	targets, critic, actor *program.Program
	batch                  replay.Batch
	// Inputs and outputs of the programs. noise is nil without smoothing.
	y, noise                     []float32
	nextQ, criticLoss, actorLoss []float32

	criticHalf half
	actorHalf  half
	// follow moves the target networks: pairs of what moves and what it moves to.
	follow [][2][]float32
	// movers do that together; nil is the caller alone.
	movers *crew.Crew
	moves  func(k int)

	// updates counts the updates of the critics, stepped the rounds that had been recorded at the last learner step, and loss is the actor's newest.
	updates, stepped int64
	loss             float64
	metrics          agents.Metrics
}

// half is the optimiser of the actor or of the critics.
type half struct {
	opt    optim.Optimizer
	groups []optim.Group
	lr     float64
}

// Ready implements agents.Learner: train_freq rounds are recorded since the last learner step.
func (l *learner) Ready() bool { return l.rec.Rounds()-l.stepped >= int64(l.c.TrainFreq) }

// Policy implements agents.Learner.
func (l *learner) Policy() (*models.Network, *models.Params) { return l.g.policy, l.params }

// envSteps is the number of env steps that were recorded.
func (l *learner) envSteps() int64 { return l.rec.Rounds() * int64(l.envs) }

// Step implements agents.Learner. Before learning_starts it updates nothing, and the metrics have no train/loss; they have train/actor_loss once the actor was updated.
func (l *learner) Step(context.Context) (agents.Metrics, error) {
	if !l.Ready() {
		return nil, fmt.Errorf("td3: learn: %d of %d rounds are recorded", l.rec.Rounds()-l.stepped, l.c.TrainFreq)
	}
	rounds := l.rec.Rounds() - l.stepped
	l.stepped += rounds
	m := l.metrics
	m["train/n_updates"] = float64(l.updates)
	if l.envSteps() <= int64(l.c.LearningStarts) {
		return m, nil
	}
	n := l.c.GradientSteps
	if n < 0 {
		n = int(rounds) * l.envs
	}
	factor := l.factor()
	var sum losses
	for range n {
		if err := l.update(factor, &sum); err != nil {
			return nil, fmt.Errorf("td3: learn: update %d: %w", l.updates+1, err)
		}
	}
	if sum.actors > 0 {
		l.loss = sum.actor / float64(sum.actors)
	}
	critic := sum.critic / float64(n)
	m["train/n_updates"], m["train/critic_loss"], m["train/learning_rate"] = float64(l.updates), critic, factor*l.actorHalf.lr
	m["train/loss"] = critic + l.loss
	if l.updates >= int64(l.c.PolicyDelay) {
		m["train/actor_loss"] = l.loss
	}
	return m, nil
}

// losses are sums over updates; actors counts those of the actor.
type losses struct {
	actor, critic float64
	actors        int
}

// factor is the schedule's. One that lasts as long as the run holds its first value where the run's length is not known.
func (l *learner) factor() float64 {
	s := l.c.Schedule.WithInitial(1)
	if l.total == 0 && s.Steps == 0 && (s.Kind == "linear" || s.Kind == "cosine") {
		return 1
	}
	return s.At(uint64(l.envSteps()), l.total)
}

// update takes one step of the critics and, every policy_delay times, of the actor and the target networks.
func (l *learner) update(factor float64, sum *losses) error {
	lap := l.profile.Start()
	if err := l.draw(); err != nil {
		return err
	}
	return l.learn(factor, sum, lap.Spent(agents.Sampling))
}

// draw samples a batch and the noise of the target policy.
func (l *learner) draw() error {
	if err := l.buffer.Sample(l.sample, &l.batch); err != nil {
		return err
	}
	if l.noise != nil {
		l.smooth.FillNormal32(l.noise, 0, l.c.TargetPolicyNoise)
		limit := float32(l.c.TargetNoiseClip)
		for i, x := range l.noise {
			l.noise[i] = min(max(x, -limit), limit)
		}
	}
	return nil
}

// learn takes a step on the batch and the noise that were drawn.
func (l *learner) learn(factor float64, sum *losses, lap agents.Lap) error {
	if err := l.targets.Run(); err != nil {
		return fmt.Errorf("targets: %w", err)
	}
	rlmath.TwinTargets(l.y, l.batch.Reward, l.batch.Discount, l.nextQ, l.nextQ)
	if err := l.critic.Run(); err != nil {
		return fmt.Errorf("critics: %w", err)
	}
	lap = lap.Spent(agents.Gradient)
	critic := float64(l.criticLoss[0])
	if err := l.step(&l.criticHalf, critic, factor); err != nil {
		return fmt.Errorf("critics: %w", err)
	}
	sum.critic += critic
	lap = lap.Spent(agents.Optimising)
	l.updates++
	if l.updates%int64(l.c.PolicyDelay) != 0 {
		return nil
	}
	if err := l.actor.Run(); err != nil {
		return fmt.Errorf("actor: %w", err)
	}
	lap = lap.Spent(agents.Gradient)
	actor := float64(l.actorLoss[0])
	if err := l.step(&l.actorHalf, actor, factor); err != nil {
		return fmt.Errorf("actor: %w", err)
	}
	l.movers.Run(l.moves)
	sum.actor, sum.actors = sum.actor+actor, sum.actors+1
	lap.Spent(agents.Optimising)
	return nil
}

// step moves the actor or the critics down their gradient.
func (l *learner) step(h *half, loss, factor float64) error {
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return fmt.Errorf("the loss is %v; lower the learning rate, or scale the rewards", loss)
	}
	optim.SetLR(h.groups, factor*h.lr)
	if limit := l.c.GradClip; limit > 0 {
		if _, _, err := optim.ClipGlobalNorm(h.groups, limit); err != nil {
			return err
		}
	}
	return h.opt.Step(h.groups)
}

// close frees the programs.
func (l *learner) close() error {
	var errs []error
	// Programs before those whose batch they read.
	for _, p := range []*program.Program{l.targets, l.critic, l.actor} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	l.targets, l.critic, l.actor = nil, nil, nil
	return errors.Join(errs...)
}
