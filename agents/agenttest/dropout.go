package agenttest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// Dropout trains on-policy variants with dropout, whose first pass over a rollout is one minibatch.
// Masks are drawn once in each rollout for each environment; log-probabilities in the first pass are
// those that acted, by learnt, which returns those of all samples, and by the metrics that depend on
// them. An actor that is not learnt from has no dropout.
func Dropout[L agents.Learner](t *testing.T, variants map[string]Variant, learnt func(l L) (acted, learnt []float64)) {
	t.Helper()
	const envs = 3
	for name, x := range sorted.All(longtest.Few(t, variants, 1)) {
		v := Toys(t, envs, x.Spec)
		r := NewTraining(t, Agent(t, x.Maker, v, testengines.Fastest(t), 2), v)
		sample := Actor(t, r.Agent, agents.Sample, envs)
		seen := &keeper{Actor: r.Actor}
		r.Actor = seen
		var seeds []string
		for range 2 {
			d, err := sample.Act(t.Context(), rng.New(3), v.Batch())
			if err != nil {
				t.Fatal(err)
			}
			values := slices.Clone(d.Value)
			if slices.ContainsFunc(d.Dropout, func(s int64) bool { return s != 0 }) {
				t.Errorf("%s: an actor that is not learnt from draws its masks from %v", name, d.Dropout)
			}
			r.Round(t)
			of := fmt.Sprint(seen.dropout)
			if len(seen.dropout) != envs || slices.Contains(seen.dropout, 0) || seen.dropout[0] == seen.dropout[1] {
				t.Errorf("%s: masks are drawn from %v", name, of)
			}
			if slices.Equal(values, seen.value) {
				t.Errorf("%s: the values %v are those without dropout", name, values)
			}
			for !r.Agent.Learner().Ready() {
				if r.Round(t); fmt.Sprint(seen.dropout) != of {
					t.Fatalf("%s: masks change within a rollout: %v after %v", name, seen.dropout, of)
				}
			}
			m := r.Learn(t)
			if k, there := m["train/clip_fraction"]; there && k != 0 {
				t.Errorf("%s: %g of the first pass is clipped", name, k)
			}
			if k, there := m["train/approx_kl"]; there && math.Abs(k) > 1e-9 {
				t.Errorf("%s: a divergence of %g in the first pass", name, k)
			}
			if k, there := m["train/mean_rho"]; there && math.Abs(k-1) > 1e-5 {
				t.Errorf("%s: a mean ratio of %g in the first pass", name, k)
			}
			acted, after := learnt(r.Agent.Learner().(L))
			if len(acted) == 0 || len(acted) != len(after) {
				t.Fatalf("%s: %d and %d log-probabilities", name, len(acted), len(after))
			}
			for i, p := range acted {
				if math.Abs(p-after[i]) > 1e-5*(1+math.Abs(p)) {
					t.Errorf("%s, sample %d: acted with %g and learnt from with %g", name, i, p, after[i])
					break
				}
			}
			seeds = append(seeds, of)
		}
		if seeds[0] == seeds[1] {
			t.Errorf("%s: two rollouts have the masks of %s", name, seeds[0])
		}
	}
}

// keeper is an actor whose last decision is kept.
type keeper struct {
	agents.Actor
	dropout []int64
	value   []float32
}

func (a *keeper) Act(ctx context.Context, key rng.Key, b *vector.Batch) (*vector.Decision, error) {
	d, err := a.Actor.Act(ctx, key, b)
	if err == nil {
		a.dropout, a.value = slices.Clone(d.Dropout), slices.Clone(d.Value)
	}
	return d, err
}
