package agents_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/dqn"
	"github.com/onnxrl/onnxrl/agents/sac"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// ledge is a masked world with a time limit of one step. On top, action 0 leads down, where the
// time is up; action 1 costs 1.5 and ends the episode. Some episodes begin below, where it looks
// the same every time: there either only action 2 is valid, which costs 2 and ends the episode, or
// only action 0, which earns 5 and does the same. Who comes from above can only do the first of
// these, so action 1 is right on top. A value of what is below, where the episode was cut off, that
// counts what cannot be done there, or what could be done on top, is that of a lucky beginning.
type ledge struct {
	at     state
	over   bool
	random rng.Stream
}

type state int

const (
	top state = iota
	below
	lucky
)

func (e *ledge) Spec() envs.Spec {
	return envs.Spec{Name: "ledge", Observation: envs.Dict{{Name: "below", Space: envs.Discrete{N: 2}}}, Action: envs.Discrete{N: 3}, Masked: true, Reward: envs.Range{Low: -2, High: 5}, MaxSteps: 1, Random: true}
}

func (e *ledge) show(ts *envs.TimeStep) {
	ts.Obs[0].Int64s()[0] = int64(min(e.at, below))
	copy(ts.Mask.Bools(), [][]bool{top: {true, true, false}, below: {false, false, true}, lucky: {true, false, false}}[e.at])
}

func (e *ledge) Reset(key rng.Key, ts *envs.TimeStep) error {
	e.random.Seed(key)
	e.at, e.over = []state{top, top, below, lucky}[e.random.IntN(4)], false
	e.show(ts)
	ts.Restart()
	return nil
}

func (e *ledge) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	a := action.Int64s()[0]
	if e.over {
		return envs.ErrNoEpisode
	}
	e.over = true
	switch {
	case e.at == top && a == 0:
		e.at = below
		ts.Truncate(0)
	case e.at == top && a == 1:
		ts.Terminate(-1.5)
	case e.at == below && a == 2:
		ts.Terminate(-2)
	case e.at == lucky && a == 0:
		ts.Terminate(5)
	default:
		return fmt.Errorf("action %d is not valid", a)
	}
	e.show(ts)
	return nil
}

func (e *ledge) Close() error { return nil }

// remasked shows another mask for final observations than the environments gave.
type remasked struct {
	vector.Env
	final  func(final, before []bool)
	before []bool
}

func (v *remasked) Step(actions *tensor.Tensor) error {
	b := v.Batch()
	v.before = append(v.before[:0], b.Mask.Bools()...)
	err := v.Env.Step(actions)
	v.final(b.FinalMask.Bools(), v.before)
	return err
}

// TestFinalMask trains where an episode that is cut off has a mask of its own at the end, and where
// that of the observation before, or none, stands for it: only the first learns what going down is
// worth.
func TestFinalMask(t *testing.T) {
	d := dqn.Defaults()
	d.Hidden, d.BufferSize, d.LearningStarts, d.TargetUpdateInterval, d.LearningRate, d.TrainFreq, d.ExplorationFraction = []int{64}, 2000, 100, 20, 3e-3, 1, 1
	byDQN, err := dqn.NewMaker(d)
	if err != nil {
		t.Fatal(err)
	}
	s := sac.Defaults()
	s.Hidden, s.BufferSize, s.LearningStarts, s.LearningRate, s.BatchSize, s.Tau = []int{64}, 2000, 100, 3e-3, 32, 0.05
	s.EntCoef = sac.EntCoef{Value: 0.05}
	bySAC, err := sac.NewMaker(s)
	if err != nil {
		t.Fatal(err)
	}
	cases := 0
	for name, maker := range sorted.All(map[string]agents.Maker{"dqn": byDQN, "sac": bySAC}) {
		for _, c := range []struct {
			name  string
			final func(final, before []bool)
			want  int64
		}{
			{"that of the state", func(_, _ []bool) {}, 1},
			{"that before", func(final, before []bool) { copy(final, before) }, 0},
			{"none", func(final, _ []bool) { copy(final, slices.Repeat([]bool{true}, len(final))) }, 0},
		} {
			if got := ledgeChoice(t, maker, c.final); got != c.want {
				t.Errorf("%s: with the final mask %s the best action on top is %d, expected %d", name, c.name, got, c.want)
			}
			cases++
		}
	}
	if cases != 6 {
		t.Errorf("%d cases", cases)
	}
}

// ledgeChoice trains an agent and returns what it does on top.
func ledgeChoice(t *testing.T, maker agents.Maker, final func(final, before []bool)) int64 {
	t.Helper()
	const rows, rounds = 4, 400
	list := make([]envs.Env, rows)
	for i := range list {
		list[i] = &ledge{}
	}
	local, err := vector.New(list, vector.Options{Workers: 1, Check: true})
	if err != nil {
		t.Fatal(err)
	}
	defer local.Close()
	v := &remasked{Env: local, final: final}
	a, err := maker.New(t.Context(), agents.Setup{Spec: v.Spec(), Envs: rows, TotalEnvSteps: rows * rounds, Engine: testengines.Fastest(t), Threads: 1, Key: rng.New(3)})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	explorer, err := a.NewActor(agents.Explore, rows)
	if err != nil {
		t.Fatal(err)
	}
	defer explorer.Close()
	greedy, err := a.NewActor(agents.Greedy, rows)
	if err != nil {
		t.Fatal(err)
	}
	defer greedy.Close()
	if err := v.Reset(rng.New(4)); err != nil {
		t.Fatal(err)
	}
	for round := range rounds {
		if err := agents.Collect(t.Context(), v, explorer, a.Recorder(), rng.New(5), round, 1, nil); err != nil {
			t.Fatal(err)
		}
		for a.Learner().Ready() {
			if _, err := a.Learner().Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := explorer.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := greedy.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 100 {
		choice, err := greedy.Act(t.Context(), rng.New(6), v.Batch())
		if err != nil {
			t.Fatal(err)
		}
		for i, state := range v.Batch().Obs[0].Int64s() {
			if state == 0 {
				return choice.Actions.Int64s()[i]
			}
		}
		if err := v.Step(choice.Actions); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("no episode began on top")
	return 0
}
