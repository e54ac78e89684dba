package td3

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestIdentity is Stable-Baselines3's test of learning, with its settings and its thresholds.
func TestIdentity(t *testing.T) {
	box := classic.IdentityDefaults()
	box.Space, box.Dims, box.Eps = classic.SpaceBox, []int{1}, 0.5
	n := 0
	for what, defaults := range sorted.All(map[string]func() Config{
		"td3":  Defaults,
		"ddpg": DDPGDefaults,
		"td3, ou, n-step": func() Config {
			c := Defaults()
			c.ActionNoise.Kind, c.NSteps, c.Gamma = offpolicy.OU, 3, 0.4
			return c
		},
	}) {
		t.Run(what, func(t *testing.T) {
			c := defaults()
			c.Hidden, c.LearningRate, c.BufferSize, c.ActionNoise.Sigma = []int{64, 64}, 1e-3, 10_000, 0.1
			if c.ActionNoise.Kind == offpolicy.None {
				c.ActionNoise.Kind = offpolicy.Normal
			}
			m, err := NewMaker(c)
			if err != nil {
				t.Fatal(err)
			}
			identity := func() (*classic.Env, error) { return classic.NewIdentity(box) }
			v := agenttest.Vector(t, 1, identity)
			r := agenttest.NewTraining(t, agenttest.Agent(t, m, v, testengines.Fastest(t), 1), v)
			r.Run(t, 400)
			got := agenttest.Return(t, r.Agent, agenttest.Vector(t, 1, identity), 20)
			t.Logf("%.1f of 100; %v", got, r.Last)
			if got < 90 {
				t.Errorf("a mean return of %.1f after 400 env steps, expected at least 90", got)
			}
		})
		n++
	}
	if n != 3 {
		t.Errorf("%d cases", n)
	}
}
