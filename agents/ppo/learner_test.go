package ppo

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

var nan = math.NaN()

// TestEveryEpochHasEverySample checks the order of an update: each epoch takes every sample once,
// in another order, and the last minibatch may be smaller.
func TestEveryEpochHasEverySample(t *testing.T) {
	n := 0
	for _, memory := range []Recurrent{Defaults().Recurrent, {LSTM, 3, 1, Separate, 4}} {
		c := lone()
		c.Recurrent = memory
		v := agenttest.Toys(t, 3, spec(envs.Discrete{N: 2}, false))
		r := agenttest.NewTraining(t, agentOf(t, c, v, testengines.Fastest(t), 1), v)
		r.Rollout(t)
		l := r.Agent.Learner().(*learner)
		l.Estimate(c.GAELambda)
		var before []int
		for k := range 3 {
			l.at = position{Begun: true, Epoch: k}
			if _, err := l.epoch(t.Context(), l.schedules()); err != nil {
				t.Fatal(err)
			}
			if slices.Equal(before, l.order) {
				t.Error("two epochs have the same order")
			}
			before = slices.Clone(l.order)
			var seen []int
			weight := 0.0
			for from := 0; from < len(l.order); from += l.learn.units {
				l.fill(l.order[from:min(from+l.learn.units, len(l.order))], l.schedules())
				for row, i := range l.learn.samples {
					weight += float64(l.in.value[row])
					if l.learn.valid[row] {
						seen = append(seen, i)
					} else if l.in.value[row] != 0 || l.in.policy[row] != 0 || l.in.entropy[row] != 0 {
						t.Error("a row that only fills up has a weight")
					}
				}
			}
			slices.Sort(seen)
			for i, s := range seen {
				if n++; i != s {
					t.Fatalf("samples %v", seen)
				}
			}
			batches := math.Ceil(float64(len(l.order)) / float64(l.learn.units))
			if math.Abs(weight-c.VFCoef*batches) > 1e-5 {
				t.Errorf("the weights of %g minibatches are %g together", batches, weight)
			}
		}
	}
	if n != 2*3*33 {
		t.Errorf("%d samples", n)
	}
}

// TestSchedules follows learning rate, clip ranges and the limit of the divergence over a run, and
// where its length is not known.
func TestSchedules(t *testing.T) {
	c := lone()
	linear := optim.Schedule{Kind: "linear"}
	c.LearningRateSchedule, c.ClipRangeSchedule, c.ClipRangeVF, c.TargetKL, c.TargetKLSchedule = linear, linear, 0.4, 1e-9, optim.Schedule{Kind: "linear", Final: 1e9}
	for total, want := range sorted.All(map[int64][]float64{132: {0.75, 0.5, 0.25, 0}, 0: {1, 1, 1, 1}}) {
		v := agenttest.Toys(t, 3, spec(envs.Discrete{N: 2}, false))
		r := agenttest.NewTraining(t, agentOf(t, c, v, testengines.Fastest(t), 1, func(s *agents.Setup) { s.TotalEnvSteps = total }), v)
		epochs := 0.0
		for k, f := range want {
			m := r.Update(t)
			for tag, first := range sorted.All(map[string]float64{"train/learning_rate": 1e-2, "train/clip_range": 0.2, "train/clip_range_vf": 0.4}) {
				if math.Abs(m[tag]-f*first) > 1e-12 {
					t.Errorf("update %d of %d env steps: %s is %g, expected %g", k, total, tag, m[tag], f*first)
				}
			}
			// An epoch that ends early counts.
			if epochs++; total > 0 {
				epochs++
			}
			if m["train/n_updates"] != epochs {
				t.Errorf("update %d of %d env steps: n_updates is %g, expected %g", k, total, m["train/n_updates"], epochs)
			}
		}
	}
}

// TestDivergenceEndsAnUpdate checks that the minibatch that goes too far is not learnt from.
func TestDivergenceEndsAnUpdate(t *testing.T) {
	c := lone()
	c.TargetKL, c.LearningRate, c.NEpochs = 1e-4, 0.05, 10
	v := agenttest.Toys(t, 3, spec(envs.Discrete{N: 3}, false))
	r := agenttest.NewTraining(t, agentOf(t, c, v, testengines.Fastest(t), 1), v)
	m := r.Update(t)
	l := r.Agent.Learner().(*learner)
	if steps := l.Optimizer.Steps(); steps == 0 || float64(steps) != l.sums.batches-1 {
		t.Errorf("%d optimiser steps in %g minibatches", steps, l.sums.batches)
	}
	if m["train/n_updates"] != 1 || m["train/approx_kl"] <= 0 {
		t.Errorf("n_updates %g, approx_kl %g", m["train/n_updates"], m["train/approx_kl"])
	}
}

