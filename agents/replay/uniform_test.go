package replay

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// nstep is the naive sample that begins with step k of a list.
func nstep(list []step, k, n int, gamma float64) (reward, discount float64, next, nextMask string) {
	discount = 1
	for i := k; i < min(k+n, len(list)); i++ {
		s := list[i]
		reward += discount * s.reward
		discount *= gamma * s.discount
		next, nextMask = s.next, s.nextMask
		if s.last {
			break
		}
	}
	return
}

// costly reports whether a row of costs is the sum over n steps from step k of a list on.
func costly(got []float32, list []step, k, n int, gamma float64) bool {
	var square, double float64
	discount := 1.0
	for i := k; i < min(k+n, len(list)); i++ {
		s, d := costs(list[i].reward)
		square, double = square+discount*s, double+discount*d
		discount *= gamma * list[i].discount
		if list[i].last {
			break
		}
	}
	return math.Abs(square-float64(got[0])) < 1e-3 && math.Abs(double-float64(got[1])) < 1e-4
}

// check compares a batch with what was written down, and counts how often each transition was
// drawn.
func (w *world) check(t testing.TB, b *Batch, n int, gamma float64, drawn map[string]int) {
	t.Helper()
	for i := range b.Reward {
		obs := sampled(b.Obs, i)
		p, ok := w.index[obs]
		if !ok {
			t.Fatalf("sample %d is of no transition", i)
		}
		list := w.diary[p[0]]
		s := list[p[1]]
		checkDecided(t, b, i)
		reward, discount, next, nextMask := nstep(list, p[1], n, gamma)
		if s.action != b.Action.Int64s()[i] || float32(s.logProb) != b.LogProb[i] || s.mask != maskOf(b.Mask, i) {
			t.Fatalf("sample %d: action %d, log-probability %g, mask %s; recorded %+v", i, b.Action.Int64s()[i], b.LogProb[i], maskOf(b.Mask, i), s)
		}
		if math.Abs(reward-float64(b.Reward[i])) > 1e-5 || math.Abs(discount-float64(b.Discount[i])) > 1e-6 {
			t.Fatalf("sample %d: reward %g and discount %g, expected %g and %g", i, b.Reward[i], b.Discount[i], reward, discount)
		}
		if !costly(b.Cost.Float32s()[2*i:], list, p[1], n, gamma) {
			t.Fatalf("sample %d: costs %v", i, b.Cost.Float32s()[2*i:][:2])
		}
		if next != sampled(b.NextObs, i) || nextMask != maskOf(b.NextMask, i) {
			t.Fatalf("sample %d: another following observation, or mask", i)
		}
		drawn[obs]++
	}
}

func layoutOfToy(v vector.Env) Layout {
	l := LayoutOf(v.Spec(), Column{"action", tensor.Int64, nil})
	l.LogProb, l.Logits, l.Skill = true, toyLogits, &Column{DType: tensor.Float32, Shape: []int{3}}
	return l
}

// TestUniform compares every sample with a plain list of what happened, while the ring fills and
// after it has gone around.
func TestUniform(t *testing.T) {
	cases, samples := 0, 0
	for _, envs := range []int{1, 3} {
		for _, n := range []int{1, 3} {
			v, _ := toys(t, envs)
			l := layoutOfToy(v)
			u, err := NewUniform(l, Config{Capacity: 120, Envs: envs, NSteps: n, Gamma: 0.9})
			if err != nil {
				t.Fatal(err)
			}
			closing(t, u)
			w := newWorld(v, u)
			b, s := batchOf(l, 32), rng.New(1).Stream()
			if err := u.Sample(s, b); !errors.Is(err, ErrEmpty) {
				t.Errorf("sample of nothing: %v", err)
			}
			for k := range 400 {
				if k == 100 || k == 101 || k == 200 {
					// Somebody resets the environments in the middle of episodes.
					if err := v.Reset(rng.New(uint64(k))); err != nil {
						t.Fatal(err)
					}
				}
				w.round(t)
				if err := u.Sample(s, b); err != nil {
					t.Fatal(err)
				}
				w.check(t, b, n, 0.9, map[string]int{})
				samples += len(b.Reward)
				if u.Len() > 120+envs {
					t.Fatalf("%d transitions", u.Len())
				}
			}
			if !u.Full() {
				t.Error("the ring is not full")
			}
			// All kept transitions are drawn equally often.
			drawn, rounds := map[string]int{}, 300
			for range rounds {
				if err := u.Sample(s, b); err != nil {
					t.Fatal(err)
				}
				for i := range b.Reward {
					drawn[sampled(b.Obs, i)]++
				}
			}
			w.check(t, b, n, 0.9, map[string]int{})
			if len(drawn) != u.Len() {
				t.Errorf("%d different transitions were drawn, %d are kept", len(drawn), u.Len())
			}
			// Kept are the newest ones of each environment.
			for e, list := range w.diary {
				kept := 0
				for i := len(list) - 1; i >= 0 && drawn[list[i].obs] > 0; i-- {
					kept++
					delete(drawn, list[i].obs)
				}
				if kept < 120/envs/2 {
					t.Errorf("environment %d: %d of the newest transitions are kept", e, kept)
				}
			}
			if len(drawn) != 0 {
				t.Errorf("%d transitions are older than ones that are gone", len(drawn))
			}
			cases++
		}
	}
	if cases != 4 || samples != 4*400*32 {
		t.Errorf("%d cases, %d samples", cases, samples)
	}
}

