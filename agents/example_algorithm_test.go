package agents_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// reinforce is Williams' REINFORCE (1992), the smallest policy gradient, as one type that is agent,
// recorder and learner: after every rollout of rounds, one step down the gradient of −Σ G·log
// π(a|s), where G is the discounted return.
type reinforce struct {
	engine         engine.Compiler
	rounds, envs   int
	policy         *models.Network
	params         *models.Params
	learn          *program.Program
	opt            optim.Optimizer
	groups         []optim.Group
	t              int
	reward, disc   []float64
	returns, after []float64
}

// reinforceMaker is the configuration.
type reinforceMaker struct {
	Rounds int `yaml:"rounds"`
}

// reinforceKind makes it known to a program, by a row in its list of kinds: agent: {kind:
// reinforce, rounds: 20}.
var reinforceKind = agents.Kind{Name: "reinforce", Summary: "Monte-Carlo policy gradients", Parse: func(params configs.Section) (agents.Maker, error) {
	m := reinforceMaker{Rounds: 20}
	err := params.Decode(&m)
	return m, err
}}

// Config is what run directories keep: the configuration with its defaults.
func (m reinforceMaker) Config() any { return m }

func (m reinforceMaker) New(_ context.Context, s agents.Setup) (agents.Agent, error) {
	frame, err := network.NewFrame(s.Spec)
	if err != nil {
		return nil, err
	}
	torso, err := network.NewTorso(network.Config{Hidden: []int{16}, Activation: "tanh"}, frame, s.Encoders, layer.Orthogonal(1))
	if err != nil {
		return nil, err
	}
	// The same layers twice: in the graph that acts and is exported, and in the one with the loss.
	// Their parameters have the same names, and so they are the same.
	build := func(name string, finish func(g *layer.Graph, d network.Distribution)) (*layer.Graph, error) {
		g := layer.New(name, s.Key, layer.Options{})
		in := torso.Inputs(g, "")
		z, err := torso.Build(g, in)
		if err != nil {
			return nil, err
		}
		finish(g, network.NewCategorical(g, frame, z, in.Mask, layer.Orthogonal(0.01)))
		return g, g.Err()
	}
	policy, err := build("policy", func(g *layer.Graph, d network.Distribution) {
		g.Output(agents.ActionOutput, d.Mode())
		d.Output()
	})
	if err != nil {
		return nil, err
	}
	loss, err := build("loss", func(g *layer.Graph, d network.Distribution) {
		g.Output("loss", g.Dot(g.Observation("weight"), d.LogProb(g.Batched("actions", tensor.Int64))))
	})
	if err != nil {
		return nil, err
	}
	n := m.Rounds * s.Envs
	r := &reinforce{engine: s.Engine, rounds: m.Rounds, envs: s.Envs, reward: make([]float64, n), disc: make([]float64, n), returns: make([]float64, n), after: make([]float64, s.Envs)}
	var values map[string]*tensor.Tensor
	if r.policy, values, err = policy.Network(models.Options{}); err != nil {
		return nil, err
	}
	if r.params, err = models.NewParams(r.policy, nil); err != nil {
		return nil, err
	}
	if err := r.params.Load(values); err != nil {
		return nil, err
	}
	graph, err := loss.Model()
	if err != nil {
		return nil, err
	}
	net, err := models.WithSpecs(graph, r.policy.Specs)
	if err != nil {
		return nil, err
	}
	// This is where the gradient comes from: the program's graph is the loss and its derivative,
	// made by runtime/autodiff.
	r.learn, err = program.New(net, r.params, program.Config{Engine: s.Engine, Batch: n, BatchSymbol: layer.Batch, Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: "loss"}}}}})
	if err != nil {
		return nil, err
	}
	r.groups = []optim.Group{{Name: "policy", Params: r.params.Segment(models.Trainable).Floats(), Grads: r.learn.Gradients(0).Floats(), LR: 0.02}}
	r.opt, err = optim.New(optim.Config{Kind: "adam"})
	return r, err
}

func (r *reinforce) NewActor(m agents.Mode, n int) (agents.Actor, error) {
	act, err := program.New(r.policy, r.params, program.Config{Engine: r.engine, Batch: n, BatchSymbol: layer.Batch})
	return &drawer{act, m, vector.Decision{Actions: tensor.New(tensor.Int64, n)}}, err
}

func (r *reinforce) Recorder() agents.Recorder                 { return r }
func (r *reinforce) Learner() agents.Learner                   { return r }
func (r *reinforce) Policy() (*models.Network, *models.Params) { return r.policy, r.params }
func (r *reinforce) Ready() bool                               { return r.t == r.rounds }
func (r *reinforce) Close() error {
	return errors.Join(r.learn.Close(), r.params.Close())
}

// SaveState keeps all that a learner carries from one rollout to the next: runs are saved between
// them.
func (r *reinforce) SaveState(w *checkpoint.Writer) error {
	network.SaveParams(w.Scope("params"), r.params)
	network.SaveOptimizer(w.Scope("optim"), r.opt)
	return nil
}

func (r *reinforce) LoadState(from *checkpoint.Reader) error {
	return errors.Join(network.LoadParams(from.Scope("params"), r.params), network.LoadOptimizer(from.Scope("optim"), r.opt))
}

// Begin writes straight to where the program reads.
func (r *reinforce) Begin(b *vector.Batch, d *vector.Decision) error {
	from, to := r.t*r.envs, (r.t+1)*r.envs
	copy(r.learn.Input("actions").Rows(from, to).Int64s(), d.Actions.Int64s())
	copy(r.learn.Input(agents.MaskInput).Rows(from, to).Bools(), b.Mask.Bools())
	return b.Gather(0, r.learn.Input("position").Rows(from, to))
}

