package sac

import (
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
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
		l := a.Learner().(*learner)
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

// TestUpdatesOfD3RLPy has updates of CQL, without a multiplier, with one, and with the entropy in
// the targets.
func TestUpdatesOfD3RLPy(t *testing.T) {
	updates, numbers := agenttest.UpdatesAgree(t, "testdata/d3rlpy.json", func(f *agenttest.Fixture) (agents.Maker, error) {
		c := CQLDefaults()
		f.Settings(&c.Settings)
		o := &f.Options
		c.CriticLearningRate, c.Hidden = 0, o.Hidden
		c.Conservative = &Conservative{Weight: o.ConservativeWeight, NActionSamples: o.NActionSamples, SoftQBackup: o.SoftQBackup, AlphaLearningRate: o.AlphaLearningRate, AlphaThreshold: o.AlphaThreshold, InitialAlpha: 1}
		if err := c.EntCoef.UnmarshalText([]byte(o.EntCoef)); err != nil {
			return nil, err
		}
		return NewMaker(c)
	}, func(a agents.Agent) agenttest.Updates {
		l := a.Learner().(*learner)
		u := agenttest.Updates{Learner: &l.Learner, Learn: func() (agents.Metrics, error) {
			var sum losses
			err := l.learn(1, &sum, agents.Stopwatch{})
			return agents.Metrics{"train/critic_loss": sum.Critic, "train/actor_loss": sum.Actor, "train/conservative_gap": sum.Gap, "train/conservative_alpha": sum.ConservativeAlpha}, err
		}}
		x := l.conservative
		u.Noises = append(slices.Concat(l.noises, x.noises), x.uniform)
		if x.alpha.auto {
			u.LogEntCoef = x.alpha.log
		}
		return u
	})
	if n := len(testengines.All(t)); updates != n*24 || numbers != n*1898 {
		t.Errorf("%d updates, %d numbers", updates, numbers)
	}
}
