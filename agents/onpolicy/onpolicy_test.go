package onpolicy

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// seen is what happened in one step of an environment, next the value of what it led to.
type seen struct {
	value, reward, discount, next float64
	last                          bool
}

// TestEstimate compares advantages and returns with the definition of generalised advantage
// estimation (Schulman et al. 2016), step by step for each environment: nothing follows a
// termination, the value of the final observation follows a time limit, and no sum goes beyond
// either.
func TestEstimate(t *testing.T) {
	n, ends := 0, map[bool]int{}
	for _, gamma := range []float64{0.9, 1} {
		for _, lambda := range []float64{0, 0.7, 1} {
			l := newTiny(t, 4, gamma)
			steps := make([][]seen, len(scripts))
			for !l.Ready() {
				b := l.env.Batch()
				for e := range scripts {
					steps[e] = append(steps[e], seen{value: l.value(b.Obs[0].Float32s()[2*e:])})
				}
				l.round(t)
				for e, kind := range b.Type {
					s := &steps[e][len(steps[e])-1]
					s.reward, s.discount, s.last = b.Reward[e], b.Discount[e], kind == envs.Last
					after := b.Obs[0]
					if s.last {
						after = b.Final[0]
						ends[s.discount > 0]++
					}
					s.next = l.value(after.Float32s()[2*e:])
				}
			}
			l.Estimate(lambda)
			for e, list := range steps {
				advantage := 0.0
				for i, s := range slices.Backward(list) {
					if s.last {
						advantage = 0
					}
					advantage = s.reward + gamma*s.discount*s.next - s.value + gamma*lambda*advantage
					at := i*len(scripts) + e
					if got := l.Advantage[at]; math.Abs(got-advantage) > 1e-5 {
						t.Errorf("γ %g, λ %g, %s, round %d: the advantage is %g, expected %g", gamma, lambda, scripts[e], i, got, advantage)
					}
					if got := l.Target[at]; math.Abs(got-advantage-s.value) > 1e-5 {
						t.Errorf("γ %g, λ %g, %s, round %d: the return is %g, expected %g", gamma, lambda, scripts[e], i, got, advantage+s.value)
					}
					n++
				}
			}
		}
	}
	if n != 6*4*len(scripts) || ends[false] != 6*6 || ends[true] != 6*9 {
		t.Errorf("%d samples, %d terminations, %d time limits", n, ends[false], ends[true])
	}
}

// TestRollout: sample t·Envs + e is environment e in round t, in every column.
func TestRollout(t *testing.T) {
	l := newTiny(t, 4, 0.9)
	r, n := l.Rollout, 0
	for round := range 4 {
		b := l.env.Batch()
		x, mask := slices.Clone(b.Obs[0].Bytes()), slices.Clone(b.Mask.Bytes())
		d := l.act(t)
		actions, values := slices.Clone(d.Actions.Bytes()), slices.Clone(d.Value)
		l.round(t)
		for e := range scripts {
			at := round*len(scripts) + e
			for _, c := range []struct {
				what      string
				got, want []byte
			}{{"observation", r.Fields[0].At(at), x[8*e : 8*e+8]}, {"mask", r.Mask.At(at), mask[3*e : 3*e+3]}, {"action", r.Actions.At(at), actions[8*e : 8*e+8]}} {
				if n++; !bytes.Equal(c.got, c.want) {
					t.Errorf("round %d, environment %d: the %s is %v, expected %v", round, e, c.what, c.got, c.want)
				}
			}
			last := b.Type[e] == envs.Last
			if r.Value[at] != float64(values[e]) || r.Reward[at] != b.Reward[e] || r.Earned[at] != b.Reward[e] || r.Discount[at] != 0.9*b.Discount[e] || r.Ended[at] != last {
				t.Errorf("round %d, environment %d: value %g, reward %g of %g, discount %g, ended %t", round, e, r.Value[at], r.Reward[at], r.Earned[at], r.Discount[at], r.Ended[at])
			}
		}
	}
	if r.Clear(); n != 3*4*len(scripts) || r.Full() || r.Samples() != 4*len(scripts) {
		t.Errorf("%d comparisons, %d rounds after Clear", n, r.T)
	}
}

