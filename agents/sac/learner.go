package sac

import (
	"context"
	"errors"
	"fmt"
	"math"

	"onnxrl/agents"
	"onnxrl/agents/network"
	"onnxrl/agents/replay"
	"onnxrl/models"
	"onnxrl/models/program"
	"onnxrl/runtime/crew"
	"onnxrl/runtime/optim"
	"onnxrl/runtime/rng"
)

// learner updates critics, actor and temperature.
type learner struct {
	c       Config
	g       *graphs
	params  *models.Params
	rec     *replay.Recorder
	buffer  *replay.Uniform
	hands   *crew.Crew
	profile *agents.Profile
	key     rng.Key
	envs    int
	total   uint64

	streams       *rng.Set
	sample, noise *rng.Stream

	// targets, critic and actor are the programs of an update, in this order.
	targets, critic, actor *program.Program
	batch                  replay.Batch
	// Outputs of targets, and inputs and outputs of the others.
	nextQ, nextLogProb  []float32
	y, logProb, alpha   []float32
	criticLoss, actLoss []float32
	noises              [][]float32
	trace               *trace

	temperature *temperature
	criticHalf  half
	actorHalf   half
	// follow moves the target networks: pairs of what moves and what it moves to.
	follow [][2][]float32
	// movers do that together; nil is the caller alone.
	movers *crew.Crew
	moves  func(k int)

	// updates counts the updates, stepped the rounds that had been recorded at the last learner step.
	updates, stepped int64
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

// moment says between which learner steps the next round lies, and in which part of these rounds.
func (l *learner) moment() moment {
	m := moment{cycle: l.stepped, updates: l.updates}
	if f := int64(l.c.SDESampleFreq); f > 0 {
		m.part = (l.rec.Rounds() - l.stepped) / f
	}
	return m
}

// Step implements agents.Learner. Before learning_starts, and before there are sequences for V-trace, it updates nothing, and the metrics have no train/loss.
func (l *learner) Step(context.Context) (agents.Metrics, error) {
	if !l.Ready() {
		return nil, fmt.Errorf("sac: learn: %d of %d rounds are recorded", l.rec.Rounds()-l.stepped, l.c.TrainFreq)
	}
	rounds := l.rec.Rounds() - l.stepped
	l.stepped += rounds
	m := l.metrics
	m["train/n_updates"] = float64(l.updates)
	if l.envSteps() <= int64(l.c.LearningStarts) || l.rec.Rounds() < int64(l.c.VTrace.Length) {
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
			return nil, fmt.Errorf("sac: learn: update %d: %w", l.updates+1, err)
		}
	}
	k := float64(n)
	m["train/n_updates"] = float64(l.updates)
	m["train/loss"], m["train/actor_loss"], m["train/critic_loss"] = (sum.actor+sum.critic)/k, sum.actor/k, sum.critic/k
	m["train/ent_coef"], m["train/entropy"] = sum.alpha/k, sum.entropy/k
	if l.temperature.auto {
		m["train/ent_coef_loss"] = sum.temperature / k
	}
	m["train/learning_rate"] = factor * l.actorHalf.lr
	if l.c.UseSDE {
		m["train/std"] = l.deviation()
	}
	return m, nil
}

// deviation is the mean of the elements of gSDE's matrix of standard deviations.
func (l *learner) deviation() float64 {
	logStd, sum := l.params.View(actorScope+"."+network.LogStdParam).Float32s(), 0.0
	for _, x := range logStd {
		sum += math.Exp(float64(x))
	}
	return sum / float64(len(logStd))
}

// losses are sums over updates.
type losses struct{ actor, critic, temperature, alpha, entropy float64 }

// factor is the schedule's. One that lasts as long as the run holds its first value where the run's length is not known.
func (l *learner) factor() float64 {
	s := l.c.Schedule.WithInitial(1)
	if l.total == 0 && s.Steps == 0 && (s.Kind == "linear" || s.Kind == "cosine") {
		return 1
	}
	return s.At(uint64(l.envSteps()), l.total)
}

// update takes one step of everything.
func (l *learner) update(factor float64, sum *losses) error {
	lap := l.profile.Start()
	if err := l.draw(); err != nil {
		return err
	}
	return l.learn(factor, sum, lap.Spent(agents.Sampling))
}

// learn takes one step of everything on the batch and the noise that were drawn.
func (l *learner) learn(factor float64, sum *losses, lap agents.Lap) error {
	if err := l.targets.Run(); err != nil {
		return fmt.Errorf("targets: %w", err)
	}
	l.bellman(l.y)
	if err := l.critic.Run(); err != nil {
		return fmt.Errorf("critics: %w", err)
	}
	lap = lap.Spent(agents.Gradient)
	critic := float64(l.criticLoss[0])
	if err := l.step(&l.criticHalf, critic, factor); err != nil {
		return fmt.Errorf("critics: %w", err)
	}
	// Nothing reads the target networks before the next update, so they follow while the critics are in the cache.
	if (l.updates+1)%int64(l.c.TargetUpdateInterval) == 0 {
		l.movers.Run(l.moves)
	}
	lap = lap.Spent(agents.Optimising)
	alpha := l.temperature.alpha()
	l.alpha[0] = alpha
	if err := l.actor.Run(); err != nil {
		return fmt.Errorf("actor: %w", err)
	}
	lap = lap.Spent(agents.Gradient)
	actor := float64(l.actLoss[0])
	if err := l.step(&l.actorHalf, actor, factor); err != nil {
		return fmt.Errorf("actor: %w", err)
	}
	logProb := 0.0
	for _, x := range l.logProb {
		logProb += float64(x)
	}
	logProb /= float64(len(l.logProb))
	if l.temperature.auto {
		loss, err := l.temperature.step(logProb, l.targetEntropy(), factor*l.c.LearningRate)
		if err != nil {
			return fmt.Errorf("temperature: %w", err)
		}
		sum.temperature += loss
	}
	l.updates++
	sum.actor, sum.critic, sum.alpha, sum.entropy = sum.actor+actor, sum.critic+critic, sum.alpha+float64(alpha), sum.entropy-logProb
	lap.Spent(agents.Optimising)
	return nil
}

// draw samples a batch and all noise.
func (l *learner) draw() error {
	var err error
	if l.trace != nil {
		err = l.buffer.SampleSequences(l.sample, &l.batch, l.c.VTrace.Length, l.trace.ended)
	} else {
		err = l.buffer.Sample(l.sample, &l.batch)
	}
	for _, x := range l.noises {
		l.noise.FillNormal32(x, 0, 1)
	}
	return err
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

// targetEntropy is H̄, for the present batch where it depends on the masks.
func (l *learner) targetEntropy() float64 {
	if l.batch.Mask == nil || !l.c.TargetEntropy.Auto {
		return l.temperature.target
	}
	mask, n, sum := l.batch.Mask.Bools(), l.g.frame.MaskLen(), 0.0
	for i := 0; i < len(mask); i += n {
		valid := 0
		for _, ok := range mask[i : i+n] {
			if ok {
				valid++
			}
		}
		sum += math.Log(float64(max(valid, 1)))
	}
	return discreteEntropy * sum / float64(len(mask)/n)
}

// discreteEntropy is the part of the largest entropy that Discrete actions are kept at.
const discreteEntropy = 0.89

// autoTarget returns the target entropy that auto stands for.
func autoTarget(f *network.Frame) float64 {
	if f.Continuous() {
		return -float64(f.Dims)
	}
	return discreteEntropy * math.Log(float64(f.Heads[0]))
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
