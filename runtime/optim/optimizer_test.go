package optim

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/optim/kernel"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// variants covers every kernel that Config can reach.
var variants = []Config{
	{Kind: "sgd", LR: 0.1, Decay: 0.01},
	{Kind: "sgd", LR: 0.1, Momentum: 0.9, Dampening: 0.2, Decay: 0.01},
	{Kind: "sgd", LR: 0.1, Momentum: 0.9, Nesterov: true},
	{Kind: "rmsprop", LR: 0.01, Decay: 0.01},
	{Kind: "rmsprop", LR: 0.01, Momentum: 0.9, EpsInside: true},
	{Kind: "rmsprop", LR: 0.01, EpsInside: true, Ones: true},
	{Kind: "rmsprop", LR: 0.01, Centred: true, Eps: 1e-4},
	{Kind: "rmsprop", LR: 0.01, Centred: true, Momentum: 0.9, Eps: 1e-4},
	{Kind: "adam", LR: 0.01, Decay: 0.01},
	{Kind: "adam", LR: 0.01, AMSGrad: true},
	{Kind: "adamw", LR: 0.01, Decay: 0.1},
	{Kind: "lamb", LR: 0.01, Decay: 0.1},
	{Kind: "lion", LR: 0.001, Decay: 0.1},
}

func name(c Config) string {
	return fmt.Sprintf("%s_m%g_n%v_c%v_a%v", c.Kind, c.Momentum, c.Nesterov, c.Centred, c.AMSGrad)
}

// fixture is an arena of three parameters with padding and elements that belong
// to no group.
type fixture struct {
	params, grads []float32
	list          []Param
	r             *rand.Rand
}

func newFixture() *fixture {
	f := &fixture{
		params: make([]float32, 400), grads: make([]float32, 400), r: rand.New(rand.NewPCG(1, 2)),
		list: []Param{{"l0.weight", 16, 75}, {"l0.bias", 96, 7}, {"frozen", 112, 16}, {"l1.weight", 160, 201}},
	}
	for i := range f.params {
		f.params[i] = f.r.Float32() - 0.5
	}
	f.list = slices.DeleteFunc(f.list, func(p Param) bool { return p.Name == "frozen" })
	return f
}

// fill draws gradients that depend on the parameters and the stream.
func (f *fixture) fill() {
	for i, p := range f.params {
		f.grads[i] = p + f.r.Float32() - 0.5
	}
}

