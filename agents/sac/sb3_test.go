package sac

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
)

// TestUpdatesOfStableBaselines3 also has updates of CleanRL, for Discrete actions.
func TestUpdatesOfStableBaselines3(t *testing.T) {
	updates, numbers := agenttest.UpdatesAgree(t, "testdata/updates.json", func(f *agenttest.Fixture) (agents.Maker, error) {
		c := Defaults()
		f.Settings(&c.Settings)
		c.Hidden, c.UseSDE = f.Options.Hidden, f.Options.UseSDE
		if f.Options.EntCoef != "" {
			if err := c.EntCoef.UnmarshalText([]byte(f.Options.EntCoef)); err != nil {
				return nil, err
			}
		}
		return NewMaker(c)
	}, func(a agents.Agent) agenttest.Updates {
		l := a.(*Agent).learner
		return agenttest.Updates{Learner: &l.Learner, Noises: l.noises, LogEntCoef: l.temperature.log, Learn: func() (agents.Metrics, error) {
			var sum losses
			err := l.learn(1, &sum, agents.Stopwatch{})
			return agents.Metrics{"train/critic_loss": sum.Critic, "train/actor_loss": sum.Actor, "train/ent_coef": sum.Alpha, "train/ent_coef_loss": sum.Temperature}, err
		}}
	})
	if updates < 2*5*4 || numbers < 1000 {
		t.Errorf("%d updates, %d numbers", updates, numbers)
	}
}
