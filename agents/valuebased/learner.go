package valuebased

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
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

// Learner takes gradient steps on sampled transitions. Its exported fields are what tests of
// algorithms compare with other implementations.
type Learner struct {
	offpolicy.Clock
	name  string
	setup agents.Setup
	// config is the algorithm's configuration, which design makes settings of.
	config   any
	design   func(config any) Design
	settings Settings
	graphs   *graphs
	// Params is the online network, Target the one that following states are evaluated by. Frozen
	// parameters are common to both.
	Params, Target *models.Params
	// Grads are the gradients of the trainable parameters.
	Grads *models.Segment
	pool  *pool.Pool
	// train gives loss and gradients of one batch. targetQ gives the target network's values of the
	// following observations of Ahead batches, and onlineQ, which double Q-learning has, the online
	// network's; it reads the same inputs.
	train, targetQ, onlineQ *program.Program
	// Ahead is the number of batches whose targets are computed at once.
	Ahead int

	layout replay.Layout
	Buffer replay.Buffer
	// rec records for it, and for the clock.
	rec agents.Recorder
	// prioritised is the buffer when it is that.
	prioritised replay.Updater
	// weighted says that samples have importance weights.
	weighted bool
	stream   rng.Stream
	// Batch is Ahead batches; where there is one, its tensors are the programs' inputs. Y are their
	// targets, [samples] or [samples, Design.Numbers].
	Batch    replay.Batch
	nextMask []bool
	Y        []float32
	// fill pairs inputs of train with the rows of Batch that are copied there; empty where they
	// are the same memory.
	fill    [][2]*tensor.Tensor
	targets []float32
	// Weights [batch] are those of the rows in the loss, Loss [1] and Errors [batch] the outputs of
	// an update.
	Weights, Loss, Errors []float32
	// zTarget are the numbers that targets are made of, qOnline the values that select actions.
	zTarget, qOnline []float32

	descent *offpolicy.Descent
	// sum is that of the losses of the present learner step.
	sum     float64
	metrics agents.Metrics
}

// build makes networks, parameters, the replay and programs. After an error Close frees what there
// is.
func (l *Learner) build() error {
	s, d := &l.setup, l.design(l.config)
	l.settings = d.Settings
	var err error
	if l.graphs, err = newGraphs(l.name, &d, s.Spec, s.Encoders, s.Key.Split("params")); err != nil {
		return err
	}
	g := l.graphs
	if l.Params, err = network.NewParams(s, g.policy.Specs, g.values, nil); err != nil {
		return err
	}
	g.values = nil
	if l.Target, err = models.NewParams(g.policy, l.Params.Segment(models.Frozen), l.Params.Segment(models.Base)); err != nil {
		return err
	}
	if err := l.Target.CopyFrom(l.Params); err != nil {
		return err
	}
	l.stream.Seed(s.Key.Split("sample"))
	if err := l.open(); err != nil {
		return err
	}
	l.Clock = offpolicy.NewClock(&l.settings.Settings, s, l.Buffer)
	l.rec = l.Clock.Recorder(l.Buffer)
	l.weighted = l.prioritised != nil || s.Replay != nil
	l.Ahead = l.lookahead(&l.settings, s.Envs)
	if l.Grads, err = l.Params.Segment(models.Trainable).Like(); err != nil {
		return err
	}
	if err := l.compile(); err != nil {
		return err
	}
	// Trying the program out left gradients.
	clear(l.Grads.Floats())
	l.lay(&d)
	return l.descend(&l.settings.Settings)
}

