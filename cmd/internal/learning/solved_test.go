package learning

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/envs/market/synthetic"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestA2CLearnsTheLeadingIndicator trains the shipped experiment as it is. Four fifths of the
// optimum is what is demanded.
func TestA2CLearnsTheLeadingIndicator(t *testing.T) {
	longtest.Slow(t)
	tasks, err := Select([]string{"synthetic_leading"})
	if err != nil || len(tasks) != 1 {
		t.Fatal(tasks, err)
	}
	learnt := 0
	r, err := Run(t.Context(), tasks[0], 42, Options{Engine: testengines.Fastest(t), Each: func(train.Progress) { learnt++ }})
	if err != nil {
		t.Fatal(err)
	}
	o := r.Optimum
	t.Logf("%+v, %+v", r, o)
	if !r.Reached || r.Score < 0.8 || r.Score != o.Agent/o.Optimum || o.Optimum <= 0.0005 || r.EnvSteps > 200_000 || o.Bars < 800 || learnt != 1250 || o.Hold > o.Optimum/2 {
		t.Errorf("%d learner steps: %+v, %+v", learnt, r, o)
	}
}

// TestDefaultsTrain trains every market with the shipped defaults for a moment.
func TestDefaultsTrain(t *testing.T) {
	longtest.Nightly(t)
	tasks, err := Select([]string{"synthetic_*"})
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for _, task := range tasks {
		if task.Document != "synthetic_market" {
			continue
		}
		sets := []string{"train.total_env_steps=160", "train.validation.every_steps=0"}
		r, err := Run(t.Context(), task, 42, Options{Engine: testengines.Fastest(t), Threads: 1, Sets: sets})
		if err != nil {
			t.Fatal(err)
		}
		o := r.Optimum
		t.Logf("%s: %.3f, %+v", task.Name, r.Score, *o)
		// The return that can be earned is above the one that needs no learning.
		if o.Bars < 4000 || o.Optimum < 5e-5 || o.Hold > o.Optimum/2 || r.Score != o.Agent/o.Optimum {
			t.Errorf("%s: %+v, %+v", task.Name, r, o)
		}
		known[task.Name] = true
	}
	for _, k := range synthetic.Kinds() {
		if name := "synthetic_" + k.Name; known[name] == (k.Name == "noise") {
			t.Errorf("%s is a task: %v", name, known[name])
		}
	}
}

// TestDefaultsLearn trains one market with the shipped defaults for part of the row of bench learn.
func TestDefaultsLearn(t *testing.T) {
	longtest.Nightly(t)
	tasks, err := Select([]string{"synthetic_leading_volume"})
	if err != nil || len(tasks) != 1 {
		t.Fatal(tasks, err)
	}
	r, err := Run(t.Context(), tasks[0], 42, Options{Engine: testengines.Fastest(t), Threads: 1, Sets: []string{"train.total_env_steps=150000"}})
	if err != nil {
		t.Fatal(err)
	}
	if r.Score < 0.5 || r.Score != r.Optimum.Agent/r.Optimum.Optimum {
		t.Errorf("%v of the optimum: %+v", r.Score, *r.Optimum)
	}
}

// TestSolvedRefuses what it does not know the optimum of.
func TestSolvedRefuses(t *testing.T) {
	e, tried := portable.New(), 0
	for set, want := range sorted.All(map[string]string{
		"env.data.synthetic={kind: noise, bars: 4000}":                        "env.data.synthetic",
		"env.data.synthetic={kind: leading_indicator, bars: 4000, assets: 2}": "one asset",
		"env.execution.fill=next_close":                                       "next open",
		"env.data.features.extra=[]":                                          "signal is not among the features",
		"env.data.synthetic={kind: liquidation, bars: 4000}":                  "actions: weights",
		"env.data.synthetic={kind: trend}":                                    `unknown kind "trend"`,
		"env.data={source: {path: 'shipped:market/us5_daily.parquet'}, split: {train: [2000-03-01, 2009-12-31]}}": "not synthetic",
	}) {
		cfg, _, err := experiment.Load("synthetic_leading", []string{set})
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(set, "noise") || strings.Contains(set, "liquidation") { // without a signal
			if cfg, _, err = experiment.Load("synthetic_leading", []string{set, "env.data.features.extra=[]"}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := solved(t.Context(), cfg, Options{Engine: e}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", set, err)
		}
		tried++
	}
	if tried != 7 {
		t.Errorf("%d documents tried", tried)
	}
	cfg, _, err := experiment.Load("synthetic_leading", []string{"train.total_env_steps=1600"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := solved(ctx, cfg, Options{Engine: e, Each: func(train.Progress) { cancel() }}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
