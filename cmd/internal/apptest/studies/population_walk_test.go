package studies

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/population"
	"github.com/onnxrl/onnxrl/agents/pretrain"
	"github.com/onnxrl/onnxrl/agents/walkforward"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// wholeExpert and wholePopulation are all parts of the system in small: a TimesNet that is
// pretrained, adapters and skills, a router, and two ways of training walked forward.
const (
	wholeExpert = `seed: 1
env:
  kind: trading
  window: 6
  actions: weights
  episode: {kind: random, length: 40}
  risk: {max_exposure: 1}
  data:
    synthetic: {kind: noise, seed: 3, bars: 420, assets: 3}
    features: {prices: relative, volume: log, indicators: {rsi: [5]}}
    split: {train: [2000-01-03, 2000-10-31], valid: [2000-11-01, 2001-02-15], test: [2001-02-16, 2001-08-10]}
agent: {kind: sac, encoder: {kind: mlp, hidden: [4]}, hidden: [8], learning_starts: 10, buffer_size: 100, batch_size: 8}
train: {num_envs: 2, total_env_steps: 80, threads: 1}
publish: {observations: 64, allow_ties: true}
eval: {bootstrap: {samples: 50}}
`
	wholePopulation = `pretrain:
  stride: 5
  fit:
    network: {encoder: {kind: timesnet, d_model: 4, d_ff: 4, n_layers: 1, n_kernels: 2, top_k: 2, project: 4}, outputs: {volatility: 1, returns: 5}}
    loss: [{output: volatility, kind: mse}, {output: returns, kind: mse, weight: 100}]
    epochs: 1
  router: true
experts:
  base: expert.yaml
  set:
    agent.lora: {rank: 2, target: ["*project*"]}
    wrappers.skill: {dim: 4, fixed: 0}
    agent.diversity: {kind: diayn, features: [action], hidden: [8]}
  population: 2
  interval_steps: 40
  generations: 2
  strategy: {kind: mf_pbt, variant: owner}
  diversity: {threshold: 1, rest: 1}
  probe: 16
  space: {agent.learning_rate: {kind: loguniform, low: 1.0e-4, high: 1.0e-2}}
router:
  interval_steps: 16
  every: 2
  experiment:
    env: {kind: meta, segment: 5, diversity: {kl_coef: 0.1, usage_coef: 0.01}, risk: {drawdown: {limit: 0.15}, cvar: {limit: 0.05}}}
    agent: {kind: maskable_ppo, n_steps: 8, batch_size: 8, n_epochs: 1, hidden: [8]}
    train: {num_envs: 2, total_env_steps: 80, threads: 1}
    publish: {observations: 64, allow_ties: true}
walkforward:
  scheme: {kind: expanding, train: 8m, valid: 2m, test: 4m, purge: 2, embargo: 1}
  seeds: [3]
  variants:
    one agent:
      wrappers.skill: {dim: 0}
      agent.diversity.kind: none
      experts.strategy: {kind: random_search}
      experts.diversity.threshold: 0
      router.every: 0
`
)

