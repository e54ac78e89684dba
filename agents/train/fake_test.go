package train_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// fake learns corridors by REINFORCE on two weights and two biases, in plain Go: small enough to be
// run thousands of times, with everything that a real agent carries, a stream included.
type fake struct {
	setup   agents.Setup
	net     *models.Network
	params  *models.Params
	rollout int
	noise   *rng.Stream

	pos, reward []float64
	action      []int
	open        bool
	// poison makes the loss NaN at this learner step; the first warmup ones do not learn.
	poison, warmup, steps int
	values                agents.Metrics
	fail                  error
	gradientSteps         int
	// excess are what limits are passed by at each evaluation; none are without.
	excess []float64
	// seen is what the exploring actor decided on.
	seen []float32
}

// maker makes fakes.
type maker struct {
	rollout, poison, warmup int
	// gradientSteps are reported in each learner step.
	gradientSteps int
	fail          error
	excess        []float64
	made          *fake
	setup         agents.Setup
}

func (m *maker) Config() any { return struct{ Rollout int }{m.rollout} }

func (m *maker) New(_ context.Context, s agents.Setup) (agents.Agent, error) {
	b := onnx.NewBuilder("fake", 18)
	x := b.Input("position", onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(1)}})
	w := tensor.New(tensor.Float32, 1, 2)
	s.Key.Split("init").Stream().FillNormal32(w.Float32s(), 0, 0.1)
	values := map[string]*tensor.Tensor{"weight": w, "bias": tensor.New(tensor.Float32, 2)}
	if s.Init != nil {
		if err := s.Init(values); err != nil {
			return nil, err
		}
	}
	y := b.Op("Gemm", []onnx.Value{x, b.Initializer("weight", w), b.Initializer("bias", values["bias"])})
	b.Output(b.Rename(b.Op("ArgMax", []onnx.Value{y}, onnx.AttrInt("axis", 1), onnx.AttrInt("keepdims", 0)), agents.ActionOutput), onnx.TypeOf(tensor.Int64))
	model, err := b.Model()
	if err != nil {
		return nil, err
	}
	m.setup = s
	f := &fake{setup: s, gradientSteps: m.gradientSteps, rollout: m.rollout, poison: m.poison, warmup: m.warmup, fail: m.fail, excess: m.excess, noise: s.Key.Split("noise").Stream(), values: agents.Metrics{}}
	if f.net, _, err = models.FromModel(model, models.Options{}); err != nil {
		return nil, err
	}
	if f.params, err = models.NewParams(f.net, nil); err != nil {
		return nil, err
	}
	m.made = f
	return f, f.params.Load(values)
}

func (f *fake) NewActor(m agents.Mode, n int) (agents.Actor, error) {
	return &fakeActor{f: f, mode: m, d: vector.Decision{Actions: tensor.New(tensor.Int64, n)}}, nil
}
func (f *fake) Recorder() agents.Recorder { return f }
func (f *fake) Excess() (x float64) {
	if len(f.excess) > 0 {
		x, f.excess = f.excess[0], f.excess[1:]
	}
	return x
}
func (f *fake) Learner() agents.Learner { return f }
func (f *fake) Close() error            { return f.params.Close() }

// right is the probability of going right.
func (f *fake) right(x float64) float64 {
	w, b := f.params.View("weight").Float32s(), f.params.View("bias").Float32s()
	return 1 / (1 + math.Exp(-(float64(w[1]-w[0])*x + float64(b[1]-b[0]))))
}

type fakeActor struct {
	f      *fake
	mode   agents.Mode
	d      vector.Decision
	stream rng.Stream
}

func (a *fakeActor) Act(_ context.Context, key rng.Key, b *vector.Batch) (*vector.Decision, error) {
	a.stream.Seed(key)
	if a.mode == agents.Explore {
		a.f.seen = append(a.f.seen[:0], b.Obs[0].Float32s()...)
	}
	for i, x := range b.Obs[0].Float32s() {
		p, at := a.f.right(float64(x)), 0.5
		if a.mode == agents.Explore {
			at = a.stream.Float64()
		}
		a.d.Actions.Int64s()[i] = corridor.Left
		if p > at {
			a.d.Actions.Int64s()[i] = corridor.Right
		}
	}
	return &a.d, nil
}
func (a *fakeActor) Remembers() bool            { return false }
func (a *fakeActor) Sync(context.Context) error { return nil }
func (a *fakeActor) Close() error               { return nil }

