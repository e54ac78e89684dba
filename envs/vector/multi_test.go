package vector_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// shifts returns m worlds of k agents, which leave garbage in the place of absent ones.
func shifts(m, k int) []envs.Multi {
	list := make([]envs.Multi, m)
	for i := range list {
		list[i] = envtest.Littering{Multi: &envtest.Shifts{Workers: k}}
	}
	return list
}

func multi(t testing.TB, list []envs.Multi, o vector.Options) *vector.Multi {
	t.Helper()
	o.Check = true
	v, err := vector.NewMulti(list, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

// line is what can be seen of a row: all but the costs and diagnostics of rows that took no step.
func line(b *vector.Batch, r int) string {
	s := fmt.Sprint(b.Present[r], b.Type[r], b.Earned()[r], b.Discount[r], b.Costs[r])
	for _, list := range [][]*tensor.Tensor{b.Obs, {b.Mask}} {
		for _, o := range list {
			n := len(o.Bytes()) / len(b.Type)
			s += fmt.Sprintf(" %x", o.Bytes()[r*n:(r+1)*n])
		}
	}
	if b.Type[r] == envs.Last {
		n := len(b.Final[0].Bytes()) / len(b.Type)
		s += fmt.Sprintf(" final %x", b.Final[0].Bytes()[r*n:(r+1)*n])
	}
	return s
}

// choose draws actions, four in five of them right, from the observations.
func choose(b *vector.Batch, s *rng.Stream) {
	for r := range b.Type {
		light := slices.Index(b.Obs[0].Float32s()[r*3:r*3+3], 1)
		b.Actions.Int64s()[r] = int64(envtest.Button(int(b.Obs[1].Int64s()[r]), max(light, 0)))
		if s.IntN(5) == 0 {
			b.Actions.Int64s()[r] = int64(s.IntN(3))
		}
	}
}

// TestMultiDiary compares a vector with the same worlds driven by hand.
func TestMultiDiary(t *testing.T) {
	const m, k, rounds = 2, 3, 400
	for _, cut := range []int{0, 7} {
		v := multi(t, shifts(m, k), vector.Options{Workers: 2, Truncate: cut})
		key, random := rng.New(4), rng.New(5).Stream()
		if err := v.Reset(key); err != nil {
			t.Fatal(err)
		}
		b := v.Batch()
		if want := []string{"worker_0", "worker_1", "worker_2", "worker_0", "worker_1", "worker_2"}; !slices.Equal(b.Agents, want) || v.Len() != m*k {
			t.Fatalf("%d rows of agents %q", v.Len(), b.Agents)
		}
		type row struct {
			acts   bool
			ret    float64
			length int
		}
		worlds, rows := make([]*envtest.Shifts, m), make([]row, m*k)
		steps, has := make([]*envs.TimeStep, m*k), make([]bool, m*k)
		episodes, length := make([]int, m), make([]int, m)
		begin := func(w int) {
			if err := worlds[w].Reset(key.Split("episode", w, episodes[w]), steps[w*k:(w+1)*k], has[w*k:(w+1)*k]); err != nil {
				t.Fatal(err)
			}
			length[w] = 0
			for r := w * k; r < (w+1)*k; r++ {
				rows[r] = row{acts: has[r]}
			}
		}
		for w := range worlds {
			worlds[w] = &envtest.Shifts{Workers: k}
			for r := w * k; r < (w+1)*k; r++ {
				steps[r] = envs.NewTimeStep(v.Spec())
			}
			begin(w)
		}
		same := func(what string, r int, ts *envs.TimeStep, obs *tensor.Tensor, mask []bool) {
			t.Helper()
			if !slices.Equal(obs.Float32s()[r*3:r*3+3], ts.Obs[0].Float32s()) || mask != nil && !slices.Equal(mask[r*3:r*3+3], ts.Mask.Bools()) {
				t.Fatalf("row %d: %s %v, expected %v", r, what, obs.Float32s()[r*3:r*3+3], ts.Obs[0].Float32s())
			}
		}
		counts := map[string]int{}
		for round := range rounds {
			choose(b, random)
			if err := v.Step(b.Actions); err != nil {
				t.Fatal(err)
			}
			var ended []vector.Episode
			for w := range worlds {
				list := make([]*tensor.Tensor, k)
				for i := range list {
					list[i] = tensor.New(tensor.Int64)
					list[i].Int64s()[0] = b.Actions.Int64s()[w*k+i]
				}
				if err := worlds[w].Step(list, steps[w*k:(w+1)*k], has[w*k:(w+1)*k]); err != nil {
					t.Fatal(err)
				}
				length[w]++
				goesOn, of := false, len(ended)
				for r := w * k; r < (w+1)*k; r++ {
					ts, x := steps[r], &rows[r]
					if cut > 0 && length[w] == cut {
						has[r] = has[r] && x.acts
						if has[r] {
							ts.Type = envs.Last
						}
					}
					switch acted := x.acts; {
					case !acted:
						if b.Type[r] != envs.First || b.Reward[r] != 0 || b.Discount[r] != 1 || b.Costs[r][0] != 0 {
							t.Fatalf("round %d, row %d: a row that was absent has %s", round, r, line(b, r))
						}
						x.acts = has[r]
						counts["absent"]++
						if has[r] {
							counts["entered"]++
						}
					case b.Type[r] != ts.Type || b.Reward[r] != ts.Reward || b.Discount[r] != ts.Discount || !slices.Equal(b.Costs[r], ts.Costs) || !slices.Equal(b.Info[r], ts.Info):
						t.Fatalf("round %d, row %d: %s, expected %v, %g, %g", round, r, line(b, r), ts.Type, ts.Reward, ts.Discount)
					default:
						x.ret += ts.Reward
						x.length++
						if x.acts = ts.Type != envs.Last; !x.acts {
							var mask []bool
							if ts.Discount > 0 {
								mask = b.FinalMask.Bools()
							}
							same("final observation", r, ts, b.Final[0], mask)
							ended = append(ended, vector.Episode{Env: r, Number: episodes[w], Return: x.ret, Length: x.length, Truncated: ts.Discount > 0})
							*x = row{}
						}
					}
					goesOn = goesOn || x.acts
				}
				for i := of; i < len(ended); i++ {
					ended[i].WorldGoesOn = goesOn
				}
				if !goesOn {
					episodes[w]++
					counts["worlds"]++
					begin(w)
				}
			}
			for r := range rows {
				if b.Present[r] != rows[r].acts {
					t.Fatalf("round %d, row %d: present %t, expected %t", round, r, b.Present[r], rows[r].acts)
				}
				if b.Present[r] {
					same("observation", r, steps[r], b.Obs[0], b.Mask.Bools())
				} else if bytes.ContainsFunc(b.Obs[0].Bytes()[r*12:r*12+12], func(x rune) bool { return x != 0 }) || b.Obs[1].Int64s()[r] != 0 || slices.Contains(b.Mask.Bools()[r*3:r*3+3], false) {
					t.Fatalf("round %d, row %d: an absent row shows %s", round, r, line(b, r))
				}
			}
			if !slices.Equal(b.Ended, ended) {
				t.Fatalf("round %d: episodes %+v, expected %+v", round, b.Ended, ended)
			}
			counts["ended"] += len(ended)
		}
		if counts["absent"] < rounds/4 || counts["entered"] < rounds/8 || counts["worlds"] < rounds/24 || counts["ended"] < rounds/4 {
			t.Errorf("limit %d: %v", cut, counts)
		}
	}
}

// alone is a world with one agent.
type alone struct{ envs.Env }

func (alone) Agents() []string { return []string{"only"} }

func (w alone) Reset(key rng.Key, steps []*envs.TimeStep, present []bool) error {
	present[0] = true
	return w.Env.Reset(key, steps[0])
}

func (w alone) Step(actions []*tensor.Tensor, steps []*envs.TimeStep, present []bool) error {
	present[0] = true
	return w.Env.Step(actions[0], steps[0])
}

// TestOneAgentIsAnEnvironment: a world with one agent is what an environment is.
func TestOneAgentIsAnEnvironment(t *testing.T) {
	var single []envs.Env
	var worlds []envs.Multi
	for range 3 {
		for _, put := range []func(e envs.Env){func(e envs.Env) { single = append(single, e) }, func(e envs.Env) { worlds = append(worlds, alone{e}) }} {
			e, err := corridor.New(corridor.Config{Cells: 5})
			if err != nil {
				t.Fatal(err)
			}
			put(e)
		}
	}
	a, err := vector.New(single, vector.Options{Workers: 1, Limit: 6})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b := multi(t, worlds, vector.Options{Workers: 1, Limit: 6})
	if s, o := a.Spec(), b.Spec(); !s.Equal(&o) {
		t.Errorf("specs %+v and %+v", s, o)
	}
	if err := errors.Join(a.Reset(rng.New(1)), b.Reset(rng.New(1))); err != nil {
		t.Fatal(err)
	}
	random, ended := rng.New(2).Stream(), 0
	for range 300 {
		for r := range 3 {
			a.Batch().Actions.Int64s()[r] = int64(random.IntN(2))
		}
		if err := errors.Join(a.Step(a.Batch().Actions), b.Step(a.Batch().Actions)); err != nil {
			t.Fatal(err)
		}
		x, y := a.Batch(), b.Batch()
		if !slices.Equal(x.Ended, y.Ended) || !slices.Equal(x.Type, y.Type) || !slices.Equal(x.Reward, y.Reward) || !bytes.Equal(x.Obs[0].Bytes(), y.Obs[0].Bytes()) || !bytes.Equal(x.Mask.Bytes(), y.Mask.Bytes()) || slices.Contains(y.Present, false) {
			t.Fatalf("%+v and %+v", x, y)
		}
		ended += len(x.Ended)
	}
	if ended < 60 {
		t.Errorf("%d episodes", ended)
	}
}

// factory makes worlds that litter.
type factory struct{ envtest.ShiftsFactory }

func (f factory) NewMulti(split envs.Split, i int) (envs.Multi, error) {
	w, err := f.ShiftsFactory.NewMulti(split, i)
	return envtest.Littering{Multi: w}, err
}

// TestAbsentRowsThroughWrappers: what wrappers and normalisation show of rows that are present is
// what they show of environments, and absent ones stay absent. Saving while one is absent changes
// nothing.
func TestAbsentRowsThroughWrappers(t *testing.T) {
	gamma := 0.9
	scale := wrap.Normalize{Obs: true, Reward: true, ClipObs: 10, ClipReward: 10, Epsilon: 1e-8, Gamma: &gamma}
	stacked := wrap.Defaults()
	stacked.FrameStack, stacked.TimeLimit = wrap.Frames{Frames: 2, Initial: wrap.InitialZero}, 9
	cases := 0
	for what, c := range sorted.All(map[string]wrap.Config{"bare": wrap.Defaults(), "stack": stacked}) {
		f, err := wrap.Apply(factory{envtest.ShiftsFactory{Shifts: envtest.Shifts{Workers: 3}}}, c)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := vector.Open(f, envs.Train, 4, vector.Options{}); err == nil || !strings.Contains(err.Error(), "a multiple of that") {
			t.Errorf("%s: 4 rows of worlds of 3 agents: %v", what, err)
		}
		open := func() *vector.Normalized {
			v, err := vector.Open(f, envs.Train, 6, vector.Options{Workers: 1, Check: true})
			if err != nil {
				t.Fatal(err)
			}
			n, err := vector.Normalize(v, scale)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := n.Close(); err != nil {
					t.Error(err)
				}
			})
			return n
		}
		bare := multi(t, shifts(2, 3), vector.Options{Workers: 1, Truncate: c.TimeLimit})
		v, w := open(), open()
		if err := errors.Join(v.Reset(rng.New(3)), bare.Reset(rng.New(3))); err != nil {
			t.Fatal(err)
		}
		b, x := v.Batch(), bare.Batch()
		raw := v.Inner().Batch()
		stats, returns, ret := wrap.NewRunning(len(raw.Obs[0].Float32s())/6), wrap.NewRunning(1), make([]float64, 6)
		random := rng.New(8).Stream()
		trace := func(b *vector.Batch) (lines []string) {
			for r := range 6 {
				lines = append(lines, line(b, r))
			}
			return append(lines, fmt.Sprint(b.Ended, b.Reward))
		}
		resumed, absent := 0, 0
		for round := range 200 {
			present := []float32{}
			d := len(stats.Mean)
			for r := range 6 {
				if row := b.Obs[0].Float32s()[r*d : r*d+d]; b.Present[r] {
					present = append(present, raw.Obs[0].Float32s()[r*d:r*d+d]...)
				} else if absent++; slices.ContainsFunc(row, func(y float32) bool { return y != 0 }) || slices.ContainsFunc(raw.Obs[0].Float32s()[r*d:r*d+d], func(y float32) bool { return y != 0 }) {
					t.Fatalf("%s, round %d: an absent row shows %v", what, round, row)
				}
			}
			wrap.Update(&stats, present)
			if s := v.State(); !slices.Equal(s.Obs[0].Mean, stats.Mean) || s.Obs[0].Count != stats.Count || s.Return.Var[0] != returns.Var[0] {
				t.Fatalf("%s, round %d: statistics %+v, expected %+v and %+v", what, round, s, stats, returns)
			}
			// The same lights, whatever is around them.
			choose(x, random)
			copy(b.Actions.Int64s(), x.Actions.Int64s())
			for r := range 6 {
				if !b.Present[r] {
					// Nobody looks at it.
					b.Actions.Int64s()[r] = 77
				}
			}
			if round%20 == 7 && slices.Contains(b.Present, false) {
				state, err := vector.SaveState(v.Inner())
				if err != nil {
					t.Fatal(err)
				}
				if err := errors.Join(vector.LoadState(w.Inner(), state), w.SetState(v.State())); err != nil {
					t.Fatal(err)
				}
				resumed++
			}
			actions := b.Actions.Clone()
			if err := errors.Join(v.Step(actions), bare.Step(x.Actions)); err != nil {
				t.Fatal(err)
			}
			if resumed > 0 {
				if err := w.Step(actions); err != nil {
					t.Fatal(err)
				}
				if got, want := trace(w.Batch()), trace(b); !slices.Equal(got, want) {
					t.Fatalf("%s, round %d: resumed %q, expected %q", what, round, got, want)
				}
			}
			if !slices.Equal(b.Present, x.Present) || !slices.Equal(b.Type, x.Type) || !slices.Equal(b.Earned(), x.Reward) || !slices.Equal(b.Ended, x.Ended) || !slices.Equal(b.Agents, x.Agents) {
				t.Fatalf("%s, round %d: %+v, expected %+v", what, round, b, x)
			}
			taken := []float64{}
			for r, y := range x.Reward {
				if ret[r] = float64(ret[r]*gamma) + y; x.Type[r] != envs.First {
					taken = append(taken, ret[r])
				}
			}
			wrap.Update(&returns, taken)
			for r, k := range x.Type {
				if want := x.Reward[r] / math.Sqrt(returns.Var[0]+1e-8); b.Reward[r] != want {
					t.Fatalf("%s, round %d, row %d: reward %g, expected %g", what, round, r, b.Reward[r], want)
				}
				if k == envs.Last {
					ret[r] = 0
				}
			}
		}
		if resumed < 5 || absent < 100 {
			t.Errorf("%s: resumed %d times, %d rows were absent", what, resumed, absent)
		}
		cases++
	}
	if cases != 2 {
		t.Errorf("%d cases", cases)
	}
}

