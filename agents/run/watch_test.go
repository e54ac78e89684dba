package run_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/metrics/exporter"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// scraped is what Prometheus gets.
func scraped(e *exporter.Exporter) string {
	w := httptest.NewRecorder()
	e.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

func shows(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("missing: %s\nin\n%s", line, text)
		}
	}
}

// A run that is watched records what one records that is not, and shows the newest of it. One that
// goes on counts what its process has taken.
func TestWatched(t *testing.T) {
	dir := t.TempDir()
	if _, err := trained(t.Context(), t, run.Job{Dir: filepath.Join(dir, "alone")}, run.Options{}); err != nil {
		t.Fatal(err)
	}
	e := exporter.New(time.Now)
	at := filepath.Join(dir, "runs", "watched")
	sum, err := trained(t.Context(), t, run.Job{Dir: at}, run.Options{Watch: e})
	if err != nil {
		t.Fatal(err)
	}
	want := metrics(t, filepath.Join(dir, "alone"))
	if got := metrics(t, at); !reflect.DeepEqual(got, want) || len(got) < 8 {
		t.Errorf("metrics %v, expected %v", got, want)
	}
	last := map[string]float64{}
	for _, line := range want {
		for tag, v := range sorted.All(line) {
			if x, ok := v.(float64); ok {
				last[tag] = x
			}
		}
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	text := scraped(e)
	shows(t, text, `onnxrl_env_steps_total{run="watched"} 400`, `onnxrl_run_env_steps_planned{run="watched"} 400`, fmt.Sprintf(`onnxrl_train_steps_total{run="watched"} %d`, sum.Runs[0].LearnerSteps), `onnxrl_run_active{run="watched"} 0`,
		`onnxrl_policy_kl{run="watched"} `+number(last["train/approx_kl"]), `onnxrl_entropy{run="watched"} `+number(-last["train/entropy_loss"]), `onnxrl_scalar{run="watched",tag="eval/mean_reward"} `+number(last["eval/mean_reward"]),
		`onnxrl_inference_seconds_count{model="watched",version=""} 200`, `onnxrl_nonfinite_values_total{run="watched"} 0`, `onnxrl_run_failures_total{reason="error",run="watched"} 0`)
	if !strings.Contains(text, `onnxrl_phase_seconds_total{phase="gradient",run="watched"} `) {
		t.Error("the phases are not shown")
	}
	again := exporter.New(time.Now)
	if _, err := trained(t.Context(), t, run.Job{Resume: at, Sets: []string{"train.total_env_steps=600"}, ID: "further"}, run.Options{Watch: again}); err != nil {
		t.Fatal(err)
	}
	shows(t, scraped(again), `onnxrl_env_steps_total{run="further"} 200`, `onnxrl_run_env_steps{run="further"} 600`, `onnxrl_run_active{run="further"} 0`)
}

// A hook that ends a run is no failure; a loss that is no number is one, and so is all else.
func TestWatchedFailures(t *testing.T) {
	broken := errors.New("broken")
	n := 0
	for _, c := range []struct {
		name             string
		j                run.Job
		h                run.Hooks
		diverged, errors int
	}{
		{"pruned", run.Job{}, run.Hooks{Evaluated: func(_ *run.Run, at int64, _ map[string]float64) error { return broken }}, 0, 0},
		{"diverged", run.Job{Sets: []string{"agent.learning_rate=1e30"}}, run.Hooks{}, 1, 0},
	} {
		e := exporter.New(time.Now)
		c.j.ID, c.j.Dir = c.name, filepath.Join(t.TempDir(), c.name)
		if _, err := trained(t.Context(), t, c.j, run.Options{Watch: e, Hooks: c.h}); err == nil {
			t.Errorf("%s: no error", c.name)
		}
		shows(t, scraped(e), fmt.Sprintf(`onnxrl_run_failures_total{reason="diverged",run="%s"} %d`, c.name, c.diverged), fmt.Sprintf(`onnxrl_run_failures_total{reason="error",run="%s"} %d`, c.name, c.errors), fmt.Sprintf(`onnxrl_run_active{run="%s"} 0`, c.name))
		n++
	}
	if n != 2 {
		t.Errorf("%d cases", n)
	}
	if run.Failure(context.Canceled) != "" || run.Failure(broken) != "error" || run.Failure(nil) != "" {
		t.Error("what ends a training is another failure")
	}
}

// The share of forbidden actions is that of the masks, and the size of a replay what was recorded,
// up to its capacity.
func TestMasksAndReplay(t *testing.T) {
	for _, c := range []struct{ name, text, tag, want string }{
		{"masks", "env: {kind: invalid_action, space: discrete, dims: [70], invalid: 55}\nagent: {kind: maskable_ppo, n_steps: 50, batch_size: 50, n_epochs: 1, hidden: [4]}\n", `"rollout/mask_invalid_ratio":0.7857142857142857`, `onnxrl_mask_invalid_ratio{run="masks"} 0.7857142857142857`},
		{"replay", "env: {kind: pendulum}\nagent: {kind: sac, learning_starts: 1000, buffer_size: 60, batch_size: 4, hidden: [4]}\n", `"replay/size":60`, `onnxrl_replay_size{run="replay"} 60`},
	} {
		doc, err := configs.Parse(c.name, []byte(c.text+"train: {num_envs: 1, total_env_steps: 100, log_interval_steps: 50, threads: 1}\npublish: {when: never}\n"))
		if err != nil {
			t.Fatal(err)
		}
		cfg := experiment.Defaults()
		if err := doc.Decode(&cfg); err != nil {
			t.Fatal(err)
		}
		e := exporter.New(time.Now)
		o, j := run.Options{Engine: portable.New(), Watch: e}, run.Job{ID: c.name, Name: c.name, Config: text(t, cfg), Dir: filepath.Join(t.TempDir(), c.name)}
		defer o.Engine.Close()
		p, err := run.New(t.Context(), kinds.All(), j, o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Train(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(j.Dir, run.MetricsFile))
		if err != nil || !strings.Contains(string(text), c.tag) {
			t.Errorf("%s: %v, no %s in\n%s", c.name, err, c.tag, text)
		}
		shows(t, scraped(e), c.want)
	}
}

func TestLabel(t *testing.T) {
	n := 0
	for dir, want := range sorted.All(map[string]string{"runs/first": "first", "runs/first/seed-42": "first/seed-42", "/x/runs/study/cell/seed-1": "study/cell/seed-1", "/tmp/other": "tmp/other", "here": "here", "a/b/c": "b/c", "/top": "top", "runs": "runs"}) {
		if got := run.Label(dir); got != want {
			t.Errorf("%s is called %s, expected %s", dir, got, want)
		}
		n++
	}
	if n != 8 {
		t.Errorf("%d cases", n)
	}
}
