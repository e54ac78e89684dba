package td3

import (
	"context"
	"testing"

	"onnxrl/agents"
	"onnxrl/envs"
	"onnxrl/envs/classic"
	"onnxrl/envs/vector"
	"onnxrl/runtime/engine/testengines"
	"onnxrl/runtime/rng"
)

// greedy returns the mean return of some episodes of the best actions.
func greedy(ctx context.Context, t testing.TB, a *Agent, v vector.Env, episodes int) float64 {
	t.Helper()
	if err := v.Reset(rng.New(99)); err != nil {
		t.Fatal(err)
	}
	x := actorOf(t, a, agents.Greedy, v.Len())
	sum, n := 0.0, 0
	for round := 0; n < episodes; round++ {
		if err := agents.Collect(ctx, v, x, nil, rng.New(8), round, 1, func(b *vector.Batch) error {
			for _, e := range b.Ended {
				sum, n = sum+e.Return, n+1
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	return sum / float64(n)
}

func identities(t testing.TB, n int, c classic.IdentityConfig) *vector.Local {
	return vectorOf(t, n, func(int) (envs.Env, error) { return classic.NewIdentity(c) })
}

// TestIdentity is Stable-Baselines3's test of learning, with its settings and its thresholds.
func TestIdentity(t *testing.T) {
	box := classic.IdentityDefaults()
	box.Space, box.Dims, box.Eps = classic.SpaceBox, []int{1}, 0.5
	n := 0
	for what, defaults := range map[string]func() Config{
		"td3":  Defaults,
		"ddpg": DDPGDefaults,
		"td3, ou, n-step": func() Config {
			c := Defaults()
			c.ActionNoise.Kind, c.NSteps, c.Gamma = OU, 3, 0.4
			return c
		},
	} {
		t.Run(what, func(t *testing.T) {
			c := defaults()
			c.Hidden, c.LearningRate, c.BufferSize, c.ActionNoise.Sigma = []int{64, 64}, 1e-3, 10_000, 0.1
			if c.ActionNoise.Kind == None {
				c.ActionNoise.Kind = Normal
			}
			v := identities(t, 1, box)
			a := agent(t, c, v, testengines.Fastest(t), 1)
			r := newTraining(t, a, v)
			if err := r.run(t.Context(), 400, nil); err != nil {
				t.Fatal(err)
			}
			got := greedy(t.Context(), t, a, identities(t, 1, box), 20)
			t.Logf("%.1f of 100; %v", got, r.last)
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
