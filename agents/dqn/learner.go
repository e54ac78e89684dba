package dqn

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/pool"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// ahead limits the transitions whose targets are computed in one run: their activations stay in the
// cache.
const (
	aheadRows  = 1024
	aheadBytes = 16 << 20
)

// shards returns in how many shards a network runs on a batch: in one where the threads do not
// divide it. Splitting pays from two thirds of [program.SplitFLOPs] on.
func shards(s *agents.Setup, n *models.Network, batch int, cost float64) int {
	rule := s.Split(program.SplitFLOPs * 2 / 3)
	if batch%max(1, s.Threads) != 0 {
		rule.Threads = 1
	}
	return rule.Shards(n, layer.Batch, batch, cost)
}

// learner takes gradient steps on sampled transitions.
type learner struct {
	offpolicy.Clock
	c       Config
	g       *graphs
	profile *agents.Profile
	// between is the setup's Between.
	between        func(ctx context.Context, done, of int) error
	params, target *models.Params
	grads          *models.Segment
	pool           *pool.Pool
	// train gives loss and gradients of one batch. targetQ gives the target network's values of the
	// following observations of ahead batches, and onlineQ, which double Q-learning has, the online
	// network's; it reads the same inputs.
	train, targetQ, onlineQ *program.Program
	ahead                   int

	layout replay.Layout
	buffer replay.Buffer
	// rec records for it, and for the clock.
	rec agents.Recorder
	// prioritised is the buffer when it is that.
	prioritised replay.Updater
	// weighted says that samples have importance weights.
	weighted bool
	stream   rng.Stream
	// samples are ahead batches; where there is one, its tensors are the programs' inputs. y are
	// their targets.
	samples  replay.Batch
	nextMask []bool
	y        []float32
	// fill pairs inputs of train with the rows of samples that are copied there; empty where they
	// are the same memory.
	fill                   [][2]*tensor.Tensor
	targets, weights       []float32
	qTarget, qOnline, loss []float32
	errors                 []float32

	descent *offpolicy.Descent
	// sum is that of the losses of the present learner step.
	sum     float64
	metrics agents.Metrics
}

// newLearner compiles the programs and makes the replay. After an error the learner has what close
// frees.
func newLearner(c Config, g *graphs, params, target *models.Params, s agents.Setup) (*learner, error) {
	l := &learner{c: c, g: g, profile: s.Profile, between: s.Between, params: params, target: target, metrics: agents.Metrics{}}
	l.stream.Seed(s.Key.Split("sample"))
	err := l.build(s)
	return l, err
}

func (l *learner) build(s agents.Setup) (err error) {
	l.layout = replay.LayoutOf(l.g.spec, replay.Column{Name: "action", DType: tensor.Int64})
	layout := l.layout
	c := replay.Config{Capacity: l.c.BufferSize, Envs: s.Envs, NSteps: l.c.NSteps, Gamma: l.c.Gamma}
	given := s.Replay
	if p := l.c.Prioritised; p.Enabled && given == nil {
		own, err := replay.NewPrioritised(layout, c, replay.Priorities{Alpha: p.Alpha, Eps: p.Eps})
		if err != nil {
			return err
		}
		l.buffer = own
	} else if l.buffer, err = replay.Open(given, layout, c); err != nil {
		return err
	}
	if l.c.Prioritised.Enabled {
		var ok bool
		if l.prioritised, ok = l.buffer.(replay.Updater); !ok {
			return fmt.Errorf("prioritised.enabled: the replay %q has no priorities", given.Identity())
		}
	}
	l.Clock = offpolicy.NewClock(&l.c.Settings, &s, l.buffer)
	l.rec = l.Clock.Recorder(l.buffer)
	l.weighted = l.prioritised != nil || given != nil
	l.ahead = l.lookahead(l.c, layout, s.Envs)
	if l.grads, err = l.params.Segment(models.Trainable).Like(); err != nil {
		return err
	}
	if err := l.compile(s); err != nil {
		return err
	}
	// What the program left there while it was tried out.
	clear(l.grads.Floats())
	l.lay(layout)
	return l.descend(&l.c.Settings)
}

