package a2c

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// small is a network for windows that takes no time. Plain gradient descent shows differences as
// they are, where Adam would blow up those of gradients near 0.
func small(t testing.TB, change func(c *encoder.TimeCNNConfig)) Config {
	e := encoder.TimeCNNDefaults()
	e.DModel, e.NLayers = 8, 2
	if change != nil {
		change(&e)
	}
	c := qtmrl()
	var err error
	if c.Encoder, err = configs.NewKinded("timecnn", e); err != nil {
		t.Fatal(err)
	}
	c.CrossAsset.NHeads = 2
	c.NSteps, c.Reduction, c.LearningRate, c.CriticLearningRate = 10, Mean, 0.05, 0.1
	c.Optimizer.Kind = "sgd"
	return c
}

// splitSmall makes the package split even small work, so that tests see shards and several runs.
func splitSmall(t testing.TB) {
	agenttest.SplitSmall(t)
	run := runFLOPs
	runFLOPs = 2e5
	t.Cleanup(func() { runFLOPs = run })
}

// watched is an actor whose decisions are kept.
type watched struct {
	agents.Actor
	actions []int64
	numbers []float32
}

func (w *watched) Act(ctx context.Context, key rng.Key, b *vector.Batch) (*vector.Decision, error) {
	d, err := w.Actor.Act(ctx, key, b)
	if err == nil {
		if d.Drawn != nil {
			w.numbers = append(w.numbers, d.Drawn.Float32s()...)
		} else {
			w.actions = append(w.actions, d.Actions.Int64s()...)
		}
		w.numbers = append(append(w.numbers, d.LogProb...), d.Value...)
	}
	return d, err
}

// trained is what an agent did and became in a few updates.
type trained struct {
	actions  []int64
	numbers  []float32
	params   []float32
	grads    []float32
	episodes int
	loss     []float64
}

// learn trains an agent and returns everything that can be compared.
func learn(t testing.TB, c Config, v vector.Env, e engine.Compiler, threads, updates int) trained {
	t.Helper()
	a := agent(t, c, v, e, threads)
	r := agenttest.NewTraining(t, a, v)
	w := &watched{Actor: r.Actor}
	r.Actor = w
	var out trained
	for range updates {
		m := r.Update(t)
		out.loss = append(out.loss, m["train/loss"], m["train/grad_norm"])
		for _, ended := range a.learner.Rollout.Ended {
			if ended {
				out.episodes++
			}
		}
	}
	out.actions, out.numbers = w.actions, w.numbers
	out.params, out.grads = slices.Clone(a.learner.Params.Segment(models.Trainable).Floats()), slices.Clone(a.learner.Grads.Floats())
	return out
}

// apart returns the largest difference relative to the largest magnitude.
func apart(a, b []float32) float64 {
	if len(a) != len(b) {
		return math.Inf(1)
	}
	var diff, scale float64
	for i := range a {
		diff, scale = max(diff, math.Abs(float64(a[i])-float64(b[i]))), max(scale, math.Abs(float64(a[i])))
	}
	return diff / scale
}

// TestSharedWindowsEqualSingleOnes trains with each window encoded alone, one after the other on
// one core, and with windows encoded together: decisions, gradients and parameters agree up to
// rounding, with several environments, episodes that end within a rollout, the end of the table,
// windows that are not consecutive, two encoders, and every way of splitting the work.
func TestSharedWindowsEqualSingleOnes(t *testing.T) {
	splitSmall(t)
	n, episodes, of := 0, 0, longtest.Cases(t, 4, 2)
	for _, e := range testengines.All(t) {
		for _, c := range []struct {
			name    string
			envs    int
			threads int
			change  func(c *Config)
			world   func() vector.Env
		}{
			{"random episodes", 3, 2, func(*Config) {}, func() vector.Env {
				return markets(t, market(70, 3, 4, false), 3, func(c *trading.Config) {
					c.Window, c.Episode.Kind, c.Episode.Length = 6, trading.Random, 13
				})
			}},
			{"lock step to the end of the table", 2, 2, func(c *Config) { c.Encoders = Separate }, func() vector.Env {
				return markets(t, market(29, 3, 4, false), 2, func(c *trading.Config) { c.Window, c.Episode.End = 6, trading.Terminate })
			}},
			{"table shorter than a rollout", 1, 3, func(c *Config) { c.GAELambda = 0.9 }, func() vector.Env {
				return markets(t, market(12, 3, 4, false), 1, func(c *trading.Config) { c.Window, c.State.IncludeCash = 6, false })
			}},
			{"jumping windows", 3, 2, func(c *Config) { c.NormalizeAdvantage = true }, func() vector.Env { return agenttest.Toys(t, 3, windowToy(t)) }},
		}[:of] {
			alone, shared := small(t, nil), small(t, nil)
			c.change(&alone)
			c.change(&shared)
			alone.ShareWindows, shared.ShareWindows = Off, On
			const updates = 5
			a, s := learn(t, alone, c.world(), e, 1, updates), learn(t, shared, c.world(), e, c.threads, updates)
			if len(a.actions) != updates*10*3*c.envs || !slices.Equal(a.actions, s.actions) {
				t.Errorf("%s, %s: actions differ", e.Name(), c.name)
			}
			for what, d := range sorted.All(map[string]float64{"log-probabilities and values": apart(a.numbers, s.numbers), "parameters": apart(a.params, s.params), "gradients": apart(a.grads, s.grads)}) {
				if n++; d > 1e-5 {
					t.Errorf("%s, %s: %s are apart by %g", e.Name(), c.name, what, d)
				}
			}
			if a.episodes != s.episodes {
				t.Errorf("%s, %s: %d and %d episodes ended", e.Name(), c.name, a.episodes, s.episodes)
			}
			episodes += a.episodes
			moved := learn(t, alone, c.world(), e, 1, 1)
			if apart(moved.params, a.params) < 1e-4 {
				t.Errorf("%s, %s: the parameters hardly move", e.Name(), c.name)
			}
		}
	}
	if n < of*3 || episodes < 5*of {
		t.Errorf("%d comparisons, %d episodes that ended", n, episodes)
	}
}

// TestSharingIsExplained asks for sharing where it is impossible.
func TestSharingIsExplained(t *testing.T) {
	c := small(t, func(c *encoder.TimeCNNConfig) { c.Padding = "same" })
	c.ShareWindows = On
	refuse(t, c, markets(t, market(70, 3, 4, false), 1, func(c *trading.Config) { c.Window = 6 }).Spec(), "share_windows: on", "padding: same")
	c = quick()
	c.ShareWindows = On
	refuse(t, c, corridors(t, 1).Spec(), "not a window of a table")
	// Left to itself the agent encodes each window alone.
	c = small(t, func(c *encoder.TimeCNNConfig) { c.Padding = "same" })
	v := markets(t, market(70, 3, 4, false), 1, func(c *trading.Config) { c.Window = 6 })
	if a := agent(t, c, v, testengines.Fastest(t), 1); a.learner.g.chunk != 1 {
		t.Errorf("chunks of %d windows", a.learner.g.chunk)
	}
	if a := agent(t, small(t, nil), v, testengines.Fastest(t), 1); a.learner.g.chunk != 11 {
		t.Errorf("chunks of %d windows", a.learner.g.chunk)
	}
}