func (f *fixture) groups(t testing.TB, c Config) []Group {
	t.Helper()
	g, err := Groups(c, f.params, f.grads, f.list)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func mustNew(t testing.TB, c Config, opts ...Option) Optimizer {
	t.Helper()
	o, err := New(c, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func mustStep(t testing.TB, o Optimizer, g []Group) {
	t.Helper()
	if err := o.Step(g); err != nil {
		t.Fatal(err)
	}
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

func cloneState(s map[string][]float32) map[string][]float32 {
	c := map[string][]float32{}
	for k, v := range sorted.All(s) {
		c[k] = slices.Clone(v)
	}
	return c
}

// TestResume checks, for every variant, that 5 steps, a saved and restored
// state, and 5 more steps give the bits of 10 steps, and that elements outside
// every group keep theirs.
func TestResume(t *testing.T) {
	ran := 0
	for _, c := range variants {
		t.Run(name(c), func(t *testing.T) {
			ran++
			c.NoDecay = []string{"*.bias"}
			a, b := newFixture(), newFixture()
			before := slices.Clone(a.params)
			oa, ob := mustNew(t, c), mustNew(t, c)
			ga, gb := a.groups(t, c), b.groups(t, c)
			if len(ga) < 2 {
				t.Fatalf("%d groups, want at least 2", len(ga))
			}
			for k := range 10 {
				if k == 5 {
					state := cloneState(ob.State())
					ob = mustNew(t, c)
					if err := ob.SetState(state); err != nil {
						t.Fatal(err)
					}
				}
				a.fill()
				b.fill()
				mustStep(t, oa, ga)
				mustStep(t, ob, gb)
			}
			if !sameBits(a.params, b.params) {
				t.Error("the resumed run differs")
			}
			if !maps.EqualFunc(oa.State(), ob.State(), sameBits) {
				t.Error("the resumed state differs")
			}
			inside := make([]bool, len(a.params))
			for _, g := range ga {
				for i := range g.Params {
					inside[g.Offset+i] = true
				}
			}
			if inside[15] || inside[112] || inside[127] || inside[361] || !inside[16] || !inside[102] {
				t.Fatal("the groups do not cover what they should")
			}
			changed := 0
			for i := range a.params {
				if inside[i] && a.params[i] != before[i] {
					changed++
				}
				if !inside[i] && math.Float32bits(a.params[i]) != math.Float32bits(before[i]) {
					t.Fatalf("element %d, in no group, changed", i)
				}
			}
			if changed < 270 {
				t.Errorf("%d of 283 elements changed", changed)
			}
		})
	}
	if ran != 13 {
		t.Fatalf("%d variants ran, want 13", ran)
	}
}

// TestLevelsAgree runs every variant at every instruction set.
func TestLevelsAgree(t *testing.T) {
	best := kernel.Active()
	defer func() {
		if err := kernel.SetLevel(best); err != nil {
			t.Fatal(err)
		}
	}()
	compared := 0
	for _, c := range variants {
		var want []float32
		for _, l := range kernel.Levels() {
			if err := kernel.SetLevel(l); err != nil {
				t.Fatal(err)
			}
			f := newFixture()
			g := f.groups(t, c)
			o := mustNew(t, c)
			for range 5 {
				f.fill()
				if _, _, err := ClipGlobalNorm(g, 0.5); err != nil {
					t.Fatal(err)
				}
				mustStep(t, o, g)
			}
			if want == nil {
				want = f.params
			}
			if !sameBits(want, f.params) {
				t.Errorf("%s at %v differs from %v", name(c), l, kernel.Portable)
			}
			compared++
		}
	}
	if want := 13 * len(kernel.Levels()); compared != want {
		t.Fatalf("%d runs compared, want %d", compared, want)
	}
}

// TestParallel checks that splitting a step changes nothing and allocates nothing.
func TestParallel(t *testing.T) {
	const n = ownMin + 3*workerMin/2 + 5
	for _, c := range []Config{{Kind: "adam", LR: 0.01}, {Kind: "lamb", LR: 0.01}} {
		var want []float32
		for _, workers := range []int{1, 2, 5} {
			params, grads := make([]float32, n), make([]float32, n)
			r := rand.New(rand.NewPCG(1, 1))
			for i := range params {
				params[i], grads[i] = r.Float32(), r.Float32()-0.5
			}
			o := mustNew(t, c, WithWorkers(workers))
			groups := []Group{
				{Params: params[:n-777], Grads: grads[:n-777], LR: 0.01},
				{Params: params[n-777:], Grads: grads[n-777:], Offset: n - 777, LR: 0.02},
			}
			mustStep(t, o, groups)
			if allocs := testing.AllocsPerRun(3, func() { mustStep(t, o, groups) }); allocs != 0 {
				t.Errorf("%s with %d workers: %v allocations per step", c.Kind, workers, allocs)
			}
			if want == nil {
				want = params
			}
			if !sameBits(want, params) {
				t.Errorf("%s: %d workers differ from one", c.Kind, workers)
			}
		}
	}
}

func TestNoAllocations(t *testing.T) {
	for _, c := range variants {
		f := newFixture()
		f.fill()
		g := f.groups(t, c)
		o := mustNew(t, c)
		mustStep(t, o, g)
		s := Schedule{Kind: "cosine", Initial: 0.01}
		allocs := testing.AllocsPerRun(20, func() {
			SetLR(g, s.At(o.Steps(), 100))
			if _, _, err := ClipGlobalNorm(g, 1); err != nil {
				t.Fatal(err)
			}
			mustStep(t, o, g)
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations per step", name(c), allocs)
		}
	}
}

// TestRegroup checks that moments stay with their parameters when the groups
// change: with equal settings, the split cannot matter.
func TestRegroup(t *testing.T) {
	c := Config{Kind: "adam", LR: 0.01}
	a, b := newFixture(), newFixture()
	oa, ob := mustNew(t, c), mustNew(t, c)
	split := c
	split.NoDecay = []string{"*.bias"}
	split.Decay = 0
	for k := range 6 {
		a.fill()
		b.fill()
		mustStep(t, oa, a.groups(t, c))
		gb := b.groups(t, c)
		if k >= 3 {
			// One parameter per group, in another order.
			gb = nil
			for _, p := range slices.Backward(b.list) {
				gb = append(gb, Group{Params: b.params[p.Offset:][:p.Len], Grads: b.grads[p.Offset:][:p.Len], Offset: p.Offset, LR: 0.01})
			}
		}
		mustStep(t, ob, gb)
	}
	for _, p := range a.list {
		if !sameBits(a.params[p.Offset:][:p.Len], b.params[p.Offset:][:p.Len]) {
			t.Errorf("%s differs after regrouping", p.Name)
		}
	}
}

func TestAllocator(t *testing.T) {
	got := map[string][]float32{}
	alloc := func(slot string, n int) ([]float32, error) {
		got[slot] = make([]float32, n+100)
		return got[slot], nil
	}
	f := newFixture()
	f.fill()
	c := Config{Kind: "adam", LR: 0.1, AMSGrad: true}
	o := mustNew(t, c, WithAllocator(alloc))
	mustStep(t, o, f.groups(t, c))
	mustStep(t, o, f.groups(t, c))
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, []string{"m", "v", "v_max"}) {
		t.Fatalf("slots %q allocated", names)
	}
	s := o.State()
	for slot, x := range sorted.All(got) {
		if &s[slot][0] != &x[0] || len(s[slot]) != 361 || x[20] == 0 {
			t.Errorf("slot %s is not in the caller's memory", slot)
		}
	}
	full := errors.New("full")
	o = mustNew(t, c, WithAllocator(func(string, int) ([]float32, error) { return nil, full }))
	before := slices.Clone(f.params)
	if err := o.Step(f.groups(t, c)); !errors.Is(err, full) || !sameBits(before, f.params) || o.Steps() != 0 {
		t.Errorf("failed allocation: %v, %d steps", err, o.Steps())
	}
	mustErr(t, "got 3 elements", func() error {
		return mustNew(t, c, WithAllocator(func(string, int) ([]float32, error) { return make([]float32, 3), nil })).Step(f.groups(t, c))
	})
}

func mustErr(t *testing.T, want string, f func() error) {
	t.Helper()
	if err := f(); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one containing %q", err, want)
	}
}

func TestStepErrors(t *testing.T) {
	p := make([]float32, 64)
	good := Group{Name: "a", Params: p[:32], Grads: make([]float32, 32), LR: 1}
	cases := []struct {
		want   string
		change func(g *Group)
	}{
		{"group 1 (b): 3 gradients for 32 parameters", func(g *Group) { g.Grads = g.Grads[:3] }},
		{"learning rate NaN", func(g *Group) { g.LR = float32(math.NaN()) }},
		{"learning rate -1", func(g *Group) { g.LR = -1 }},
		{"decay +Inf", func(g *Group) { g.Decay = float32(math.Inf(1)) }},
		{"gradient scale -2", func(g *Group) { g.GradScale = -2 }},
		{"offset -4 is negative", func(g *Group) { g.Offset = -4 }},
		{"group 1 (b) overlaps group 0 (a) at element 31", func(g *Group) { g.Offset = 31 }},
	}
	for _, c := range cases {
		o := mustNew(t, Config{Kind: "adam", LR: 1})
		b := good
		b.Name, b.Params, b.Offset = "b", p[32:], 32
		c.change(&b)
		mustErr(t, c.want, func() error { return o.Step([]Group{good, b}) })
		if o.Steps() != 0 {
			t.Errorf("%s: counted as a step", c.want)
		}
	}
	if len(cases) != 7 {
		t.Fatalf("%d cases, want 7", len(cases))
	}
	// Groups without offsets are laid out in order and must stay as they are.
	o := mustNew(t, Config{Kind: "adam", LR: 1})
	b := good
	b.Params = p[32:]
	mustStep(t, o, []Group{good, b})
	mustErr(t, "groups changed", func() error { return o.Step([]Group{good, b, {}}) })
	// Without state there is nothing to lose.
	o = mustNew(t, Config{Kind: "sgd", LR: 1})
	mustStep(t, o, []Group{good, b})
	mustStep(t, o, []Group{good})
}

func TestSetState(t *testing.T) {
	f := newFixture()
	f.fill()
	c := Config{Kind: "adam", LR: 0.1}
	o := mustNew(t, c)
	fresh := cloneState(o.State())
	if len(fresh) != 1 {
		t.Fatalf("state before the first step has %d entries, want 1", len(fresh))
	}
	start := slices.Clone(f.params)
	mustStep(t, o, f.groups(t, c))
	first := slices.Clone(f.params)
	good := cloneState(o.State())
	bad := func(change func(m map[string][]float32)) func() error {
		return func() error {
			m := cloneState(good)
			change(m)
			return o.SetState(m)
		}
	}
	mustErr(t, `"step": 0 elements`, bad(func(m map[string][]float32) { delete(m, "step") }))
	mustErr(t, "not a counter", bad(func(m map[string][]float32) { m["step"][0] = 0.5 }))
	mustErr(t, `unknown slot "q"`, bad(func(m map[string][]float32) { m["q"] = nil }))
	mustErr(t, "1 of the slots", bad(func(m map[string][]float32) { delete(m, "v") }))
	mustErr(t, "has 3 elements", bad(func(m map[string][]float32) { m["v"] = m["v"][:3] }))
	mustErr(t, "slots of 3 elements", bad(func(m map[string][]float32) { m["m"], m["v"] = m["m"][:3], m["v"][:3] }))
	if !maps.EqualFunc(good, o.State(), sameBits) {
		t.Error("a refused state changed something")
	}
	// The state before the first step restores the beginning.
	if err := o.SetState(fresh); err != nil {
		t.Fatal(err)
	}
	copy(f.params, start)
	mustStep(t, o, f.groups(t, c))
	if !sameBits(first, f.params) {
		t.Error("a reset optimiser differs from a new one")
	}
	for _, n := range []uint64{0, 1, 1<<24 - 1, 1 << 24, 1<<24 + 1, 123456789012, 1<<48 - 1} {
		if got, err := decodeCount(encodeCount(n)); err != nil || got != n {
			t.Errorf("counter %d reads as %d, %v", n, got, err)
		}
	}
}