// lookahead returns for how many batches targets are computed at once. The target network does not
// change during a learner step, so that does not change them; but the network that selects actions
// does, and so do priorities.
func (l *learner) lookahead(c Config, layout replay.Layout, envs int) int {
	if c.Double || l.weighted {
		return 1
	}
	steps := c.GradientSteps
	if steps < 0 {
		// Of an episode it is not known; then batches are taken one by one.
		steps = max(int(c.TrainFreq), 0) * envs
	}
	row := 1
	for _, o := range layout.Obs {
		n := o.DType.Size()
		for _, d := range o.Shape {
			n *= d
		}
		row += n
	}
	n := min(steps, aheadRows/c.BatchSize, aheadBytes/(row*c.BatchSize), c.BufferSize/c.BatchSize)
	for n > 1 && steps%n != 0 {
		n--
	}
	return max(n, 1)
}

// compile makes the programs.
func (l *learner) compile(s agents.Setup) (err error) {
	rows := l.ahead * l.c.BatchSize
	forward := program.Config{Engine: s.Engine, Batch: rows, BatchSymbol: layer.Batch, Shards: shards(&s, l.g.q, rows, 1)}
	var wrt []string
	for _, p := range l.g.train.Specs {
		if p.Role == models.Trainable {
			wrt = append(wrt, p.Name)
		}
	}
	learn := program.Config{
		Engine: s.Engine, Batch: l.c.BatchSize, BatchSymbol: layer.Batch, Shards: shards(&s, l.g.train, l.c.BatchSize, 3),
		Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: lossOutput}}, Wrt: wrt, Stop: []string{l.g.constant}}}, Gradients: []*models.Segment{l.grads},
	}
	if n := max(forward.Shards, learn.Shards); n > 1 {
		l.pool = pool.New(n, pool.Spin)
	}
	for _, c := range []*program.Config{&forward, &learn} {
		if c.Shards > 1 {
			c.Pool = l.pool
		}
	}
	if l.targetQ, err = program.New(l.g.q, l.target, forward); err != nil {
		return err
	}
	if l.c.Double {
		forward.Inputs = map[string]*tensor.Tensor{}
		for _, name := range l.targetQ.Inputs() {
			forward.Inputs[name] = l.targetQ.Input(name)
		}
		if l.onlineQ, err = program.New(l.g.q, l.params, forward); err != nil {
			return err
		}
	}
	l.train, err = program.New(l.g.train, l.params, learn)
	return err
}

// lay makes the batch that transitions are sampled into.
func (l *learner) lay(layout replay.Layout) {
	n := l.ahead * l.c.BatchSize
	room := func(in *tensor.Tensor) *tensor.Tensor {
		if l.ahead == 1 {
			return in
		}
		t := tensor.New(in.DType(), append([]int{n}, in.Shape()[1:]...)...)
		l.fill = append(l.fill, [2]*tensor.Tensor{in, t})
		return t
	}
	b := replay.Batch{Action: room(l.train.Input(actionsInput)), Reward: make([]float32, n), Discount: make([]float32, n)}
	for _, o := range layout.Obs {
		b.Obs, b.NextObs = append(b.Obs, room(l.train.Input(o.Name))), append(b.NextObs, l.targetQ.Input(o.Name))
	}
	if layout.Mask > 0 {
		b.NextMask = tensor.New(tensor.Bool, n, layout.Mask)
		l.nextMask = b.NextMask.Bools()
	}
	if l.weighted {
		b.Weight = make([]float32, n)
	}
	if l.prioritised != nil {
		b.Index = make([]int64, n)
	}
	l.samples, l.y = b, make([]float32, n)
	l.targets, l.weights = l.train.Input(targetsInput).Float32s(), l.train.Input(weightsInput).Float32s()
	for i := range l.weights {
		l.weights[i] = 1 / float32(l.c.BatchSize)
	}
	l.loss, l.errors = l.train.Output(lossOutput).Float32s(), l.train.Output(errorOutput).Float32s()
	l.qTarget = l.targetQ.Output(QValuesOutput).Float32s()
	if l.qOnline = l.qTarget; l.onlineQ != nil {
		l.qOnline = l.onlineQ.Output(QValuesOutput).Float32s()
	}
}

