package run_test

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/offline/offlinetest"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// withDataset is a document that learns from a data set.
func withDataset(t testing.TB, env, dataset, agent string, steps int) experiment.Config {
	t.Helper()
	doc, err := configs.Parse("dataset.yaml", fmt.Appendf(nil, `
env: %s
dataset: %s
agent: %s
train: {total_env_steps: %d, log_interval_steps: 10, threads: 1, num_envs: 2, validation: {every_steps: 20, metric: action_score}, checkpoint: {every_steps: 20}}
eval: {episodes: 2}
publish: {observations: 50}
`, env, dataset, agent, steps))
	if err != nil {
		t.Fatal(err)
	}
	c, err := kinds.All().Decode(doc)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// trainedOn trains a document, or a run that is resumed.
func trainedOn(ctx context.Context, t testing.TB, c experiment.Config, j run.Job, o run.Options) (s run.Summary, err error) {
	t.Helper()
	o.Engine = testengines.Fastest(t)
	var p *run.Plan
	if j.Resume != "" {
		p, err = run.Open(ctx, kinds.All(), "", j, o)
	} else {
		j.Name, j.Config = "dataset", text(t, c)
		p, err = run.New(ctx, kinds.All(), j, o)
	}
	if err != nil {
		return s, err
	}
	agenttest.Closing(t, p)
	return p.Train(ctx)
}

// specOf is that of the environment of a document.
func specOf(t *testing.T, env string) envs.Spec {
	t.Helper()
	c := withDataset(t, env, "{path: nowhere}", "{kind: bc}", 1)
	_, f, _, err := kinds.All().Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, f)
	spec, err := offline.SpecOf(f, envs.Train, 0)
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// TestOffline trains every algorithm that can from a data set: no environment is stepped but in
// evaluations, the policy is chosen by the episodes that are held out, and published; a run that is
// interrupted and resumed has the same metrics and the same policy.
func TestOffline(t *testing.T) {
	longtest.Slow(t)
	const box, discrete = "{kind: pendulum, max_steps: 20}", "{kind: cartpole, max_steps: 20}"
	sets := map[string]string{box: offlinetest.Dataset(t, specOf(t, box), 40).Dir, discrete: offlinetest.Dataset(t, specOf(t, discrete), 40).Dir}
	agents := map[string][2]string{
		"bc":            {box, "{kind: bc, hidden: [8], batch_size: 16}"},
		"bc, ensemble":  {discrete, "{kind: bc, hidden: [8], batch_size: 16, ensemble: 3, uncertainty_penalty: 0.5}"},
		"td3_bc":        {box, "{kind: td3_bc, hidden: [8], batch_size: 16}"},
		"td3":           {box, "{kind: td3, hidden: [8], batch_size: 16}"},
		"iql":           {box, "{kind: iql, hidden: [8], batch_size: 16}"},
		"iql, discrete": {discrete, "{kind: iql, hidden: [8], batch_size: 16}"},
		"awac":          {box, "{kind: awac, hidden: [8], batch_size: 16}"},
		"awr, discrete": {discrete, "{kind: awr, hidden: [8], batch_size: 16, n_steps: 5}"},
		"cql":           {box, "{kind: cql, hidden: [8], batch_size: 16, conservative: {n_action_samples: 2, alpha_learning_rate: 1.0e-3}}"},
		"cql, discrete": {discrete, "{kind: cql, hidden: [8], batch_size: 16}"},
		"sac":           {box, "{kind: sac, hidden: [8], batch_size: 16}"},
		"discrete_cql":  {discrete, "{kind: discrete_cql, hidden: [8], batch_size: 16, target_update_interval: 5}"},
		"dqn":           {discrete, "{kind: dqn, hidden: [8], batch_size: 16, train_freq: 1}"},
	}
	for what, a := range sorted.All(agents) {
		c := withDataset(t, a[0], fmt.Sprintf("{path: %s, validation: 0.25}", sets[a[0]]), a[1], 50)
		whole, parts := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "parts")
		sum, err := trainedOn(t.Context(), t, c, run.Job{Dir: whole}, run.Options{})
		if err != nil {
			t.Fatal(what, err)
		}
		r := sum.Runs[0]
		if r.EnvSteps != 50 || r.Episodes != 0 || r.Published == "" || r.BestEnvSteps == 0 || r.Metric != "action_score" {
			t.Errorf("%s: %+v", what, r)
		}
		ctx, cancel := context.WithCancel(t.Context())
		sum, err = trainedOn(ctx, t, c, run.Job{Dir: parts}, run.Options{Hooks: run.Hooks{Progress: func(_ *run.Run, p train.Progress) {
			if p.EnvSteps >= 33 {
				cancel()
			}
		}}})
		cancel()
		if err != nil || len(sum.Unfinished) != 1 {
			t.Fatalf("%s: it was not interrupted: %+v, %v", what, sum, err)
		}
		if _, err = trainedOn(t.Context(), t, c, run.Job{Resume: parts}, run.Options{}); err != nil {
			t.Fatal(what, err)
		}
		want, got := metrics(t, whole), metrics(t, parts)
		if !reflect.DeepEqual(want, got) || len(want) < 5 {
			t.Errorf("%s: %d records and, resumed, %d, which differ", what, len(want), len(got))
		}
		updates := 0.0
		for _, m := range want {
			for _, tag := range slices.Sorted(maps.Keys(m)) {
				if strings.HasPrefix(tag, "rollout/") && tag != "rollout/exploration_rate" {
					t.Errorf("%s: there is %s, though no environment was stepped", what, tag)
				}
			}
			if n, ok := m["train/n_updates"].(float64); ok {
				updates = max(updates, n)
			}
		}
		if updates != 50 {
			t.Errorf("%s: %v updates", what, updates)
		}
	}
	// A policy that was not published acts from its checkpoint.
	cfg := withDataset(t, box, fmt.Sprintf("{path: %s}", sets[box]), "{kind: bc, hidden: [8], batch_size: 16}", 20)
	cfg.Publish.When, cfg.Train.Validation.Metric = experiment.Never, "mean_reward"
	dir := filepath.Join(t.TempDir(), "unpublished")
	if _, err := trainedOn(t.Context(), t, cfg, run.Job{Dir: dir}, run.Options{}); err != nil {
		t.Fatal(err)
	}
	e, err := run.NewEvaluation(kinds.All(), dir, run.EvaluationOptions{})
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, e)
	if err := e.Open(t.Context(), testengines.Fastest(t)); err != nil {
		t.Fatal(err)
	}
	if list, err := e.Episodes(t.Context()); err != nil || len(list) != 1 || len(list[0].Episodes) != 2 {
		t.Errorf("%+v, %v", list, err)
	}
	if len(agents) != 13 {
		t.Errorf("%d agents", len(agents))
	}
}

