package studies

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// routed is a router over experts: their parts of documents, and whether its model masks experts and
// cuts positions.
type routed struct {
	name, experts, trading, expert, meta, agent string
	masked, limited                             bool
	seen                                        string // of the router's environment beside trading
}

// routers choose an expert or mix them, for all stocks or for each, with limits on risk that are
// passed and without. Those whose name is that of their experts train them.
var routers = []routed{
	{"expert", "expert", "actions: weights, weights: {simplex: projection}, risk: {max_exposure: 0.9, max_weight: 0.5}", "sac",
		"segment: 5, risk: {drawdown: {limit: 0.02, window: 12}, cvar: {limit: 0.01, level: 0.8, window: 30}}", "kind: maskable_ppo, n_steps: 20, batch_size: 20, encoder: {kind: timecnn, d_model: 8, n_layers: 1}", true, true, ""},
	{"mixture", "mixture", "actions: weights, risk: {max_exposure: 1}", "sac",
		"segment: 3, choose: mixture, diversity: {usage_window: 4}, risk: {drawdown: {limit: 0.02}, cvar: {limit: 0.01, level: 0.8, window: 30}}", "kind: ppo, n_steps: 20, batch_size: 20, encoder: {kind: mlp, hidden: [8]}", true, true, ""},
	{"orders", "orders", "actions: orders", "maskable_ppo", "segment: 4, risk: {drawdown: {limit: 0.02}}", "kind: maskable_ppo, n_steps: 20, batch_size: 20, encoder: {kind: timecnn, d_model: 8, n_layers: 1}", true, false, ""},
	{"stocks", "expert", "actions: weights, weights: {simplex: projection}, risk: {max_exposure: 0.9, max_weight: 0.5}", "sac",
		"segment: 3, choose: assets, diversity: {kl_coef: 0.1, usage_coef: 0.01}, risk: {drawdown: {limit: 0.02, window: 12}, cvar: {limit: 0.01, level: 0.8, window: 30}}", "kind: maskable_ppo, n_steps: 20, batch_size: 20, encoder: {kind: timecnn, d_model: 8, n_layers: 1}", true, true, ""},
	{"stock orders", "orders", "actions: orders", "maskable_ppo", "segment: 4, choose: assets", "kind: maskable_ppo, n_steps: 20, batch_size: 20, encoder: {kind: timecnn, d_model: 8, n_layers: 1}", false, false, ""},
	{"bare", "orders", "actions: orders", "maskable_ppo", "segment: 1", "kind: ppo, n_steps: 20, batch_size: 20, encoder: {kind: timecnn, d_model: 8, n_layers: 1}", false, false, ""},
}

// TestRouterWhole publishes routers, with limits on risk that are passed and without, each as one model,
// and uses it as any policy is, with every engine there is.
func TestRouterWhole(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	engines := testengines.All(t)
	if n, want := routersWhole(t, routers, engines...), 6*len(engines); n != want {
		t.Errorf("%d publications, want %d", n, want)
	}
}

// TestRouterWholeThatSeesTheAccount publishes a router with limits on risk whose environment observes
// the account anyway (env.state.include_account).
func TestRouterWholeThatSeesTheAccount(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	seen := routers[0]
	seen.seen = "state: {include_account: true}, "
	if n := routersWhole(t, []routed{seen}, portable.New()); n != 1 {
		t.Errorf("%d publications", n)
	}
}