// TestUniformIsUniform holds the frequencies of samples against chance.
func TestUniformIsUniform(t *testing.T) {
	v, _ := toys(t, 2)
	l := layoutOfToy(v)
	u, err := NewUniform(l, Config{Capacity: 60, Envs: 2, Gamma: 1})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, u)
	w := newWorld(v, u)
	for range 100 {
		w.round(t)
	}
	counts := make([]float64, u.rows.n)
	b, s, draws := batchOf(l, 50), rng.New(3).Stream(), 0
	for range 4000 {
		if err := u.Sample(s, b); err != nil {
			t.Fatal(err)
		}
		for _, i := range b.Index {
			counts[i]++
			draws++
		}
	}
	want, chi := float64(draws)/float64(u.Len()), 0.0
	seen := 0
	for _, c := range counts {
		if c > 0 {
			seen++
			chi += (c - want) * (c - want) / want
		}
	}
	// χ² of k degrees of freedom has mean k and variance 2k.
	k := float64(u.Len() - 1)
	if seen != u.Len() || chi > k+6*math.Sqrt(2*k) {
		t.Errorf("%d of %d transitions seen, χ² %g with %g degrees of freedom", seen, u.Len(), chi, k)
	}
}

func TestUniformRefuses(t *testing.T) {
	v, _ := toys(t, 2)
	l := layoutOfToy(v)
	u, err := NewUniform(l, Config{Capacity: 60, Envs: 2, Gamma: 1})
	if err != nil {
		t.Fatal(err)
	}
	closing(t, u)
	rec := u
	w := newWorld(v, rec)
	w.round(t)
	s := rng.New(1).Stream()
	n := 0
	for what, c := range sorted.All(map[string]struct {
		change func(b *Batch)
		want   string
	}{
		"observations": {func(b *Batch) { b.Obs = b.Obs[:1] }, "1 observations, expected 3"},
		"rows":         {func(b *Batch) { b.Action = tensor.New(tensor.Int64, 3) }, `"action" into int64[3], expected int64[8 []]`},
		"type":         {func(b *Batch) { b.Obs[0] = tensor.New(tensor.Float64, 8, 5) }, `observation "x" into float64[8 5]`},
		"window":       {func(b *Batch) { b.NextObs[1] = tensor.New(tensor.Float32, 8, 2) }, `observation "window"`},
		"discounts":    {func(b *Batch) { b.Discount = nil }, "discounts"},
		"weights":      {func(b *Batch) { b.Weight = b.Weight[:4] }, "8 and of 4"},
		"too many":     {func(b *Batch) { *b = *batchOf(l, 61) }, "a batch of 61 transitions out of a replay of 60"},
	}) {
		b := batchOf(l, 8)
		c.change(b)
		if err := u.Sample(s, b); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
		n++
	}
	if err := rec.End(v.Batch()); err == nil {
		t.Error("ended without a beginning")
	}
	if err := rec.Begin(v.Batch(), &w.d); err != nil {
		t.Fatal(err)
	}
	if err := rec.Begin(v.Batch(), &w.d); err == nil {
		t.Error("begun twice")
	}
	plain := Layout{Obs: []Column{{"x", tensor.Float32, []int{2}}}, Action: Column{"action", tensor.Float32, []int{1}}}
	for what, make := range sorted.All(map[string]func() (*Uniform, error){
		"capacity": func() (*Uniform, error) { return NewUniform(plain, Config{Envs: 1}) },
		"gamma":    func() (*Uniform, error) { return NewUniform(plain, Config{Capacity: 1, Envs: 1, Gamma: math.NaN()}) },
		"window": func() (*Uniform, error) {
			bad := l
			bad.Obs = []Column{l.Obs[0], {"window", tensor.Float32, []int{toyWindow + 1, 2}}, l.Obs[2]}
			return NewUniform(bad, Config{Capacity: 1, Envs: 1})
		},
		"windows": func() (*Uniform, error) {
			bad := l
			bad.Obs = l.Obs[:1]
			return NewUniform(bad, Config{Capacity: 1, Envs: 1})
		},
		"layout": func() (*Uniform, error) { return NewUniform(Layout{}, Config{Capacity: 1, Envs: 1}) },
		"type": func() (*Uniform, error) {
			return NewUniform(Layout{Obs: []Column{{"x", tensor.String, nil}}, Action: plain.Action}, Config{Capacity: 1, Envs: 1})
		},
	}) {
		if u, err := make(); err == nil || u != nil {
			t.Errorf("%s: %v", what, err)
		}
		n++
	}
	if n != 13 {
		t.Errorf("%d cases", n)
	}
}

// TestRestoringForgets: of what a replay held before it was restored nothing is left, not even
// behind its rows, from where it would come into later checkpoints.
func TestRestoringForgets(t *testing.T) {
	v, _ := toys(t, 2)
	l := layoutOfToy(v)
	open := func() (*Uniform, *Uniform) {
		u, err := NewUniform(l, Config{Capacity: 60, Envs: 2})
		if err != nil {
			t.Fatal(err)
		}
		closing(t, u)
		return u, u
	}
	used, rec := open()
	fresh, again := open()
	w := newWorld(v, rec)
	for range 5 {
		w.round(t)
	}
	path := checkpointed(t, "replay", rec)
	for range 15 {
		w.round(t)
	}
	if bytes.Equal(used.data, fresh.data) {
		t.Fatal("nothing was recorded")
	}
	for _, r := range []*Uniform{rec, again} {
		saved, err := checkpoint.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		closing(t, saved)
		if err := saved.Load(r); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(used.data, fresh.data) || used.Len() != fresh.Len() {
		t.Errorf("%d and %d transitions, or other bytes", used.Len(), fresh.Len())
	}
}