// open makes the replay, or takes a place in the one that is given.
func (l *Learner) open() (err error) {
	s := &l.setup
	l.layout = replay.LayoutOf(l.graphs.spec, replay.Column{Name: "action", DType: tensor.Int64})
	c := replay.Config{Capacity: l.settings.BufferSize, Envs: s.Envs, NSteps: l.settings.NSteps, Gamma: l.settings.Gamma}
	p := l.settings.Prioritised
	if p.Enabled && s.Replay == nil {
		own, err := replay.NewPrioritised(l.layout, c, replay.Priorities{Alpha: p.Alpha, Eps: p.Eps})
		if err != nil {
			return err
		}
		l.Buffer = own
	} else if l.Buffer, err = replay.Open(s.Replay, l.layout, c); err != nil {
		return err
	}
	if p.Enabled {
		var ok bool
		if l.prioritised, ok = l.Buffer.(replay.Updater); !ok {
			return fmt.Errorf("prioritised.enabled: the replay %q has no priorities", s.Replay.Identity())
		}
	}
	return nil
}

// lookahead returns for how many batches targets are computed at once. The target network does not
// change during a learner step, so that does not change them; but the network that selects actions
// does, and so do priorities.
func (l *Learner) lookahead(c *Settings, envs int) int {
	if c.Double || l.weighted {
		return 1
	}
	steps := c.GradientSteps
	if steps < 0 {
		// Of an episode it is not known; then batches are taken one by one.
		steps = max(int(c.TrainFreq), 0) * envs
	}
	row := 1
	for _, o := range l.layout.Obs {
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
func (l *Learner) compile() (err error) {
	s, g := &l.setup, l.graphs
	rows := l.Ahead * l.settings.BatchSize
	forward := program.Config{Engine: s.Engine, Batch: rows, BatchSymbol: layer.Batch, Shards: shards(s, g.q, rows, 1)}
	var wrt []string
	for _, p := range g.train.Specs {
		if p.Role == models.Trainable {
			wrt = append(wrt, p.Name)
		}
	}
	learn := program.Config{
		Engine: s.Engine, Batch: l.settings.BatchSize, BatchSymbol: layer.Batch, Shards: shards(s, g.train, l.settings.BatchSize, 3),
		Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: lossOutput}}, Wrt: wrt, Stop: g.constants}}, Gradients: []*models.Segment{l.Grads},
	}
	if n := max(forward.Shards, learn.Shards); n > 1 {
		l.pool = pool.New(n, pool.Spin)
	}
	for _, c := range []*program.Config{&forward, &learn} {
		if c.Shards > 1 {
			c.Pool = l.pool
		}
	}
	if l.targetQ, err = program.New(g.q, l.Target, forward); err != nil {
		return err
	}
	if l.settings.Double {
		forward.Inputs = map[string]*tensor.Tensor{}
		for _, name := range l.targetQ.Inputs() {
			forward.Inputs[name] = l.targetQ.Input(name)
		}
		if l.onlineQ, err = program.New(g.q, l.Params, forward); err != nil {
			return err
		}
	}
	l.train, err = program.New(g.train, l.Params, learn)
	return err
}

// lay makes the batch that transitions are sampled into.
func (l *Learner) lay(d *Design) {
	n := l.Ahead * l.settings.BatchSize
	room := func(in *tensor.Tensor) *tensor.Tensor {
		if l.Ahead == 1 {
			return in
		}
		t := tensor.New(in.DType(), append([]int{n}, in.Shape()[1:]...)...)
		l.fill = append(l.fill, [2]*tensor.Tensor{in, t})
		return t
	}
	b := replay.Batch{Action: room(l.train.Input(actionsInput)), Reward: make([]float32, n), Discount: make([]float32, n)}
	for _, o := range l.layout.Obs {
		b.Obs, b.NextObs = append(b.Obs, room(l.train.Input(o.Name))), append(b.NextObs, l.targetQ.Input(o.Name))
	}
	if l.layout.Mask > 0 {
		b.NextMask = tensor.New(tensor.Bool, n, l.layout.Mask)
		l.nextMask = b.NextMask.Bools()
	}
	if l.weighted {
		b.Weight = make([]float32, n)
	}
	if l.prioritised != nil {
		b.Index = make([]int64, n)
	}
	l.Batch, l.Y = b, make([]float32, n*d.Numbers)
	l.targets, l.Weights = l.train.Input(targetsInput).Float32s(), l.train.Input(weightsInput).Float32s()
	for i := range l.Weights {
		l.Weights[i] = 1 / float32(l.settings.BatchSize)
	}
	l.Loss, l.Errors = l.train.Output(lossOutput).Float32s(), l.train.Output(errorOutput).Float32s()
	l.zTarget = l.targetQ.Output(d.numbers()).Float32s()
	selects := l.targetQ
	if l.onlineQ != nil {
		selects = l.onlineQ
	}
	l.qOnline = selects.Output(agents.QValuesOutput).Float32s()
}

