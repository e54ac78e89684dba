package ppo

import (
	"context"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// learner updates the parameters from one rollout in several epochs of minibatches.
type learner struct {
	c       Config
	g       *graphs
	params  *models.Params
	grads   *models.Segment
	r       *rollout
	learn   *minibatch
	profile *agents.Profile
	// between is the setup's Between.
	between func(ctx context.Context, done, of int) error
	// key is what the order of samples descends from, sdeKey gSDE's matrices.
	key, sdeKey rng.Key
	// total is the number of env steps of the run, 0 when it is not known.
	total int64

	opt    optim.Optimizer
	groups []optim.Group
	// updates counts the learner steps, which are also the versions of the policy; epochs those of
	// all of them, and envSteps the env steps learnt from.
	updates, epochs, envSteps int64
	// replaced counts how often the parameters were replaced by saved ones.
	replaced int64

	in  inputs
	out outputs
	// at is where in an update the learner is.
	at position
	// order are the units of an epoch. advantage, target and nextValue are [samples].
	order                        []int
	advantage, target, nextValue []float64
	normal                       []float64
	off                          *offPolicy
	shuffle                      rng.Stream
	sums                         sums
	metrics                      agents.Metrics
}

// init makes the learner, which its rollout already knows.
func (l *learner) init(c Config, g *graphs, s agents.Setup, params *models.Params, grads *models.Segment, r *rollout, learn *minibatch, off *offPolicy) error {
	samples := len(r.reward)
	in := func(name string) []float32 { return learn.floats(learn.prog.Input, name) }
	out := func(name string) []float32 { return learn.floats(learn.prog.Output, name) }
	*l = learner{
		c: c, g: g, params: params, grads: grads, r: r, learn: learn, off: off, profile: s.Profile, between: s.Between, key: s.Key.Split("shuffle"), sdeKey: s.Key.Split("sde"), total: s.TotalEnvSteps,
		in: inputs{
			old: in(oldInput), returns: in(returnsInput), floor: in(floorInput), valueLow: in(valueLow), valueHigh: in(valueHigh),
			policy: in(policyWeight), value: in(valueWeight), entropy: in(entropyWeight),
		},
		out:   outputs{out(logProbOutput), out(entropyOutput), out(agents.ValueOutput)},
		order: make([]int, r.units()), advantage: make([]float64, samples), target: make([]float64, samples), nextValue: make([]float64, samples),
		normal: make([]float64, 0, len(learn.samples)), metrics: agents.Metrics{},
	}
	return l.newOptimizer()
}

// newOptimizer groups every parameter that the loss depends on.
func (l *learner) newOptimizer() error {
	seg := l.params.Segment(models.Trainable)
	unreached := map[string]bool{}
	for _, name := range l.learn.prog.Unreached() {
		unreached[name] = true
	}
	var list []optim.Param
	for i, s := range seg.Specs() {
		if off, n := seg.Range(i); !unreached[s.Name] {
			list = append(list, optim.Param{Name: s.Name, Offset: off, Len: n})
		}
	}
	if bad := l.c.Optimizer.Unmatched(list); len(bad) > 0 {
		return fmt.Errorf("optimizer: patterns %q match no trainable parameter", bad)
	}
	c := l.c.Optimizer
	c.LR = l.c.LearningRate
	var err error
	if l.groups, err = optim.Groups(c, seg.Floats(), l.grads.Floats(), list); err != nil {
		return fmt.Errorf("optimizer: %w", err)
	}
	l.opt, err = optim.New(l.c.Optimizer, optim.WithPool(l.learn.prog.Pool()))
	return err
}

// moment is where in training the next decision is taken.
func (l *learner) moment() network.Moment {
	return network.Moment{Key: l.sdeKey, Rollout: l.updates, Replaced: l.replaced, Round: l.r.t}
}

// Ready implements agents.Learner: a rollout is complete.
// StepRounds implements agents.Stepper.
func (l *learner) StepRounds() int { return l.r.rounds }

func (l *learner) Ready() bool { return l.r.full() }

// Policy implements agents.Learner.
func (l *learner) Policy() (*models.Network, *models.Params) { return l.g.policy, l.params }

// position is where an update stands between two minibatches.
type position struct {
	// Begun says that there is an update, whose advantages are estimated.
	Begun bool `json:"begun"`
	// Epoch is the present one, and Next the place in its order of the first unit that is not
	// learnt from yet.
	Epoch int `json:"epoch"`
	Next  int `json:"next"`
}

// Step implements agents.Learner.
func (l *learner) Step(ctx context.Context) (agents.Metrics, error) {
	if !l.Ready() {
		return nil, fmt.Errorf("ppo: learn: %d of %d rounds are recorded", l.r.t, l.r.rounds)
	}
	if !l.at.Begun {
		l.begin()
	}
	now := l.schedules()
	for ; l.at.Epoch < l.c.NEpochs; l.at.Epoch, l.at.Next = l.at.Epoch+1, 0 {
		goOn, err := l.epoch(ctx, now)
		if err != nil {
			return nil, fmt.Errorf("ppo: learn: update %d, epoch %d: %w", l.updates, l.at.Epoch, err)
		}
		l.epochs++
		if !goOn {
			break
		}
	}
	l.updates++
	l.at = position{}
	l.measure(now)
	l.r.clear()
	return l.metrics, nil
}

// begin begins an update.
func (l *learner) begin() {
	watch := l.profile.Start()
	l.envSteps += int64(len(l.advantage))
	l.sums = sums{}
	l.estimate()
	l.at = position{Begun: true}
	watch.Lap(agents.Sampling)
}

// coefficients are the values of the schedules in an update.
type coefficients struct{ learningRate, clip, clipVF, targetKL float64 }

// schedules returns what holds in the update after the env steps so far: as in Stable-Baselines3,
// those of the rollout to be learnt from count.
func (l *learner) schedules() coefficients {
	c := coefficients{
		learningRate: at(l.c.LearningRateSchedule, l.c.LearningRate, l.envSteps, l.total),
		clip:         at(l.c.ClipRangeSchedule, l.c.ClipRange, l.envSteps, l.total),
		targetKL:     at(l.c.TargetKLSchedule, l.c.TargetKL, l.envSteps, l.total),
	}
	c.clipVF = l.c.ClipRangeVF * c.clip / l.c.ClipRange
	return c
}

// estimate computes advantages and returns of the rollout from the values that the actor had.
func (l *learner) estimate() {
	r, n := l.r, l.r.envs
	rlmath.FoldTruncation(r.reward, r.discount, r.final, r.ended)
	copy(l.nextValue, r.value[n:])
	copy(l.nextValue[len(l.nextValue)-n:], r.bootstrap)
	rlmath.GAE(l.advantage, r.reward, r.discount, r.value, l.nextValue, l.c.GAELambda, n)
	rlmath.AddTo(l.target, l.advantage, r.value)
}

// epoch learns once from every sample that the epoch has left, in an order of its own. It returns
// false when the policy has gone too far.
func (l *learner) epoch(ctx context.Context, now coefficients) (bool, error) {
	if l.at.Next == 0 {
		if l.off != nil {
			if err := l.correct(ctx); err != nil {
				return false, err
			}
		}
		l.sums.kl, l.sums.klBatches = 0, 0
	}
	watch := l.profile.Start()
	l.shuffle.Seed(l.key.Split("epoch", int(l.updates), l.at.Epoch))
	l.shuffle.Perm(l.order)
	optim.SetLR(l.groups, now.learningRate)
	limit := l.c.MaxGradNorm
	if limit == 0 {
		limit = math.Inf(1)
	}
	for ; l.at.Next < len(l.order); l.at.Next += l.learn.units {
		if err := l.between(ctx, l.at.Epoch*len(l.order)+l.at.Next, l.c.NEpochs*len(l.order)); err != nil {
			return false, err
		}
		l.fill(l.order[l.at.Next:min(l.at.Next+l.learn.units, len(l.order))], now)
		watch = watch.Lap(agents.Sampling)
		if err := l.learn.prog.Run(); err != nil {
			return false, err
		}
		watch = watch.Lap(agents.Gradient)
		if kl := l.diagnose(now); now.targetKL > 0 && kl > 1.5*now.targetKL {
			return false, nil
		}
		watch = watch.Lap(agents.Sampling)
		if _, _, err := optim.ClipGlobalNorm(l.groups, limit); err != nil {
			return false, err
		}
		if err := l.opt.Step(l.groups); err != nil {
			return false, err
		}
		watch = watch.Lap(agents.Optimising)
	}
	return true, nil
}