// descend makes the optimiser of the parameters that the loss depends on, in the state of the one
// before, if there was one.
func (l *learner) descend(s *offpolicy.Settings) error {
	d, list, err := offpolicy.NewDescent(s, s.LearningRate, l.params, l.grads, l.train, "", l.train.Pool())
	if err == nil {
		err = errors.Join(d.Follow(l.descent), offpolicy.Unmatched(s.Optimizer, list))
	}
	if err != nil {
		return err
	}
	if d.Clip == 0 {
		// A gradient that is no number is an error all the same.
		d.Clip = math.Inf(1)
	}
	l.descent = d
	return nil
}

// epsilon returns the exploration rate of the schedule.
func (l *learner) epsilon() float64 {
	c := &l.c
	switch p, known := l.Progress(); {
	case !known:
		return c.ExplorationInitial
	case p >= c.ExplorationFraction:
		return c.ExplorationFinal
	default:
		return c.ExplorationInitial + p*(c.ExplorationFinal-c.ExplorationInitial)/c.ExplorationFraction
	}
}

// rate returns the probability of a random action now.
func (l *learner) rate() float64 {
	if l.Waiting() {
		return 1
	}
	return l.epsilon()
}

// Policy implements agents.Learner.
func (l *learner) Policy() (*models.Network, *models.Params) { return l.g.policy, l.params }

// Step implements agents.Learner. Until learning_starts env steps are taken it takes no gradient
// step.
func (l *learner) Step(ctx context.Context) (agents.Metrics, error) {
	from := l.Stepped
	begun, err := l.Begin()
	if err != nil {
		return nil, fmt.Errorf("dqn: learn: %w", err)
	}
	if begun {
		l.follow(from, l.Stepped)
		l.sum = 0
	}
	delete(l.metrics, "train/loss")
	factor := l.Factor()
	if l.Of > 0 {
		if err := l.learn(ctx, factor); err != nil {
			return nil, fmt.Errorf("dqn: learn: gradient step %d: %w", l.Updates+1, err)
		}
		l.metrics["train/loss"] = l.sum / float64(l.Of)
	}
	l.metrics["train/n_updates"], l.metrics["train/learning_rate"] = float64(l.Updates), l.c.LearningRate*factor
	l.metrics["rollout/exploration_rate"] = l.epsilon()
	return l.metrics, nil
}

// follow moves the target network as often as it was due between two numbers of rounds, in which
// the online network did not change.
func (l *learner) follow(from, to int64) {
	every := max(1, int64(l.c.TargetUpdateInterval)/l.Envs())
	times := to/every - from/every
	if l.c.Tau == 1 {
		// Copying again changes nothing.
		times = min(times, 1)
	}
	watch := l.profile.Start()
	for range times {
		for i, s := range l.target.Segments() {
			switch src := l.params.Segments()[i]; s.Role {
			case models.Trainable:
				optim.Polyak(s.Floats(), src.Floats(), float32(l.c.Tau))
			case models.Buffer:
				copy(s.Floats(), src.Floats())
			}
		}
	}
	watch.Lap(agents.Optimising)
}

