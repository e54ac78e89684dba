package gymnasium_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// wrapCases are sections of wrappers and the environments that they fit.
func wrapCases() []wrapCase {
	frames := func(n int, initial string) wrap.Frames { return wrap.Frames{Frames: n, Initial: initial, Flat: n == 3} }
	return []wrapCase{
		{"limit", "Masked-v0", map[string]any{"end": 3}, wrap.Config{TimeLimit: 7}},
		{"limit beyond the environment's own", "Walk-v0", nil, wrap.Config{TimeLimit: 50, FrameStack: frames(2, wrap.InitialFirst)}},
		{"stack and limit", "Masked-v0", map[string]any{"end": 3}, wrap.Config{TimeLimit: 7, FrameStack: frames(3, wrap.InitialFirst)}},
		{"stack of zeros", "EndlessMasked-v0", nil, wrap.Config{TimeLimit: 9, FrameStack: frames(4, wrap.InitialZero)}},
		{"rescaled", "Spaces-v0", map[string]any{"action": "box"}, wrap.Config{FrameStack: frames(2, wrap.InitialZero), RescaleAction: true}},
		{"rescaled and clipped", "Spaces-v0", map[string]any{"action": "box64"}, wrap.Config{TimeLimit: 4, RescaleAction: true, ClipAction: true}},
		{"clipped", "Spaces-v0", map[string]any{"action": "box"}, wrap.Config{ClipAction: true}},
	}
}

type wrapCase struct {
	name, id string
	kwargs   map[string]any
	c        wrap.Config
}

