package app

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// shortDemo makes the shipped demo a matter of 40 env steps.
var shortDemo = []string{
	"--engine", portable.Name, "--set", "seed=4", "--set", "train.total_env_steps=40", "--set", "train.num_envs=2", "--set", "agent.n_steps=10", "--set", "train.validation.every_steps=40",
	"--set", "publish={observations: 64, allow_ties: true}", "--set", "agent.encoder={kind: timecnn, d_model: 8, n_layers: 1}",
}

// TestDataLive trains a little, verifies what was published from bars to actions, and trades the
// test range from bars as they arrive: values, holdings and orders are those of the environment of
// the run.
func TestDataLive(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	run := apptest.Trained(t, "demo", shortDemo...)
	store := filepath.Join(run, publish.StoreDir)
	apptest.Says(t, apptest.Succeed(t, "models", "verify", "--store", store, "--engine", portable.Name), "8 decisions", "ok")
	got := apptest.Decoded[struct{ Versions []verifiedDoc }](t, apptest.Succeed(t, "models", "verify", "--store", store, "--engine", portable.Name, "--json")).Versions
	if len(got) == 0 || got[0].Decisions != 8 || !got[0].OK {
		t.Fatalf("verified %+v", got)
	}

	live := []string{"data", "live", run, "--bars", "shipped:market/us5_daily.parquet", "--engine", portable.Name, "--from", "2011-07-01"}
	metrics := filepath.Join(t.TempDir(), "live.prom")
	text := apptest.Succeed(t, append(live, "--metrics", metrics)...)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	end := apptest.Decoded[liveLine](t, lines[len(lines)-1]).Risk
	if end.CVaR95 == nil || end.Drawdown == 0 {
		t.Fatalf("%+v", end)
	}
	apptest.Says(t, apptest.ReadText(t, metrics), fmt.Sprintf("onnxrl_portfolio_drawdown %v\n", end.Drawdown), fmt.Sprintf("onnxrl_portfolio_cvar %v\n", *end.CVaR), fmt.Sprintf("onnxrl_portfolio_cvar95 %v\n", *end.CVaR95))
	if warm := apptest.Succeed(t, append(live, "--warm")...); warm != text {
		t.Error("a state that was published leads to other decisions than the whole history")
	}
	if again := apptest.Succeed(t, append([]string{"data", "live", got[0].Ref, "--store", store}, live[3:]...)...); again != text {
		t.Error("a reference leads to other decisions than the run")
	}

	a, market, ts := apptest.TestRange(t, "demo", run)
	compared, fills, values := 0, 0, []float64(nil)
	for _, line := range lines {
		var l liveLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Value != market.Value() || l.Cash != market.Cash() || l.Positions["IBM"] != market.Positions()[3] || len(l.Fills) != len(market.Fills()) {
			t.Fatalf("%+v, expected the value %v and the cash %v", l, market.Value(), market.Cash())
		}
		values = append(values, l.Value)
		checkLosses(t, l.Time, values, &l.Risk.Drawdown, l.Risk.CVaR, l.Risk.CVaR95)
		for i, x := range market.Fills() {
			if g := l.Fills[i]; g.Shares != x.Shares || g.Price != x.Price || g.Fee != x.Fee {
				t.Fatalf("%s: fill %+v, expected %+v", l.Time, g, x)
			}
			fills++
		}
		if ts.Type == envs.Last {
			break
		}
		if err := a.Observe(0, ts); err != nil {
			t.Fatal(err)
		}
		d, err := a.Decide()
		if err != nil {
			t.Fatal(err)
		}
		for i, symbol := range []string{"AAPL", "FB", "GOOG", "IBM", "MSFT"} {
			if l.Orders[symbol] != orderNames[d.Actions.Int64s()[i]] {
				t.Fatalf("%s: %s is to %s, expected %s", l.Time, symbol, l.Orders[symbol], orderNames[d.Actions.Int64s()[i]])
			}
		}
		if err := market.Step(d.Actions.Reshape(5), ts); err != nil {
			t.Fatal(err)
		}
		compared++
	}
	if compared < 400 || compared != market.Spec().MaxSteps || fills < 40 {
		t.Errorf("%d decisions of %d compared, %d fills", compared, market.Spec().MaxSteps, fills)
	}

	file := filepath.Join(t.TempDir(), "late.csv")
	if err := os.WriteFile(file, []byte("date,symbol,open,high,low,close,adj_close,volume\n2020-01-02,AAPL,1,1,1,1,1,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		args []string
		want string
	}{
		{[]string{"data", "live", filepath.Join(run, "checkpoints"), "--bars", file}, "is no run with a published policy"},
		{[]string{"data", "live", "none", "--store", store, "--bars", file}, "no such artefact"},
		{[]string{"data", "live", run, "--bars", filepath.Join(run, "none.csv")}, "none.csv"},
		{[]string{"data", "live", run, "--bars", file}, "FB"},
		{[]string{"data", "live", run}, "required flag"},
		{append(live[:len(live)-1:len(live)-1], "yesterday"), "--from yesterday: expected a date"},
		{append(live[:len(live)-1:len(live)-1], "2030-01-01"), "the bars do not lead to a decision"},
	}
	for _, k := range cases {
		args := k.args
		if len(args) == 5 || args[2] == "none" {
			args = append(args[:len(args):len(args)], "--engine", portable.Name)
		}
		if r := apptest.Run(t, args...); r.Code == 0 || !strings.Contains(r.Err, k.want) {
			t.Errorf("%v: exit status %d, %s, expected %q", args, r.Code, r.Err, k.want)
		}
	}
	if len(cases) != 7 {
		t.Errorf("%d cases", len(cases))
	}
}

// checkLosses compares what is said of the risk of an account without limits with the values [T] of
// its days so far: the fall from the highest of 30 days, and the mean of the worst twentieth of the
// returns of 250 days, of which there must be 20.
func checkLosses(t *testing.T, at string, values []float64, drawdown, cvar, cvar95 *float64) {
	t.Helper()
	n := len(values)
	if want := 1 - values[n-1]/slices.Max(values[max(n-30, 0):]); drawdown == nil || math.Abs(*drawdown-want) > 1e-12 {
		t.Errorf("%s: the drawdown is %v, expected %v", at, drawdown, want)
	}
	var returns []float64
	for i := max(n-250, 1); i < n; i++ {
		returns = append(returns, values[i]/values[i-1]-1)
	}
	if len(returns) < 20 {
		if cvar != nil || cvar95 != nil {
			t.Errorf("%s: a CVaR of %d returns", at, len(returns))
		}
		return
	}
	slices.Sort(returns)
	want, left := 0.0, float64(len(returns))/20
	for _, r := range returns {
		part := min(left, 1)
		want -= part * r / (float64(len(returns)) / 20)
		left -= part
	}
	if cvar == nil || cvar95 == nil || math.Abs(*cvar-want) > 1e-12 || *cvar95 != *cvar {
		t.Errorf("%s: the CVaR is %v and %v, expected %v", at, cvar, cvar95, want)
	}
}
