package replay

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// toy counts its steps over all episodes, shows the number, and ends episodes at random. Reset in
// the middle of an episode it goes on counting.
type toy struct {
	spec   envs.Spec
	random rng.Stream
	id, at int
}

const (
	toyTable  = 40
	toyWindow = 3
)

func toySpec(t testing.TB) envs.Spec {
	table := tensor.New(tensor.Float32, toyTable, 2)
	rng.New(6).Stream().FillNormal32(table.Float32s(), 0, 1)
	w, err := envs.NewWindow(table, toyWindow)
	if err != nil {
		t.Fatal(err)
	}
	return envs.Spec{
		Name: "toy", Observation: envs.Dict{{Name: "x", Space: envs.Unbounded(5)}, {Name: "window", Space: envs.Unbounded(toyWindow, 2), Window: w}, {Name: "kind", Space: envs.Discrete{N: 3}}},
		Action: envs.Discrete{N: 4}, Masked: true, Reward: envs.Range{Low: -1e9, High: 1e9}, Costs: []string{"square", "double"}, Random: true,
	}
}

func (e *toy) Spec() envs.Spec { return e.spec }
func (e *toy) Close() error    { return nil }

func (e *toy) Reset(key rng.Key, ts *envs.TimeStep) error {
	e.random.Seed(key)
	e.show(ts)
	ts.Restart()
	return nil
}

// show writes an observation that no other step of any environment has.
func (e *toy) show(ts *envs.TimeStep) {
	e.at++
	x := ts.Obs[0].Float32s()
	x[0], x[1] = float32(e.id), float32(e.at)
	e.random.FillNormal32(x[2:], 0, 1)
	ts.SetWindow(1, e.spec.Observation[1].Window, toyWindow-1+e.at%(toyTable-toyWindow))
	ts.Obs[2].Int64s()[0] = int64(e.at % 3)
	m := ts.Mask.Bools()
	for i := range m {
		m[i] = e.random.IntN(2) == 0
	}
	m[e.at%4] = true
}

func (e *toy) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	reward := float64(action.Int64s()[0]) + e.random.Normal()
	e.show(ts)
	ts.Costs[0], ts.Costs[1] = costs(reward)
	switch e.random.IntN(8) {
	case 0:
		ts.Terminate(reward)
	case 1:
		ts.Truncate(reward)
	default:
		ts.Continue(reward)
	}
	return nil
}

// costs are functions of a reward.
func costs(reward float64) (square, double float64) { return reward * reward, 2 * reward }

func toys(t testing.TB, n int) (vector.Env, envs.Spec) { return toysFrom(t, n, 0) }

