package training

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/assess"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
	"github.com/onnxrl/onnxrl/envs/risk"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestWeightsAndLimits trains agents whose actions are target weights, or that trade within limits
// on risk, publishes, verifies and evaluates them, resumes their runs, and trades from bars as they
// arrive: to the bit what a back-test of the published model has.
func TestWeightsAndLimits(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	const ppo = "agent={kind: ppo, n_steps: 20, batch_size: 20, encoder: {kind: timecnn, d_model: 8, n_layers: 1}}"
	compared := 0
	agentSets := map[string][]string{
		"ppo within limits":             {"env.actions=weights", ppo, "env.reward=differential_sharpe", "env.risk={drawdown: {limit: 0.03, then: flatten}, cvar: {limit: 0.008, window: 60}, max_exposure: 0.8, max_weight: 0.2, max_turnover: 0.1}"},
		"ppo with orders within limits": {ppo, "env.risk={drawdown: {limit: 0.03}, cvar: {limit: 0.008, window: 60}, max_exposure: 0.8, max_weight: 0.25, max_turnover: 0.1}"},
		"sac": {"env.actions=weights", "agent={kind: sac, hidden: [8], batch_size: 16, learning_starts: 40, buffer_size: 200, encoder: {kind: timecnn, d_model: 8, n_layers: 1}}",
			"env.weights={simplex: projection, max_turnover: 0.5}", "env.reward=drawdown", "env.reward_params={penalty: 0.5, turnover: 0.001}", "env.execution.lot=1", "env.costs.minimum=0.1"},
	}
	for kind, sets := range sorted.All(agentSets) {
		t.Run(kind, func(t *testing.T) {
			run := filepath.Join(t.TempDir(), "run")
			args := []string{"train", "demo", "--engine", portable.Name, "-q", "--out", run}
			limited, weighs := strings.Contains(kind, "limits"), sets[0] != ppo
			sets = append([]string{"env.mask=market", "wrappers.normalize.reward=false", "train.total_env_steps=160", "seed=4", "train.threads=1", "train.num_envs=2", "train.validation.every_steps=80", "train.checkpoint={every_steps: 80, keep_last: 9}", "publish={observations: 64, allow_ties: true}"}, sets...)
			for _, s := range sets {
				args = append(args, "--set", s)
			}
			apptest.Succeed(t, args...)
			apptest.Says(t, apptest.Succeed(t, "models", "verify", "--store", filepath.Join(run, publish.StoreDir), "--engine", portable.Name), "8 decisions", "ok")
			evaluated := apptest.Succeed(t, "evaluate", run, "--engine", portable.Name, "-q", "--set", "eval.bootstrap.samples=50")
			apptest.Says(t, evaluated, strings.ToUpper(kind[:3]), "1 bar late", "mean of 5 random", "MA10")

			resumed := filepath.Join(t.TempDir(), "run")
			for _, name := range []string{"config.yaml", "lineage.json", "sources.json", "metrics.jsonl", filepath.Join("checkpoints", "ckpt-000000080")} {
				apptest.Copy(t, filepath.Join(run, name), filepath.Join(resumed, name))
			}
			apptest.Succeed(t, "train", "--resume", resumed, "--engine", portable.Name, "-q")
			apptest.SameResult(t, "resumed", apptest.ResultOf(t, resumed), apptest.ResultOf(t, run))

			live := []string{"data", "live", run, "--bars", "shipped:market/us5_daily.parquet", "--engine", portable.Name, "--from", "2011-07-01"}
			text := apptest.Succeed(t, live...)
			lines := strings.Split(strings.TrimSpace(text), "\n")
			held := filepath.Join(t.TempDir(), "line.json")
			if err := os.WriteFile(held, []byte(lines[99]), 0o600); err != nil {
				t.Fatal(err)
			}
			if rest := apptest.Succeed(t, append(live[:7:7], "--positions", held)...); rest != strings.Join(lines[100:], "\n")+"\n" {
				t.Error("what goes on after a line comes to other decisions")
			}
			if weighs {
				if err := os.WriteFile(held, []byte(strings.Replace(lines[99], `"FB":0`, `"FB":7`, -1)), 0o600); err != nil {
					t.Fatal(err)
				}
				apptest.Refuse(t, append(live[:7:7], "--positions", held), "targets:", "sum to")
			}

			record := backtested(t, run)
			if len(lines) != len(record.Value) {
				t.Fatalf("%d lines for %d values", len(lines), len(record.Value))
			}
			bought, bound, deepest := 0, map[string]int{}, 0.0
			for i, text := range lines {
				var l decision
				if err := json.Unmarshal([]byte(text), &l); err != nil {
					t.Fatal(err)
				}
				sum := 0.0
				for _, w := range sorted.All(l.Targets) {
					sum += w
				}
				if l.Value != record.Value[i] || l.Cash != record.Cash[i] || l.Positions["IBM"] != record.Positions[5*i+3] || weighs && (len(l.Orders) != 0 || len(l.Targets) != 6 || math.Abs(sum-1) > 1e-6) || !weighs && len(l.Orders) != 5 || l.Risk == nil {
					t.Fatalf("%s, expected the value %v and the cash %v", text, record.Value[i], record.Cash[i])
				}
				compared++
				bought += len(l.Fills)
				if limited {
					for _, name := range l.Risk.Bound {
						bound[name]++
					}
					deepest = max(deepest, l.Risk.Drawdown)
				}
			}
			if bought != len(record.Trades) || bought < 100 {
				t.Errorf("%d fills, expected %d", bought, len(record.Trades))
			}
			if limited {
				beyond := "nothing is bought"
				if strings.Contains(strings.Join(sets, " "), "then: flatten") {
					beyond = "everything is sold"
				}
				checkLimits(t, run, live, evaluated, beyond, record, bound, deepest)
			}
		})
	}
	if compared < 400*len(agentSets) {
		t.Errorf("%d times were compared", compared)
	}
}

