package valuebased_test

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/optim"
)

// TestBatchesAhead compares learner steps whose targets are computed for many batches at once with
// steps that compute them one by one.
func TestBatchesAhead(t *testing.T) {
	c := quick()
	c.Hidden, c.BatchSize, c.BufferSize, c.LearningStarts, c.TrainFreq, c.GradientSteps, c.TargetUpdateInterval = []int{16}, 8, 500, 20, 4, 6, 20
	params := func(ahead int) []float32 {
		r, l := flat(t, c, 2, 400)
		if l.Ahead != 6 {
			t.Fatalf("%d batches at once", l.Ahead)
		}
		if ahead == 1 {
			// Double Q-learning has no batches ahead; with equal networks it selects as the target
			// network does.
			d := c
			d.Double = true
			r, l = flat(t, d, 2, 400)
			l.SelectByTarget()
		}
		for l.Updates < 60 {
			r.Update(t)
		}
		return l.Params.Segment(models.Trainable).Floats()
	}
	many, one := params(6), params(1)
	differ := 0
	for i, x := range many {
		if math.Abs(float64(x-one[i])) > 1e-5 {
			differ++
		}
	}
	if differ > 0 || len(many) < 100 {
		t.Errorf("%d of %d parameters differ", differ, len(many))
	}
}

// TestTargetFollows counts how often the target network moves, for several numbers of environments.
func TestTargetFollows(t *testing.T) {
	cases := 0
	for _, n := range []int{1, 2, 3} {
		for _, tau := range []float64{1, 0.25} {
			c := quick()
			c.Hidden, c.BatchSize, c.BufferSize, c.LearningStarts, c.TrainFreq, c.TargetUpdateInterval, c.Tau = []int{4}, 4, 100, 0, 4, 7, tau
			r, l := flat(t, c, n, 1000)
			every := int64(max(1, 7/n))
			want := append([]float32(nil), l.Target.Segment(models.Trainable).Floats()...)
			for range 12 {
				from, online := l.Stepped, append([]float32(nil), l.Params.Segment(models.Trainable).Floats()...)
				r.Update(t)
				for round := from + 1; round <= l.Stepped; round++ {
					if round%every == 0 {
						optim.Polyak(want, online, float32(tau))
					}
				}
				for i, x := range l.Target.Segment(models.Trainable).Floats() {
					if x != want[i] {
						t.Fatalf("%d environments, tau %g, round %d: parameter %d of the target is %g, expected %g", n, tau, l.Stepped, i, x, want[i])
					}
				}
			}
			cases++
		}
	}
	if cases != 6 {
		t.Errorf("%d cases", cases)
	}
}

// TestGradientSteps counts gradient steps as Stable-Baselines3 takes them.
func TestGradientSteps(t *testing.T) {
	for _, c := range []struct {
		name                          string
		envs, freq, steps, starts     int
		learnerSteps, gradient, first int
	}{
		{"default", 1, 4, 1, 100, 50, 25, 26},
		{"as many as env steps", 2, 3, -1, 11, 5, 4 * 6, 2},
		{"from the beginning", 1, 1, 2, 0, 4, 8, 1},
	} {
		d := quick()
		d.Hidden, d.BufferSize, d.TrainFreq, d.GradientSteps, d.LearningStarts = []int{4}, 1000, offpolicy.TrainFreq(c.freq), c.steps, c.starts
		r, l := flat(t, d, c.envs, 1000)
		first := 0
		for k := range c.learnerSteps {
			m := r.Update(t)
			if _, ok := m["train/loss"]; ok && first == 0 {
				first = k + 1
			}
		}
		if l.Updates != int64(c.gradient) || first != c.first {
			t.Errorf("%s: %d gradient steps from learner step %d on, expected %d from %d", c.name, l.Updates, first, c.gradient, c.first)
		}
	}
}
