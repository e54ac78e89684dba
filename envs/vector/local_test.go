package vector_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var key = rng.New(11)

// corridors returns n corridors with a time limit, so that episodes end in both ways.
func corridors(t testing.TB, n int) []envs.Env {
	t.Helper()
	list := make([]envs.Env, n)
	for i := range list {
		e, err := corridor.New(corridor.Config{Cells: 6})
		if err != nil {
			t.Fatal(err)
		}
		if list[i], err = wrap.NewTimeLimit(e, 9); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// portfolios returns n small portfolios with random episodes over one market, whose observations
// are windows.
func portfolios(t testing.TB, n int) []envs.Env {
	t.Helper()
	const bars, assets, features = 80, 3, 2
	s := rng.New(1).Stream()
	m := &trading.Market{Assets: []string{"A", "B", "C"}, Features: []string{"x", "y"}, X: make([]float32, bars*assets*features), Tradable: make([]trading.Sides, bars*assets)}
	s.FillNormal32(m.X, 0, 1)
	for b := range bars {
		m.Dates = append(m.Dates, time.Date(2020, 1, 1+b, 0, 0, 0, 0, time.UTC))
		for a := range assets {
			m.Open, m.Close = append(m.Open, 10+s.Float64()), append(m.Close, 10+s.Float64())
			m.Tradable[b*assets+a] = trading.SidesAt(s.Bernoulli(0.9), 0, 0, 0)
		}
	}
	c := trading.Defaults()
	c.Window, c.Episode = 5, trading.Episode{Kind: trading.Random, Length: 17, End: trading.Truncate}
	source, err := trading.NewSource(m, c)
	if err != nil {
		t.Fatal(err)
	}
	list := make([]envs.Env, n)
	for i := range list {
		if list[i], err = source.Env(trading.Range{First: 0, Last: bars - 1}); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

func open(t testing.TB, list []envs.Env, o vector.Options) *vector.Local {
	t.Helper()
	v, err := vector.New(list, o)
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

// sample fills the actions with valid ones.
func sample(v *vector.Local, s *rng.Stream) {
	spec, b := v.Spec(), v.Batch()
	masks := b.Mask.Bools()
	k := len(masks) / v.Len()
	for i := range v.Len() {
		row := b.Actions.Rows(i, i+1).Reshape(spec.Action.Shape()...)
		spec.Action.Sample(s, masks[i*k:(i+1)*k], row)
	}
}

// TestEqualsALoop compares vectors of every width and number of workers with a plain loop over
// environments that is written out here.
func TestEqualsALoop(t *testing.T) {
	makers := map[string]func(testing.TB, int) []envs.Env{"corridor": corridors, "trading": portfolios}
	compared, ended, truncated, masked := 0, 0, 0, 0
	for name, make := range sorted.All(makers) {
		for _, n := range []int{1, 2, 7} {
			for _, o := range []vector.Options{{Workers: 1}, {Workers: 2, Check: true}, {Workers: 5, Windows: true}, {}} {
				t.Run(fmt.Sprint(name, n, o), func(t *testing.T) {
					v, plain := open(t, make(t, n), o), make(t, n)
					b, spec := v.Batch(), plain[0].Spec()
					if err := v.Reset(key); err != nil {
						t.Fatal(err)
					}
					steps, began := []*envs.TimeStep{}, []int{}
					for i := range n {
						ts := envs.NewTimeStep(spec)
						if err := plain[i].Reset(key.Split("episode", i, 0), ts); err != nil {
							t.Fatal(err)
						}
						steps, began = append(steps, ts), append(began, 1)
					}
					current := func(i, f int) []byte { return row(b.Obs[f], i) }
					s := rng.New(2).Stream()
					ret, length := slices.Repeat([]float64{0}, n), slices.Repeat([]int{0}, n)
					for step := range 60 {
						sample(v, s)
						if err := v.Step(b.Actions); err != nil {
							t.Fatal(err)
						}
						var episodes []vector.Episode
						for i, e := range plain {
							ts := steps[i]
							a := b.Actions.Rows(i, i+1).Reshape(spec.Action.Shape()...)
							if err := e.Step(a, ts); err != nil {
								t.Fatal(err)
							}
							ret[i], length[i] = ret[i]+ts.Reward, length[i]+1
							if b.Type[i] != ts.Type || b.Reward[i] != ts.Reward || b.Discount[i] != ts.Discount || !slices.Equal(b.Info[i], ts.Info) {
								t.Fatalf("step %d, environment %d: %v %g %g %v, expected %v %g %g %v", step, i, b.Type[i], b.Reward[i], b.Discount[i], b.Info[i], ts.Type, ts.Reward, ts.Discount, ts.Info)
							}
							if ts.Type == envs.Last {
								for f := range spec.Observation {
									if b.Rows[f] != nil && b.FinalRows[f][i] != ts.Rows[f] {
										t.Fatalf("step %d, environment %d: final row %d, expected %d", step, i, b.FinalRows[f][i], ts.Rows[f])
									}
									if b.Final[f] != nil && !slices.Equal(row(b.Final[f], i), ts.Obs[f].Bytes()) {
										t.Fatalf("step %d, environment %d: the final observation %d differs", step, i, f)
									}
								}
								mask := slices.Repeat([]byte{1}, ts.Mask.Len())
								if ts.Truncated() {
									mask = ts.Mask.Bytes()
									if slices.Contains(mask, 0) {
										masked++
									}
								}
								if !slices.Equal(row(b.FinalMask, i), mask) {
									t.Fatalf("step %d, environment %d: the final mask is %v, expected %v", step, i, row(b.FinalMask, i), mask)
								}
								episodes = append(episodes, vector.Episode{Env: i, Number: began[i] - 1, Return: ret[i], Length: length[i], Truncated: ts.Truncated()})
								if ts.Truncated() {
									truncated++
								}
								ended++
								if err := e.Reset(key.Split("episode", i, began[i]), ts); err != nil {
									t.Fatal(err)
								}
								began[i]++
								ret[i], length[i] = 0, 0
							}
							for f := range spec.Observation {
								if b.Rows[f] != nil && b.Rows[f][i] != ts.Rows[f] {
									t.Fatalf("step %d, environment %d: row %d, expected %d", step, i, b.Rows[f][i], ts.Rows[f])
								}
								if b.Obs[f] != nil && !slices.Equal(current(i, f), ts.Obs[f].Bytes()) {
									t.Fatalf("step %d, environment %d: observation %d differs", step, i, f)
								}
							}
							if !slices.Equal(row(b.Mask, i), ts.Mask.Bytes()) {
								t.Fatalf("step %d, environment %d: the mask differs", step, i)
							}
							compared++
						}
						if !slices.Equal(b.Ended, episodes) {
							t.Fatalf("step %d: ended %+v, expected %+v", step, b.Ended, episodes)
						}
					}
				})
			}
		}
	}
	if compared != 2*4*60*(1+2+7) || ended < 200 || truncated < 100 || truncated == ended || masked < 50 {
		t.Errorf("%d steps compared, %d episodes ended, %d truncated, %d with something that could not be done", compared, ended, truncated, masked)
	}
}

func row(t *tensor.Tensor, i int) []byte { return t.Rows(i, i+1).Bytes() }

// TestGather compares gathered windows, current and final, with those that are copied at every
// step.
func TestGather(t *testing.T) {
	const n = 4
	a, b := open(t, portfolios(t, n), vector.Options{Workers: 1}), open(t, portfolios(t, n), vector.Options{Workers: 1, Windows: true})
	for _, v := range []*vector.Local{a, b} {
		if err := v.Reset(key); err != nil {
			t.Fatal(err)
		}
	}
	if a.Batch().Obs[0] != nil || b.Batch().Obs[0] == nil {
		t.Fatal("windows are copied when they should not be, or not when they should")
	}
	s, window, pos := rng.New(3).Stream(), tensor.New(tensor.Float32, n, 5, 3, 2), tensor.New(tensor.Float32, n, 3)
	current, final := 0, 0
	for range 60 {
		sample(a, s)
		if err := errors.Join(a.Step(a.Batch().Actions), b.Step(a.Batch().Actions)); err != nil {
			t.Fatal(err)
		}
		for _, v := range []*vector.Local{a, b} {
			if err := errors.Join(v.Batch().Gather(0, window), v.Batch().Gather(1, pos)); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(window.Bytes(), b.Batch().Obs[0].Bytes()) || !slices.Equal(pos.Bytes(), b.Batch().Obs[1].Bytes()) {
				t.Fatal("gathered observations differ from copied ones")
			}
			current++
			for i := range window.Float32s() {
				window.Float32s()[i] = -77
			}
			if err := v.Batch().GatherFinal(0, window); err != nil {
				t.Fatal(err)
			}
			for i, k := range v.Batch().Type {
				got := window.Rows(i, i+1)
				if k == envs.Last {
					final++
					if !slices.Equal(got.Bytes(), row(b.Batch().Final[0], i)) {
						t.Fatal("a gathered final window differs")
					}
				} else if slices.ContainsFunc(got.Float32s(), func(x float32) bool { return x != -77 }) {
					t.Fatal("a row without a final observation is written")
				}
			}
		}
	}
	if current != 120 || final < 2*n {
		t.Errorf("%d batches, %d final windows were compared", current, final)
	}
	if err := a.Batch().Gather(0, tensor.New(tensor.Float32, n, 5, 3, 3)); err == nil {
		t.Error("windows are gathered into another shape")
	}
}

// TestSaveAndLoad stops a vector in the middle and continues it in another one with other workers:
// nothing differs from never having stopped.
func TestSaveAndLoad(t *testing.T) {
	for name, make := range sorted.All(map[string]func(testing.TB, int) []envs.Env{"corridor": corridors, "trading": portfolios}) {
		const n = 5
		a, b := open(t, make(t, n), vector.Options{Workers: 1}), open(t, make(t, n), vector.Options{Workers: 3, Windows: true})
		if err := a.Reset(key); err != nil {
			t.Fatal(err)
		}
		s := rng.New(4).Stream()
		for range 23 {
			sample(a, s)
			if err := a.Step(a.Batch().Actions); err != nil {
				t.Fatal(err)
			}
		}
		state, err := a.SaveState()
		if err != nil {
			t.Fatal(err)
		}
		if err := b.LoadState(state[:len(state)-7]); err == nil {
			t.Error("a damaged state is loaded")
		}
		if err := b.LoadState(state); err != nil {
			t.Fatal(err)
		}
		ended := 0
		for step := range 40 {
			for f := range a.Batch().Obs {
				if a.Batch().Obs[f] != nil && !slices.Equal(a.Batch().Obs[f].Bytes(), b.Batch().Obs[f].Bytes()) || !slices.Equal(a.Batch().Rows[f], b.Batch().Rows[f]) {
					t.Fatalf("%s: observation %d differs %d steps after loading", name, f, step)
				}
			}
			sample(a, s)
			if err := errors.Join(a.Step(a.Batch().Actions), b.Step(a.Batch().Actions)); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(a.Batch().Reward, b.Batch().Reward) || !slices.Equal(a.Batch().Type, b.Batch().Type) || !slices.Equal(a.Batch().Ended, b.Batch().Ended) {
				t.Fatalf("%s: rewards, types or episodes differ %d steps after loading", name, step+1)
			}
			ended += len(b.Batch().Ended)
		}
		if ended < n {
			t.Errorf("%s: %d episodes ended", name, ended)
		}
	}
	v := open(t, corridors(t, 2), vector.Options{})
	if _, err := v.SaveState(); !errors.Is(err, envs.ErrNoEpisode) {
		t.Errorf("saving before Reset gives %v", err)
	}
	if err := v.LoadState([]byte(`{"name":"corridor","envs":["e30="]}`)); err == nil || !strings.Contains(err.Error(), "expected 2") {
		t.Errorf("loading another number of environments gives %v", err)
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	for name, make := range sorted.All(map[string]func(testing.TB, int) []envs.Env{"corridor": corridors, "trading": portfolios}) {
		for _, o := range []vector.Options{{Workers: 1, Check: true}, {Workers: 2, Windows: true}} {
			v := open(t, make(t, 6), o)
			if err := v.Reset(key); err != nil {
				t.Fatal(err)
			}
			sample(v, rng.New(5).Stream())
			var err error
			if n := testing.AllocsPerRun(300, func() { err = errors.Join(err, v.Step(v.Batch().Actions)) }); n != 0 || err != nil {
				t.Errorf("%s with %+v: %g allocations per step, %v", name, o, n, err)
			}
		}
	}
}

// faulty is a corridor with given answers.
type faulty struct {
	*corridor.Env
	answer func(*envs.TimeStep) error
	closed error
}

func (f *faulty) Step(a *tensor.Tensor, ts *envs.TimeStep) error {
	if err := f.Env.Step(a, ts); err != nil {
		return err
	}
	return f.answer(ts)
}

func (f *faulty) Close() error { return errors.Join(f.closed, f.Env.Close()) }

func TestFaults(t *testing.T) {
	broken := errors.New("broken")
	cases := []struct {
		name  string
		check bool
		want  string
		do    func(*envs.TimeStep) error
	}{
		{"error", false, "environment 3: broken", func(*envs.TimeStep) error { return broken }},
		{"NaN reward", false, "environment 3 (corridor), step 1 of episode 0: the environment answers with type mid, reward NaN", func(ts *envs.TimeStep) error { ts.Continue(math.NaN()); return nil }},
		{"infinite reward", false, "environment 3", func(ts *envs.TimeStep) error { ts.Continue(math.Inf(1)); return nil }},
		{"discount", false, "discount 2", func(ts *envs.TimeStep) error { ts.Discount = 2; return nil }},
		{"first", false, "type first", func(ts *envs.TimeStep) error { ts.Restart(); return nil }},
		{"NaN observation", false, `environment 3 (corridor), step 1 of episode 0: observation "position": element 0 is NaN`, func(ts *envs.TimeStep) error { ts.Obs[0].Float32s()[0] = float32(math.NaN()); return nil }},
		{"infinite observation", false, `element 0 is -Inf`, func(ts *envs.TimeStep) error { ts.Obs[0].Float32s()[0] = float32(math.Inf(-1)); return nil }},
		{"another tensor", false, `observation "position": the environment has put float32[2] in the place of the tensor float32[1]`, func(ts *envs.TimeStep) error { ts.Obs[0] = tensor.New(tensor.Float32, 2); return nil }},
		{"beyond its space", true, `element 0 is 3, expected 0 to 1`, func(ts *envs.TimeStep) error { ts.Obs[0].Float32s()[0] = 3; return nil }},
		{"no valid action", false, "has no valid action", func(ts *envs.TimeStep) error { clear(ts.Mask.Bools()); return nil }},
		{"no valid action at a cut", false, "the episode was truncated, where the value of what could follow counts: mask of discrete(2): head 0 has no valid action", func(ts *envs.TimeStep) error {
			clear(ts.Mask.Bools())
			ts.Truncate(0)
			return nil
		}},
	}
	ran := 0
	for _, c := range cases {
		for _, workers := range []int{1, 3} {
			list := []envs.Env{}
			for i := range 8 {
				e, err := corridor.New(corridor.Config{Cells: 20})
				if err != nil {
					t.Fatal(err)
				}
				// Two environments fail; the error is the first one's, whoever finds out first.
				answer := func(*envs.TimeStep) error { return nil }
				if i == 3 || i == 6 {
					answer = c.do
				}
				list = append(list, &faulty{Env: e, answer: answer})
			}
			v := open(t, list, vector.Options{Workers: workers, Check: c.check})
			if err := v.Step(v.Batch().Actions); !errors.Is(err, envs.ErrNoEpisode) {
				t.Errorf("Step before Reset gives %v", err)
			}
			if err := v.Reset(key); err != nil {
				t.Fatal(err)
			}
			if err := v.Step(v.Batch().Actions); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s with %d workers: %q is not said: %v", c.name, workers, c.want, err)
			}
			if err := v.Step(v.Batch().Actions); !errors.Is(err, envs.ErrNoEpisode) {
				t.Errorf("%s: Step after an error gives %v", c.name, err)
			}
			ran++
		}
	}
	if ran != 22 {
		t.Errorf("%d cases ran", ran)
	}
}

func TestBadInput(t *testing.T) {
	long, err := corridor.New(corridor.Config{Cells: 9})
	if err != nil {
		t.Fatal(err)
	}
	limited, err := wrap.NewTimeLimit(long, 4)
	if err != nil {
		t.Fatal(err)
	}
	for want, f := range sorted.All(map[string]func() (*vector.Local, error){
		"none is given":                   func() (*vector.Local, error) { return vector.New(nil, vector.Options{}) },
		"-1 workers":                      func() (*vector.Local, error) { return vector.New(corridors(t, 1), vector.Options{Workers: -1}) },
		"environment 1 (corridor) is des": func() (*vector.Local, error) { return vector.New([]envs.Env{long, limited}, vector.Options{}) },
	}) {
		if _, err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said: %v", want, err)
		}
	}

	v, err := vector.New(corridors(t, 3), vector.Options{Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Reset(key); err != nil {
		t.Fatal(err)
	}
	if err := v.Step(tensor.New(tensor.Int64, 2)); err == nil {
		t.Error("two actions for three environments are accepted")
	}
	var bad *envs.ActionError
	if err := v.Step(tensor.Of([]int64{0, 1, 7}, 3)); !errors.As(err, &bad) || !strings.Contains(err.Error(), "environment 2") {
		t.Errorf("an action outside the space gives %v", err)
	}
	// A binding that holds the batch keeps it alive.
	arena := v.Batch().Obs[0].Arena()
	if err := arena.Retain(); err != nil {
		t.Fatal(err)
	}
	if err := v.Close(); !errors.Is(err, tensor.ErrArenaBusy) {
		t.Errorf("closing while the batch is bound gives %v", err)
	}
	arena.Release()
	if err := errors.Join(v.Close(), v.Close()); err != nil {
		t.Error(err)
	}
	if err := v.Reset(key); !errors.Is(err, envs.ErrClosed) {
		t.Errorf("Reset after Close gives %v", err)
	}
	if err := v.Step(nil); !errors.Is(err, envs.ErrClosed) {
		t.Errorf("Step after Close gives %v", err)
	}
}

func BenchmarkCorridor64(b *testing.B) {
	list := make([]envs.Env, 64)
	for i := range list {
		var err error
		if list[i], err = corridor.New(corridor.Config{Cells: 64}); err != nil {
			b.Fatal(err)
		}
	}
	v := open(b, list, vector.Options{Workers: 1})
	if err := v.Reset(key); err != nil {
		b.Fatal(err)
	}
	for i := range v.Batch().Actions.Int64s() {
		v.Batch().Actions.Int64s()[i] = corridor.Right
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := v.Step(v.Batch().Actions); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(64*float64(b.N)/b.Elapsed().Seconds(), "steps/s")
}
