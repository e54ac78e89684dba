package bc

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/pool"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// learner takes gradient steps on transitions of a data set.
type learner struct {
	offpolicy.Clock
	c        Config
	settings offpolicy.Settings
	setup    agents.Setup
	design   *design
	params   *models.Params
	grads    *models.Segment
	workers  *pool.Pool
	train    *program.Program
	descent  *offpolicy.Descent
	buffer   replay.Buffer
	rec      agents.Recorder
	stream   rng.Stream
	batch    replay.Batch
	// weights [batch, ensemble] are an input, and loss [1] the output.
	weights, loss []float32
	// sum is that of the losses of the present learner step.
	sum     float64
	metrics agents.Metrics
}

// build makes networks, parameters and the program. After an error Close frees what there is.
func (l *learner) build(s agents.Setup) error {
	if !s.Offline() {
		return errors.New("it learns from recorded actions alone: give the document a section dataset, with share 1")
	}
	f, err := l.c.Config.Frame(s.Spec, s.Encoders)
	if err != nil {
		return err
	}
	d, err := newDesign(l.c, f, s.Encoders, s.Key.Split("params"))
	if err != nil {
		return err
	}
	l.setup, l.design, l.settings = s, d, l.c.settings()
	if l.params, err = network.NewParams(&s, d.Specs, d.values, nil); err != nil {
		return err
	}
	d.values = nil
	trained := l.params.Segment(models.Trainable)
	if trained == nil {
		return errors.New("train and freeze leave no parameter to train")
	}
	if l.grads, err = trained.Like(); err != nil {
		return err
	}
	dtype, shape := f.Stored()
	layout := replay.LayoutOf(s.Spec, replay.Column{Name: "action", DType: dtype, Shape: shape})
	if l.buffer, err = replay.Open(s.Replay, layout, replay.Config{Capacity: 1, Envs: s.Envs, Gamma: 1, Action: network.StoredOf}); err != nil {
		return err
	}
	l.Clock = offpolicy.NewClock(&l.settings, &s, l.buffer)
	l.rec = l.Clock.Recorder(l.buffer)
	l.stream.Seed(s.Key.Split("learner").Split("sample"))
	l.workers = pool.New(max(s.Threads, 1), pool.Spin)
	if err := l.compile(); err != nil {
		return err
	}
	return l.descend(&l.settings)
}

// compile makes the program, and finds its buffers.
func (l *learner) compile() (err error) {
	n, d := l.c.BatchSize, l.design
	var wrt []string
	for _, p := range d.train.Specs {
		if p.Role == models.Trainable {
			wrt = append(wrt, p.Name)
		}
	}
	shards := l.setup.Split(program.SplitFLOPs/2).Dividing(n).Shards(d.train, layer.Batch, n, 3)
	l.train, err = program.New(d.train, l.params, program.Config{
		Engine: l.setup.Engine, Batch: n, BatchSymbol: layer.Batch, Shards: shards, Pool: l.workers,
		Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: lossOutput}}, Wrt: wrt}}, Gradients: []*models.Segment{l.grads},
	})
	if err != nil {
		return err
	}
	// The program wrote there while it was tried out.
	clear(l.grads.Floats())
	l.batch = replay.Batch{Action: l.train.Input(actionInput), Mask: l.train.Input(agents.MaskInput), Reward: make([]float32, n), Discount: make([]float32, n)}
	for _, f := range d.Frame.Spec.Observation {
		l.batch.Obs = append(l.batch.Obs, l.train.Input(f.Name))
	}
	l.weights, l.loss = l.train.Input(weightInput).Float32s(), l.train.Output(lossOutput).Float32s()
	for i := range l.weights {
		l.weights[i] = 1 / float32(n)
	}
	if l.c.Ensemble > 1 {
		l.batch.Index = make([]int64, n)
	}
	return nil
}

