package ope

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// FQEConfig describes fitted Q evaluation.
type FQEConfig struct {
	// Updates is the number of gradient steps, each on BatchSize transitions. TargetEvery is the
	// number of them between two copies to the target network.
	Updates, BatchSize, TargetEvery int
	LearningRate                    float64
	// Hidden are the layers behind the torso, with ReLU.
	Hidden []int
	// Draws is the number of actions that a value is the mean of, where actions are drawn and not
	// Discrete.
	Draws int
}

// DefaultFQE returns layers and batches of the size that algorithms have here, and 800 iterations,
// after which γ = 0.99 leaves nothing of where q began. d3rlpy's batches have 100 transitions, its
// learning rate is 1e-4, and an iteration 100 updates.
func DefaultFQE() FQEConfig {
	return FQEConfig{Updates: 20_000, BatchSize: 256, TargetEvery: 25, LearningRate: 3e-4, Hidden: []int{256, 256}, Draws: 16}
}

// Validate reports all problems.
func (c FQEConfig) Validate() error {
	var p configs.Problems
	p.AtLeast("updates", c.Updates, 1)
	p.AtLeast("batch_size", c.BatchSize, 1)
	p.AtLeast("target_every", c.TargetEvery, 1)
	p.Positive("learning_rate", c.LearningRate)
	for _, width := range c.Hidden {
		p.AtLeast("hidden", width, 1)
	}
	p.AtLeast("draws", c.Draws, 1)
	return p.Err()
}

// unsettled says, unless it is empty, that there are too few iterations for the episodes: each
// takes rewards one step further back, and what lies behind is left as q began.
func (c *FQEConfig) unsettled(d *Data, gamma float64) string {
	n, longest := c.Updates/c.TargetEvery, 0
	for i := range d.Episodes() {
		longest = max(longest, d.starts[i+1]-1-d.starts[i])
	}
	left := math.Pow(gamma, float64(n))
	if left <= 0.01 || d.Truncated == 0 && longest <= n {
		return ""
	}
	return fmt.Sprintf("q has not settled: γ^%d is %.2g after %d iterations of %d updates; more updates are needed", n, left, n, c.TargetEvery)
}

// fitter learns q of a policy.
type fitter struct {
	c     FQEConfig
	d     *Data
	p     *Policy
	gamma float64
	// scale is what values are divided by.
	scale  float64
	stream *rng.Stream

	design   *design
	params   *models.Params
	grads    *models.Segment
	targets  side
	critic   side
	values   side
	descent  *offpolicy.Descent
	follower *offpolicy.Follower

	batch  []int
	y      []float32
	action []int64
	room   *tensor.Tensor
}

// side is a program with the rows that it reads.
type side struct {
	*program.Program
	frame *vector.Frame
	feed  *network.Feed
	// features are those of actions; nil where these are Discrete.
	features []float32
}

// show copies the observations of rows into the program.
func (s *side) show(d *Data, rows []int, after int) error {
	b := s.frame.Batch()
	for i, row := range rows {
		d.obs.Put(b, i, row+after)
	}
	return s.feed.Current(b)
}

func newFitter(c FQEConfig, d *Data, p *Policy, gamma float64, e engine.Compiler, kinds []encoder.Kind, key rng.Key) (_ *fitter, err error) {
	f := &fitter{c: c, d: d, p: p, gamma: gamma, stream: key.Split("draws").Stream(), batch: make([]int, c.BatchSize)}
	f.room = tensor.New(d.Spec.Action.DType(), d.Spec.Action.Shape()...)
	f.scale = rms(d.trajectories(gamma))
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	if f.design, err = newDesign(c, p, kinds, key.Split("params")); err != nil {
		return nil, err
	}
	if f.params, err = f.design.newParams(); err != nil {
		return nil, err
	}
	if f.grads, err = f.params.Segment(models.Trainable).Like(); err != nil {
		return nil, err
	}
	for _, x := range []struct {
		to     *side
		net    *models.Network
		prefix string
		rows   int
		grads  *models.Segment
	}{
		{&f.targets, f.design.targets, offpolicy.NextPrefix, c.BatchSize, nil},
		{&f.critic, f.design.critic, "", c.BatchSize, f.grads},
		{&f.values, f.design.values, "", askRows, nil},
	} {
		if err := f.open(x.to, x.net, x.prefix, x.rows, x.grads, e); err != nil {
			return nil, err
		}
	}
	clear(f.grads.Floats())
	s := offpolicy.Defaults()
	if f.descent, _, err = offpolicy.NewDescent(&s, c.LearningRate, f.params, f.grads, f.critic.Program, "", nil); err != nil {
		return nil, err
	}
	f.follower = offpolicy.NewFollower(f.params, 1, nil)
	f.y = f.critic.Input(offpolicy.TargetInput).Float32s()
	if f.critic.features == nil {
		f.action = f.critic.Input(actionInput).Int64s()
	}
	return f, nil
}

// open makes a program.
func (f *fitter) open(to *side, net *models.Network, prefix string, rows int, grads *models.Segment, e engine.Compiler) (err error) {
	c := program.Config{Engine: e, Batch: rows, BatchSymbol: layer.Batch}
	if grads != nil {
		c.Objectives, c.Gradients = []autodiff.Objective{{Losses: []autodiff.Loss{{Value: offpolicy.LossOutput}}}}, []*models.Segment{grads}
	}
	if to.Program, err = program.New(net, f.params, c); err != nil {
		return err
	}
	if to.frame, err = vector.NewFrame(f.d.Spec, rows, false); err != nil {
		return err
	}
	to.feed = network.NewFeed(f.p.f, rows, prefix, to.Input)
	if !f.p.f.Discrete() {
		to.features = to.Input(actionInput).Float32s()
	}
	return nil
}