// TestDatasetRefuses has what a document with a data set cannot be.
func TestDatasetRefuses(t *testing.T) {
	const box = "{kind: pendulum, max_steps: 20}"
	dir := offlinetest.Dataset(t, specOf(t, box), 4).Dir
	cases := 0
	for _, x := range []struct{ env, dataset, agent, want string }{
		{box, "{path: /nowhere}", "{kind: bc}", "dataset.json"},
		{"{kind: cartpole}", "{path: " + dir + "}", "{kind: bc}", "the data set has"},
		{box, "{path: " + dir + "}", "{kind: ppo}", "on-policy"},
		{box, "{path: " + dir + ", share: 0.5}", "{kind: bc}", "share 1"},
		{box, "{path: " + dir + ", validation: 0.5}", "{kind: td3, train_freq: episode, batch_size: 4}", "train_freq"},
	} {
		_, err := trainedOn(t.Context(), t, withDataset(t, x.env, x.dataset, x.agent, 5), run.Job{Dir: filepath.Join(t.TempDir(), "run")}, run.Options{})
		agenttest.Has(t, err, x.want)
		cases++
	}
	for _, x := range []struct{ dataset, want string }{{"{}", "dataset.path"}, {"{path: x, share: 2}", "dataset.share"}, {"{path: x, validation: 1}", "dataset.validation"}} {
		doc, err := configs.Parse("d.yaml", []byte("env: {kind: pendulum}\nagent: {kind: bc}\ndataset: "+x.dataset+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = kinds.All().Decode(doc)
		agenttest.Has(t, err, x.want)
		cases++
	}
	if cases != 8 {
		t.Errorf("%d cases", cases)
	}
}

// TestBesideDataset trains in an environment with half of each batch from a data set, and resumes.
func TestBesideDataset(t *testing.T) {
	const box = "{kind: pendulum, max_steps: 20}"
	dir := offlinetest.Dataset(t, specOf(t, box), 20).Dir
	c := withDataset(t, box, "{path: "+dir+", share: 0.5, validation: 0.2}", "{kind: td3, hidden: [8], batch_size: 16, learning_starts: 10}", 60)
	whole, parts := filepath.Join(t.TempDir(), "whole"), filepath.Join(t.TempDir(), "parts")
	sum, err := trainedOn(t.Context(), t, c, run.Job{Dir: whole}, run.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r := sum.Runs[0]; r.Episodes != 2 {
		t.Errorf("%d episodes", r.Episodes)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = trainedOn(ctx, t, c, run.Job{Dir: parts}, run.Options{Hooks: run.Hooks{Progress: func(_ *run.Run, p train.Progress) {
		if p.EnvSteps >= 34 {
			cancel()
		}
	}}})
	cancel()
	if err == nil {
		_, err = trainedOn(t.Context(), t, c, run.Job{Resume: parts}, run.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	if want, got := metrics(t, whole), metrics(t, parts); !reflect.DeepEqual(want, got) || len(want) < 5 {
		t.Errorf("%d records and, resumed, %d, which differ", len(want), len(got))
	}
}