// routersWhole publishes routers with engines, and returns how many models that made.
func routersWhole(t *testing.T, list []routed, engines ...engine.Compiler) (ran int) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const train = "train: {num_envs: 2, total_env_steps: 80, threads: 1, validation: {every_steps: 40}, checkpoint: {every_steps: 40}}\npublish: {observations: 400, allow_ties: true}\n"
	for _, x := range list {
		market := "{kind: trading, window: 10, " + x.trading + `, episode: {kind: random, length: 100}, data: {source: {path: "shipped:market/us5_daily.parquet", adjust: adj_close, adjust_volume: splits},
    assets: [AAPL, IBM, MSFT], split: {train: [2000-03-01, 2007-12-31], valid: [2008-01-04, 2011-06-30], test: [2011-07-01, 2013-03-01]}, features: {prices: relative, volume: log}, normalization: {clip: 5}}}`
		settings := map[string]string{"sac": "hidden: [8], learning_starts: 20, buffer_size: 100, batch_size: 8", "maskable_ppo": "hidden: [8], n_steps: 20, batch_size: 20"}[x.expert]
		expert := write(x.name+"-expert.yaml", "env: "+market+"\nagent: {kind: "+x.expert+", encoder: {kind: mlp, hidden: [8]}, "+settings+"}\n"+train)
		var experts string
		for _, seed := range []string{"1", "2", "3"} {
			to := filepath.Join(dir, x.experts+seed)
			if x.experts == x.name {
				apptest.Succeed(t, "train", expert, "--engine", portable.Name, "-q", "--set", "seed="+seed, "--out", to)
			}
			experts += `{path: "` + filepath.Join(to, publish.BestFile) + `"}, `
		}
		router := write(x.name+".yaml", "env: {kind: meta, "+x.meta+", experts: ["+experts+"], env: "+strings.Replace(market, "window: 10, ", "window: 10, "+x.seen, 1)+"}\nagent: {"+x.agent+", hidden: [8]}\neval: {episodes: 1}\n"+train)
		run := filepath.Join(dir, x.name)
		apptest.Succeed(t, "train", router, "--engine", portable.Name, "-q", "--out", run)
		whole := filepath.Join(run, publish.WholeDir)
		for _, c := range engines {
			engine := c.Name()
			apptest.Says(t, apptest.Succeed(t, "models", "publish", run, "--whole", "--allow-ties", "--engine", engine), "-whole@")
			apptest.Says(t, apptest.Succeed(t, "models", "verify", "--store", filepath.Join(whole, publish.StoreDir), "--engine", engine), "ok")
			m, err := onnx.Load(filepath.Join(whole, publish.BestFile))
			if err != nil {
				t.Fatal(err)
			}
			got, _ := m.Meta("onnxrl.decisions")
			n := regexp.MustCompile(`^(\d+), of which (\d+) with masked experts; positions cut in (\d+) of (\d+) steps(?:; assets left out in (\d+))?$`).FindStringSubmatch(got)
			t.Logf("%s on %s: %s", x.name, engine, got)
			if n == nil || (n[2] != "0") != x.masked || (n[3] != "0") != x.limited || strings.Contains(x.meta, "assets") != (n[5] > "0") {
				t.Errorf("%s on %s: %q", x.name, engine, got)
			}
			ran++
		}
		if x.name == "expert" {
			servesWhole(t, filepath.Join(whole, publish.BestFile))
		}
		for _, target := range []string{filepath.Join(whole, publish.BestFile), whole} {
			apptest.Says(t, apptest.Succeed(t, "evaluate", target, "--engine", portable.Name, "--no-report", "-q"), "Sharpe")
		}
		apptest.Says(t, apptest.Succeed(t, "data", "live", whole, "--engine", portable.Name, "--bars", "shipped:market/us5_daily.parquet", "--from", "2013-02-01", "-q"), `"time":"2013-02-`)
	}
	apptest.Refuse(t, []string{"models", "publish", filepath.Join(dir, "expert1"), "--whole", "--engine", portable.Name}, "env.kind is not meta")
	return ran
}

// servesWhole asks a server for the steps of two sequences in turns, and compares them with what
// the model gives by itself.
func servesWhole(t *testing.T, path string) {
	t.Helper()
	r := apptest.StartServe(t, "--engine", portable.Name, "--model", "whole="+path)
	c := portable.New()
	var local []*served.Policy
	for range 2 {
		p, err := served.Open(t.Context(), path, c, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		local = append(local, p)
	}
	draws, chosen, compared := rng.New(3).Stream(), map[int64]bool{}, 0
	value := []float64{1, 1}
	for step := range 40 {
		for id, p := range local {
			var inputs []string
			value[id] *= 0.9 + 0.19*draws.Float64()
			for _, name := range p.Inputs() {
				if p.Remembers(name) {
					continue
				}
				x := p.Input(name)
				kind, data := "FP32", []float64{}
				for i := range x.Len() {
					v := draws.Float64()
					switch {
					case name == trading.AccountField:
						v = []float64{value[id], float64(14610 + step)}[i]
					case x.DType() == tensor.Uint8:
						kind, v = "UINT8", 1
						x.Bytes()[i] = 1
					}
					if x.DType() == tensor.Float32 {
						x.Float32s()[i] = float32(v)
					}
					data = append(data, v)
				}
				text, err := json.Marshal(map[string]any{"name": name, "shape": x.Shape(), "datatype": kind, "data": data})
				if err != nil {
					t.Fatal(err)
				}
				inputs = append(inputs, string(text))
			}
			if err := p.Run(); err != nil {
				t.Fatal(err)
			}
			p.Advance()
			var answer struct {
				Outputs []struct {
					Name string
					Data []any
				}
			}
			text := r.Want(200, "/v2/models/whole/infer", fmt.Sprintf(`{"inputs":[%s],"parameters":{"sequence_id":%d,"sequence_start":%t}}`, strings.Join(inputs, ","), id+1, step == 0))
			if err := json.Unmarshal([]byte(text), &answer); err != nil {
				t.Fatal(err)
			}
			for _, o := range answer.Outputs {
				want := p.Output(o.Name)
				for i, got := range o.Data {
					same := false
					switch want.DType() {
					case tensor.Float32:
						x, _ := got.(float64)
						same = math.Abs(x-float64(want.Float32s()[i])) <= bake.Tolerance
					case tensor.Int64:
						same = got == float64(want.Int64s()[i])
					case tensor.Bool:
						same = got == want.Bools()[i]
					}
					if !same {
						t.Fatalf("sequence %d, step %d: output %q is %v, want %v", id, step, o.Name, o.Data, want)
					}
					compared++
				}
			}
			chosen[p.Output(bake.ExpertOutput).Int64s()[0]] = true
		}
	}
	// action [4], expert, shares [3], allowed [3], losses [6] and expert_scores [3]
	if want := 2 * 40 * (4 + 1 + 3 + 3 + 6 + 3); compared != want {
		t.Errorf("%d values compared, want %d", compared, want)
	}
	if len(chosen) < 2 {
		t.Errorf("only %v were in charge", chosen)
	}
	if code := r.Stop(); code != 0 {
		t.Errorf("exit status %d\n%s", code, r.Log)
	}
}
