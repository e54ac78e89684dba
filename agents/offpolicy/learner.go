package offpolicy

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/diversity"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/pool"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// shards returns in how many shards a network runs on a batch, which programs share. Splitting pays
// from half of [program.SplitFLOPs] on: the workers of one program go on with the next at once.
func shards(s *agents.Setup, n *models.Network, batch int, cost float64) int {
	return s.Split(program.SplitFLOPs/2).Dividing(batch).Shards(n, layer.Batch, batch, cost)
}

// Learner is what the learners of actor-critics have in common: all of an agents.Learner but Step.
// An algorithm's learner embeds it, fills the targets and its own inputs, runs the programs and
// steps down the gradients that they leave.
type Learner struct {
	Clock
	// Name is the algorithm's, in errors.
	Name     string
	Setup    agents.Setup
	Networks *Networks
	Params   *models.Params
	// Grads are the gradients of the trainable parameters: each program writes those of its own
	// side.
	Grads *models.Segment
	// Buffer is the learner's own replay, or its place in the setup's.
	Buffer replay.Buffer
	// Workers run the programs' shards.
	Workers *pool.Pool
	// Key is what the learner's randomness descends from; Sample draws batches, Noise what actions
	// are made of.
	Key           rng.Key
	Sample, Noise *rng.Stream

	// Targets, Critic and Actor are the programs of an update, in this order. Batch is their input,
	// and Y, the targets [batch], are the critics'.
	Targets, Critic, Actor *program.Program
	// Ahead is Networks.Ahead over the same batch; nil where that is.
	Ahead *program.Program
	Batch replay.Batch
	Y     []float32
	// NextQ is QOutput of the targets; the losses are LossOutput of the others, [1].
	NextQ, CriticLoss, ActorLoss []float32
	// weights are WeightInput of actor and critics.
	weights []float32

	ActorDescent, CriticDescent *Descent
	Follower                    *Follower
	// Sources tells whose transitions are drawn, from a replay that several policies share; nil
	// without.
	Sources *Sources
	// Diversity pays for skills that can be told apart; nil without.
	Diversity *diversity.Estimator
	// Constraints keep what episodes cost below limits; nil without.
	Constraints *Constraints
	// Sums points to what the algorithm adds up over the updates of a learner step. It is saved as
	// JSON, where the step was stopped.
	Sums any

	streams     *rng.Set
	frozen      frozen
	exploration Exploration
	// noise is that of Explore; noiseInUse says that an exploring actor uses it.
	noise      *noise
	noiseInUse bool
}

// Build makes parameters, replay, programs and optimisers for networks that are complete. s and k
// are read as long as the learner lives. With logProb the replay keeps log-probabilities. After an
// error Close frees what there is.
func (l *Learner) Build(setup agents.Setup, s *Settings, k *CriticSettings, n *Networks, logProb bool) error {
	l.Setup, l.Networks = setup, n
	var err error
	if l.Params, err = n.params(&setup); err != nil {
		return err
	}
	if l.Grads, err = l.Params.Segment(models.Trainable).Like(); err != nil {
		return err
	}
	layout, err := LayoutOf(setup.Spec, logProb, n.Constraints)
	if err != nil {
		return err
	}
	if l.Buffer, err = replay.Open(setup.Replay, layout, replay.Config{Capacity: s.BufferSize, Envs: setup.Envs, NSteps: s.NSteps, Gamma: s.Gamma, Action: network.StoredOf}); err != nil {
		return err
	}
	l.Clock = NewClock(s, &setup, l.Buffer)
	l.Workers = pool.New(max(setup.Threads, 1), pool.Spin)
	l.Key = setup.Key.Split("learner")
	l.streams = rng.NewSet(l.Key)
	l.Sample, l.Noise = l.streams.Stream("sample"), l.streams.Stream("noise")
	if err := l.split(); err != nil {
		return err
	}
	if err := l.compile(s.BatchSize); err != nil {
		return err
	}
	l.bind(s.BatchSize)
	l.frozen.bind(l)
	if err := l.descend(s, k); err != nil {
		return err
	}
	l.Follower = NewFollower(l.Params, s.Tau, l.Workers)
	return nil
}

