package td3

import (
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// TestNoiseRestartsWithEpisodes: the state of ou is 0 where an episode has begun, and only there.
func TestNoiseRestartsWithEpisodes(t *testing.T) {
	r, l := training(t, 3, agenttest.Box(), func(c *Config) { c.ActionNoise.Kind = offpolicy.OU })
	restarts := 0
	for range 40 {
		r.Run(t, 1)
		for e := range 3 {
			ended := r.Env.Batch().Type[e] == envs.Last
			for _, x := range l.NoiseState()[2*e:][:2] {
				if (x == 0) != ended {
					t.Fatalf("environment %d: noise %v, ended %v", e, x, ended)
				}
			}
			if ended {
				restarts++
			}
		}
	}
	if restarts < 5 {
		t.Errorf("%d restarts", restarts)
	}
	// A second exploring actor has noise of its own.
	before := slices.Clone(l.NoiseState())
	if _, err := agenttest.Actor(t, r.Agent, agents.Explore, 3).Act(t.Context(), rng.New(9), r.Env.Batch()); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(before, l.NoiseState()) {
		t.Error("another actor has moved the noise")
	}
}

// TestPolicyDelay counts the updates of the actor.
func TestPolicyDelay(t *testing.T) {
	r, l := training(t, 1, agenttest.Box(), func(c *Config) { c.LearningStarts, c.PolicyDelay = 0, 3 })
	for k := range 9 {
		r.Run(t, 1)
		if got := l.ActorDescent.Optimizer.Steps(); got != uint64((k+1)/3) {
			t.Errorf("%d updates of the actor after %d of the critics", got, k+1)
		}
		if _, ok := r.Last["train/actor_loss"]; ok != (k >= 2) {
			t.Errorf("train/actor_loss is there after %d updates: %v", k+1, ok)
		}
	}
}