// checkLimits compares what limits on risk did in trading from bars, with the deepest drawdown of
// their window, with the back-test's record, the report, the metrics and the alerts, and without.
// The alert on a drawdown says what happens beyond its limit.
func checkLimits(t *testing.T, run string, live []string, evaluated, beyond string, record *backtest.Record, bound map[string]int, deepest float64) {
	t.Helper()
	metrics := filepath.Join(t.TempDir(), "risk.prom")
	told := apptest.Run(t, append(live, "--metrics", metrics)...)
	text, err := os.ReadFile(metrics)
	if told.Code != 0 || err != nil {
		t.Fatal(told.Err, err)
	}
	for i, n := range record.BoundBars() {
		name := risk.BoundNames[i]
		if bound[name] != n {
			t.Errorf("%s has bound at %d bars, expected %d", name, bound[name], n)
		}
		if 1<<i != risk.Unsold {
			if n == 0 {
				t.Errorf("%s never binds", name)
			}
			apptest.Says(t, evaluated, fmt.Sprintf("%s at %d", name, n))
		}
		apptest.Says(t, string(text), fmt.Sprintf("onnxrl_portfolio_limit_bars_total{limit=%q} %d\n", name, n))
	}
	var last decision
	lines := strings.Split(strings.TrimSpace(told.Out), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	for name, want := range sorted.All(map[string]float64{"value": last.Value, "drawdown": last.Risk.Drawdown}) {
		apptest.Says(t, string(text), fmt.Sprintf("onnxrl_portfolio_%s %s\n", name, strconv.FormatFloat(want, 'g', -1, 64)))
	}
	apptest.Says(t, told.Err, "beyond the limit of 3 %: "+beyond, "back at 1.5 %", "beyond the limit of 0.8 %: exposure is cut")
	free := apptest.Succeed(t, append(live, "--set", "env.risk={drawdown: {limit: 0.999}}")...)
	without := 0.0
	for line := range strings.SplitSeq(strings.TrimSpace(free), "\n") {
		var l decision
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		without = max(without, l.Risk.Drawdown)
	}
	if !(deepest > 0.03 && deepest < 0.05 && without > deepest+0.02) {
		t.Errorf("the deepest drawdown of %s is %g with limits and %g without", run, deepest, without)
	}
}

// backtested lets the published model of a run trade its test split.
func backtested(t *testing.T, run string) *backtest.Record {
	t.Helper()
	cfg, _, err := experiment.Load(filepath.Join(run, "config.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, f, _, err := kinds.All().Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	spec, err := assess.Spec(f.(trading.Opened), envs.Test)
	if err != nil {
		t.Fatal(err)
	}
	p, err := assess.NewPolicy("model", publish.ModelFile(t.Context(), filepath.Join(run, publish.BestFile), portable.New(), f, envs.Test), agents.Greedy, spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	o := f.(trading.Opened)
	r, err := backtest.Run(t.Context(), o.Source(), o.Data().Splits[envs.Test], p, rng.New(1))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
