package qrdqn

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/valuebased"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// small learns quickly from toys, with a replay that is soon full.
func small() Config {
	c := Defaults()
	c.NQuantiles, c.Hidden, c.BatchSize, c.BufferSize, c.LearningStarts, c.TrainFreq, c.GradientSteps, c.TargetUpdateInterval, c.LearningRate = 3, []int{8}, 6, 50, 12, 3, 2, 10, 1e-2
	return c
}

func maker(t testing.TB, c Config) agents.Maker {
	t.Helper()
	m, err := NewMaker(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// variants change a configuration in every way that the state depends on.
func variants(t testing.TB) map[string]agenttest.Variant {
	list, choice := map[string]agenttest.Variant{}, agenttest.Choice()
	windows := choice
	windows.Observation = append(envs.Dict{{Name: "window", Space: envs.Unbounded(8, 2), Window: agenttest.Window(t, 40, 2)}}, choice.Observation...)
	for what, change := range sorted.All(map[string]func(c *Config){
		"plain": func(*Config) {},
		"all": func(c *Config) {
			c.Double, c.Duelling, c.NSteps, c.Prioritised.Enabled, c.Tau, c.GradientSteps = true, true, 3, true, 0.3, 5
		},
		"lora":         func(c *Config) { c.Encoder, c.LoRA = agenttest.TinyEncoder(t, 0), &lora.Config{Rank: 2} },
		"many, linear": func(c *Config) { c.LearningRateSchedule.Kind, c.GradientSteps = "linear", -1 },
	}) {
		c, spec := small(), choice
		if change(&c); c.LoRA != nil {
			spec = windows
		}
		list[what] = agenttest.Variant{Maker: maker(t, c), Spec: spec}
	}
	return list
}

func TestPolicyIsTheActor(t *testing.T) { agenttest.PolicyIsTheActor(t, variants(t), nil) }

func TestTrainingAllocatesNothing(t *testing.T) { agenttest.NoAllocations(t, variants(t), 90) }

func TestMisuse(t *testing.T) { agenttest.Misuse(t, "qrdqn", variants(t)["plain"]) }

// TestResume stops where the replay is full already, and in the middle of the rounds between two
// learner steps.
func TestResume(t *testing.T) {
	longtest.Slow(t)
	agenttest.SplitSmall(t)
	agenttest.Resume(t, variants(t), 46, 90, 40)
}

// TestAbsentRows trains in worlds whose agents come and go.
func TestAbsentRows(t *testing.T) {
	agenttest.Absent(t, map[string]agents.Maker{"plain": maker(t, small())}, false, 60)
}

// TestBadConfigs reads documents that must be refused, with all of their problems.
func TestBadConfigs(t *testing.T) {
	agenttest.BadConfigs(t, Kind, map[string][]string{
		"n_quantiles: 1\ngamma: 1.5": {"agent.n_quantiles", "agent.gamma"},
		"quantiles: 3":               {"quantiles"},
		"target_update_interval: 0":  {"agent.target_update_interval"},
		"exploration_final_eps: 2":   {"agent.exploration_final_eps"},
		"privileged: [x]\ntau: 0":    {"agent.privileged", "QR-DQN's values", "agent.tau"},
	})
}

// TestStepByFormula compares targets, losses and priorities of a learner step with the formulas of
// the package comment, over the numbers of the network itself.
func TestStepByFormula(t *testing.T) {
	c := small()
	c.Prioritised.Enabled = true
	v := agenttest.Toys(t, 2, agenttest.Choice())
	a := agenttest.Agent(t, maker(t, c), v, testengines.Fastest(t), 1)
	r, l := agenttest.NewTraining(t, a, v), a.Learner().(*valuebased.Learner)
	for l.Updates < 20 {
		r.Update(t)
	}
	if err := l.Evaluate(); err != nil {
		t.Fatal(err)
	}
	// Without a step there are the quantiles that the loss was made of.
	theta := quantiles(t, l)
	if err := l.Descend(0, 0); err != nil {
		t.Fatal(err)
	}
	total, n := 0.0, c.NQuantiles
	for b := range l.Errors {
		loss := 0.0
		for i := range n {
			tau := (float64(i) + 0.5) / float64(n)
			for j := range n {
				d := float64(l.Y[b*n+j]) - theta[b][i]
				h := math.Abs(d) - 0.5
				if math.Abs(d) <= 1 {
					h = d * d / 2
				}
				if d < 0 {
					h *= 1 - tau
				} else {
					h *= tau
				}
				loss += h / float64(n)
			}
		}
		if math.Abs(loss-float64(l.Errors[b])) > 1e-5 {
			t.Errorf("row %d: the loss is %g, expected %g", b, l.Errors[b], loss)
		}
		total += loss * float64(l.Weights[b])
	}
	if math.Abs(total-float64(l.Loss[0])) > 1e-5 || total == 0 {
		t.Errorf("the loss is %g, expected %g", l.Loss[0], total)
	}
}

// quantiles are those of the actions that were taken, computed here.
func quantiles(t *testing.T, l *valuebased.Learner) (out [][]float64) {
	t.Helper()
	linear := func(name string, x []float64, relu bool) (y []float64) {
		w, b := l.Params.View(name+".weight").Float32s(), l.Params.View(name+".bias").Float32s()
		for i := range b {
			sum := float64(b[i])
			for j, v := range x {
				sum += float64(w[i*len(x)+j]) * v
			}
			if relu {
				sum = max(0, sum)
			}
			y = append(y, sum)
		}
		return y
	}
	for b, action := range l.Batch.Action.Int64s() {
		x := make([]float64, 6)
		for i, v := range l.Batch.Obs[0].Float32s()[3*b:][:3] {
			x[i] = float64(v)
		}
		x[3+l.Batch.Obs[1].Int64s()[b]] = 1
		all := linear("q", linear("hidden.fc0", x, true), false)
		var row []float64
		for i := 0; i < len(all); i += 4 {
			row = append(row, all[i+int(action)])
		}
		out = append(out, row)
	}
	return out
}

// TestLearnsIdentity has the threshold and the number of steps of Stable-Baselines3's
// tests/test_identity.py.
func TestLearnsIdentity(t *testing.T) {
	c := Defaults()
	c.NQuantiles, c.Gamma, c.LearningRate, c.ExplorationFraction, c.TargetUpdateInterval, c.TrainFreq, c.BufferSize = 5, 0.4, 2e-3, 0.2, 100, 1, 1200
	identity := func() (*classic.Env, error) { return classic.NewIdentity(classic.IdentityDefaults()) }
	v := agenttest.Vector(t, 1, identity)
	a := agenttest.Agent(t, maker(t, c), v, testengines.Fastest(t), 1, func(s *agents.Setup) { s.TotalEnvSteps = 1200 })
	r := agenttest.NewTraining(t, a, v)
	r.Run(t, 1200)
	if got := agenttest.Return(t, a, agenttest.Vector(t, 1, identity), 20); got < 90 {
		t.Errorf("a return of %g, expected at least 90", got)
	}
}
