package vector_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// script is what a vector of environments answers, and what Stable-Baselines3 makes of it.
type script struct {
	Source                string
	Gamma                 float64
	ClipObs               float64 `json:"clip_obs"`
	ClipReward            float64 `json:"clip_reward"`
	Epsilon               float64
	Obs, Final            [][][]float32
	Rewards               [][]float64
	Terminated, Truncated [][]bool
	Shown                 [][][]float32
	Scaled                [][]float64
	ShownFinal            [][][]float32 `json:"shown_final"`
	Mean, Var             []float64
	ReturnVar             float64 `json:"return_var"`
}

func load(t *testing.T) script {
	t.Helper()
	text, err := os.ReadFile("testdata/vecnormalize.json")
	if err != nil {
		t.Fatal(err)
	}
	var s script
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Rewards) != 60 || len(s.Obs) != 61 || len(s.Shown) != 61 {
		t.Fatalf("%d steps", len(s.Rewards))
	}
	return s
}

func (s script) config() wrap.Normalize {
	return wrap.Normalize{Obs: true, Reward: true, Gamma: &s.Gamma, ClipObs: s.ClipObs, ClipReward: s.ClipReward, Epsilon: s.Epsilon}
}

// scripted plays one environment of a script.
type scripted struct {
	s       script
	row, at int
}

func (e *scripted) Spec() envs.Spec {
	return envs.Spec{Name: "scripted", Observation: envs.Dict{{Name: "x", Space: envs.Unbounded(2)}}, Action: envs.Discrete{N: 2}, Reward: envs.Range{Low: math.Inf(-1), High: math.Inf(1)}}
}

func (e *scripted) Reset(_ rng.Key, ts *envs.TimeStep) error {
	copy(ts.Obs[0].Float32s(), e.s.Obs[e.at][e.row])
	ts.Restart()
	return nil
}

func (e *scripted) Step(_ *tensor.Tensor, ts *envs.TimeStep) error {
	t := e.at
	e.at++
	r, next := e.s.Rewards[t][e.row], e.s.Obs[e.at][e.row]
	switch {
	case e.s.Terminated[t][e.row]:
		ts.Terminate(r)
		next = e.s.Final[t][e.row]
	case e.s.Truncated[t][e.row]:
		ts.Truncate(r)
		next = e.s.Final[t][e.row]
	default:
		ts.Continue(r)
	}
	copy(ts.Obs[0].Float32s(), next)
	return nil
}

func (e *scripted) Close() error { return nil }

