package offpolicy_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/a2c"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/dqn"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/sac"
	"github.com/onnxrl/onnxrl/agents/td3"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func engineOf(t testing.TB) engine.Compiler { return testengines.Fastest(t) }

// layoutOf is that of a spec's learners.
func layoutOf(spec envs.Spec, logProb bool) replay.Layout {
	l, err := offpolicy.LayoutOf(spec, logProb, nil)
	if err != nil {
		panic(err) // a mistake of a test
	}
	return l
}

// small makes a learner small.
func small(s *offpolicy.Settings) {
	s.BatchSize, s.BufferSize, s.LearningStarts, s.LearningRate = 8, 60, 12, 1e-2
}

func made[C any](t testing.TB, c C, maker func(C) (agents.Maker, error)) agents.Maker {
	t.Helper()
	m, err := maker(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// learners are all that learn from a replay.
func learners(t testing.TB) map[string]agenttest.Variant {
	s, traced, d, g, q := sac.Defaults(), sac.Defaults(), td3.Defaults(), td3.DDPGDefaults(), dqn.Defaults()
	for _, c := range []*offpolicy.Settings{&s.Settings, &traced.Settings, &d.Settings, &g.Settings, &q.Settings.Settings} {
		small(c)
	}
	s.Hidden, traced.Hidden, d.Hidden, g.Hidden, q.Hidden = []int{8}, []int{8}, []int{8}, []int{8}, []int{8}
	traced.VTrace.Length, q.GradientSteps, q.TrainFreq = 4, 1, 1
	return map[string]agenttest.Variant{
		"sac": {Maker: made(t, s, sac.NewMaker), Spec: agenttest.Box()}, "sac, v-trace": {Maker: made(t, traced, sac.NewMaker), Spec: agenttest.Box()},
		"td3": {Maker: made(t, d, td3.NewMaker), Spec: agenttest.Box()}, "ddpg": {Maker: made(t, g, td3.NewMaker), Spec: agenttest.Box()},
		"dqn": {Maker: made(t, q, dqn.NewMaker), Spec: agenttest.Choice()},
	}
}

// members are learners, and one that weighs what others do.
func members(t testing.TB) map[string]agenttest.Variant {
	all, c := learners(t), sac.Defaults()
	small(&c.Settings)
	c.Hidden, c.GradientSteps, c.Sharing = []int{8}, 3, &offpolicy.Sharing{ClipRho: 1}
	all["sac, sharing"] = agenttest.Variant{Maker: made(t, c, sac.NewMaker), Spec: agenttest.Box()}
	return all
}

// bits are metrics and parameters of a learner.
func bits(r *agenttest.Training) string {
	out := fmt.Sprint(r.Last)
	_, params := r.Agent.Learner().Policy()
	for _, s := range params.Segments() {
		for _, x := range s.Floats() {
			out += fmt.Sprintf(" %x", math.Float32bits(x))
		}
	}
	return out
}

// population is three learners with one store.
type population struct {
	store   *replay.Shared
	members []*agenttest.Training
	worlds  []*vector.Local
}

// newPopulation makes members of kinds in an order.
func newPopulation(t testing.TB, kinds [3]string, order []int) *population {
	p := &population{members: make([]*agenttest.Training, 3), worlds: make([]*vector.Local, 3)}
	all := members(t)
	var err error
	if p.store, err = replay.NewShared(layoutOf(all[kinds[0]].Spec, strings.HasPrefix(kinds[0], "sac, ")), replay.SharedConfig{Capacity: 600, ChunkRows: 16, Name: "population"}); err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, p.store)
	for _, i := range order {
		x := all[kinds[i]]
		p.worlds[i] = agenttest.Toys(t, 2, x.Spec)
		c := []replay.SamplerConfig{{}, {Mix: map[int32]float64{0: 1, 1: 1, 2: 2}, Beta: 1}, {HalfLife: 100}}[i]
		a := agenttest.Agent(t, x.Maker, p.worlds[i], engineOf(t), 1, func(s *agents.Setup) {
			s.Key, s.Replay = rng.New(uint64(i)), p.store.Member(fmt.Sprintf("member %d", i), int32(i), c)
		})
		p.members[i] = agenttest.NewTraining(t, a, p.worlds[i])
	}
	return p
}

// run lets the members take turns.
func (p *population) run(t testing.TB, rounds int) (trace []string) {
	for range rounds {
		for _, m := range p.members {
			m.Run(t, 1)
			trace = append(trace, bits(m))
		}
	}
	return trace
}

// populations are members that share a store.
var populations = [][3]string{{"sac", "td3", "ddpg"}, {"sac, v-trace", "sac", "sac, v-trace"}, {"sac, sharing", "sac", "sac, sharing"}, {"dqn", "dqn", "dqn"}}

// TestSharedByLearners: learners record into one store and learn from it, also those of different
// algorithms; the store keeps whose transitions they are; and all of them stopped, saved and
// restored, in another order, go on with the same bits.
func TestSharedByLearners(t *testing.T) {
	longtest.Slow(t)
	for _, kinds := range populations {
		whole, part := newPopulation(t, kinds, []int{0, 1, 2}), newPopulation(t, kinds, []int{0, 1, 2})
		whole.run(t, 30)
		want := whole.run(t, 20)
		part.run(t, 30)
		if st := part.store.Stats(); st.Recorded != 3*30*2 || st.Policies[0] != 60 || st.Policies[1] != 60 || st.Policies[2] != 60 {
			t.Errorf("%v: %+v, expected 60 transitions of each of 3 policies", kinds, st)
		}
		fresh := part.restored(t, kinds)
		if !slices.Equal(part.run(t, 20), want) {
			t.Errorf("%v: two populations of the same seeds differ", kinds)
		}
		if !slices.Equal(fresh.run(t, 20), want) {
			t.Errorf("%v: the restored population differs from one that never stopped", kinds)
		}
		if len(want) != 60 || whole.members[0].Last["train/n_updates"] < 30 {
			t.Errorf("%v: %d rounds, %v", kinds, len(want), whole.members[0].Last)
		}
	}
	if len(populations) != 4 {
		t.Errorf("%d populations", len(populations))
	}
}

// restored saves a population and restores it in another order.
func (p *population) restored(t testing.TB, kinds [3]string) *population {
	t.Helper()
	store, err := checkpoint.OpenStore(t.TempDir(), checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, store)
	path, err := store.Save(checkpoint.Meta{Kind: "store"}, p.store)
	if err != nil {
		t.Fatal(err)
	}
	fresh := newPopulation(t, kinds, []int{2, 0, 1})
	saved, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, saved)
	if err := saved.Load(fresh.store); err != nil {
		t.Fatal(err)
	}
	for i, m := range p.members {
		world, err := p.worlds[i].SaveState()
		if err := errors.Join(err, fresh.worlds[i].LoadState(world), agenttest.Load(t, agenttest.Save(t, m.Agent), fresh.members[i].Agent)); err != nil {
			t.Fatal(err)
		}
		fresh.members[i].Done, fresh.members[i].Last = m.Done, maps.Clone(m.Last)
	}
	return fresh
}