// TestPopulationWalkedForward: one command pretrains, trains experts and router, publishes them as
// one model and judges the population out of sample beside a single agent, against what was wanted
// of it; told again it trains nothing, and what was interrupted goes on.
func TestPopulationWalkedForward(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	from, out := t.TempDir(), filepath.Join(t.TempDir(), "population")
	for name, text := range sorted.All(map[string]string{"expert.yaml": wholeExpert, "population.yaml": wholePopulation}) {
		if err := os.WriteFile(filepath.Join(from, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	doc := filepath.Join(from, "population.yaml")
	plan := apptest.Succeed(t, "walkforward", doc, "--engine", portable.Name, "--set", "env.data.synthetic.bars=430", "--plan", "--out", out+"-plan")
	apptest.Says(t, plan, "base: 2 runs of 176 env steps", "one agent: 2 runs of 160 env steps")

	text := apptest.Succeed(t, "train", "population", doc, "--engine", portable.Name, "-q", "--out", out)
	apptest.Says(t, text, "router, turn 1 of 1", "one agent", "mean action pairwise distance of the published experts", "drawdown of at most 15 %", "annual return above that of equal-weight buy-and-hold", "compared with")
	if _, err := os.Stat(filepath.Join(out, "pretrain", pretrain.EncoderFile)); err != nil {
		t.Error(err)
	}
	whole := filepath.Join(out, "router", "generation-0000", "member-000", "whole")
	apptest.Says(t, apptest.Succeed(t, "evaluate", filepath.Join(whole, "best.onnx"), "--engine", portable.Name, "--no-report", "-q"), "equal-weight buy-and-hold", " trials")
	apptest.Says(t, apptest.Succeed(t, "models", "verify", "--store", filepath.Join(whole, "artifacts"), "--engine", portable.Name), "ok")
	apptest.Says(t, apptest.Succeed(t, "evolve", "tree", filepath.Join(out, "experts")), "MAPD")
	apptest.Says(t, apptest.Succeed(t, "evolve", "tree", filepath.Join(out, "router")), "1 of 1 generations")
	apptest.Refuse(t, []string{"train", "population", doc, "--out", out}, "holds a population already")
	apptest.Refuse(t, []string{"train", "population"}, "the document of a population is needed")
	apptest.Refuse(t, []string{"train", "population", "demo", "--out", out + "-2"}, "it has no experts")
	r := apptest.Decode[struct {
		population.Summary
		WalkForward *walkforward.Report `json:"walkforward"`
	}](t, apptest.Succeed(t, "train", "population", "--resume", out, "--engine", portable.Name, "-q", "--json"))
	w := r.WalkForward
	if w == nil || !w.Summary.Complete || len(w.Summary.Folds) != 4 || len(r.Policies) != 2 || r.Trials < 2 {
		t.Fatalf("%+v", r)
	}
	for _, fold := range w.Summary.Folds {
		s := fold.Seeds[0]
		single := fold.Variant == "one agent"
		// Without a threshold nobody restarts: a trial for each expert.
		if d := float64(s.MAPD); !(d > 0 && d <= 1) || s.Trials < 2 || single && s.Trials != 2 || s.Seed != 3 || single != (s.EnvSteps == 160) {
			t.Errorf("%s %s: %+v", fold.Fold, fold.Variant, s)
		}
	}
	if n := len(w.Summary.Targets); n != 8 {
		t.Errorf("%d targets, expected 4 for each variant: %+v", n, w.Summary.Targets)
	}
	if b := w.Summary.Before; len(b) != 1 || b[0].Variant != "one agent" || b[0].To != walkforward.Base || !(b[0].Sharpe.Low <= b[0].Sharpe.High) {
		t.Errorf("%+v", b)
	}
	if want := "within populations"; !strings.Contains(w.Summary.Counted, want) {
		t.Errorf("trials: %q", w.Summary.Counted)
	}
	// Populations of a fold have one encoder.
	if found, err := filepath.Glob(filepath.Join(out, "walkforward", "pretrained", "*", pretrain.EncoderFile)); err != nil || len(found) != 2 {
		t.Errorf("%q, %v", found, err)
	}

	for edit, says := range sorted.All(map[string]string{
		"pretrain.horizon=1":                                 "pretrain.horizon: base: is 1, expected at least 2",
		"pretrain.fit.network.outputs={sharpe: 1}":           `unknown output "sharpe", expected one of return, returns, volatility`,
		"pretrain.fit.network.outputs={returns: 3}":          "3 values, expected",
		"pretrain.fit.data.path=x.csv":                       "follows from the environment",
		"pretrain={router: true}":                            "pretrain.router: base: is true, and there is nothing to pretrain",
		"router.every=-1":                                    "router.every",
		"env.kind=cartpole":                                  `unknown key "data"`,
		"walkforward.ensemble.by=mean":                       "one seed makes no ensemble",
		"walkforward.warm_start=last":                        "a population begins every fold from nothing",
		"walkforward.variants={x: {router.experts: 3}}":      "unknown key",
		"walkforward.scheme.kind=combinatorial":              "belong to the kinds expanding and rolling",
		`walkforward.variants={x: {"agent.no_such_key": 1}}`: "no_such_key",
	}) {
		// Some show where in a file.
		if r := apptest.Run(t, "walkforward", doc, "--engine", portable.Name, "-q", "--set", edit, "--out", out+"-refused"); r.Code == 0 || !strings.Contains(r.Err, says) {
			t.Errorf("%s: status %d, expected an error that says %q:\n%s", edit, r.Code, says, r.Err)
		}
	}
	if _, err := os.Stat(out + "-refused"); err == nil {
		t.Error("what was refused made a folder")
	}
}