// compile makes the programs. The critics' and the targets' read the actor's batch where they read
// the same.
func (l *Learner) compile(batch int) error {
	n, shared := l.Networks, map[string]*tensor.Tensor{}
	compile := func(what string, net *models.Network, scope string, cost float64) (*program.Program, error) {
		c := program.Config{Engine: l.Setup.Engine, Batch: batch, BatchSymbol: layer.Batch, Shards: shards(&l.Setup, net, batch, cost), Pool: l.Workers, Inputs: shared}
		if scope != "" {
			// The other side's parameters are inputs like any other: nothing flows into them.
			c.Objectives, c.Gradients = []autodiff.Objective{{Losses: []autodiff.Loss{{Value: LossOutput}}, Wrt: trainable(net.Specs, scope)}}, []*models.Segment{l.Grads}
		}
		p, err := program.New(net, l.Params, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		for _, name := range p.Inputs() {
			// Each program has noise of its own.
			if name != NoiseInput {
				shared[name] = p.Input(name)
			}
		}
		return p, nil
	}
	var err error
	if l.Actor, err = compile("actor's program", n.Actor, ActorScope, 3); err != nil {
		return err
	}
	if l.Critic, err = compile("critics' program", n.Critic, CriticScope, 3); err != nil {
		return err
	}
	if l.Targets, err = compile("targets' program", n.Targets, "", 1); err != nil {
		return err
	}
	if n.Ahead != nil {
		l.Ahead, err = compile("program ahead", n.Ahead, "", 1)
	}
	// The programs wrote there while they were tried out.
	clear(l.Grads.Floats())
	return err
}

// bind finds the buffers of the programs.
func (l *Learner) bind(n int) {
	action := l.Critic.Input(actionInput)
	if action == nil {
		// Critics of observations alone.
		action = l.Actor.Input(actionInput)
	}
	l.Batch = replay.Batch{Action: action, Reward: make([]float32, n), Discount: make([]float32, n)}
	for _, f := range l.Networks.Frame.Spec.Observation {
		l.Batch.Obs, l.Batch.NextObs = append(l.Batch.Obs, l.Actor.Input(f.Name)), append(l.Batch.NextObs, l.Targets.Input(NextPrefix+f.Name))
	}
	l.Batch.Mask, l.Batch.NextMask = l.Actor.Input(agents.MaskInput), l.Targets.Input(NextPrefix+agents.MaskInput)
	l.Y, l.NextQ = l.Critic.Input(TargetInput).Float32s(), l.Targets.Output(QOutput).Float32s()
	l.CriticLoss, l.ActorLoss = l.Critic.Output(LossOutput).Float32s(), l.Actor.Output(LossOutput).Float32s()
	// The weights are the same tensor in both programs.
	l.weights = l.Actor.Input(WeightInput).Float32s()
	for i := range l.weights {
		l.weights[i] = 1 / float32(n)
	}
	if l.Setup.Replay != nil {
		// The learner's own replay draws all transitions alike.
		l.Batch.Weight = make([]float32, n)
		l.Sources = newSources(l.Buffer, &l.Batch, l.weights)
	}
}

// Stream returns a stream of the algorithm's own by name, which is saved with the others.
func (l *Learner) Stream(name string) *rng.Stream { return l.streams.Stream(name) }

// Draw samples the next batch: sequences of a length unless that is 0. Rewards have the bonus of
// diversity.
func (l *Learner) Draw(length int) error {
	var err error
	if length > 0 {
		err = l.Buffer.SampleSequences(l.Sample, &l.Batch, length)
	} else {
		err = l.Buffer.Sample(l.Sample, &l.Batch)
	}
	for i, w := range l.Batch.Weight {
		l.weights[i] = w / float32(len(l.weights))
	}
	if err != nil {
		return err
	}
	if err := l.frozen.fill(l); err != nil {
		return err
	}
	return l.Diversity.Pay(l.Batch.Reward, l.EnvSteps(), l.total)
}

// Diversify lets Draw add a bonus to the rewards that it samples, unless c has none. It follows
// Build and whatever else the algorithm asks for of Batch.
func (l *Learner) Diversify(c *diversity.Config) (err error) {
	if c.On() {
		l.Diversity, err = diversity.New(*c, &l.Setup, &l.Batch)
	}
	return err
}

// descend gives actor and critics an optimiser each, in the state of the one before, if there was
// one.
func (l *Learner) descend(s *Settings, k *CriticSettings) error {
	rate := s.LearningRate
	if k.CriticLearningRate > 0 {
		rate = k.CriticLearningRate
	}
	actor, a, err := NewDescent(s, s.LearningRate, l.Params, l.Grads, l.Actor, ActorScope, l.Workers)
	if err != nil {
		return err
	}
	critic, c, err := NewDescent(s, rate, l.Params, l.Grads, l.Critic, CriticScope, l.Workers)
	if err != nil {
		return err
	}
	if err := errors.Join(actor.Follow(l.ActorDescent), critic.Follow(l.CriticDescent), Unmatched(s.Optimizer, append(a, c...))); err != nil {
		return err
	}
	l.ActorDescent, l.CriticDescent = actor, critic
	return nil
}

// DescendCritics runs the critics' program, takes a step down its gradient and returns its loss.
// watch has counted the gradient, and counts the step.
func (l *Learner) DescendCritics(factor float64, watch *agents.Stopwatch) (loss float64, err error) {
	return descend("critics", l.Critic, l.CriticLoss, l.CriticDescent, factor, watch)
}

// DescendActor does the same with the actor's program.
func (l *Learner) DescendActor(factor float64, watch *agents.Stopwatch) (loss float64, err error) {
	return descend("actor", l.Actor, l.ActorLoss, l.ActorDescent, factor, watch)
}

func descend(what string, p *program.Program, out []float32, d *Descent, factor float64, watch *agents.Stopwatch) (loss float64, err error) {
	if err = p.Run(); err == nil {
		*watch = watch.Lap(agents.Gradient)
		loss = float64(out[0])
		err = d.Step(loss, factor)
	}
	if err != nil {
		return 0, fmt.Errorf("%s: %w", what, err)
	}
	return loss, nil
}

// Advance does what the learner steps of actor-critics have in common: it begins one, by begin, unless
// it goes on with one that was stopped, and takes the updates that are owed. took is false where
// there are none. factor is the schedule's.
func (l *Learner) Advance(ctx context.Context, begin func() error, update func(factor float64) error) (factor float64, took bool, err error) {
	begun, err := l.Begin()
	if err == nil && begun {
		err = begin()
	}
	if err != nil || l.Of == 0 {
		return 0, false, err
	}
	factor = l.Factor()
	err = l.Take(ctx, &l.Setup, func() error { return update(factor) })
	return factor, true, err
}

// Editable are the keys of [Settings] and [CriticSettings] that learners take while they live.
var Editable = []string{
	"learning_rate", "critic_learning_rate", "learning_rate_schedule", "optimizer", "max_grad_norm", "learning_starts", "n_steps", "gamma", "tau", "train_freq", "gradient_steps",
}

// Edit takes other values of the keys of [Editable], for what Build got. The settings that the
// clock reads are the caller's to change. After an error nothing has changed.
func (l *Learner) Edit(s *Settings, k *CriticSettings, totalEnvSteps int64) error {
	if err := l.descend(s, k); err != nil {
		return err
	}
	l.Follower.Tau, l.Setup.TotalEnvSteps = s.Tau, totalEnvSteps
	l.SetTotal(totalEnvSteps)
	return l.Buffer.SetReturns(s.NSteps, s.Gamma)
}

// Policy implements agents.Learner.
func (l *Learner) Policy() (*models.Network, *models.Params) { return l.Networks.Policy, l.Params }

// Close frees programs, replay and parameters.
func (l *Learner) Close() error {
	// Programs before those whose batch they read.
	errs := []error{l.Diversity.Close()}
	for _, p := range []*program.Program{l.Ahead, l.Targets, l.Critic, l.Actor} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	errs = append(errs, l.frozen.Close())
	if l.Buffer != nil {
		errs = append(errs, l.Buffer.Close())
	}
	if l.Grads != nil {
		errs = append(errs, l.Grads.Close())
	}
	if l.Params != nil {
		errs = append(errs, l.Params.Close())
	}
	l.Workers.Close()
	l.Ahead, l.Targets, l.Critic, l.Actor, l.Buffer, l.Grads, l.Params, l.Workers = nil, nil, nil, nil, nil, nil, nil, nil
	return errors.Join(errs...)
}
