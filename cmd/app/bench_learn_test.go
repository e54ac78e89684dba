package app

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/cmd/internal/learning"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// TestBenchLearn trains for too short a time to learn anything, on every engine: what is reported,
// and the exit status of --check, are as they should be.
func TestBenchLearn(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	ran := 0
	for _, engine := range apptest.Engines() {
		args := []string{"bench", "learn", "synthetic_leading", "--engine", engine, "--seeds", "4,5", "--set", "train.total_env_steps=320", "--json", "-q"}
		out := apptest.Succeed(t, args...)
		r := apptest.Decode[learnReport](t, out)
		if r.Engine != engine || len(r.Tasks) != 1 {
			t.Fatalf("%+v", r)
		}
		task := r.Tasks[0]
		if task.Task != "synthetic_leading" || task.Target != 0.8 || len(task.Runs) != 2 || task.Runs[1].Seed != 5 || task.Runs[0].EnvSteps != 320 || task.Runs[0].Optimum.Optimum < 0.0005 {
			t.Errorf("%+v", task)
		}
		if got, want := apptest.Keys(t, out), []string{"engine", "missed", "tasks"}; !slices.Equal(got, want) {
			t.Errorf("keys %v", got)
		}
		if code := apptest.Run(t, append(args, "--check", "--parallel", "2")...).Code; (code != 0) != (r.Missed > 0) {
			t.Errorf("exit status %d with %d missed", code, r.Missed)
		}
		ran++
	}
	if ran != len(apptest.Engines()) {
		t.Errorf("%d engines", ran)
	}
	apptest.Refuse(t, []string{"bench", "learn", "--seeds", "x"}, `--seeds "x"`)
	apptest.Refuse(t, []string{"bench", "learn", "--seeds", "4,5,4"}, `--seeds "4,5,4": 4 is given twice`)
	apptest.Refuse(t, []string{"bench", "learn", "demo"}, `nothing matches "demo"`)
	apptest.Refuse(t, []string{"bench", "learn", "--parallel", "0"}, "--parallel 0")
	profiled := []string{"bench", "learn", "identity_ppo", "--seeds", "1", "--set", "train.total_env_steps=256", "--profile", "-q"}
	if out := apptest.Succeed(t, profiled...); !strings.Contains(out, "gradient %") || !strings.Contains(out, "other %") || !strings.Contains(out, "1 of 1") && !strings.Contains(out, "0 of 1") {
		t.Errorf("profile: %s", out)
	}
	if r := apptest.Decode[learnReport](t, apptest.Succeed(t, append(profiled, "--json")...)); r.Tasks[0].Phases["gradient"] <= 0 || r.Tasks[0].Phases["env"] <= 0 {
		t.Errorf("profile: %+v", r.Tasks[0])
	}
	if out := apptest.Succeed(t, "bench", "learn", "--list"); !strings.Contains(out, "synthetic_leading") || strings.Count(out, "\n") < 10 {
		t.Errorf("list: %s", out)
	}
}

// TestBenchTrain measures every training for a moment.
func TestBenchTrain(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	r := apptest.Decode[speedReport](t, apptest.Succeed(t, "bench", "train", "--set", "train.total_env_steps=256", "--profile", "--json", "-q"))
	listed := apptest.Decode[[]learning.Row](t, apptest.Succeed(t, "bench", "train", "--list", "--json"))
	if len(r.Rows) != 7 || len(listed) != 7 {
		t.Fatalf("%d rows, %d listed", len(r.Rows), len(listed))
	}
	if out := apptest.Succeed(t, "bench", "train", "--list"); !strings.HasPrefix(out, "training      settings\nppo_cartpole  Stable-Baselines3's defaults\n") || strings.Count(out, "\n") != 8 {
		t.Errorf("list: %s", out)
	}
	for i, s := range r.Rows {
		if s.Name != listed[i].Name || s.EnvSteps < 256 || s.EnvStepsPerSecond <= 0 || s.Phases["env"] <= 0 || s.Phases["act"] <= 0 {
			t.Errorf("%+v", s)
		}
	}
	apptest.Refuse(t, []string{"bench", "train", "ppo"}, `nothing matches "ppo"`)
	apptest.Refuse(t, []string{"bench", "train", "--threads", "-1"}, "--threads")
}