// TestMetrics checks that there are exactly the tags of Stable-Baselines3, and that they make
// sense.
func TestMetrics(t *testing.T) {
	c := lone()
	v := agenttest.Toys(t, 3, spec(envs.NewBox(-1, 1, 2), false))
	a := agentOf(t, c, v, testengines.Fastest(t), 1)
	m := updates(t, agenttest.NewTraining(t, a, v), 3)
	var tags []string
	for tag, x := range sorted.All(m) {
		tags = append(tags, tag)
		if math.IsNaN(x) || math.IsInf(x, 0) {
			t.Errorf("%s is %g", tag, x)
		}
	}
	slices.Sort(tags)
	if want := strings.Fields("train/approx_kl train/clip_fraction train/clip_range train/entropy_loss train/explained_variance train/learning_rate train/loss train/n_updates train/policy_gradient_loss train/std train/value_loss"); !slices.Equal(tags, want) {
		t.Errorf("tags %q", tags)
	}
	logStd := a.learner.Params.View("actor.log_std").Float32s()
	if want := (math.Exp(float64(logStd[0])) + math.Exp(float64(logStd[1]))) / 2; math.Abs(m["train/std"]-want) > 1e-12 || m["train/n_updates"] != 6 {
		t.Errorf("std %g, expected %g; n_updates %g", m["train/std"], want, m["train/n_updates"])
	}
}

// TestNothingIsAllocated runs rounds and updates.
func TestNothingIsAllocated(t *testing.T) {
	n, e := 0, testengines.Fastest(t)
	for _, x := range append(constrainedVariants(), variants(t)...)[:longtest.Cases(t, 13+4, 6)] {
		c := x.config()
		if c.Constraints == nil {
			c.Correction = VTrace
		}
		v := agenttest.Toys(t, 3, x.spec)
		r := agenttest.NewTraining(t, agentOf(t, c, v, e, 1), v)
		updates(t, r, 2)
		if got := testing.AllocsPerRun(5, func() { r.Update(t) }); got > testengines.Allocations(e) {
			t.Errorf("%s: an update with its rollout allocates %v times", x.name, got)
		}
		n++
	}
	if n != longtest.Cases(t, 13+4, 6) {
		t.Errorf("%d variants", n)
	}
}

// TestMisfits gives configurations that do not fit themselves or the environment.
func TestMisfits(t *testing.T) {
	n := 0
	for _, x := range []struct {
		change func(c *Config)
		spec   envs.Spec
		want   []string
	}{
		{func(c *Config) {
			c.BatchSize, c.Gamma, c.ClipRange, c.Correction, c.Optimizer.LR, c.Encoders, c.SDESampleFreq, c.Hidden = 0, 2, 0, "retrace", 1, "both", 0, []int{-1}
			c.LearningRateSchedule.Initial, c.TargetKLSchedule.Kind, c.Recurrent.Kind = 1, "linear", "gru"
		}, spec(envs.Discrete{N: 2}, false), []string{"batch_size", "gamma", "clip_range", "retrace", "optimizer.lr", "encoders", "sde_sample_freq", "hidden", "learning_rate_schedule.initial", "target_kl_schedule", "recurrent.kind"}},
		{func(c *Config) { c.Recurrent = Recurrent{LSTM, 4, 1, Separate, 99} }, spec(envs.Discrete{N: 2}, false), []string{"recurrent.length", "99", "11"}},
		{func(c *Config) { c.Recurrent.Kind, c.Recurrent.Length = LSTM, 0 }, windows(t, 3, envs.MultiDiscrete{N: []int{2, 2, 2}}, false), []string{`"window"`, "toy", "one of 3"}},
		{func(c *Config) { c.UseSDE = true }, spec(envs.Discrete{N: 7}, false), []string{"use_sde", "toy", "discrete(7)"}},
		{func(c *Config) { c.Freeze = []string{"*"} }, spec(envs.Discrete{N: 2}, false), []string{"no parameter to train"}},
		{func(c *Config) { c.Freeze = []string{"aktor.*"} }, spec(envs.Discrete{N: 2}, false), []string{"aktor", "actor.hidden.fc0.weight"}},
		{func(c *Config) { c.Optimizer.NoDecay = []string{"*.bais"} }, spec(envs.Discrete{N: 2}, false), []string{"*.bais"}},
		{func(c *Config) {
			c.Encoder, c.LoRA = agenttest.TinyEncoder(t, 0.5), &lora.Config{Rank: 2}
		}, windows(t, 0, envs.Discrete{N: 2}, false), []string{"dropout of 0.5", "adapters"}},
	} {
		c := lone()
		x.change(&c)
		m, err := NewMaker(c)
		agenttest.Refuse(t, m, err, x.spec, x.want...)
		n += len(x.want)
	}
	k, err := configs.NewKinded("maskable_ppo", map[string]any{"n_epochs": 3})
	if err != nil {
		t.Fatal(err)
	}
	m, err := agents.Parse(Kinds(), k)
	if err != nil || m.Config().(Config).NEpochs != 3 || m.Config().(Config).BatchSize != 64 {
		t.Fatalf("%v, %v", m, err)
	}
	agenttest.Refuse(t, m, nil, spec(envs.Discrete{N: 2}, false), "mask")
	agenttest.Agent(t, m, agenttest.Toys(t, 2, spec(envs.Discrete{N: 2}, true)), testengines.Fastest(t), 1)
	if n != 26 {
		t.Errorf("%d mentions", n)
	}
}