func normalizing(t testing.TB, list []envs.Env, c wrap.Normalize) *vector.Normalized {
	t.Helper()
	v, err := vector.New(list, vector.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	n, err := vector.Normalize(v, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := n.Reset(rng.New(1)); err != nil {
		t.Fatal(err)
	}
	return n
}

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance*(1+math.Abs(b)) }

// TestEqualsVecNormalize compares every number of 60 steps of 3 environments with what
// Stable-Baselines3 shows: observations and statistics per dimension, final observations, rewards
// by the deviation of returns, which begin again after termination and truncation alike.
func TestEqualsVecNormalize(t *testing.T) {
	s := load(t)
	list := make([]envs.Env, 3)
	for i := range list {
		list[i] = &scripted{s: s, row: i}
	}
	n := normalizing(t, list, s.config())
	b, compared, finals, clipped := n.Batch(), 0, 0, 0
	same := func(what string, step int, got []float32, want []float32) {
		for k, w := range want {
			if !near(float64(got[k]), float64(w), 1e-6) {
				t.Fatalf("step %d: %s %v, expected %v", step, what, got, want)
			}
			if math.Abs(float64(w)) == s.ClipObs {
				clipped++
			}
			compared++
		}
	}
	for step := 0; ; step++ {
		for i := range 3 {
			same("observation", step, b.Obs[0].Float32s()[2*i:2*i+2], s.Shown[step][i])
		}
		if step == 60 {
			break
		}
		if err := n.Step(b.Actions); err != nil {
			t.Fatal(err)
		}
		for i, r := range b.Reward {
			if !near(r, s.Scaled[step][i], 1e-6) || b.Earned()[i] != s.Rewards[step][i] {
				t.Fatalf("step %d: reward %g of %g, expected %g", step, r, b.Earned()[i], s.Scaled[step][i])
			}
			compared++
		}
		for _, e := range b.Ended {
			same("final observation", step, b.Final[0].Float32s()[2*e.Env:2*e.Env+2], s.ShownFinal[step][e.Env])
			finals++
			// The reported return is the one that was earned.
			sum := 0.0
			for k := step - e.Length + 1; k <= step; k++ {
				sum += s.Rewards[k][e.Env]
			}
			if !near(e.Return, sum, 1e-12) {
				t.Errorf("step %d: return %g, expected %g", step, e.Return, sum)
			}
		}
	}
	state := n.State()
	for k := range 2 {
		if !near(state.Obs[0].Mean[k], s.Mean[k], 1e-12) || !near(state.Obs[0].Var[k], s.Var[k], 1e-12) {
			t.Errorf("dimension %d: mean %g and variance %g, expected %g and %g", k, state.Obs[0].Mean[k], state.Obs[0].Var[k], s.Mean[k], s.Var[k])
		}
	}
	if !near(state.Return.Var[0], s.ReturnVar, 1e-12) {
		t.Errorf("variance of returns %g, expected %g", state.Return.Var[0], s.ReturnVar)
	}
	if compared != 61*6+60*3+2*finals || finals != 6+8+12 || clipped < 5 {
		t.Errorf("%d numbers, %d final observations, %d at the limit", compared, finals, clipped)
	}
}

// walk plays corridors, whose episodes are long enough to be cut off.
func walk(t testing.TB, c wrap.Normalize) *vector.Normalized {
	t.Helper()
	list := make([]envs.Env, 3)
	for i := range list {
		e, err := corridor.New(corridor.Config{Cells: 6})
		if err != nil {
			t.Fatal(err)
		}
		if list[i], err = wrap.NewTimeLimit(e, 9); err != nil {
			t.Fatal(err)
		}
	}
	return normalizing(t, list, c)
}

func step(t testing.TB, n *vector.Normalized, s *rng.Stream) {
	t.Helper()
	b := n.Batch()
	for i := range b.Actions.Int64s() {
		b.Actions.Int64s()[i] = int64(s.IntN(2))
	}
	if err := n.Step(b.Actions); err != nil {
		t.Fatal(err)
	}
}

// TestResume goes on from a saved state, by way of JSON, bit for bit.
func TestResume(t *testing.T) {
	c := wrap.Defaults().Normalize
	c.Obs, c.Reward = true, true
	whole, part := walk(t, c), walk(t, c)
	a, b := rng.New(2).Stream(), rng.New(2).Stream()
	for range 25 {
		step(t, whole, a)
		step(t, part, b)
	}
	text, err := json.Marshal(part.State())
	if err != nil {
		t.Fatal(err)
	}
	inner, err := vector.SaveState(part.Inner())
	if err != nil {
		t.Fatal(err)
	}
	again := walk(t, c)
	var s vector.Statistics
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if err := vector.LoadState(again.Inner(), inner); err != nil {
		t.Fatal(err)
	}
	if err := again.SetState(s); err != nil {
		t.Fatal(err)
	}
	compared := 0
	for range 40 {
		if x, y := whole.Batch(), again.Batch(); !slices.Equal(x.Obs[0].Float32s(), y.Obs[0].Float32s()) {
			t.Fatalf("after %d steps %v, expected %v", compared, y.Obs[0].Float32s(), x.Obs[0].Float32s())
		}
		step(t, whole, a)
		step(t, again, b)
		if x, y := whole.Batch(), again.Batch(); !slices.Equal(x.Reward, y.Reward) {
			t.Fatalf("after %d steps rewards %v, expected %v", compared, y.Reward, x.Reward)
		}
		compared++
	}
	if x, y := whole.State(), again.State(); compared != 40 || !slices.Equal(x.Obs[0].Var, y.Obs[0].Var) || x.Return.Var[0] != y.Return.Var[0] || x.Return.Var[0] == 1 {
		t.Errorf("%d steps; %+v, expected %+v", compared, y, x)
	}

	s.Fields = []string{"other"}
	if err := again.SetState(s); err == nil || !strings.Contains(err.Error(), `"other"`) {
		t.Errorf("statistics of another field: %v", err)
	}
	s = whole.State()
	s.Obs[0].Var[0] = math.NaN()
	if err := again.SetState(s); err == nil || !strings.Contains(err.Error(), "position: dimension 0") {
		t.Errorf("a variance of NaN: %v", err)
	}
	s = whole.State()
	s.Returns = s.Returns[:1]
	if err := again.SetState(s); err == nil || !strings.Contains(err.Error(), "1 environments, expected 3") {
		t.Errorf("other returns: %v", err)
	}
	again.Abandon()
	if got := again.State().Returns; !slices.Equal(got, []float64{0, 0, 0}) {
		t.Errorf("returns %v", got)
	}
}

// TestFrozen shows raw observations through a moment's statistics, which going on does not change.
func TestFrozen(t *testing.T) {
	c := wrap.Defaults().Normalize
	c.Obs = true
	n := walk(t, c)
	s := rng.New(3).Stream()
	for range 20 {
		step(t, n, s)
	}
	f, err := vector.NewFrozen(n.Inner().Spec(), 3, n.Normalizers())
	if err != nil {
		t.Fatal(err)
	}
	b := f.Show(n.Inner().Batch())
	if got := b.Obs[0].Float32s(); !slices.Equal(got, n.Batch().Obs[0].Float32s()) || &b.Reward[0] != &n.Inner().Batch().Reward[0] || b.Mask != n.Batch().Mask {
		t.Errorf("%v, expected %v", got, n.Batch().Obs[0].Float32s())
	}
	before := slices.Clone(b.Obs[0].Float32s())
	raw := slices.Clone(n.Inner().Batch().Obs[0].Float32s())
	for range 20 {
		step(t, n, s)
	}
	copy(n.Inner().Batch().Obs[0].Float32s(), raw)
	if n := testing.AllocsPerRun(10, func() { b = f.Show(n.Inner().Batch()) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if !slices.Equal(b.Obs[0].Float32s(), before) {
		t.Errorf("the frozen statistics have moved: %v, expected %v", b.Obs[0].Float32s(), before)
	}
	out := tensor.New(tensor.Float32, 3, 1)
	if err := b.Gather(0, out); err != nil || !slices.Equal(out.Float32s(), before) {
		t.Errorf("gathered %v, %v", out.Float32s(), err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if _, err := vector.NewFrozen(n.Inner().Spec(), 3, []wrap.Normalizer{{Field: "other", Mean: []float64{1}, Var: []float64{1}}}); err == nil || !strings.Contains(err.Error(), `"other"`) {
		t.Errorf("another field: %v", err)
	}
}

func TestMisfits(t *testing.T) {
	c := wrap.Defaults().Normalize
	for want, change := range sorted.All(map[string]func(*wrap.Normalize){
		"neither observations nor rewards":                           func(*wrap.Normalize) {},
		`fields: "speed": the observation of corridor has [position`: func(c *wrap.Normalize) { c.Obs, c.Fields = true, []string{"speed"} },
		"epsilon: must be positive":                                  func(c *wrap.Normalize) { c.Obs, c.Epsilon = true, 0 },
		"but obs is false":                                           func(c *wrap.Normalize) { c.Reward, c.Fields = true, []string{"position"} },
		"gamma: must be between 0 and 1":                             func(c *wrap.Normalize) { c.Reward, c.Gamma = true, new(1.5) },
	}) {
		bad := c
		change(&bad)
		e, err := corridor.New(corridor.Defaults())
		if err != nil {
			t.Fatal(err)
		}
		v, err := vector.New([]envs.Env{e}, vector.Options{Workers: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := vector.Normalize(v, bad); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "wrappers.normalize") {
			t.Errorf("%q is not said: %v", want, err)
		}
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestNormalizedAllocatesNothing(t *testing.T) {
	c := wrap.Defaults().Normalize
	c.Obs, c.Reward = true, true
	n := walk(t, c)
	s := rng.New(4).Stream()
	if a := testing.AllocsPerRun(200, func() { step(t, n, s) }); a != 0 {
		t.Errorf("%v allocations per step", a)
	}
}