func (f *fake) Begin(b *vector.Batch, d *vector.Decision) error {
	if f.open {
		return errors.New("begun twice")
	}
	f.open = true
	if !slices.Equal(f.seen, b.Obs[0].Float32s()) {
		return errors.New("other observations are recorded than were decided on")
	}
	for i, x := range b.Obs[0].Float32s() {
		f.pos = append(f.pos, float64(x))
		f.action = append(f.action, int(d.Actions.Int64s()[i]))
	}
	return nil
}

func (f *fake) End(b *vector.Batch) error {
	if !f.open {
		return errors.New("ended without a beginning")
	}
	f.open = false
	f.reward = append(f.reward, b.Reward...)
	return nil
}

func (f *fake) Ready() bool { return !f.open && len(f.reward) >= f.rollout }

func (f *fake) Step(ctx context.Context) (agents.Metrics, error) {
	if !f.Ready() {
		return nil, errors.New("not ready")
	}
	for i := range max(1, f.gradientSteps) {
		if err := f.setup.Between(ctx, i, f.gradientSteps); err != nil {
			return nil, err
		}
	}
	if f.steps++; f.fail != nil && f.steps == f.poison {
		return nil, f.fail
	}
	if f.steps <= f.warmup {
		f.pos, f.reward, f.action = f.pos[:0], f.reward[:0], f.action[:0]
		return agents.Metrics{"train/n_updates": 0}, nil
	}
	w, b := f.params.View("weight").Float32s(), f.params.View("bias").Float32s()
	loss := 0.0
	for i, x := range f.pos {
		p, a := f.right(x), f.action[i]
		loss -= f.reward[i]
		g := (f.reward[i] + 0.01*f.noise.Normal()) * (float64(a) - p) * 0.1
		w[1] += float32(g * x)
		w[0] -= float32(g * x)
		b[1] += float32(g)
		b[0] -= float32(g)
	}
	if f.steps == f.poison {
		loss = math.NaN()
	}
	f.values["train/loss"], f.values["train/weight"] = loss/float64(len(f.pos)), float64(w[1])
	f.pos, f.reward, f.action = f.pos[:0], f.reward[:0], f.action[:0]
	return f.values, nil
}

func (f *fake) Policy() (*models.Network, *models.Params) { return f.net, f.params }

func (f *fake) SaveState(w *checkpoint.Writer) error {
	n := len(f.reward)
	action := make([]int64, n)
	for i := range action {
		action[i] = int64(f.action[i])
	}
	w.PutFloat64s("pos", f.pos[:n])
	w.PutFloat64s("reward", f.reward)
	w.PutInt64s("action", action)
	w.PutFloat32s("weight", f.params.View("weight").Float32s())
	w.PutFloat32s("bias", f.params.View("bias").Float32s())
	w.PutJSON("noise", f.noise)
	w.PutJSON("steps", f.steps)
	return nil
}

func (f *fake) LoadState(r *checkpoint.Reader) error {
	pos, _, err := r.Float64s("pos")
	if err != nil {
		return err
	}
	reward, _, err := r.Float64s("reward")
	if err != nil {
		return err
	}
	action, _, err := r.Int64s("action")
	if err != nil {
		return err
	}
	f.pos, f.reward, f.action, f.open = slices.Clone(pos), slices.Clone(reward), nil, false
	for _, a := range action {
		f.action = append(f.action, int(a))
	}
	return errors.Join(r.Float32sInto("weight", f.params.View("weight").Float32s()), r.Float32sInto("bias", f.params.View("bias").Float32s()), r.JSON("noise", f.noise), r.JSON("steps", &f.steps))
}

// evaluator evaluates greedily in a corridor of its own.
func evaluator(t testing.TB) func(ctx context.Context, a agents.Agent, _ int64) (map[string]float64, error) {
	return func(ctx context.Context, a agents.Agent, _ int64) (map[string]float64, error) {
		actor, err := a.NewActor(agents.Greedy, 3)
		if err != nil {
			return nil, err
		}
		defer actor.Close()
		env := corridors(t, 3)
		defer env.Close()
		if err := env.Reset(rng.New(99)); err != nil {
			return nil, err
		}
		sum := 0.0
		err = agents.Collect(ctx, env, actor, nil, rng.New(98), 0, 20, func(b *vector.Batch) error {
			for _, r := range b.Reward {
				sum += r
			}
			return nil
		})
		// The weight makes every evaluation better or worse than the one before.
		edge := math.NaN()
		if f, ok := a.(*fake); ok {
			edge = f.right(0.5)
		}
		return map[string]float64{"mean_reward": sum / 60, "edge": edge, "undefined": math.NaN()}, err
	}
}
