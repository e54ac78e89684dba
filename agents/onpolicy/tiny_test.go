package onpolicy

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/models/head"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// scripted goes through episodes that end where its script says: . goes on, t terminates, c is cut
// off by a time limit. Its observations say which environment it is and how many there were before.
type scripted struct {
	script      string
	id          int
	shown, step int
}

func (e *scripted) Spec() envs.Spec {
	return envs.Spec{Name: "scripted", Observation: envs.Dict{{Name: "x", Space: envs.Unbounded(2)}}, Action: envs.Discrete{N: 3}, Masked: true, Reward: envs.Range{Low: -100, High: 100}, Random: true}
}

func (e *scripted) Close() error { return nil }

func (e *scripted) observe(ts *envs.TimeStep) {
	copy(ts.Obs[0].Float32s(), []float32{float32(e.id), 0.1 * float32(e.shown)})
	copy(ts.Mask.Bools(), []bool{e.shown%2 == 0, true, e.id%2 == 0})
	e.shown++
}

func (e *scripted) Reset(_ rng.Key, ts *envs.TimeStep) error {
	e.observe(ts)
	ts.Restart()
	return nil
}

func (e *scripted) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	reward := float64(e.id) + 0.25*float64(e.step) - float64(action.Int64s()[0])
	kind := e.script[e.step%len(e.script)]
	e.step++
	e.observe(ts)
	switch kind {
	case 't':
		ts.Terminate(reward)
	case 'c':
		ts.Truncate(reward)
	default:
		ts.Continue(reward)
	}
	return nil
}

// scripts has an environment for each place in a rollout of four rounds where an episode can end.
var scripts = []string{"....", "t...", ".c..", "..t.", "...t", "...c", "tc..", "ctct", "cccc"}

// tiny is a learner without a loss, whose values are linear in the observation.
type tiny struct {
	Learner
	actor *Actor
	env   *vector.Local
	// rounds is how many were taken.
	rounds int
}

func newTiny(t *testing.T, rounds int, gamma float64) *tiny {
	t.Helper()
	id := 0
	l := &tiny{env: agenttest.Vector(t, len(scripts), func() (*scripted, error) {
		id++
		return &scripted{script: scripts[id-1], id: id - 1}, nil
	})}
	f, err := network.NewFrame(l.env.Spec())
	if err != nil {
		t.Fatal(err)
	}
	torso, err := network.NewTorso(network.Config{Activation: "tanh"}, f, nil, Orthogonal(true, 1))
	if err != nil {
		t.Fatal(err)
	}
	n := NewNetworks(f, rng.New(3))
	draw := func(g *layer.Graph) (network.Distribution, error) {
		in := torso.Inputs(g, "")
		z, err := torso.Build(g, in)
		if err != nil {
			return nil, err
		}
		g.Output(agents.ValueOutput, head.Value(g.In(CriticScope), z.Pooled, Orthogonal(true, 1)))
		return network.NewDistribution(g.In(ActorScope), f, z, in.Mask, network.DefaultExploration(), Orthogonal(true, 0.01)), g.Err()
	}
	p, a := n.Graph("policy"), n.Graph("act")
	dist, err := draw(p)
	if err == nil {
		p.Output(agents.ActionOutput, dist.Mode())
		dist.Output()
		err = n.Complete(p, models.Options{}, func(g *layer.Graph) error { _, err := draw(g); return err })
	}
	if err == nil {
		if dist, err = draw(a); err == nil {
			dist.Acting()
			n.Act, err = n.Over(a)
		}
	}
	if err == nil {
		err = l.Build("tiny", agents.Setup{Spec: f.Spec, Envs: len(scripts), Engine: testengines.Fastest(t), Threads: 1, Key: rng.New(4)}, &n)
	}
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, l)
	forward, err := l.NewForward(len(scripts))
	if err != nil {
		t.Fatal(err)
	}
	l.Programs = append(l.Programs, forward.Program)
	samples := rounds * len(scripts)
	NewRollout(&l.Learner, rounds, gamma, forward, "actions", func(name string, _ *envs.Field) *Column {
		switch name {
		case agents.MaskInput:
			return NewColumn(name, tensor.New(tensor.Bool, samples, f.MaskLen()))
		case "actions":
			return NewColumn(name, tensor.New(tensor.Int64, samples))
		}
		return NewColumn(name, tensor.New(tensor.Float32, samples, 2))
	})
	if err := l.NewOptimizer(optim.Config{Kind: "adam", Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}, nil, nil, func(string) int { return 0 }, 0.1); err != nil {
		t.Fatal(err)
	}
	if l.actor, err = NewActor(&l.Learner, network.DefaultExploration(), agents.Explore, len(scripts)); err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, l.actor)
	return l
}

// value is w·x + b, by the parameters of the critic.
func (l *tiny) value(x []float32) float64 {
	w, b := l.Params.View(CriticScope+".value.weight").Float32s(), l.Params.View(CriticScope+".value.bias").Float32s()
	return float64(w[0])*float64(x[0]) + float64(w[1])*float64(x[1]) + float64(b[0])
}

// act decides for what the environments show.
func (l *tiny) act(t *testing.T) *vector.Decision {
	t.Helper()
	d, err := l.actor.Act(t.Context(), rng.New(9).Split("round", l.rounds), l.env.Batch())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// round takes one, and records it.
func (l *tiny) round(t *testing.T) {
	t.Helper()
	d := l.act(t)
	if err := l.Rollout.Begin(l.env.Batch(), d); err != nil {
		t.Fatal(err)
	}
	if err := l.env.Step(d.Actions); err != nil {
		t.Fatal(err)
	}
	if err := l.Rollout.End(l.env.Batch()); err != nil {
		t.Fatal(err)
	}
	l.rounds++
}

// SaveState and LoadState are those of a learner with no state of its own.
func (l *tiny) SaveState(w *checkpoint.Writer) error {
	l.Save(w, l.Updates)
	if l.Rollout.T > 0 {
		w.PutJSON("rollout", Recorded{l.Rollout.T})
		l.arrays().Save(w.Scope("rollout"))
	}
	return nil
}

func (l *tiny) LoadState(r *checkpoint.Reader) error {
	if err := l.Load(r, &l.Updates); err != nil {
		return err
	}
	var n Recorded
	return l.LoadRollout(r, &n, &n, l.arrays)
}

func (l *tiny) arrays() network.Arrays {
	list, r := l.Rollout.Arrays(), l.Rollout
	for _, c := range []*Column{r.Fields[0], r.Mask, r.Actions} {
		list[c.Name] = c.Data[:r.T*r.Envs*c.Size]
	}
	return list
}