// TestSharedStops: a learner step that is stopped between its updates goes on with what it has
// counted of each policy.
func TestSharedStops(t *testing.T) {
	kinds := [3]string{"sac, sharing", "sac", "sac"}
	p := newPopulation(t, kinds, []int{0, 1, 2})
	p.run(t, 20)
	m := p.members[0]
	m.Round(t)
	if _, err := m.Agent.Learner().Step(&agenttest.After{Context: t.Context(), Left: 2}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	other := p.restored(t, kinds).members[0]
	m.Learn(t)
	other.Learn(t)
	if got, want := bits(other), bits(m); got != want || m.Last["replay/policy_2/share"] == 0 || m.Last["replay/policy_2/ess"] == 0 {
		t.Errorf("%v, expected %v", other.Last, m.Last)
	}
}

// TestSharedAtOnce lets learners that share a store go on at the same time.
func TestSharedAtOnce(t *testing.T) {
	for _, kinds := range populations {
		p := newPopulation(t, kinds, []int{0, 1, 2})
		var wait sync.WaitGroup
		errs := make([]error, 3)
		for i, m := range p.members {
			wait.Go(func() {
				for k := 0; k < 60 && errs[i] == nil; k++ {
					errs[i] = agents.Collect(context.Background(), m.Env, m.Actor, m.Agent.Recorder(), rng.New(7), k, 1, nil)
					if errs[i] == nil && m.Agent.Learner().Ready() {
						m.Last, errs[i] = m.Agent.Learner().Step(context.Background())
					}
				}
			})
		}
		wait.Wait()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		if st := p.store.Stats(); st.Recorded != 3*60*2 || p.members[1].Last["train/n_updates"] < 30 {
			t.Errorf("%v: %+v, %v", kinds, st, p.members[1].Last)
		}
	}
}

// TestMemberRefuses: what a learner needs and the store does not have is named.
func TestMemberRefuses(t *testing.T) {
	layout := layoutOf(agenttest.Box(), true)
	bare, named := layout, replay.SharedConfig{Capacity: 600, ChunkRows: 16, Name: "store"}
	bare.LogProb = false
	wider := agenttest.Box()
	wider.Action = envs.Box{Of: tensor.Float32, Dims: []int{2}, Low: []float64{-4, 0.1}, High: []float64{4, 0.7}}
	all := members(t)
	q := dqn.Defaults()
	q.Prioritised.Enabled = true
	a := a2c.Defaults()
	cases := 0
	for want, c := range sorted.All(map[string]struct {
		x      agenttest.Variant
		layout replay.Layout
		config replay.SharedConfig
	}{
		"the store has no name": {all["sac"], layout, replay.SharedConfig{Capacity: 600, ChunkRows: 16}},
		"no log-probabilities":  {all["sac, v-trace"], bare, named},
		"sac: replay \"store\": transitions have no log-probabilities":                              {all["sac, sharing"], bare, named},
		"actions are action float32[2], and the learner's action int64[]":                           {all["dqn"], layout, named},
		"observation 0 is window float32[8 4], a window of a table, and the learner's x float32[3]": {all["sac"], layoutOf(agenttest.Series(t), true), named},
		"in [[-2 0.1], [2 0.7]], and the learner's of box float32[2] in [[-4 0.1], [4 0.7]]":        {agenttest.Variant{Maker: all["sac"].Maker, Spec: wider}, layout, named},
		"observation 0, window, is a window of another table than the learner's":                    {agenttest.Variant{Maker: all["sac"].Maker, Spec: agenttest.Series(t)}, layoutOf(agenttest.Series(t), true), named},
		"each needs two":    {all["td3"], layout, replay.SharedConfig{Capacity: 30, ChunkRows: 16, Name: "store"}},
		"has no priorities": {agenttest.Variant{Maker: made(t, q, dqn.NewMaker), Spec: agenttest.Choice()}, layoutOf(agenttest.Choice(), false), named},
		"a2c: the algorithm is on-policy and takes no replay": {agenttest.Variant{Maker: made(t, a, a2c.NewMaker), Spec: agenttest.Choice()}, layout, named},
	}) {
		s, err := replay.NewShared(c.layout, c.config)
		if err != nil {
			t.Fatal(err)
		}
		agenttest.Closing(t, s)
		_, err = c.x.Maker.New(t.Context(), agents.Setup{Spec: c.x.Spec, Envs: 2, Engine: engineOf(t), Key: rng.New(1), Replay: s.Member("one", 0, replay.SamplerConfig{})})
		agenttest.Has(t, err, want)
		cases++
	}
	if cases != 10 {
		t.Errorf("%d cases", cases)
	}
	u, err := replay.NewUniform(layout, replay.Config{Capacity: 60, Envs: 2, NSteps: 1, Gamma: 0.99})
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, u)
	_, err = all["sac, sharing"].Maker.New(t.Context(), agents.Setup{Spec: agenttest.Box(), Envs: 2, Engine: engineOf(t), Key: rng.New(1), Replay: u.Lend("lent")})
	agenttest.Has(t, err, `sharing: the replay "lent" does not tell whose transitions it has`)
	// A member goes on with a store that has what it had.
	p := newPopulation(t, populations[0], []int{0, 1, 2})
	p.run(t, 10)
	err = agenttest.Load(t, agenttest.Save(t, p.members[0].Agent), newPopulation(t, populations[0], []int{0, 1, 2}).members[0].Agent)
	agenttest.Has(t, err, `0 transitions were ever recorded in the store "population", and 60 when the checkpoint was saved`)
}

// TestLentPriorities: DQN sets the priorities of a replay that it is lent, and has the bits of its
// own.
func TestLentPriorities(t *testing.T) {
	c := dqn.Defaults()
	small(&c.Settings.Settings)
	c.Hidden, c.Prioritised.Enabled, c.GradientSteps, c.TrainFreq = []int{8}, true, 1, 1
	m, spec := made(t, c, dqn.NewMaker), agenttest.Choice()
	p, err := replay.NewPrioritised(layoutOf(spec, false), replay.Config{Capacity: 60, Envs: 2, NSteps: 1, Gamma: 0.99}, replay.Priorities{Alpha: c.Prioritised.Alpha, Eps: c.Prioritised.Eps})
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, p)
	var both []string
	for _, given := range []agents.Replay{nil, p.Lend("lent")} {
		v := agenttest.Toys(t, 2, spec)
		r := agenttest.NewTraining(t, agenttest.Agent(t, m, v, engineOf(t), 1, func(s *agents.Setup) { s.TotalEnvSteps, s.Replay = 300, given }), v)
		r.Run(t, 60)
		both = append(both, bits(r))
	}
	if both[0] != both[1] || p.Len() < 40 {
		t.Errorf("other bits, or %d transitions", p.Len())
	}
}
