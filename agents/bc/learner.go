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
	offpolicy.Learner
	c        Config
	settings offpolicy.Settings
	rec      agents.Recorder
	stream   rng.Stream
	// weights [batch, ensemble] are an input.
	weights []float32
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
	l.Setup, l.Networks, l.settings = s, d.Networks, l.c.settings()
	if l.Params, err = network.NewParams(&s, d.Specs, d.values, nil); err != nil {
		return err
	}
	d.values = nil
	trained := l.Params.Segment(models.Trainable)
	if trained == nil {
		return errors.New("train and freeze leave no parameter to train")
	}
	if l.Grads, err = trained.Like(); err != nil {
		return err
	}
	dtype, shape := f.Stored()
	layout := replay.LayoutOf(s.Spec, replay.Column{Name: "action", DType: dtype, Shape: shape})
	if l.Buffer, err = replay.Open(s.Replay, layout, replay.Config{Capacity: 1, Envs: s.Envs, Gamma: 1, Action: network.StoredOf}); err != nil {
		return err
	}
	l.Clock = offpolicy.NewClock(&l.settings, &s, l.Buffer)
	l.rec = l.Clock.Recorder(l.Buffer)
	l.stream.Seed(s.Key.Split("learner").Split("sample"))
	l.Workers = pool.New(max(s.Threads, 1), pool.Spin)
	if err := l.compile(); err != nil {
		return err
	}
	return l.descend(&l.settings)
}

// compile makes the program, and finds its buffers.
func (l *learner) compile() (err error) {
	n, net := l.c.BatchSize, l.Networks.Actor
	var wrt []string
	for _, p := range net.Specs {
		if p.Role == models.Trainable {
			wrt = append(wrt, p.Name)
		}
	}
	shards := l.Setup.Split(program.SplitFLOPs/2).Dividing(n).Shards(net, layer.Batch, n, 3)
	l.Actor, err = program.New(net, l.Params, program.Config{
		Engine: l.Setup.Engine, Batch: n, BatchSymbol: layer.Batch, Shards: shards, Pool: l.Workers,
		Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: offpolicy.LossOutput}}, Wrt: wrt}}, Gradients: []*models.Segment{l.Grads},
	})
	if err != nil {
		return err
	}
	// The program wrote there while it was tried out.
	clear(l.Grads.Floats())
	l.Batch = replay.Batch{Action: l.Actor.Input(actionInput), Mask: l.Actor.Input(agents.MaskInput), Reward: make([]float32, n), Discount: make([]float32, n)}
	for _, f := range l.Networks.Frame.Spec.Observation {
		l.Batch.Obs = append(l.Batch.Obs, l.Actor.Input(f.Name))
	}
	l.weights, l.ActorLoss = l.Actor.Input(weightInput).Float32s(), l.Actor.Output(offpolicy.LossOutput).Float32s()
	for i := range l.weights {
		l.weights[i] = 1 / float32(n)
	}
	if l.c.Ensemble > 1 {
		l.Batch.Index = make([]int64, n)
	}
	return nil
}

// descend makes the optimiser, in the state of the one before, if there was one.
func (l *learner) descend(s *offpolicy.Settings) error {
	d, list, err := offpolicy.NewDescent(s, s.LearningRate, l.Params, l.Grads, l.Actor, "", l.Workers)
	if err == nil {
		err = errors.Join(d.Follow(l.ActorDescent), offpolicy.Unmatched(s.Optimizer, list))
	}
	if err == nil {
		l.ActorDescent = d
	}
	return err
}

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
	if err := l.Take(ctx, &l.Setup, func() error { return l.update(factor) }); err != nil {
		return nil, fmt.Errorf("bc: learn: %w", err)
	}
	m := l.metrics
	m["train/n_updates"], m["train/learning_rate"] = float64(l.Updates), factor*l.ActorDescent.Rate
	if l.Of > 0 {
		m["train/loss"] = l.sum / float64(l.Of)
	}
	return m, nil
}

// update takes one step.
func (l *learner) update(factor float64) error {
	watch := l.Setup.Profile.Start()
	if err := l.Buffer.Sample(&l.stream, &l.Batch); err != nil {
		return err
	}
	for i, row := range l.Batch.Index {
		for k := range l.c.Ensemble {
			l.weights[i*l.c.Ensemble+k] = float32(multiplicity(uint64(row), uint64(k))) / float32(l.c.BatchSize)
		}
	}
	watch = watch.Lap(agents.Sampling)
	return l.learn(factor, watch)
}

// learn takes a step on the batch that was drawn.
func (l *learner) learn(factor float64, watch agents.Stopwatch) error {
	loss, err := l.DescendActor(factor, &watch)
	if err != nil {
		return err
	}
	l.Updates++
	l.sum += loss / float64(l.c.Ensemble)
	watch.Lap(agents.Optimising)
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

var _ checkpoint.Stater = (*learner)(nil)
