package evaluate_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// TestPairedEpisodes compares walkers in a corridor that is cut off after four steps: who goes
// right arrives from four of seven cells.
func TestPairedEpisodes(t *testing.T) {
	const n, limit = 400, 4
	key := rng.New(1)
	pair := func(first, second evaluate.Actors) evaluate.Paired {
		t.Helper()
		p, err := evaluate.PairedEpisodes(t.Context(), &corridors{}, envs.Valid, first, second, n, limit, key)
		if err != nil {
			t.Fatal(err)
		}
		if p.Episodes != n || p.Low == nil || p.High == nil || !(*p.Low <= p.Difference && p.Difference <= *p.High) || math.Abs(p.Difference-(p.Second-p.First)) > 1e-12 {
			t.Fatalf("%+v", p)
		}
		return p
	}
	alone := func(a evaluate.Actors) []float64 {
		t.Helper()
		r, err := evaluate.Episodes(t.Context(), &corridors{}, envs.Valid, a, agents.Greedy, n, limit, key)
		if err != nil {
			t.Fatal(err)
		}
		var returns []float64
		for _, e := range r.Episodes {
			returns = append(returns, e.Return)
		}
		return returns
	}

	// Chance is the same for both, so a policy is equal to itself, episode by episode.
	if p := pair(walker{0.7}, walker{0.7}); p.Differing != 0 || p.Difference != 0 || *p.Low != 0 || *p.High != 0 || p.First == 0 || p.First == 1 {
		t.Errorf("a policy and itself: %+v", p)
	}

	right, often := alone(walker{1}), alone(walker{0.8})
	p, q := pair(walker{1}, walker{0.8}), pair(walker{0.8}, walker{1})
	differing, apart := 0, make([]float64, n)
	for i := range apart {
		if apart[i] = often[i] - right[i]; apart[i] != 0 {
			differing++
		}
	}
	if p.First != mean(right) || p.Second != mean(often) || p.Differing != differing || differing == 0 || differing == n {
		t.Errorf("%+v, expected means of %g and %g, and %d that differ", p, mean(right), mean(often), differing)
	}
	// The bootstrap's interval is near that of the normal distribution, and by its pairs narrower
	// than one of episodes that have nothing to do with each other.
	half := 1.96 * stat.StdDev(apart, nil) / math.Sqrt(n)
	loose := 1.96 * math.Sqrt((stat.Variance(right, nil)+stat.Variance(often, nil))/n)
	if math.Abs(*p.Low-(p.Difference-half)) > 0.1*half || math.Abs(*p.High-(p.Difference+half)) > 0.1*half || (*p.High-*p.Low)/2 > 0.9*loose {
		t.Errorf("the interval [%g, %g], expected %g ± %g; of no pairs ± %g", *p.Low, *p.High, p.Difference, half, loose)
	}
	if q.Difference != -p.Difference || math.Abs(*q.Low+*p.High) > 0.01 || math.Abs(*q.High+*p.Low) > 0.01 || q.Differing != p.Differing {
		t.Errorf("the other way round: %+v and %+v", p, q)
	}
	if again := pair(walker{1}, walker{0.8}); *again.Low != *p.Low || *again.High != *p.High {
		t.Errorf("a second comparison has other intervals: %g and %g, then %g and %g", *p.Low, *p.High, *again.Low, *again.High)
	}
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, x := range list {
		sum += x / float64(len(list))
	}
	return sum
}

// TestPairsFail: an error of either policy is returned, and everything is closed.
func TestPairsFail(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f := &corridors{}
	if _, err := evaluate.PairedEpisodes(ctx, f, envs.Valid, walker{1}, walker{1}, 20, 1000, rng.New(1)); !errors.Is(err, context.Canceled) || f.made == 0 || f.made != f.closed {
		t.Errorf("%v, %d made, %d closed", err, f.made, f.closed)
	}
	if _, err := evaluate.PairedEpisodes(t.Context(), f, envs.Valid, walker{1}, walker{1}, 0, 1000, rng.New(1)); err == nil {
		t.Error("no pairs are compared")
	}
}