// descend makes the optimiser of the parameters that the loss depends on, in the state of the one
// before, if there was one.
func (l *Learner) descend(s *offpolicy.Settings) error {
	d, list, err := offpolicy.NewDescent(s, s.LearningRate, l.Params, l.Grads, l.train, "", l.train.Pool())
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
func (l *Learner) epsilon() float64 {
	c := &l.settings
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
func (l *Learner) rate() float64 {
	if l.Waiting() {
		return 1
	}
	return l.epsilon()
}

// Policy implements agents.Learner.
func (l *Learner) Policy() (*models.Network, *models.Params) { return l.graphs.policy, l.Params }

// Step implements agents.Learner. Until learning_starts env steps are taken it takes no gradient
// step.
func (l *Learner) Step(ctx context.Context) (agents.Metrics, error) {
	from := l.Stepped
	begun, err := l.Begin()
	if err != nil {
		return nil, fmt.Errorf("%s: learn: %w", l.name, err)
	}
	if begun {
		l.Follow(from, l.Stepped)
		l.sum = 0
	}
	delete(l.metrics, "train/loss")
	factor := l.Factor()
	if l.Of > 0 {
		if err := l.learn(ctx, factor); err != nil {
			return nil, fmt.Errorf("%s: learn: gradient step %d: %w", l.name, l.Updates+1, err)
		}
		l.metrics["train/loss"] = l.sum / float64(l.Of)
	}
	l.metrics["train/n_updates"], l.metrics["train/learning_rate"] = float64(l.Updates), l.settings.LearningRate*factor
	l.metrics["rollout/exploration_rate"] = l.epsilon()
	return l.metrics, nil
}

// Follow moves the target network as often as it was due between two numbers of rounds, in which
// the online network did not change.
func (l *Learner) Follow(from, to int64) {
	every := max(1, int64(l.settings.TargetUpdateInterval)/l.Envs())
	times := to/every - from/every
	if l.settings.Tau == 1 {
		// Copying again changes nothing.
		times = min(times, 1)
	}
	watch := l.setup.Profile.Start()
	for range times {
		for i, s := range l.Target.Segments() {
			switch src := l.Params.Segments()[i]; s.Role {
			case models.Trainable:
				optim.Polyak(s.Floats(), src.Floats(), float32(l.settings.Tau))
			case models.Buffer:
				copy(s.Floats(), src.Floats())
			}
		}
	}
	watch.Lap(agents.Optimising)
}

// learn takes the gradient steps that are owed, and adds up their losses. When ctx ends it stops
// before batches are sampled.
func (l *Learner) learn(ctx context.Context, factor float64) error {
	if l.prioritised != nil {
		p := l.settings.Prioritised
		part, _ := l.Progress()
		l.prioritised.SetBeta(p.Beta + part*(p.BetaFinal-p.Beta))
	}
	for ; l.Owed > 0; l.Owed-- {
		part := (l.Of - l.Owed) % l.Ahead
		if part == 0 {
			if err := l.setup.Between(ctx, l.Of-l.Owed, l.Of); err != nil {
				return err
			}
			if err := l.sample(); err != nil {
				return err
			}
		}
		if err := l.Descend(part, factor); err != nil {
			return err
		}
	}
	return nil
}

// Descend takes a gradient step on one of the batches whose targets there are. The rate is
// multiplied by factor.
func (l *Learner) Descend(part int, factor float64) error {
	watch := l.setup.Profile.Start()
	l.load(part)
	if err := l.train.Run(); err != nil {
		return err
	}
	loss := float64(l.Loss[0])
	l.sum += loss
	watch = watch.Lap(agents.Gradient)
	if err := l.descent.Step(loss, factor); err != nil {
		return err
	}
	l.Updates++
	watch = watch.Lap(agents.Optimising)
	if l.prioritised != nil {
		if err := l.prioritised.Update(l.Batch.Index, l.Errors); err != nil {
			return err
		}
		watch.Lap(agents.Sampling)
	}
	return nil
}

// sample draws the next batches and computes their targets.
func (l *Learner) sample() error {
	watch := l.setup.Profile.Start()
	if err := l.Buffer.Sample(&l.stream, &l.Batch); err != nil {
		return err
	}
	watch.Lap(agents.Sampling)
	return l.Evaluate()
}

// Evaluate computes the targets of the batches that were drawn.
func (l *Learner) Evaluate() error {
	watch := l.setup.Profile.Start()
	if err := l.targetQ.Run(); err != nil {
		return err
	}
	if l.onlineQ != nil {
		if err := l.onlineQ.Run(); err != nil {
			return err
		}
	}
	watch = watch.Lap(agents.Gradient)
	rlmath.DoubleQTargets(l.Y, l.Batch.Reward, l.Batch.Discount, l.zTarget, l.qOnline, l.nextMask)
	watch.Lap(agents.Sampling)
	return nil
}

// load makes one of the sampled batches the training program's.
func (l *Learner) load(part int) {
	for _, p := range l.fill {
		b := p[0].Bytes()
		copy(b, p[1].Bytes()[part*len(b):])
	}
	copy(l.targets, l.Y[part*len(l.targets):])
	for i, w := range l.Batch.Weight {
		l.Weights[i] = w / float32(l.settings.BatchSize)
	}
}

// editable are the keys that a learner takes while it lives.
var editable = slices.Concat(offpolicy.Editable, []string{"target_update_interval", "exploration_fraction", "exploration_initial_eps", "exploration_final_eps", "prioritised.alpha", "prioritised.eps", "prioritised.beta", "prioritised.beta_final"})

// Edit implements agents.Editor.
func (l *Learner) Edit(config any, totalEnvSteps int64) error {
	if err := agents.Editable(l.config, config, editable...); err != nil {
		return err
	}
	s := l.design(config).Settings
	if l.lookahead(&s, int(l.Envs())) != l.Ahead {
		// So many batches the programs are for.
		return &agents.RebuildError{Path: "gradient_steps"}
	}
	if err := l.descend(&s.Settings); err != nil {
		return fmt.Errorf("%s: %w", l.name, err)
	}
	l.config, l.settings = config, s
	l.SetTotal(totalEnvSteps)
	clear(l.metrics)
	if l.prioritised != nil {
		if err := l.prioritised.SetPriorities(replay.Priorities{Alpha: s.Prioritised.Alpha, Eps: s.Prioritised.Eps}); err != nil {
			return err
		}
	}
	return l.Buffer.SetReturns(s.NSteps, s.Gamma)
}

// Close frees programs, replay and parameters.
func (l *Learner) Close() error {
	var errs []error
	for _, p := range []*program.Program{l.train, l.onlineQ, l.targetQ} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	l.pool.Close()
	if l.Grads != nil {
		errs = append(errs, l.Grads.Close())
	}
	if l.Buffer != nil {
		errs = append(errs, l.Buffer.Close())
	}
	for _, p := range []*models.Params{l.Target, l.Params} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(errs...)
}
