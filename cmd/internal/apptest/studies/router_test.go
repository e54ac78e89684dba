package studies

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestRouter trains two experts on target weights and a router that chooses between them, which is
// published, verified, evaluated and resumed to the same bits.
func TestRouter(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	const market = `{kind: trading, window: 10, actions: weights, episode: {kind: random, length: 100}, risk: {max_exposure: 1}, data: {source: {path: "shipped:market/us5_daily.parquet", adjust: adj_close, adjust_volume: splits},
    assets: [AAPL, IBM, MSFT], split: {train: [2008-01-02, 2009-12-31], valid: [2010-01-04, 2010-06-30], test: [2010-07-01, 2010-12-31]}, features: {prices: relative, volume: log}, normalization: {clip: 5}}}`
	const train = "train: {num_envs: 2, total_env_steps: 80, threads: 1, validation: {every_steps: 40}, checkpoint: {every_steps: 40, keep_last: 9}}\npublish: {observations: 64, allow_ties: true}\n"
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	expert := write("expert.yaml", "env: "+market+"\nwrappers: {skill: {dim: 4, fixed: 0}}\nagent: {kind: sac, diversity: {kind: diayn, features: [action]}, encoder: {kind: mlp, hidden: [8]}, hidden: [8], learning_starts: 20, buffer_size: 100, batch_size: 8}\n"+train)
	for _, seed := range []string{"1", "2"} {
		apptest.Succeed(t, "train", expert, "--engine", portable.Name, "-q", "--set", "seed="+seed, "--set", "wrappers.skill.fixed="+seed, "--out", filepath.Join(dir, seed))
	}
	// The skill that back-tests have is inside of what is published.
	m, err := onnx.Load(filepath.Join(dir, "1", "best.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range m.Graph.Input {
		if in.Name == wrap.SkillField {
			t.Error("there is an input for the skill")
		}
	}
	apptest.Succeed(t, "evaluate", filepath.Join(dir, "1"), "--engine", portable.Name, "--no-report", "-q")
	apptest.Refuse(t, []string{"train", expert, "--set", "wrappers.skill.fixed=null", "-q", "--out", filepath.Join(dir, "x")}, "wrappers.skill.fixed: required in the trading environment")
	router := write("router.yaml", `env:
  kind: meta
  segment: 5
  diversity: {kl_coef: 0.1, kl_coef_max: 0.2, usage_coef: 0.01}
  risk: {drawdown: {limit: 0.15}, cvar: {limit: 0.05}}
  experts: [{path: "`+filepath.Join(dir, "1", "best.onnx")+`"}, {path: "`+filepath.Join(dir, "2", "best.onnx")+`"}]
  env: `+market+"\nagent: {kind: maskable_ppo, encoder: {kind: timecnn, d_model: 8, n_layers: 1}, hidden: [8], n_steps: 20, batch_size: 20}\neval: {episodes: 2}\n"+train)
	// Which stocks one expert may hold.
	stocks := write("stocks.yaml", `env: {kind: meta, segment: 5, choose: assets, experts: [{path: "`+filepath.Join(dir, "1", "best.onnx")+`"}], risk: {cvar: {limit: 0.05}}, env: `+market+"}\nagent: {kind: maskable_ppo, encoder: {kind: timecnn, d_model: 8, n_layers: 1}, hidden: [8], n_steps: 20, batch_size: 20}\neval: {episodes: 2}\n"+train)
	for _, path := range []string{router, stocks} {
		run := strings.TrimSuffix(path, ".yaml")
		apptest.Succeed(t, "train", path, "--engine", portable.Name, "-q", "--out", run)
		apptest.Says(t, apptest.Succeed(t, "models", "verify", "--store", filepath.Join(run, publish.StoreDir), "--engine", portable.Name), "ok")
		apptest.Says(t, apptest.Succeed(t, "evaluate", run, "--engine", portable.Name, "-q"), "mean reward")

		resumed := run + "-resumed"
		for _, name := range []string{"config.yaml", "lineage.json", "sources.json", "metrics.jsonl", filepath.Join("checkpoints", "ckpt-000000040")} {
			apptest.Copy(t, filepath.Join(run, name), filepath.Join(resumed, name))
		}
		apptest.Succeed(t, "train", "--resume", resumed, "--engine", portable.Name, "-q")
		apptest.SameResult(t, "resumed", apptest.ResultOf(t, resumed), apptest.ResultOf(t, run))
	}
	apptest.Says(t, apptest.Succeed(t, "models", "publish", filepath.Join(dir, "stocks"), "--whole", "--allow-ties", "--engine", portable.Name), "-whole@")
	apptest.Says(t, apptest.Succeed(t, "evaluate", filepath.Join(dir, "stocks", publish.WholeDir, publish.BestFile), "--engine", portable.Name, "--no-report", "-q"), "Sharpe")

	for set, says := range sorted.All(map[string]string{
		"env.segment=0":                "env.segment: must be at least 1",
		"env.choose=stocks":            "env.choose: must be one of expert, mixture, assets",
		"env.diversity={kl_coef: 0.1}": "env.diversity: pays for a choice between experts, and there is one",
		"env.risk.drawdown.limit=0.1":  "env.risk.drawdown: masks experts, and there is one",
		"env.env={kind: cartpole}":     `meta: expert 0: ` + filepath.Join(dir, "1", "best.onnx"),
		"env.env.actions=orders":       `meta: expert 0: ` + filepath.Join(dir, "1", "best.onnx"),
	}) {
		apptest.Refuse(t, []string{"train", stocks, "--set", set, "-q", "--out", filepath.Join(dir, "x")}, says)
	}
	apptest.Refuse(t, []string{"train", router, "--set", "env.experts=[{path: none.onnx}, {path: none.onnx}]", "-q", "--out", filepath.Join(dir, "x")}, "env.experts[0].path", filepath.Join("apptest", "studies", "none.onnx"))
	apptest.Refuse(t, []string{"train", router, "--set", "env.env.window=9", "-q", "--out", filepath.Join(dir, "x")}, "meta: expert 0", "window")
	apptest.Refuse(t, []string{"train", router, "--set", "env.env={}", "-q", "--out", filepath.Join(dir, "x")}, "env.env")
}
