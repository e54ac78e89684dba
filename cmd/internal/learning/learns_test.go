package learning

import (
	"errors"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/ort/library"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// fastest returns ONNX Runtime in builds with cgo, else the portable engine.
func fastest(t *testing.T) engine.Compiler {
	t.Helper()
	c, err := ort.New(t.Context(), ort.Options{Library: library.Options{AllowInstall: true}})
	if errors.Is(err, ort.ErrUnavailable) {
		return portable.New()
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestLearns trains three toys, on policy, off policy and with continuous actions, with one seed, as
// "onnxrl bench learn" does. TestEverythingLearns has the others that take seconds.
func TestLearns(t *testing.T) {
	longtest.Slow(t)
	learns(t, map[string][]string{"identity_ppo": nil, "identity_dqn": nil, "identity_box_sac": nil})
}

// TestEverythingLearns trains all tasks that take seconds. CartPole ends once validation is almost
// perfect.
func TestEverythingLearns(t *testing.T) {
	longtest.Nightly(t)
	learns(t, map[string][]string{
		"identity_ppo": nil, "identity_a2c": nil, "identity_dqn": nil, "identity_box_sac": nil, "identity_box_td3": nil, "identity_box_ddpg": nil, "invalid_maskable_ppo": nil,
		"rps_league": {"generations=15"}, "cartpole_cma_es": nil,
		"cartpole_ppo": {"train.stop.reward_threshold=495", "train.validation.every_steps=10000"},
	})
}

// learns trains tasks with edits, each of which has to reach its target.
func learns(t *testing.T, sets map[string][]string) {
	t.Helper()
	e, tried := fastest(t), 0
	for _, task := range Tasks() {
		set, ok := sets[task.Name]
		if !ok {
			continue
		}
		r, err := Run(t.Context(), task, 1, Options{Engine: e, Threads: 1, Sets: set})
		if err != nil {
			t.Fatal(err)
		}
		if !r.Reached || r.Score < task.Target {
			t.Errorf("%s: a score of %g after %d env steps, expected at least %g", task.Name, r.Score, r.EnvSteps, task.Target)
		}
		t.Logf("%s: %g after %d env steps, %.1f s", task.Name, r.Score, r.EnvSteps, r.Seconds)
		tried++
	}
	if tried != len(sets) {
		t.Errorf("%d tasks were tried", tried)
	}
}
