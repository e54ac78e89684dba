package trading

import (
	"fmt"

	"github.com/onnxrl/onnxrl/configs"
)

// The words of Config.SafetySignals.
const (
	DrawdownSignal = "drawdown"
	LossSignal     = "loss"
	StepLossSignal = "step_loss"
)

func checkSignals(p *configs.Problems, list []string) {
	for i, name := range list {
		key := fmt.Sprintf("safety_signals[%d]", i)
		p.OneOf(key, name, DrawdownSignal, LossSignal, StepLossSignal)
		for _, other := range list[:i] {
			p.Check(name != other, key, "%s is there already", name)
		}
	}
}

// signals computes what the steps of an episode cost beside the reward.
type signals struct {
	names []string
	// start is the value that the episode began with.
	start float64
	signalMemory
}

// signalMemory is what is remembered of an episode, nothing without signals.
type signalMemory struct {
	// Peak is the highest value so far, and Drawdown the largest fall below the peak of its time,
	// as a share of it.
	Peak     float64 `json:"peak"`
	Drawdown float64 `json:"drawdown"`
}

// reset begins an episode.
func (s *signals) reset(c *Config) {
	if len(c.SafetySignals) > 0 {
		*s = signals{c.SafetySignals, c.InitialCash, signalMemory{Peak: c.InitialCash}}
	}
}

// load goes on in an episode whose value is that. What cannot be is an error that changes nothing.
func (s *signals) load(c *Config, m signalMemory, value float64) error {
	if len(c.SafetySignals) == 0 {
		return nil
	}
	if !(m.Peak >= value) || !(m.Drawdown >= 0 && m.Drawdown <= 1) {
		return fmt.Errorf("a peak of %g and a drawdown of %g, at a value of %g", m.Peak, m.Drawdown, value)
	}
	s.reset(c)
	s.signalMemory = m
	return nil
}

// step writes what a step cost in which the value went from before to after.
func (s *signals) step(costs []float64, before, after float64) {
	if len(s.names) == 0 {
		return
	}
	s.Peak = max(s.Peak, after)
	fall := max(1-after/s.Peak-s.Drawdown, 0)
	s.Drawdown += fall
	for i, name := range s.names {
		switch costs[i] = fall; name {
		case LossSignal:
			costs[i] = (before - after) / s.start
		case StepLossSignal:
			costs[i] = 1 - after/before
		}
	}
}
