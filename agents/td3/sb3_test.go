package td3

import (
	"fmt"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
)

// TestUpdatesOfStableBaselines3 has updates of TD3 and of DDPG.
func TestUpdatesOfStableBaselines3(t *testing.T) {
	actors := 0
	updates, numbers := agenttest.UpdatesAgree(t, "testdata/updates.json", func(f *agenttest.Fixture) (agents.Maker, error) {
		c := Defaults()
		if f.Name == "ddpg" {
			c = DDPGDefaults()
		}
		if c.PolicyDelay != f.Options.PolicyDelay || c.Critics != f.Options.Critics {
			return nil, fmt.Errorf("%s: a delay of %d and %d critics, expected %d and %d", f.Name, c.PolicyDelay, c.Critics, f.Options.PolicyDelay, f.Options.Critics)
		}
		f.Settings(&c.Settings)
		c.Hidden = f.Options.Hidden
		return NewMaker(c)
	}, updatesOf(&actors))
	if updates < 2*2*4 || actors != updates*3/4 || numbers < 1000 {
		t.Errorf("%d updates, %d of the actor, %d numbers", updates, actors, numbers)
	}
}

// updatesOf gives agents to be compared, and counts the updates of their actors.
func updatesOf(actors *int) func(agents.Agent) agenttest.Updates {
	return func(a agents.Agent) agenttest.Updates {
		l := a.Learner().(*learner)
		u := agenttest.Updates{Learner: &l.Learner, Learn: func() (agents.Metrics, error) {
			var sum losses
			err := l.learn(1, &sum, agents.Stopwatch{})
			m := agents.Metrics{"train/critic_loss": sum.Critic}
			if sum.Actors > 0 {
				m["train/actor_loss"] = sum.Actor
				*actors++
			}
			return m, err
		}}
		// DDPG does not smooth, whatever noise there was.
		if l.noise != nil {
			u.Noises = [][]float32{l.noise}
		}
		return u
	}
}

// TestUpdatesOfD3RLPy has updates of TD3+BC.
func TestUpdatesOfD3RLPy(t *testing.T) {
	actors := 0
	updates, numbers := agenttest.UpdatesAgree(t, "testdata/d3rlpy.json", func(f *agenttest.Fixture) (agents.Maker, error) {
		c := BCDefaults()
		if c.PolicyDelay != f.Options.PolicyDelay || c.Critics != f.Options.Critics {
			return nil, fmt.Errorf("%s: a delay of %d and %d critics, expected %d and %d", f.Name, c.PolicyDelay, c.Critics, f.Options.PolicyDelay, f.Options.Critics)
		}
		f.Settings(&c.Settings)
		c.Hidden = f.Options.Hidden
		return NewMaker(c)
	}, updatesOf(&actors))
	if n := len(testengines.All(t)); updates != n*8 || actors != updates/2 || numbers != n*700 {
		t.Errorf("%d updates, %d of the actor, %d numbers", updates, actors, numbers)
	}
}
