package studies

import (
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

func TestTune(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	config, dir := apptest.TuneYAML(t), filepath.Join(t.TempDir(), "search")
	sum := apptest.Tunes(t, config, "--out", dir)
	if sum.Complete+sum.Pruned != 8 || sum.Complete < 2 || sum.Failed+sum.Unfinished != 0 || len(sum.Trials) != 8 || sum.Dir != dir || sum.Metric != "mean_length" || sum.StepsPerTrial != 300 || sum.BestConfig != filepath.Join(dir, tune.BestFile) {
		t.Fatalf("%+v", sum)
	}
	for i, r := range sum.Trials[1:sum.Complete] {
		if *r.Value < *sum.Trials[i].Value {
			t.Errorf("trials are not ordered: %+v", sum.Trials)
		}
	}
	if len(sum.Trials[0].Values) != 5 || sum.Trials[0].Evaluations < 3 {
		t.Errorf("%+v", sum.Trials[0])
	}
	apptest.SameTrials(t, "the same search again", apptest.Tunes(t, config, "--out", filepath.Join(t.TempDir(), "again")).Trials, sum.Trials)
	other := apptest.Tunes(t, config, "--out", filepath.Join(t.TempDir(), "other"), "--set", "seed=2", "--set", "train.threads=0")
	if reflect.DeepEqual(other.Trials[0].Values, sum.Trials[0].Values) {
		t.Error("another seed tries the same")
	}
	// Values that are left open are decided once for all trials, and again where the best is trained.
	if text := string(apptest.ReadBytes(t, filepath.Join(other.Dir, run.ConfigFile))); strings.Contains(text, "threads: 0\n") {
		t.Errorf("the search does not say with how many threads it tries:\n%s", text)
	}
	if text := string(apptest.ReadBytes(t, other.BestConfig)); !strings.Contains(text, "threads: 0\n") {
		t.Errorf("the tuned configuration has threads of the search:\n%s", text)
	}
	for _, name := range []string{tune.LogFile, tune.CSVFile, tune.BestFile, run.ConfigFile, run.LineageFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	// The tuned configuration trains as it is, as long as the document says, and has the best
	// values.
	best := string(apptest.ReadBytes(t, sum.BestConfig))
	for _, want := range []string{"total_env_steps: 400\n", "gamma: " + sum.Trials[0].Values["agent.gamma"] + "\n", "n_steps: " + sum.Trials[0].Values["agent.n_steps"] + "\n", "time_limit: " + sum.Trials[0].Values["wrappers.time_limit"] + "\n", "tune: null"} {
		if !strings.Contains(best, want) {
			t.Errorf("the tuned configuration does not say %q:\n%s", want, best)
		}
	}
	tuned := apptest.TrainRuns(t, sum.BestConfig, "--out", filepath.Join(t.TempDir(), "run"), "--set", "publish={observations: 64, allow_ties: true}")
	if tuned.Runs[0].EnvSteps < 400 {
		t.Errorf("%+v", tuned.Runs[0])
	}
	// A finished search says what it said, and may grow; nothing else may change.
	again := apptest.Tunes(t, "--resume", dir)
	apptest.SameTrials(t, "resumed when finished", again.Trials, sum.Trials)
	if grown := apptest.Tunes(t, "--resume", dir, "--trials", "10"); grown.Complete+grown.Pruned != 10 {
		t.Errorf("%+v", grown)
	}
	apptest.Refuse(t, []string{"tune", "--resume", dir, "--set", "agent.vf_coef=0.7", "--set", "tune.metric=mean_reward"}, "configuration has changed", "agent.vf_coef", "tune.metric: mean_length -> mean_reward")
	apptest.Refuse(t, []string{"tune", config, "--out", dir}, "holds a run already", "--resume")
	// A search of a time before there was one of its keys goes on, too.
	for _, name := range []string{run.ConfigFile, run.LineageFile} {
		text := string(apptest.ReadBytes(t, filepath.Join(dir, name)))
		older := strings.NewReplacer("  prune_warmup: 0\n", "", `  prune_warmup: 0\n`, "").Replace(text)
		if older == text {
			t.Fatalf("%s has no prune_warmup", name)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(older), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if again := apptest.Tunes(t, "--resume", dir); again.Complete+again.Pruned != 10 {
		t.Errorf("%+v", again)
	}
	apptest.Refuse(t, []string{"tune", "--resume", dir, "--set", "tune.prune_warmup=1"}, "tune.prune_warmup: 0 -> 1")
	apptest.Refuse(t, []string{"tune", "--resume", dir, "--trials", "9"}, "has a trial 9 already", "tune.trials is 9")
	for _, args := range [][]string{{"train", "--resume", dir}, {"evaluate", dir}} {
		apptest.Refuse(t, args, "holds a search", "onnxrl tune --resume "+dir, "onnxrl train "+sum.BestConfig)
	}
}

// Several trials at once lose none.
func TestTuneParallel(t *testing.T) {
	t.Parallel()
	sum := apptest.Tunes(t, apptest.TuneYAML(t, "trials: 8", "trials: 9\n  sampler: random\n  pruner: none"), "--out", filepath.Join(t.TempDir(), "search"), "--parallel", "3")
	var numbers []int
	for _, r := range sum.Trials {
		numbers = append(numbers, r.Number)
	}
	slices.Sort(numbers)
	if sum.Complete != 9 || !slices.Equal(numbers, []int{0, 1, 2, 3, 4, 5, 6, 7, 8}) {
		t.Errorf("%+v", sum)
	}
	// Random trials do not learn from each other, so these are the ones that come one at a time.
	one := apptest.Tunes(t, apptest.TuneYAML(t, "trials: 8", "trials: 9\n  sampler: random\n  pruner: none"), "--out", filepath.Join(t.TempDir(), "one"))
	apptest.SameTrials(t, "at once", sum.Trials, one.Trials)
}

func TestTuneOutput(t *testing.T) {
	t.Parallel()
	r := apptest.Run(t, "tune", apptest.TuneYAML(t), "--out", filepath.Join(t.TempDir(), "search"))
	if r.Code != 0 || strings.ContainsAny(r.Err, "\r\x1b") || !strings.Contains(r.Err, "tune 100% 8/8 trials") || !strings.Contains(r.Err, "best mean_length=") {
		t.Errorf("exit status %d, standard error\n%s", r.Code, r.Err)
	}
	for _, want := range []string{"trial  mean_length  state", "agent.learning_rate", "complete", "0 failed, 0 left", "tuned configuration ", "directory "} {
		if !strings.Contains(r.Out, want) {
			t.Errorf("the table does not say %q:\n%s", want, r.Out)
		}
	}
	// A trial that cannot be trained does not end the search, and says why.
	r = apptest.Run(t, "tune", "-q", apptest.TuneYAML(t, "agent.hidden: {kind: categorical, choices: [[4], [8, 8]]}", "agent.vf_coef: {kind: categorical, choices: [1.0, 1e300]}"), "--out", filepath.Join(t.TempDir(), "failing"))
	if r.Code != 0 || !strings.Contains(r.Out, "failed: train: env step ") || strings.Contains(r.Out, ", 0 failed") {
		t.Errorf("exit status %d\n%s%s", r.Code, r.Out, r.Err)
	}
}

func TestTuneBadInput(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	out := filepath.Join(t.TempDir(), "search")
	cases := []struct {
		what string
		args []string
		says []string
	}{
		{"a key that the agent does not have", []string{apptest.TuneYAML(t, "agent.gamma:", "agent.gama:")}, []string{"tune.space: ", "agent.gama", "gamma"}},
		{"bounds that the agent does not take", []string{apptest.TuneYAML(t, "low: 0.8, high: 0.99", "low: 1.8, high: 2.99")}, []string{"tune.space: ", "agent.gamma", "between 0 and 1"}},
		{"a choice that the agent does not take", []string{apptest.TuneYAML(t, "[[4], [8, 8]]", "[[4], [-8]]")}, []string{"tune.space: ", "agent.hidden", "must be at least 1, is -8"}},
		{"numbers for a whole number", []string{apptest.TuneYAML(t, "{kind: int, low: 2, high: 16, log: true}", "{kind: uniform, low: 2, high: 16}")}, []string{"tune.space: ", "agent.n_steps", "not an integer"}},
		{"a key that the environment does not have", []string{apptest.TuneYAML(t, "wrappers.time_limit:", "env.cels:")}, []string{"tune.space: ", "env.cels", "cells"}},
		{"the seed", []string{apptest.TuneYAML(t, "agent.gamma: {kind: uniform, low: 0.8, high: 0.99}", "seed: {kind: int, low: 1, high: 9}")}, []string{"tune.space.seed: cannot be tuned"}},
		{"a misspelt kind", []string{apptest.TuneYAML(t, "kind: uniform", "kind: unifrom")}, []string{"search.yaml:15", "unifrom", "uniform"}},
		{"a misspelt key", []string{apptest.TuneYAML(t, "trials: 8", "trails: 8")}, []string{"search.yaml:7", "trails", "trials"}},
		{"a logarithm of 0", []string{apptest.TuneYAML(t, "low: 1e-7", "low: 0.0")}, []string{"search.yaml:14", "a logarithm needs a positive number"}},
		{"what trials must share", []string{apptest.TuneYAML(t, "agent.gamma:", "train.validation.every_steps:")}, []string{"cannot be tuned"}},
		{"an unknown metric", []string{apptest.TuneYAML(t, "metric: mean_length", "metric: sharpe")}, []string{"tune.metric", `"sharpe"`, "mean_reward"}},
		{"no evaluations", []string{apptest.TuneYAML(t), "--set", "train.validation.every_steps=0"}, []string{"train.validation.every_steps is 0"}},
		{"several seeds", []string{apptest.TuneYAML(t), "--set", "seeds=[1,2]"}, []string{"seeds"}},
		{"no section", []string{apptest.Write(t, "plain.yaml", "env: {kind: corridor}\nagent: {kind: a2c}\n")}, []string{"no section tune"}},
		{"no space", []string{apptest.Write(t, "empty.yaml", "env: {kind: corridor}\nagent: {kind: a2c}\ntune: {trials: 3}\n")}, []string{"tune.space is empty"}},
		{"nothing", nil, []string{"a configuration is needed"}},
		{"nothing to resume", []string{"--resume", t.TempDir()}, []string{"it holds no run"}},
		{"negative trials", []string{apptest.TuneYAML(t), "--trials", "-1"}, []string{"--trials"}},
	}
	for _, c := range cases {
		args := append([]string{"tune", "-q"}, c.args...)
		if len(c.args) > 0 && !slices.Contains(c.args, "--resume") {
			args = append(args, "--out", out)
		}
		r := apptest.Run(t, args...)
		if r.Code != 1 || !strings.Contains(r.Err, "onnxrl: tune: ") || r.Out != "" {
			t.Errorf("%s: exit status %d, expected 1 and an error\n%s%s", c.what, r.Code, r.Out, r.Err)
		}
		for _, s := range c.says {
			if !strings.Contains(r.Err, s) {
				t.Errorf("%s: the error does not say %q:\n%s", c.what, s, r.Err)
			}
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: there is a directory", c.what)
		}
	}
	if len(cases) != 18 {
		t.Errorf("%d cases", len(cases))
	}
}
