package ppo

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/constraint"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestAbsentRows trains in worlds whose agents come and go, with and without memory.
func TestAbsentRows(t *testing.T) {
	makers := map[string]agents.Maker{}
	for what, change := range sorted.All(map[string]func(c *Config){
		"plain": func(*Config) {},
		"constraints": func(c *Config) {
			x := constraint.Defaults()
			x.Cost, x.Limit, x.Measure, x.Alpha, x.Episodes = "wrong", 0.1, constraint.CVaR, 0.5, 2
			c.Constraints = []constraint.Config{x}
		},
		"V-trace": func(c *Config) { c.Correction = VTrace },
		"lstm":    func(c *Config) { c.Recurrent = Recurrent{LSTM, 5, 1, Separate, 4} },
		"lstm, V-trace": func(c *Config) {
			c.Recurrent, c.Correction = Recurrent{LSTM, 5, 1, Shared, 4}, VTrace
		},
	}) {
		c := lone()
		change(&c)
		makers[what] = maker(t, c)
	}
	agenttest.Absent(t, makers, false, 60)
	agenttest.Haunted(t, makers, 4)
}

// TestEveryEpochHasEveryPresentSample: an epoch takes every sample of a row that was present once,
// and no other one weighs anything.
func TestEveryEpochHasEveryPresentSample(t *testing.T) {
	for _, memory := range []Recurrent{Defaults().Recurrent, {LSTM, 3, 1, Separate, 4}} {
		c := lone()
		c.Recurrent = memory
		v := agenttest.Shifts(t, 2, false, true)
		r := agenttest.NewTraining(t, agentOf(t, c, v, testengines.Fastest(t), 1), v)
		r.Rollout(t)
		l := r.Agent.Learner().(*learner)
		l.Estimate(c.GAELambda)
		l.at = position{Begun: true}
		if _, err := l.epoch(t.Context(), l.schedules()); err != nil {
			t.Fatal(err)
		}
		seen, batches, weight := make([]int, l.Rollout.Samples()), 0.0, 0.0
		for from := 0; from < len(l.order); from += l.learn.units {
			l.fill(l.order[from:min(from+l.learn.units, len(l.order))], l.schedules())
			for row, i := range l.learn.samples {
				weight += float64(l.in.value[row])
				if l.learn.valid[row] {
					seen[i]++
				} else if l.in.value[row] != 0 || l.in.policy[row] != 0 || l.in.entropy[row] != 0 {
					t.Error("a row of no sample has a weight")
				}
			}
			batches++
		}
		absent := 0
		for i, n := range seen {
			if !l.Rollout.Has(i) {
				absent++
			}
			if l.Rollout.Has(i) != (n == 1) || n > 1 {
				t.Errorf("sample %d, present %t, is there %d times", i, l.Rollout.Has(i), n)
			}
		}
		if absent < 10 || math.Abs(weight-c.VFCoef*batches) > 1e-5 {
			t.Errorf("%d samples are of absent rows; the weights of %g minibatches are %g together", absent, batches, weight)
		}
	}
}

// TestLearnsShifts: three agents that die and come back learn one policy to near its best.
func TestLearnsShifts(t *testing.T) {
	c := Defaults()
	c.NSteps, c.BatchSize, c.LearningRate, c.Gamma = 64, 64, 3e-3, 0.9
	agenttest.LearnsShifts(t, maker(t, c), false, 64*8)
}

func maker(t testing.TB, c Config) agents.Maker {
	t.Helper()
	m, err := NewMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}
