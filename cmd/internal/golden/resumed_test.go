package golden

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// goldenRuns are small trainings of every algorithm and of what changes their course: wrappers,
// masks, schedules, memory, a market. Each is written by an older program, which stopped at the
// checkpoint at.
var goldenRuns = []struct {
	name, document string
	at             string
	set            []string
}{
	{"ppo", "cartpole_ppo", "ckpt-000001024", []string{"agent.hidden=[8]", "train.total_env_steps=3072", "train.checkpoint.every_steps=1024", "train.validation.every_steps=1024", "wrappers={normalize: {obs: true, reward: true}}", "agent.entropy_coef=0.01"}},
	{"ppo_lstm", "cartpole_ppo", "ckpt-000001024", []string{"agent.hidden=[8]", "agent.recurrent={kind: lstm, hidden: 4}", "train.total_env_steps=2048", "train.checkpoint.every_steps=1024", "train.validation.every_steps=1024"}},
	{"ppo_masked", "invalid_maskable_ppo", "ckpt-000002048", []string{"agent.hidden=[8]", "train.total_env_steps=4096", "train.checkpoint.every_steps=2048", "train.validation.every_steps=2048"}},
	{"ppo_sde", "pendulum_ppo", "ckpt-000004096", []string{"agent.hidden=[8]", "train.total_env_steps=8192", "train.checkpoint.every_steps=4096", "train.validation.every_steps=4096"}},
	{"a2c", "cartpole_a2c", "ckpt-000001000", []string{"agent.hidden=[8]", "train.total_env_steps=3000", "train.checkpoint.every_steps=1000", "train.validation.every_steps=1000"}},
	{"a2c_market", "demo", "ckpt-000002000", []string{"agent.encoder.d_model=8", "train.total_env_steps=4000", "train.checkpoint.every_steps=2000", "train.validation.every_steps=2000", "eval.bootstrap.samples=50", "eval.baselines.random=[42]", "eval.baselines.moving_average=[10]", "eval.lag=[]", "eval.cost_sweep_bp=[0]", "publish.observations=1000"}},
	{"dqn", "cartpole_dqn", "ckpt-000001024", []string{"agent.hidden=[8]", "agent.buffer_size=500", "agent.learning_starts=100", "train.total_env_steps=3072", "train.checkpoint.every_steps=1024", "train.validation.every_steps=1024"}},
	{"sac", "pendulum_sac", "ckpt-000000500", []string{"agent.hidden=[8]", "agent.buffer_size=400", "agent.learning_starts=100", "agent.batch_size=16", "train.total_env_steps=1000", "train.checkpoint.every_steps=500", "train.validation.every_steps=500"}},
	{"td3", "pendulum_td3", "ckpt-000000500", []string{"agent.hidden=[8]", "agent.buffer_size=400", "agent.learning_starts=100", "agent.batch_size=16", "train.total_env_steps=1000", "train.checkpoint.every_steps=500", "train.validation.every_steps=500"}},
	{"ddpg", "pendulum_ddpg", "ckpt-000000500", []string{"agent.hidden=[8]", "agent.buffer_size=400", "agent.learning_starts=100", "agent.batch_size=16", "train.total_env_steps=1000", "train.checkpoint.every_steps=500", "train.validation.every_steps=500"}},
}

// goldenStored is the document whose artefact store is kept as well.
const goldenStored = "demo"