// learn takes the gradient steps that are owed, and adds up their losses. When ctx ends it stops
// before batches are sampled.
func (l *learner) learn(ctx context.Context, factor float64) error {
	if l.prioritised != nil {
		p := l.c.Prioritised
		part, _ := l.Progress()
		l.prioritised.SetBeta(p.Beta + part*(p.BetaFinal-p.Beta))
	}
	for ; l.Owed > 0; l.Owed-- {
		part := (l.Of - l.Owed) % l.ahead
		if part == 0 {
			if err := l.between(ctx, l.Of-l.Owed, l.Of); err != nil {
				return err
			}
			if err := l.sample(); err != nil {
				return err
			}
		}
		watch := l.profile.Start()
		l.load(part)
		if err := l.train.Run(); err != nil {
			return err
		}
		l.sum += float64(l.loss[0])
		watch = watch.Lap(agents.Gradient)
		if err := l.descent.Step(float64(l.loss[0]), factor); err != nil {
			return err
		}
		l.Updates++
		watch = watch.Lap(agents.Optimising)
		if l.prioritised != nil {
			if err := l.prioritised.Update(l.samples.Index, l.errors); err != nil {
				return err
			}
			watch.Lap(agents.Sampling)
		}
	}
	return nil
}

// sample draws the next batches and computes their targets.
func (l *learner) sample() error {
	watch := l.profile.Start()
	if err := l.buffer.Sample(&l.stream, &l.samples); err != nil {
		return err
	}
	watch.Lap(agents.Sampling)
	return l.evaluate()
}

// evaluate computes the targets of the batches that were drawn.
func (l *learner) evaluate() error {
	watch := l.profile.Start()
	if err := l.targetQ.Run(); err != nil {
		return err
	}
	if l.onlineQ != nil {
		if err := l.onlineQ.Run(); err != nil {
			return err
		}
	}
	watch = watch.Lap(agents.Gradient)
	rlmath.DoubleQTargets(l.y, l.samples.Reward, l.samples.Discount, l.qTarget, l.qOnline, l.nextMask)
	watch.Lap(agents.Sampling)
	return nil
}

// load makes one of the sampled batches the training program's.
func (l *learner) load(part int) {
	for _, p := range l.fill {
		b := p[0].Bytes()
		copy(b, p[1].Bytes()[part*len(b):])
	}
	copy(l.targets, l.y[part*len(l.targets):])
	for i, w := range l.samples.Weight {
		l.weights[i] = w / float32(l.c.BatchSize)
	}
}

// Edit implements agents.Editor.
func (l *learner) Edit(config any, totalEnvSteps int64) error {
	own := []string{"target_update_interval", "exploration_fraction", "exploration_initial_eps", "exploration_final_eps", "prioritised.alpha", "prioritised.eps", "prioritised.beta", "prioritised.beta_final"}
	if err := agents.Editable(l.c, config, append(own, offpolicy.Editable...)...); err != nil {
		return err
	}
	c := config.(Config)
	if l.lookahead(c, l.layout, int(l.Envs())) != l.ahead {
		// So many batches the programs are for.
		return &agents.RebuildError{Path: "gradient_steps"}
	}
	if err := l.descend(&c.Settings); err != nil {
		return fmt.Errorf("dqn: %w", err)
	}
	l.c = c
	l.SetTotal(totalEnvSteps)
	clear(l.metrics)
	if l.prioritised != nil {
		if err := l.prioritised.SetPriorities(replay.Priorities{Alpha: c.Prioritised.Alpha, Eps: c.Prioritised.Eps}); err != nil {
			return err
		}
	}
	return l.buffer.SetReturns(c.NSteps, c.Gamma)
}

// close frees programs and replay.
func (l *learner) close() error {
	var errs []error
	for _, p := range []*program.Program{l.train, l.onlineQ, l.targetQ} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	l.pool.Close()
	if l.grads != nil {
		errs = append(errs, l.grads.Close())
	}
	if l.buffer != nil {
		errs = append(errs, l.buffer.Close())
	}
	return errors.Join(errs...)
}