// rms is the root mean square of all returns from a step on, or 1 where they are 0.
func rms(list []Trajectory) float64 {
	sum, n := 0.0, 0
	for i := range list {
		x, g := &list[i], 0.0
		for t := len(x.Reward) - 1; t >= 0; t-- {
			g = x.Reward[t] + x.Discount[t]*g
			sum, n = sum+g*g, n+1
		}
	}
	if sum == 0 {
		return 1
	}
	return math.Sqrt(sum / float64(n))
}

// fit takes all updates, and tells progress of each.
func (f *fitter) fit(ctx context.Context, progress func(done int, loss float64)) error {
	for k := range f.c.Updates {
		if err := ctx.Err(); err != nil {
			return err
		}
		if k%f.c.TargetEvery == 0 {
			f.follower.Move()
		}
		loss, err := f.update(min(1, 2*(1-float64(k)/float64(f.c.Updates))))
		if err != nil {
			return fmt.Errorf("fitted q evaluation: update %d: %w", k+1, err)
		}
		if progress != nil {
			progress(k+1, loss)
		}
	}
	return nil
}

// update takes one step, at a part of the learning rate. It allocates nothing.
func (f *fitter) update(factor float64) (loss float64, err error) {
	for i := range f.batch {
		f.batch[i] = f.d.steps[f.stream.IntN(len(f.d.steps))]
	}
	return f.learn(factor)
}

// learn takes a step on the batch that was drawn.
func (f *fitter) learn(factor float64) (loss float64, err error) {
	d, p := f.d, f.p
	if err := f.targets.show(d, f.batch, 1); err != nil {
		return 0, err
	}
	if w := p.width(); f.targets.features != nil {
		for i, row := range f.batch {
			p.draw(f.stream, row+1, f.targets.features[i*w:(i+1)*w])
			p.recorded(d, row, f.room, f.critic.features[i*w:(i+1)*w])
		}
	} else {
		for i, row := range f.batch {
			copy(f.room.Bytes(), d.actions[row*d.size:(row+1)*d.size])
			f.action[i] = f.room.Int64s()[0]
		}
	}
	if err := f.critic.show(d, f.batch, 0); err != nil {
		return 0, err
	}
	if err := f.targets.Run(); err != nil {
		return 0, err
	}
	q := f.targets.Output(offpolicy.QOutput).Float32s()
	for i, row := range f.batch {
		f.y[i] = float32(d.reward[row]/f.scale + f.gamma*d.discount[row]*f.expected(q, i, row+1))
	}
	if err := f.critic.Run(); err != nil {
		return 0, err
	}
	loss = float64(f.critic.Output(offpolicy.LossOutput).Float32s()[0])
	return loss, f.descent.Step(loss, factor)
}

// expected is the value of element i of a batch by the policy at a row.
func (f *fitter) expected(q []float32, i, row int) float64 {
	if !f.p.f.Discrete() {
		return float64(q[i])
	}
	n, sum := f.p.f.Heads[0], 0.0
	for a, l := range f.p.logProbs[row*n : (row+1)*n] {
		sum += math.Exp(float64(l)) * float64(q[i*n+a])
	}
	return sum
}

// evaluate fills in the values of all episodes.
func (f *fitter) evaluate(ctx context.Context, list []Trajectory) error {
	d := f.d
	recorded, values := make([]float64, d.rows()), make([]float64, d.rows())
	rows := make([]int, askRows)
	for at := 0; at < d.rows(); at += askRows {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(askRows, d.rows()-at)
		for i := range rows {
			rows[i] = at + min(i, n-1)
		}
		if err := f.values.show(d, rows, 0); err != nil {
			return err
		}
		if err := f.rows(rows[:n], recorded, values); err != nil {
			return err
		}
	}
	for i := range list {
		from, to := d.starts[i], d.starts[i+1]
		list[i].Q, list[i].V = recorded[from:to-1], values[from:to]
	}
	return nil
}

// rows evaluates the rows that the program shows.
func (f *fitter) rows(rows []int, recorded, values []float64) error {
	p, q := f.p, f.values.Output(offpolicy.QOutput).Float32s()
	if f.values.features == nil {
		if err := f.values.Run(); err != nil {
			return err
		}
		for i, row := range rows {
			copy(f.room.Bytes(), f.d.actions[row*f.d.size:(row+1)*f.d.size])
			recorded[row] = f.scale * float64(q[i*p.f.Heads[0]+int(f.room.Int64s()[0])])
			values[row] = f.scale * f.expected(q, i, row)
		}
		return nil
	}
	w := p.width()
	for i, row := range rows {
		p.recorded(f.d, row, f.room, f.values.features[i*w:(i+1)*w])
	}
	if err := f.values.Run(); err != nil {
		return err
	}
	for i, row := range rows {
		recorded[row] = f.scale * float64(q[i])
	}
	draws := f.c.Draws
	if p.f.Continuous() && p.mean == nil {
		draws = 1
	}
	for range draws {
		for i, row := range rows {
			p.draw(f.stream, row, f.values.features[i*w:(i+1)*w])
		}
		if err := f.values.Run(); err != nil {
			return err
		}
		for i, row := range rows {
			values[row] += f.scale * float64(q[i]) / float64(draws)
		}
	}
	return nil
}

// Close frees everything.
func (f *fitter) Close() error {
	var errs []error
	for _, s := range []*side{&f.values, &f.critic, &f.targets} {
		if s.Program != nil {
			errs = append(errs, s.Program.Close())
		}
		if s.frame != nil {
			errs = append(errs, s.frame.Close())
		}
	}
	if f.grads != nil {
		errs = append(errs, f.grads.Close())
	}
	if f.params != nil {
		errs = append(errs, f.params.Close())
	}
	return errors.Join(errs...)
}