func (c wrapCase) open(t testing.TB) envs.Factory {
	t.Helper()
	section := wrap.Defaults()
	section.TimeLimit, section.RescaleAction, section.ClipAction = c.c.TimeLimit, c.c.RescaleAction, c.c.ClipAction
	if c.c.FrameStack.On() {
		section.FrameStack = c.c.FrameStack
	}
	inner := config(c.id, c.kwargs)
	inner.Costs = []string{"wind"}
	f, err := wrap.Apply(open(t, inner), section)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// apart steps the environments of a wrapped factory one by one, each in a process of its own.
func apart(t testing.TB, f envs.Factory, n int) vector.Env {
	t.Helper()
	list, err := envs.Make(f, envs.Train, n)
	if err != nil {
		t.Fatal(err)
	}
	v, err := vector.New(list, vector.Options{Workers: 1, Check: true})
	if err != nil {
		t.Fatal(err)
	}
	return closing(t, v)
}

func closing(t testing.TB, v vector.Env) vector.Env {
	t.Helper()
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

// together steps them as a vector with wrappers around its rows.
func together(t testing.TB, f envs.Factory, n int, o vector.Options) vector.Env {
	t.Helper()
	v, err := vector.Open(f, envs.Train, n, o)
	if err != nil {
		t.Fatal(err)
	}
	return closing(t, v)
}

// TestWrappersAroundRows: wrappers around the rows of a vector show what they show around
// environments of their own, bit for bit, also when saved in the middle of episodes and continued
// in another vector.
func TestWrappersAroundRows(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	const n, steps = 3, 80
	compared := 0
	for _, c := range wrapCases() {
		t.Run(c.name, func(t *testing.T) {
			f := c.open(t)
			one := apart(t, f, n)
			want, ended := play(t, one, 3, steps)
			if ended < 8 {
				t.Errorf("only %d episodes ended", ended)
			}
			v := together(t, f, n, vector.Options{Workers: 2, Check: true})
			if a, b := one.Spec(), v.Spec(); !a.Equal(&b) {
				t.Errorf("the vector is described as %+v, expected %+v", b, a)
			}
			got, _ := play(t, v, 3, steps)
			for i := range want {
				if got[i] != want[i] {
					t.Fatalf("step %d:\n%s\nexpected\n%s", i, got[i], want[i])
				}
				compared++
			}
			continued(t, f, v, n)
		})
	}
	if compared != 7*(steps+1) {
		t.Errorf("%d steps were compared", compared)
	}
}

// continued saves v in the middle of episodes and compares how it and another vector go on.
func continued(t *testing.T, f envs.Factory, v vector.Env, n int) {
	t.Helper()
	reset(t, v, 8)
	actions := script(v, 45)
	run := func(v vector.Env, list []*tensor.Tensor) (said []string) {
		for k, a := range list {
			if err := v.Step(a); err != nil {
				t.Fatalf("step %d: %v", k, err)
			}
			said = append(said, photo(v.Batch()))
		}
		return said
	}
	run(v, actions[:23])
	state, err := vector.SaveState(v)
	if err != nil {
		t.Fatal(err)
	}
	fresh := together(t, f, n, vector.Options{Workers: 2})
	if err := vector.LoadState(fresh, state); err != nil {
		t.Fatal(err)
	}
	for k, x := range v.Batch().Obs {
		if !slices.Equal(x.Bytes(), fresh.Batch().Obs[k].Bytes()) {
			t.Error("the saved observations are others")
		}
	}
	if !slices.Equal(run(v, actions[23:]), run(fresh, actions[23:])) {
		t.Error("it goes on differently after saving")
	}
	if err := vector.LoadState(fresh, []byte(`{"name":"x"}`)); err == nil {
		t.Error("a state of something else is loaded")
	}
}

// TestWrappedMisuse: errors are those of any vector, and name the environment.
func TestWrappedMisuse(t *testing.T) {
	c := wrapCase{"", "Spaces-v0", map[string]any{"action": "box"}, wrap.Config{FrameStack: wrap.Frames{Frames: 2, Initial: wrap.InitialFirst}, RescaleAction: true}}
	v := together(t, c.open(t), 3, vector.Options{Workers: 1})
	if err := v.Step(v.Batch().Actions); !errors.Is(err, envs.ErrNoEpisode) {
		t.Errorf("Step before Reset gives %v", err)
	}
	if _, err := vector.SaveState(v); !errors.Is(err, envs.ErrNoEpisode) {
		t.Errorf("saving before Reset gives %v", err)
	}
	reset(t, v, 1)
	if err := v.Step(tensor.New(tensor.Float32, 2, 2)); err == nil || !strings.Contains(err.Error(), "actions") {
		t.Errorf("two actions for three environments give %v", err)
	}
	reset(t, v, 1)
	v.Batch().Actions.Float32s()[4] = 1.5
	var bad *envs.ActionError
	if err := v.Step(v.Batch().Actions); !errors.As(err, &bad) || !strings.Contains(err.Error(), "environment 2") {
		t.Errorf("an action beyond its space gives %v", err)
	}
	if err := v.Step(v.Batch().Actions); !errors.Is(err, envs.ErrNoEpisode) {
		t.Errorf("Step after an error gives %v", err)
	}
	if err := errors.Join(v.Close(), v.Close()); err != nil {
		t.Error(err)
	}
	if err := v.Reset(rootKey); !errors.Is(err, envs.ErrClosed) {
		t.Errorf("Reset after Close gives %v", err)
	}
}

// TestWrappedLost: a worker that ends in the middle of a step is replaced, and its rows' episodes
// end where they were last seen, with whole stacks.
func TestWrappedLost(t *testing.T) {
	c := wrapCase{"", "Rude-v0", map[string]any{"how": "kill", "after": 4, "times": 1, "marks": t.TempDir()}, wrap.Config{FrameStack: wrap.Frames{Frames: 2, Initial: wrap.InitialFirst, Flat: true}}}
	v := together(t, c.open(t), 2, vector.Options{Workers: 1})
	reset(t, v, 1)
	b := v.Batch()
	for k, a := range script(v, 8) {
		if err := v.Step(a); err != nil {
			t.Fatal(err)
		}
		if lost := k == 3; (len(b.Ended) == 2) != lost {
			t.Fatalf("step %d: %+v ended", k, b.Ended)
		} else if lost && (!b.Ended[0].Truncated || b.Ended[0].Length != 4 || !slices.Equal(b.Final[0].Float32s(), []float32{3, 3, 3, 3})) {
			t.Errorf("%+v ended with %v", b.Ended, b.Final[0].Float32s())
		}
	}
}

// TestWrappedAllocatesNothing counts the worker's processes too: the wrappers need none of their
// own.
func TestWrappedAllocatesNothing(t *testing.T) {
	c := wrapCases()[2]
	v := together(t, c.open(t), 4, vector.Options{Workers: 1})
	if n := allocations(t, v); n != 0 {
		t.Errorf("%g allocations per step", n)
	}
}

// BenchmarkWrapped steps eight environments of the stand-in with normalisation and a stack of four:
// bare in one worker, with the wrappers around its rows, and around environments with a process
// each.
func BenchmarkWrapped(b *testing.B) {
	b.ReportAllocs()
	stacked := wrapCase{id: "Walk-v0", c: wrap.Config{FrameStack: wrap.Frames{Frames: 4, Initial: wrap.InitialFirst, Flat: true}}}
	const n = 8
	type row struct {
		name string
		v    vector.Env
		took time.Duration
	}
	rows := []row{
		{name: "bare", v: together(b, wrapCase{id: "Walk-v0"}.open(b), n, vector.Options{Workers: 1})},
		{name: "rows", v: together(b, stacked.open(b), n, vector.Options{Workers: 1})},
		{name: "apart", v: apart(b, stacked.open(b), n)},
	}
	section := wrap.Defaults().Normalize
	section.Obs, section.Reward = true, true
	for i := range rows[1:] {
		v, err := vector.Normalize(rows[1+i].v, section)
		if err != nil {
			b.Fatal(err)
		}
		rows[1+i].v = v
	}
	var actions []*tensor.Tensor
	for _, r := range rows {
		reset(b, r.v, 1)
		actions = script(r.v, 64)
	}
	k := 0
	for b.Loop() {
		// In turn, so that whatever else the machine does is shared.
		for i := range rows {
			start := time.Now()
			if err := rows[i].v.Step(actions[k&63]); err != nil {
				b.Fatal(err)
			}
			rows[i].took += time.Since(start)
		}
		k++
	}
	for _, r := range rows {
		b.ReportMetric(float64(r.took.Nanoseconds())/float64(b.N), fmt.Sprintf("%s-ns/step", r.name))
	}
}
