package sac

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestIdentity is Stable-Baselines3's test of learning, with its settings and its thresholds: a
// box, and for the discrete variant its discrete toy.
func TestIdentity(t *testing.T) {
	longtest.Slow(t)
	box := classic.IdentityDefaults()
	box.Space, box.Dims, box.Eps = classic.SpaceBox, []int{1}, 0.5
	n := 0
	for what, c := range sorted.All(map[string]struct {
		world  classic.IdentityConfig
		rounds int
		change func(c *Config)
	}{
		"box":          {box, 400, func(*Config) {}},
		"box, v-trace": {box, 400, func(c *Config) { c.VTrace.Length, c.BatchSize = 4, 256 }},
		"box, gsde":    {box, 400, func(c *Config) { c.UseSDE = true }},
		"box, n-step":  {box, 400, func(c *Config) { c.NSteps, c.Gamma = 3, 0.4 }},
		"discrete":     {classic.IdentityDefaults(), 1200, func(c *Config) { c.Gamma, c.EntCoef = 0.4, EntCoef{Value: 0.05} }},
	}) {
		t.Run(what, func(t *testing.T) {
			conf := Defaults()
			conf.Hidden, conf.LearningRate, conf.BufferSize = []int{64, 64}, 1e-3, 10_000
			c.change(&conf)
			m, err := NewMaker(conf)
			if err != nil {
				t.Fatal(err)
			}
			identity := func() (*classic.Env, error) { return classic.NewIdentity(c.world) }
			v := agenttest.Vector(t, 1, identity)
			r := agenttest.NewTraining(t, agenttest.Agent(t, m, v, testengines.Fastest(t), 1), v)
			r.Run(t, c.rounds)
			got := agenttest.Return(t, r.Agent, agenttest.Vector(t, 1, identity), 20)
			t.Logf("%.1f of 100; %v", got, r.Last)
			if got < 90 {
				t.Errorf("a mean return of %.1f after %d env steps, expected at least 90", got, c.rounds)
			}
		})
		n++
	}
	if n != 5 {
		t.Errorf("%d cases", n)
	}
}