// toysFrom steps n toys that are numbered from first on. All windows are over one table.
func toysFrom(t testing.TB, n, first int) (vector.Env, envs.Spec) {
	t.Helper()
	spec := toySpec(t)
	list := make([]envs.Env, n)
	for i := range list {
		list[i] = &toy{spec: spec, id: first + i}
	}
	v, err := vector.New(list, vector.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := v.Reset(rng.New(11)); err != nil {
		t.Fatal(err)
	}
	return v, spec
}

// step is one transition as a plain record.
type step struct {
	obs, next, mask, nextMask string
	action                    int64
	reward, discount, logProb float64
	// last says that the episode ended with it, or was interrupted.
	last, interrupted bool
}

// world drives environments with random actions, and writes down what happens beside the replay's
// recorder.
type world struct {
	v      vector.Env
	d      vector.Decision
	stream rng.Stream
	diary  [][]step
	// index finds a step of the diary, by environment and number, by what was observed.
	index map[string][2]int
	rec   agents.Recorder
}

func newWorld(v vector.Env, rec agents.Recorder) *world {
	n := v.Len()
	return &world{v: v, rec: rec, d: vector.Decision{
		Actions: tensor.New(tensor.Int64, n), LogProb: make([]float32, n), Logits: tensor.New(tensor.Float32, n, toyLogits), Skill: tensor.New(tensor.Float32, n, 3),
	}, diary: make([][]step, n), index: map[string][2]int{}}
}

// shown describes the observation of environment e in tensors of a batch.
func shown(spec envs.Spec, obs []*tensor.Tensor, rows [][]int64, e int) string {
	out := ""
	for f, field := range spec.Observation {
		if w := field.Window; w != nil {
			out += fmt.Sprintf("%x|", w.At(int(rows[f][e])).Bytes())
			continue
		}
		n := len(obs[f].Bytes()) / obs[f].Shape()[0]
		out += fmt.Sprintf("%x|", obs[f].Bytes()[e*n:(e+1)*n])
	}
	return out
}

// sampled describes row i of tensors that samples were written to.
func sampled(obs []*tensor.Tensor, i int) string {
	out := ""
	for _, t := range obs {
		n := len(t.Bytes()) / t.Shape()[0]
		out += fmt.Sprintf("%x|", t.Bytes()[i*n:(i+1)*n])
	}
	return out
}

// toyLogits is the number of logits that are kept with a transition.
const toyLogits = 2

// decide makes logits and a skill of an action.
func decide(action int64, logits, skill []float32) {
	for i := range logits {
		logits[i] = float32(action) + float32(i)/8
	}
	for i := range skill {
		skill[i] = float32(10*action) - float32(i)
	}
}

// checkDecided compares logits and skill of sample i with its action's.
func checkDecided(t testing.TB, b *Batch, i int) {
	t.Helper()
	logits, skill := make([]float32, toyLogits), make([]float32, 3)
	decide(b.Action.Int64s()[i], logits, skill)
	if got, z := b.Logits.Float32s()[i*toyLogits:][:toyLogits], b.Skill.Float32s()[3*i:][:3]; !slices.Equal(got, logits) || !slices.Equal(z, skill) {
		t.Fatalf("sample %d: logits %v and skill %v, expected %v and %v", i, got, z, logits, skill)
	}
}

func maskOf(t *tensor.Tensor, e int) string {
	n := t.Shape()[1]
	return fmt.Sprint(t.Bools()[e*n : (e+1)*n])
}

func (w *world) round(t testing.TB) {
	t.Helper()
	b, spec := w.v.Batch(), w.v.Spec()
	now := make([]step, w.v.Len())
	present := slices.Clone(b.Present)
	absent := func(e int) bool { return present != nil && !present[e] }
	for e := range now {
		if absent(e) {
			continue
		}
		w.d.Actions.Int64s()[e] = int64(w.stream.IntN(4))
		w.d.LogProb[e] = -w.stream.Float32()
		decide(w.d.Actions.Int64s()[e], w.d.Logits.Float32s()[e*toyLogits:][:toyLogits], w.d.Skill.Float32s()[3*e:][:3])
		now[e] = step{obs: shown(spec, b.Obs, b.Rows, e), mask: maskOf(b.Mask, e), action: w.d.Actions.Int64s()[e], logProb: float64(w.d.LogProb[e])}
		if list := w.diary[e]; len(list) > 0 && !list[len(list)-1].last && list[len(list)-1].next != now[e].obs {
			list[len(list)-1].last, list[len(list)-1].interrupted = true, true
		}
	}
	if err := w.rec.Begin(b, &w.d); err != nil {
		t.Fatal(err)
	}
	if err := w.v.Step(w.d.Actions); err != nil {
		t.Fatal(err)
	}
	if err := w.rec.End(b); err != nil {
		t.Fatal(err)
	}
	for e := range now {
		if absent(e) {
			continue
		}
		s := &now[e]
		s.reward, s.discount, s.last = b.Reward[e], b.Discount[e], b.Type[e] == envs.Last
		if s.last {
			s.next, s.nextMask = shown(spec, b.Final, b.FinalRows, e), maskOf(b.FinalMask, e)
		} else {
			s.next, s.nextMask = shown(spec, b.Obs, b.Rows, e), maskOf(b.Mask, e)
		}
		w.index[s.obs] = [2]int{e, len(w.diary[e])}
		w.diary[e] = append(w.diary[e], *s)
	}
}

// batchOf makes tensors for n samples of everything.
func batchOf(l Layout, n int) *Batch {
	of := func(c Column) *tensor.Tensor {
		return tensor.New(c.DType, append([]int{n}, c.Shape...)...)
	}
	b := &Batch{Reward: make([]float32, n), Discount: make([]float32, n), Weight: make([]float32, n), Index: make([]int64, n), Ended: make([]bool, n), Action: of(l.Action)}
	for _, c := range l.Obs {
		b.Obs, b.NextObs = append(b.Obs, of(c)), append(b.NextObs, of(c))
	}
	if l.Mask > 0 {
		b.Mask, b.NextMask = tensor.New(tensor.Bool, n, l.Mask), tensor.New(tensor.Bool, n, l.Mask)
	}
	if l.LogProb {
		b.LogProb = make([]float32, n)
	}
	if l.Logits > 0 {
		b.Logits = tensor.New(tensor.Float32, n, l.Logits)
	}
	if l.Skill != nil {
		b.Skill = of(*l.Skill)
	}
	if l.Costs > 0 {
		b.Cost = tensor.New(tensor.Float32, n, l.Costs)
	}
	return b
}

func closing(t testing.TB, c interface{ Close() error }) {
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// checkpointed saves a state in a store of its own and returns where.
func checkpointed(t testing.TB, kind string, s checkpoint.Stater) string {
	t.Helper()
	store, err := checkpoint.OpenStore(t.TempDir(), checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, store)
	path, err := store.Save(checkpoint.Meta{Kind: kind}, s)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// both records with two recorders.
type both [2]agents.Recorder

func (r both) Begin(b *vector.Batch, d *vector.Decision) error {
	return errors.Join(r[0].Begin(b, d), r[1].Begin(b, d))
}

func (r both) End(b *vector.Batch) error { return errors.Join(r[0].End(b), r[1].End(b)) }