// descend makes the optimiser, in the state of the one before, if there was one.
func (l *learner) descend(s *offpolicy.Settings) error {
	d, list, err := offpolicy.NewDescent(s, s.LearningRate, l.params, l.grads, l.train, "", l.workers)
	if err == nil {
		err = errors.Join(d.Follow(l.descent), offpolicy.Unmatched(s.Optimizer, list))
	}
	if err == nil {
		l.descent = d
	}
	return err
}

// Policy implements agents.Learner.
func (l *learner) Policy() (*models.Network, *models.Params) { return l.design.Policy, l.params }

// Step implements agents.Learner.
func (l *learner) Step(ctx context.Context) (agents.Metrics, error) {
	begun, err := l.Begin()
	if err != nil {
		return nil, fmt.Errorf("bc: learn: %w", err)
	}
	if begun {
		l.sum = 0
	}
	factor := l.Factor()
	if err := l.Take(ctx, &l.setup, func() error { return l.update(factor) }); err != nil {
		return nil, fmt.Errorf("bc: learn: %w", err)
	}
	m := l.metrics
	m["train/n_updates"], m["train/learning_rate"] = float64(l.Updates), factor*l.descent.Rate
	if l.Of > 0 {
		m["train/loss"] = l.sum / float64(l.Of)
	}
	return m, nil
}

// update takes one step.
func (l *learner) update(factor float64) error {
	watch := l.setup.Profile.Start()
	if err := l.buffer.Sample(&l.stream, &l.batch); err != nil {
		return err
	}
	for i, row := range l.batch.Index {
		for k := range l.c.Ensemble {
			l.weights[i*l.c.Ensemble+k] = float32(multiplicity(uint64(row), uint64(k))) / float32(l.c.BatchSize)
		}
	}
	watch = watch.Lap(agents.Sampling)
	if err := l.learn(factor); err != nil {
		return err
	}
	watch.Lap(agents.Gradient)
	return nil
}

// learn takes a step on the batch that was drawn.
func (l *learner) learn(factor float64) error {
	if err := l.train.Run(); err != nil {
		return err
	}
	loss := float64(l.loss[0])
	if err := l.descent.Step(loss, factor); err != nil {
		return err
	}
	l.Updates++
	l.sum += loss / float64(l.c.Ensemble)
	return nil
}

// multiplicity is how often a policy's bootstrap has a row: Poisson with mean 1, of a number that
// belongs to both (the finalizer of SplitMix64, Steele et al. 2014).
func multiplicity(row, policy uint64) int {
	z := row*0x9e3779b97f4a7c15 + (policy+1)*0xd1b54a32d192ed03
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	u := float64((z^z>>31)>>11) * 0x1p-53
	n, p := 0, math.Exp(-1)
	for below := p; u >= below && n < 16; below += p {
		n++
		p /= float64(n)
	}
	return n
}

// editable are the keys that a learner takes while it lives.
var editable = []string{"learning_rate", "learning_rate_schedule", "optimizer", "max_grad_norm"}

// Edit implements agents.Editor.
func (l *learner) Edit(config any, totalEnvSteps int64) error {
	if err := agents.Editable(l.c, config, editable...); err != nil {
		return err
	}
	c := config.(Config)
	s := c.settings()
	if err := l.descend(&s); err != nil {
		return fmt.Errorf("bc: %w", err)
	}
	l.c, l.settings = c, s
	l.SetTotal(totalEnvSteps)
	clear(l.metrics)
	return nil
}

// Close frees program, replay and parameters.
func (l *learner) Close() error {
	var errs []error
	if l.train != nil {
		errs = append(errs, l.train.Close())
	}
	if l.buffer != nil {
		errs = append(errs, l.buffer.Close())
	}
	if l.grads != nil {
		errs = append(errs, l.grads.Close())
	}
	if l.params != nil {
		errs = append(errs, l.params.Close())
	}
	l.workers.Close()
	return errors.Join(errs...)
}

var _ checkpoint.Stater = (*learner)(nil)
