package sac

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestPolicyIsTheActor also compares the exported Gaussian with what exploring actors draw from:
// the log-density of the greedy action is that at the mean.
func TestPolicyIsTheActor(t *testing.T) {
	longtest.Slow(t)
	n := 0
	agenttest.PolicyIsTheActor(t, variants(t), func(what string, out map[string]*tensor.Tensor, _ agents.Actor, greedy *vector.Decision) {
		if greedy.Drawn == nil {
			return
		}
		mean, logStd, dims := out[agents.MeanOutput].Float32s(), out[agents.LogStdOutput].Float32s(), len(greedy.Drawn.Float32s())/3
		for i, got := range greedy.LogProb {
			row := mean[i*dims:][:dims]
			want := rlmath.GaussianLogProb(row, row, logStd[i*dims:][:dims]) - rlmath.TanhLogDet(row)
			if math.Abs(float64(got)-want) > 1e-4*(1+math.Abs(want)) {
				t.Errorf("%s: a log-density of %g, expected %g", what, got, want)
			}
			n++
		}
	})
	if n < 9*3 {
		t.Errorf("%d densities", n)
	}
}

// TestDrawsFollowThePolicy holds mean and deviation of many draws, before squashing, against the
// policy's outputs, also for gSDE, whose draws of one moment share a matrix.
func TestDrawsFollowThePolicy(t *testing.T) {
	n := 0
	for _, sde := range []bool{true, false}[:longtest.Cases(t, 2, 1)] {
		r, l := training(t, 1, agenttest.Box(), func(c *Config) { c.LearningStarts, c.UseSDE, c.LogStdInit = 0, sde, -1.5 })
		out := agenttest.Exported(t, r, testengines.Fastest(t))
		const draws = 20_000
		var sum, square [2]float64
		for k := range draws {
			// Each number of a moment has a matrix of its own.
			l.Stepped = int64(-k)
			d, err := r.Actor.Act(t.Context(), rng.New(uint64(k)), r.Env.Batch())
			if err != nil {
				t.Fatal(err)
			}
			for i, x := range d.Drawn.Float32s() {
				u := math.Atanh(float64(x))
				sum[i], square[i] = sum[i]+u, square[i]+u*u
			}
		}
		for i := range sum {
			mean, std := sum[i]/draws, math.Sqrt(square[i]/draws-sum[i]*sum[i]/draws/draws)
			wantMean, wantStd := float64(out[agents.MeanOutput].Float32s()[i]), math.Exp(float64(out[agents.LogStdOutput].Float32s()[i]))
			if math.Abs(mean-wantMean) > 5*wantStd/math.Sqrt(draws) || math.Abs(std/wantStd-1) > 0.03 {
				t.Errorf("gSDE %v: component %d is %g ± %g, expected %g ± %g", sde, i, mean, std, wantMean, wantStd)
			}
			n++
		}
	}
	if n != 2*longtest.Cases(t, 2, 1) {
		t.Errorf("%d components", n)
	}
}

// TestWholePolicyFromFile trains a user's ONNX policy, whose outputs are logits, means, or means
// and log standard deviations. Means alone have deviations that are parameters.
func TestWholePolicyFromFile(t *testing.T) {
	n := 0
	for _, x := range []struct {
		spec  envs.Spec
		width int
		own   bool
	}{{agenttest.Choice(), 4, false}, {agenttest.Box(), 2, true}, {agenttest.Box(), 4, false}} {
		l := suite.PolicyFromFile(t, x.spec, x.width)
		if p := l.Params.View("actor." + network.LogStdParam); (p != nil) != x.own {
			t.Errorf("a policy of %d numbers has a parameter of its own: %v", x.width, p)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d cases", n)
	}
	suite.Refuse(t, agenttest.Box(), func(c *Config) { c.Policy = agenttest.File(t, 6, 3) }, "policy: it gives", "toy")
	suite.Refuse(t, agenttest.Box(), func(c *Config) { c.UseSDE, c.Policy = true, configs.Kinded{Kind: "file"} }, "use_sde", "user-supplied policy")
}