// TestOutOfTurn calls rollout and learner at the wrong time.
func TestOutOfTurn(t *testing.T) {
	l, n := newTiny(t, 2, 0.9), 0
	r, b := l.Rollout, l.env.Batch()
	fails := func(err error, want string) {
		t.Helper()
		if n++; err == nil || !strings.Contains(err.Error(), "tiny: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
	}
	d := l.act(t)
	changed := func(change func(d *vector.Decision)) *vector.Decision {
		other := *d
		change(&other)
		return &other
	}
	fails(r.End(b), "ended without a beginning")
	fails(r.Begin(b, changed(func(d *vector.Decision) { d.Version = 3 })), "version 3 of the policy and the learner is at 0")
	fails(r.Begin(b, changed(func(d *vector.Decision) { d.Value = nil })), "has no values")
	fails(r.Begin(b, changed(func(d *vector.Decision) { d.LogProb = nil })), "has no values or log-probabilities")
	fails(r.Begin(agenttest.Toys(t, 3, agenttest.Choice()).Batch(), d), "a batch of 3 environments, expected 9")
	fails(l.Complete(), "0 of 2 rounds")
	if err := r.Begin(b, d); err != nil {
		t.Fatal(err)
	}
	fails(r.Begin(b, d), "begun twice")
	r.Clear()
	l.round(t)
	fails(l.Complete(), "1 of 2 rounds")
	l.round(t)
	fails(r.Begin(b, d), "the rollout of 2 rounds is full")
	if err := l.Complete(); err != nil || n != 9 {
		t.Errorf("%v, %d cases", err, n)
	}
}

// TestCutOff begins new episodes in the middle of a rollout, as a run does that is resumed in
// environments that cannot be saved: the last round is dropped, and the round before it counts as
// cut off where its decision was taken.
func TestCutOff(t *testing.T) {
	for _, c := range []struct {
		before, after int
		offPolicy     bool
	}{{3, 3, false}, {1, 1, false}, {3, 1, true}} {
		l := newTiny(t, 4, 0.9)
		r := l.Rollout
		r.OffPolicy = c.offPolicy
		for range c.before {
			l.round(t)
		}
		ended := slices.Clone(r.Ended)
		if c.offPolicy { // Decisions of another policy have no values.
			for i := range r.Value {
				r.Value[i] = math.NaN()
			}
		}
		values := slices.Clone(r.Value)
		if err := l.env.Reset(rng.New(12)); err != nil {
			t.Fatal(err)
		}
		if l.round(t); r.T != c.after {
			t.Errorf("%+v: %d rounds", c, r.T)
		}
		if c.after < 2 {
			continue
		}
		for e := range scripts {
			at := (c.before-2)*r.Envs + e
			if !r.Ended[at] || !ended[at] && r.Final[at] != values[at+r.Envs] {
				t.Errorf("%+v, environment %d: ended %t with %g, expected %g", c, e, r.Ended[at], r.Final[at], values[at+r.Envs])
			}
		}
	}
}

// TestState saves a learner in the middle of a rollout and restores it in another: parameters,
// optimiser and what is recorded are the same, and the next step has the same bits.
func TestState(t *testing.T) {
	l, other := newTiny(t, 4, 0.9), newTiny(t, 4, 0.9)
	l.Updates = 5
	descend := func(l *tiny) {
		t.Helper()
		for i := range l.Grads.Specs() {
			for k := range l.Grads.View(i).Len() {
				l.Grads.View(i).Float32s()[k] = float32((i+k)%5) - 1.5
			}
		}
		if norm, err := l.Descend(0.5); err != nil || norm <= 0.5 {
			t.Fatal(norm, err)
		}
	}
	descend(l)
	for range 3 {
		l.round(t)
	}
	store, err := checkpoint.OpenStore(t.TempDir(), checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, store)
	path, err := store.Save(checkpoint.Meta{Kind: "test"}, l)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, saved)
	// A loaded state replaces everything.
	for range 4 {
		other.round(t)
	}
	descend(other)
	descend(other)
	if err := saved.Load(other); err != nil {
		t.Fatal(err)
	}
	n := 0
	same := func(what string, equal bool) {
		t.Helper()
		if n++; !equal {
			t.Errorf("%s: not what was saved", what)
		}
	}
	params := func(l *tiny) []float32 { return l.Params.Segment(models.Trainable).Floats() }
	same("parameters", slices.Equal(params(l), params(other)))
	same("counters", other.Updates == 5 && other.Replaced == 1 && other.Rollout.T == 3)
	for k, x := range sorted.All(map[string][2][]float64{
		"reward": {l.Rollout.Reward, other.Rollout.Reward}, "discount": {l.Rollout.Discount, other.Rollout.Discount}, "value": {l.Rollout.Value, other.Rollout.Value}, "final": {l.Rollout.Final, other.Rollout.Final},
	}) {
		same(k, slices.Equal(x[0][:3*len(scripts)], x[1][:3*len(scripts)]))
	}
	same("ended", slices.Equal(l.Rollout.Ended[:3*len(scripts)], other.Rollout.Ended[:3*len(scripts)]))
	same("observations", bytes.Equal(l.Rollout.Fields[0].At(2*len(scripts)), other.Rollout.Fields[0].At(2*len(scripts))))
	descend(l)
	descend(other)
	same("the next step", slices.Equal(params(l), params(other)))
	if n != 9 {
		t.Errorf("%d comparisons", n)
	}
	// A rollout of more rounds than there are is refused.
	if err := saved.Load(newTiny(t, 2, 0.9)); err == nil || !strings.Contains(err.Error(), "3 rounds of a rollout of 2") {
		t.Errorf("error %v", err)
	}
}