// spoilt is a world whose steps are changed before anybody sees them.
type spoilt struct {
	envs.Multi
	steps int
	spoil func(steps []*envs.TimeStep, present []bool)
}

func (w *spoilt) Reset(key rng.Key, steps []*envs.TimeStep, present []bool) error {
	err := w.Multi.Reset(key, steps, present)
	if w.steps < 0 {
		w.spoil(steps, present)
	}
	return err
}

func (w *spoilt) Step(actions []*tensor.Tensor, steps []*envs.TimeStep, present []bool) error {
	err := w.Multi.Step(actions, steps, present)
	if w.steps++; w.steps == 1 {
		w.spoil(steps, present)
	}
	return err
}

// TestMultiRefuses lists what a world may not do; the errors say which one does what.
func TestMultiRefuses(t *testing.T) {
	nan := float32(math.NaN())
	n := 0
	for want, c := range sorted.All(map[string]struct {
		steps int
		spoil func(steps []*envs.TimeStep, present []bool)
	}{
		`agent "worker_0", step 1 of episode 0: it was present and has no step`:     {0, func(_ []*envs.TimeStep, p []bool) { p[0] = false }},
		`agent "worker_0", step 1 of episode 0: the environment answers with type`:  {0, func(s []*envs.TimeStep, _ []bool) { s[0].Restart() }},
		`agent "worker_0", step 1 of episode 0: observation "light": element 0 is`:  {0, func(s []*envs.TimeStep, _ []bool) { s[0].Obs[0].Float32s()[0] = nan }},
		`agent "worker_0", first step of episode 0: a step of type mid of an agent`: {-1, func(s []*envs.TimeStep, _ []bool) { s[0].Continue(0) }},
		`reset world 0 (shifts): no agent is present`:                               {-1, func(_ []*envs.TimeStep, p []bool) { clear(p) }},
		`agent "worker_0", first step of episode 0: observation "worker"`:           {-1, func(s []*envs.TimeStep, _ []bool) { s[0].Obs[1].Int64s()[0] = 9 }},
	}) {
		v := multi(t, []envs.Multi{&spoilt{&envtest.Shifts{Workers: 2}, c.steps, c.spoil}}, vector.Options{Workers: 1})
		err := v.Reset(rng.New(1))
		if err == nil {
			err = v.Step(v.Batch().Actions)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %s", err, want)
		}
		if err := v.Step(v.Batch().Actions); !errors.Is(err, envs.ErrNoEpisode) {
			t.Errorf("a step after an error: %v", err)
		}
		n++
	}
	for want, list := range sorted.All(map[string][]envs.Multi{
		"none is given": nil, "a world without agents": shifts(1, 0), "is described differently": {&envtest.Shifts{Workers: 2}, &envtest.Shifts{Workers: 3}},
	}) {
		if _, err := vector.NewMulti(list, vector.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %s", err, want)
		}
		n++
	}
	a, b := multi(t, shifts(1, 3), vector.Options{}), multi(t, shifts(1, 2), vector.Options{})
	if _, err := a.SaveState(); !errors.Is(err, envs.ErrNoEpisode) {
		t.Errorf("saved where no episode is running: %v", err)
	}
	if err := a.Reset(rng.New(1)); err != nil {
		t.Fatal(err)
	}
	state, err := a.SaveState()
	if err != nil {
		t.Fatal(err)
	}
	if err := b.LoadState(state); err == nil || !strings.Contains(err.Error(), "agents") {
		t.Errorf("a state of other agents: %v", err)
	}
	if n != 9 {
		t.Errorf("%d cases", n)
	}
}

