package valuebased_test

import (
	"github.com/onnxrl/onnxrl/agents/valuebased"
	"math"
	"testing"
)

// TestBetaFollowsTheRun: the exponent of importance weights rises straight from beta to beta_final
// over the run. It is found out by comparing weights with those of a run whose exponent is 1
// throughout; nothing is learnt in either, so all else is equal.
func TestBetaFollowsTheRun(t *testing.T) {
	const total = 120
	begin := func(beta, final float64) (func() []float32, *valuebased.Learner) {
		c := quick()
		c.LearningRate, c.BatchSize, c.LearningStarts, c.TrainFreq, c.GradientSteps, c.TargetUpdateInterval = 1e-30, 8, 20, 4, 1, 1e9
		c.Prioritised.Enabled, c.Prioritised.Beta, c.Prioritised.BetaFinal = true, beta, final
		r, l := flat(t, c, 1, total)
		return func() []float32 { r.Update(t); return l.Batch.Weight }, l
	}
	rising, l := begin(0.4, 1)
	one, _ := begin(1, 1)
	compared := 0
	for range total / 4 {
		w, v := rising(), one()
		want := 0.4 + 0.6*float64(l.EnvSteps())/total
		for i := range w {
			if v[i] == 0 || v[i] > 0.99 {
				continue
			}
			compared++
			if got := math.Log(float64(w[i])) / math.Log(float64(v[i])); math.Abs(got-want) > 1e-4 {
				t.Errorf("after %d of %d env steps beta is %g, expected %g", l.EnvSteps(), total, got, want)
			}
		}
	}
	if compared < 50 {
		t.Errorf("%d weights were compared", compared)
	}
}
