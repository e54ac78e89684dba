package app

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// TestDataLive trains a little, verifies what was published from bars to actions, and trades the
// test range from bars as they arrive: values, holdings and orders are those of the environment of
// the run.
func TestDataLive(t *testing.T) {
	t.Parallel()
	run := filepath.Join(t.TempDir(), "run")
	apptest.Succeed(t, "train", "demo", "--engine", portable.Name, "--quiet", "--out", run, "--set", "seed=4", "--set", "train.total_env_steps=40", "--set", "train.num_envs=2", "--set", "agent.n_steps=10", "--set", "train.validation.every_steps=40", "--set", "publish={observations: 64, allow_ties: true}", "--set", "agent.encoder={kind: timecnn, d_model: 8, n_layers: 1}")
	store := filepath.Join(run, publish.StoreDir)
	apptest.Says(t, apptest.Succeed(t, "models", "verify", "--store", store, "--engine", portable.Name), "8 decisions", "ok")
	got := apptest.Decoded[struct{ Versions []verifiedDoc }](t, apptest.Succeed(t, "models", "verify", "--store", store, "--engine", portable.Name, "--json")).Versions
	if len(got) == 0 || got[0].Decisions != 8 || !got[0].OK {
		t.Fatalf("verified %+v", got)
	}

	live := []string{"data", "live", run, "--bars", "shipped:market/us5_daily.parquet", "--engine", portable.Name, "--from", "2011-07-01"}
	text := apptest.Succeed(t, live...)
	if warm := apptest.Succeed(t, append(live, "--warm")...); warm != text {
		t.Error("a state that was published leads to other decisions than the whole history")
	}
	if again := apptest.Succeed(t, append([]string{"data", "live", got[0].Ref, "--store", store}, live[3:]...)...); again != text {
		t.Error("a reference leads to other decisions than the run")
	}

	a, market, ts := apptest.TestRange(t, "demo", run)
	compared, fills := 0, 0
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		var l liveLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Value != market.Value() || l.Cash != market.Cash() || l.Positions["IBM"] != market.Positions()[3] || len(l.Fills) != len(market.Fills()) {
			t.Fatalf("%+v, expected the value %v and the cash %v", l, market.Value(), market.Cash())
		}
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
