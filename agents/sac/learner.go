package sac

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/diversity"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
)

// learner updates critics, actor and temperature.
type learner struct {
	offpolicy.Learner
	c Config
	// Outputs of targets, and inputs and outputs of actor.
	nextLogProb, logProb, alpha, lambda []float32
	noises                              [][]float32
	trace                               *trace
	// sharing is nil unless transitions of other policies are weighed.
	sharing     *sharing
	temperature *temperature
	// conservative is nil without.
	conservative *conservative
	// rec records for the replay and the constraints, and restarts noise.
	rec agents.Recorder
	// sum is over the updates of the present learner step.
	sum     losses
	metrics agents.Metrics
}

// Step implements agents.Learner. Before learning_starts, and before there are sequences for
// V-trace, it updates nothing, and the metrics have no train/loss.
func (l *learner) Step(ctx context.Context) (agents.Metrics, error) {
	factor, took, err := l.Advance(ctx, func() error {
		l.sum = losses{}
		if l.Buffer.Rounds() < int64(l.c.VTrace.Length) {
			l.Owed, l.Of = 0, 0
		}
		return l.Constraints.Begin(l.Of > 0)
	}, func(factor float64) error { return l.update(factor, &l.sum) })
	if err != nil {
		return nil, fmt.Errorf("sac: learn: %w", err)
	}
	m := l.metrics
	m["train/n_updates"] = float64(l.Updates)
	if !took {
		return m, nil
	}
	k, sum := float64(l.Of), &l.sum
	m["train/loss"], m["train/actor_loss"], m["train/critic_loss"] = (sum.Actor+sum.Critic)/k, sum.Actor/k, sum.Critic/k
	m["train/ent_coef"], m["train/entropy"] = sum.Alpha/k, sum.Entropy/k
	if l.temperature.auto {
		m["train/ent_coef_loss"] = sum.Temperature / k
	}
	m["train/learning_rate"] = factor * l.ActorDescent.Rate
	if l.conservative != nil {
		m["train/conservative_gap"], m["train/conservative_alpha"] = sum.Gap/k, sum.ConservativeAlpha/k
	}
	l.Sources.Measure(m)
	l.Diversity.Measure(m)
	l.Constraints.Measure(m)
	if l.c.UseSDE {
		m["train/std"] = l.deviation()
	}
	return m, nil
}

// deviation is the mean of the elements of gSDE's matrix of standard deviations.
func (l *learner) deviation() float64 {
	logStd, sum := l.Params.View(offpolicy.ActorScope+"."+network.LogStdParam).Float32s(), 0.0
	for _, x := range logStd {
		sum += math.Exp(float64(x))
	}
	return sum / float64(len(logStd))
}

// losses are sums over updates.
type losses struct {
	Actor       float64 `json:"actor"`
	Critic      float64 `json:"critic"`
	Temperature float64 `json:"temperature"`
	Alpha       float64 `json:"alpha"`
	Entropy     float64 `json:"entropy"`
	// Gap and ConservativeAlpha are the regulariser's, and its multiplier.
	Gap               float64 `json:"gap"`
	ConservativeAlpha float64 `json:"conservative_alpha"`
}

// update takes one step of everything.
func (l *learner) update(factor float64, sum *losses) error {
	watch := l.Setup.Profile.Start()
	if err := l.draw(); err != nil {
		return err
	}
	return l.learn(factor, sum, watch.Lap(agents.Sampling))
}

// learn takes one step of everything on the batch and the noise that were drawn.
func (l *learner) learn(factor float64, sum *losses, watch agents.Stopwatch) error {
	if err := l.Targets.Run(); err != nil {
		return fmt.Errorf("targets: %w", err)
	}
	l.bellman(l.Y)
	l.Sources.Count(l.ratios())
	l.Constraints.Feed(l.nextLogProb)
	l.conservative.weigh()
	critic, err := l.DescendCritics(factor, &watch)
	if err != nil {
		return err
	}
	if err := l.conservative.step(factor, sum); err != nil {
		return fmt.Errorf("conservative: %w", err)
	}
	// Nothing reads the target networks before the next update, so they follow while the critics
	// are in the cache.
	if (l.Updates+1)%int64(l.c.TargetUpdateInterval) == 0 {
		l.Follower.Move()
	}
	watch = watch.Lap(agents.Optimising)
	alpha := l.temperature.alpha()
	l.alpha[0] = alpha
	if l.c.BC != nil {
		// Nothing flows through the values of the targets.
		l.lambda[0] = l.c.BC.Lambda(l.NextQ)
	}
	actor, err := l.DescendActor(factor, &watch)
	if err != nil {
		return err
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
		sum.Temperature += loss
	}
	l.Updates++
	sum.Actor, sum.Critic, sum.Alpha, sum.Entropy = sum.Actor+actor, sum.Critic+critic, sum.Alpha+float64(alpha), sum.Entropy-logProb
	watch.Lap(agents.Optimising)
	return nil
}

// draw samples a batch and all noise.
func (l *learner) draw() error {
	err := l.Draw(l.c.VTrace.Length)
	for _, x := range l.noises {
		l.Noise.FillNormal32(x, 0, 1)
	}
	l.conservative.draw()
	return err
}

// targetEntropy is H̄, for the present batch where it depends on the masks.
func (l *learner) targetEntropy() float64 {
	if l.Batch.Mask == nil || !l.c.TargetEntropy.Auto {
		return l.temperature.target
	}
	mask, n, sum := l.Batch.Mask.Bools(), l.Networks.Frame.MaskLen(), 0.0
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

// Edit implements agents.Editor. A temperature that becomes automatic begins with its initial
// value.
func (l *learner) Edit(config any, totalEnvSteps int64) error {
	own := []string{"target_update_interval", "ent_coef", "target_entropy", "vtrace.lambda", "vtrace.clip_rho", "vtrace.clip_c", "use_sde_at_warmup", "sde_sample_freq", "constraints", "action_noise", "sharing.clip_rho", "bc.alpha"}
	if err := agents.Editable(l.c, config, append(own, slices.Concat(offpolicy.Editable, diversity.Editable, conservativeEditable)...)...); err != nil {
		return err
	}
	c := config.(Config)
	set := l.Constraints.Set()
	if err := set.Editable(c.Constraints); err != nil {
		return err
	}
	var regulariser *conservative
	t, err := newTemperature(c, l.Networks.Frame)
	if err == nil {
		err = t.follow(l.temperature)
	}
	if err == nil {
		regulariser, err = l.conservative.edited(c.Conservative)
	}
	if err == nil {
		err = l.Learner.Edit(&c.Settings, &c.CriticSettings, totalEnvSteps)
	}
	if err != nil {
		return fmt.Errorf("sac: %w", err)
	}
	set.Edit(c.Constraints)
	l.Diversity.Edit(c.Diversity)
	l.Explore(c.explored(l.Setup.Replay != nil))
	l.c, l.temperature, l.conservative = c, t, regulariser
	if l.trace != nil {
		l.trace.c = c.VTrace.config()
	}
	clear(l.metrics)
	return nil
}
