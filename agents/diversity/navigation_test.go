package diversity_test

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/diversity"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/agents/sac"
	"github.com/onnxrl/onnxrl/agents/td3"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// point is a world without rewards, with four skills; with fixed one of them.
func point(fixed *int) func() (*wrap.Skill, error) {
	return func() (*wrap.Skill, error) {
		return wrap.NewSkill(&agenttest.Point{}, wrap.Skills{Dim: 4, Fixed: fixed})
	}
}

// TestNavigation: without any other reward, four skills come to four different places.
func TestNavigation(t *testing.T) {
	longtest.Nightly(t)
	d := diversity.Defaults()
	d.Features, d.Hidden, d.LearningRate, d.Beta = []string{"position"}, []int{32}, 3e-3, 1
	contrast := d
	contrast.Kind = diversity.InfoNCE
	s := func(d diversity.Config) (agents.Maker, error) {
		c := sac.Defaults()
		c.Hidden, c.LearningRate, c.BatchSize, c.BufferSize, c.LearningStarts, c.TrainFreq, c.GradientSteps, c.Gamma, c.EntCoef, c.Diversity = []int{32, 32}, 3e-3, 64, 20_000, 400, 1, 1, 0.9, sac.EntCoef{Value: 0.05}, &d
		return sac.NewMaker(c)
	}
	n := 0
	for what, make := range sorted.All(map[string]func() (agents.Maker, error){
		"sac, diayn": func() (agents.Maker, error) { return s(d) }, "sac, infonce": func() (agents.Maker, error) { return s(contrast) },
		"td3, diayn": func() (agents.Maker, error) {
			c := td3.Defaults()
			c.Hidden, c.LearningRate, c.BatchSize, c.BufferSize, c.LearningStarts, c.Gamma, c.ActionNoise.Kind, c.ActionNoise.Sigma, c.Diversity = []int{32, 32}, 1e-3, 64, 20_000, 400, 0.9, offpolicy.Normal, 0.5, &d
			return td3.NewMaker(c)
		},
	}) {
		m, err := make()
		if err != nil {
			t.Fatal(err)
		}
		v := agenttest.Vector(t, 4, point(nil))
		r := agenttest.NewTraining(t, agenttest.Agent(t, m, v, testengines.Fastest(t), 1), v)
		r.Run(t, 6000)
		mi, last := 0.0, 200
		for range last {
			r.Run(t, 1)
			mi += r.Last["diversity/mi"] / float64(last)
		}
		var ends [4][2]float64
		for k := range ends {
			v := agenttest.Vector(t, 1, point(&k))
			x := agenttest.Actor(t, r.Agent, agents.Greedy, 1)
			for round := range agenttest.PointSteps {
				if err := agents.Collect(t.Context(), v, x, nil, rng.New(8), round, 1, nil); err != nil {
					t.Fatal(err)
				}
			}
			for i, at := range v.Batch().Final[0].Float32s() {
				ends[k][i] = float64(at)
			}
		}
		nearest := math.Inf(1)
		for i, a := range ends {
			for _, b := range ends[:i] {
				nearest = min(nearest, math.Hypot(a[0]-b[0], a[1]-b[1]))
			}
		}
		bound := math.Log(4)
		t.Logf("%s: skills end at %.2f, %.2f apart, %.2f of %.2f nats", what, ends, nearest, mi, bound)
		if n++; nearest < 0.5 || !(mi > 0.85*bound) || mi > bound+0.05 {
			t.Errorf("%s: skills end at %v, %g apart, with %g of %g nats", what, ends, nearest, mi, bound)
		}
	}
	if n != 3 {
		t.Errorf("%d cases", n)
	}
}