func (r *reinforce) End(b *vector.Batch) error {
	for e, reward := range b.Reward {
		at := r.t*r.envs + e
		r.reward[at], r.disc[at] = reward, 0.9*b.Discount[e]
		if b.Type[e] == envs.Last {
			// The next row is another episode's. Where this one was cut off, an algorithm with a
			// value function adds that of the final observation; see rlmath.FoldTruncation.
			r.disc[at] = 0
		}
	}
	r.t++
	return nil
}

func (r *reinforce) Step(context.Context) (agents.Metrics, error) {
	rlmath.DiscountedReturns(r.returns, r.reward, r.disc, r.after)
	rlmath.Normalize(r.returns)
	for i, x := range r.returns {
		r.learn.Input("weight").Float32s()[i] = float32(-x / float64(len(r.returns)))
	}
	if err := r.learn.Run(); err != nil {
		return nil, err
	}
	r.t = 0
	return agents.Metrics{"train/loss": float64(r.learn.Output("loss").Float32s()[0])}, r.opt.Step(r.groups)
}

// drawer acts.
type drawer struct {
	act  *program.Program
	mode agents.Mode
	d    vector.Decision
}

func (a *drawer) Act(_ context.Context, key rng.Key, b *vector.Batch) (*vector.Decision, error) {
	copy(a.act.Input(agents.MaskInput).Bools(), b.Mask.Bools())
	if err := errors.Join(b.Gather(0, a.act.Input("position")), a.act.Run()); err != nil {
		return nil, err
	}
	stream := key.Stream()
	for i := range a.d.Actions.Int64s() {
		a.d.Actions.Int64s()[i] = a.act.Output(agents.ActionOutput).Int64s()[i]
		if a.mode == agents.Explore {
			a.d.Actions.Int64s()[i] = int64(stream.Categorical(a.act.Output(agents.LogProbsOutput).Float32s()[2*i : 2*i+2]))
		}
	}
	return &a.d, nil
}

func (a *drawer) Remembers() bool            { return false }
func (a *drawer) Sync(context.Context) error { return nil }
func (a *drawer) Close() error               { return a.act.Close() }

// TestReinforceResumes compares a run that is saved and continued by a fresh agent with one that
// never stopped.
func TestReinforceResumes(t *testing.T) {
	params, err := configs.Parse("run.yaml", []byte("agent: {kind: reinforce, rounds: 5}"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Agent configs.Kinded `yaml:"agent"`
	}
	if err := params.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	maker, err := agents.Parse([]agents.Kind{reinforceKind}, doc.Agent)
	if err != nil || maker.Config() != any(reinforceMaker{Rounds: 5}) {
		t.Fatalf("%+v, %v", maker, err)
	}
	run := func(steps int64) *train.Trainer {
		factory, err := corridor.Kind.Open(t.Context(), configs.Section{})
		if err != nil {
			t.Fatal(err)
		}
		c := train.Defaults()
		c.NumEnvs, c.TotalEnvSteps, c.Threads, c.Validation.EverySteps = 4, steps, 1, 0
		r, err := train.New(t.Context(), factory, maker, agents.Setup{Engine: portable.New(), Key: rng.New(7)}, c, train.Hooks{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(r.Close(), factory.Close()); err != nil {
				t.Error(err)
			}
		})
		return r
	}
	finish := func(r *train.Trainer) []float32 {
		if _, err := r.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, p := r.Agent().Learner().Policy()
		return p.Segment(models.Trainable).Floats()
	}
	whole := finish(run(400))
	first, second := run(200), run(400)
	finish(first)
	store, err := checkpoint.OpenStore(t.TempDir(), checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	path, err := store.Save(checkpoint.Meta{Step: 200}, first)
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	saved, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(saved.Load(second), saved.Close()); err != nil {
		t.Fatal(err)
	}
	if resumed := finish(second); len(whole) < 50 || !slices.Equal(resumed, whole) {
		t.Errorf("%d parameters, and the resumed run has others than the one that never stopped", len(whole))
	}
}

// A new algorithm is a Maker. Everything else, the loop, evaluation, checkpoints and export, takes
// it from there.
func Example_algorithm() {
	ctx := context.Background()
	factory, err := corridor.Kind.Open(ctx, configs.Section{})
	if err != nil {
		panic(err)
	}
	c := train.Defaults()
	c.NumEnvs, c.TotalEnvSteps, c.Threads, c.Validation.EverySteps = 8, 8000, 1, 0
	run, err := train.New(ctx, factory, reinforceMaker{Rounds: 20}, agents.Setup{Engine: portable.New(), Key: rng.New(7)}, c, train.Hooks{})
	if err != nil {
		panic(err)
	}
	defer run.Close()
	show := func(when string) {
		r, err := evaluate.Episodes(ctx, factory, envs.Test, run.Agent(), agents.Explore, 20, 100, rng.New(1))
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s training: %.0f of 20 episodes reach the end, after %.0f steps in the mean\n", when, 20*r.Return, r.Length)
	}
	show("before")
	if _, err := run.Run(ctx); err != nil {
		panic(err)
	}
	show("after")
	// Output:
	// before training: 17 of 20 episodes reach the end, after 48 steps in the mean
	// after training: 20 of 20 episodes reach the end, after 4 steps in the mean
}