// TestAgentOf: one agent of a world, among others that act at random, is an environment.
func TestAgentOf(t *testing.T) {
	for _, w := range []envs.Multi{&envtest.Shifts{Workers: 1}, &envtest.Shifts{Workers: 3}, &envtest.Shifts{Workers: 2, Dials: true}} {
		seen := map[int64]bool{}
		envtest.Run(t, func() (envs.Env, error) {
			return envs.AgentOf(envtest.Littering{Multi: &envtest.Shifts{Workers: len(w.Agents()), Dials: !w.Spec().Masked}}), nil
		}, envtest.Options{Steps: 600, Policy: func(s *rng.Stream, ts *envs.TimeStep, action *tensor.Tensor) {
			k := ts.Obs[1].Int64s()[0]
			if seen[k] = true; ts.Mask == nil || s.IntN(4) == 0 {
				w.Spec().Action.Sample(s, nil, action)
				return
			}
			action.Int64s()[0] = int64(envtest.Button(int(k), slices.Index(ts.Obs[0].Float32s(), 1)))
		}})
		if len(seen) != len(w.Agents()) {
			t.Errorf("agents %v of %d were seen", seen, len(w.Agents()))
		}
	}
}

func TestMultiDoesNotAllocate(t *testing.T) {
	v := multi(t, shifts(2, 3), vector.Options{Workers: 1})
	if err := v.Reset(rng.New(1)); err != nil {
		t.Fatal(err)
	}
	s := rng.New(2).Stream()
	if n := testing.AllocsPerRun(200, func() {
		choose(v.Batch(), s)
		if err := v.Step(v.Batch().Actions); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("%g allocations", n)
	}
}