// TestGoldenResumed resumes runs that an older program wrote, and trains their documents again from the
// beginning: both reproduce its numbers to the digit, on the pure-Go engine, which rounds alike on all
// processors of amd64 that have FMA. Its policies pass the parity check again, and are evaluated as it
// evaluated them.
func TestGoldenResumed(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	goldenOnly(t)
	compared := 0
	for _, c := range goldenRuns {
		t.Run(c.name, func(t *testing.T) {
			kept := filepath.Join("testdata", "resumed", c.name)
			if *goldenFrom != "" {
				recordGolden(t, c.document, c.at, kept, c.set)
			}
			var want apptest.RunResult
			apptest.ReadJSON(t, filepath.Join(kept, "want.json"), &want)
			if len(want.Arrays) == 0 || len(want.Metrics) == 0 {
				t.Fatalf("nothing to compare with: %d arrays, %d lines of metrics", len(want.Arrays), len(want.Metrics))
			}

			resumed := filepath.Join(t.TempDir(), c.name)
			if err := os.CopyFS(resumed, os.DirFS(filepath.Join(kept, "run"))); err != nil {
				t.Fatal(err)
			}
			apptest.Succeed(t, "train", "--resume", resumed, "--engine", "portable", "-q")
			apptest.SameResult(t, "resumed", apptest.ResultOf(t, resumed), want)

			fresh := filepath.Join(t.TempDir(), c.name)
			apptest.Succeed(t, "train", filepath.Join(kept, "run", "config.yaml"), "--out", fresh, "--engine", "portable", "-q")
			apptest.SameResult(t, "trained again", apptest.ResultOf(t, fresh), want)
			compared += len(want.Arrays) + len(want.Metrics) + len(want.Summary)

			got := apptest.Succeed(t, "evaluate", filepath.Join(kept, "best.onnx"), "--config", filepath.Join(kept, "run", "config.yaml"), "--engine", "portable", "-q", "--json")
			if want := apptest.ReadText(t, filepath.Join(kept, "evaluated.json")); untimed(t, got) != untimed(t, want) {
				t.Errorf("evaluated as\n%s\nexpected\n%s", untimed(t, got), untimed(t, want))
			}
		})
	}
	if !t.Failed() && compared < 400 {
		t.Errorf("%d values compared", compared)
	}
}

// TestGoldenStore proves again what an older program published.
func TestGoldenStore(t *testing.T) {
	t.Parallel()
	store := filepath.Join("testdata", "resumed", "a2c_market", "artifacts")
	if out := apptest.Succeed(t, "models", "verify", "--store", store, "--engine", "portable", "-q"); !strings.Contains(out, goldenStored) {
		t.Errorf("nothing verified:\n%s", out)
	}
}

// recordGolden trains a document with the older program and keeps what is needed to resume it at
// one of its checkpoints, and what became of it.
func recordGolden(t *testing.T, document, at, kept string, set []string) {
	t.Helper()
	run := filepath.Join(t.TempDir(), document)
	args := []string{"train", document, "--engine", "portable", "-q", "--out", run, "--set", "train.threads=1", "--set", "train.checkpoint.keep_last=99", "--set", "eval.episodes=5"}
	for _, s := range set {
		args = append(args, "--set", s)
	}
	older(t, args...)
	if err := os.RemoveAll(kept); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config.yaml", "lineage.json", "sources.json", "metrics.jsonl", filepath.Join("checkpoints", at)} {
		apptest.Copy(t, filepath.Join(run, name), filepath.Join(kept, "run", name))
	}
	apptest.Copy(t, filepath.Join(run, "best.onnx"), filepath.Join(kept, "best.onnx"))
	if document == goldenStored {
		apptest.Copy(t, filepath.Join(run, "artifacts"), filepath.Join(kept, "artifacts"))
	}
	text, err := json.MarshalIndent(apptest.ResultOf(t, run), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(kept, "want.json"), append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	evaluated := older(t, "evaluate", filepath.Join(kept, "best.onnx"), "--config", filepath.Join(kept, "run", "config.yaml"), "--engine", "portable", "-q", "--json")
	if err := os.WriteFile(filepath.Join(kept, "evaluated.json"), evaluated, 0o644); err != nil {
		t.Fatal(err)
	}
}

func untimed(t *testing.T, text string) string {
	t.Helper()
	m := apptest.Decode[map[string]any](t, text)
	out, err := json.MarshalIndent(apptest.WithoutTimes(m), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
