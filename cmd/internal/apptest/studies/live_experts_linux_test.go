package studies

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// TestLiveExperts trades as a service with a router and its experts as one model: experts whose
// drawdown is beyond the limit are masked and the positions of those with too bad days are cut, as
// onnxrl data live does it, whose model is checked against the environment. Events name the
// expert, and the service goes on over a kill, byte for byte.
func TestLiveExperts(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	const train = "train: {num_envs: 2, total_env_steps: 80, threads: 1, validation: {every_steps: 40}, checkpoint: {every_steps: 40}}\npublish: {observations: 128, allow_ties: true}\n"
	const market = `{kind: trading, window: 10, actions: weights, weights: {simplex: projection}, risk: {max_exposure: 0.9, max_weight: 0.5}, episode: {kind: random, length: 100}, data: {source: {path: "shipped:market/us5_daily.parquet", adjust: adj_close, adjust_volume: splits},
    assets: [AAPL, IBM, MSFT], split: {train: [2000-03-01, 2007-12-31], valid: [2008-01-04, 2011-06-30], test: [2011-07-01, 2013-03-01]}, features: {prices: relative, volume: log}, normalization: {clip: 5}}}`
	expert := apptest.Write(t, "expert.yaml", "env: "+market+"\nagent: {kind: sac, encoder: {kind: mlp, hidden: [8]}, hidden: [8], learning_starts: 20, buffer_size: 100, batch_size: 8}\n"+train)
	var experts []string
	for _, seed := range []string{"1", "2", "3"} {
		to := filepath.Join(dir, "expert"+seed)
		apptest.Succeed(t, "train", expert, "--engine", portable.Name, "-q", "--set", "seed="+seed, "--out", to)
		experts = append(experts, `{path: "`+filepath.Join(to, publish.BestFile)+`"}`)
	}
	router := apptest.Write(t, "router.yaml", "env: {kind: meta, segment: 1, risk: {drawdown: {limit: 0.02, window: 12}, cvar: {limit: 0.01, level: 0.8, window: 30}}, experts: ["+strings.Join(experts, ", ")+"], env: "+market+"}\nagent: {kind: maskable_ppo, n_steps: 20, batch_size: 20, encoder: {kind: timecnn, d_model: 8, n_layers: 1}, hidden: [8]}\neval: {episodes: 1}\n"+train)
	run := filepath.Join(dir, "router")
	apptest.Succeed(t, "train", router, "--engine", portable.Name, "-q", "--out", run)
	apptest.Succeed(t, "models", "publish", run, "--whole", "--allow-ties", "--engine", portable.Name, "-q")
	whole, bars := filepath.Join(run, publish.WholeDir), filepath.Join(dir, "bars.jsonl")
	apptest.Succeed(t, "data", "feed", whole, "-q", "--bars", "shipped:market/us5_daily.parquet", "--to", bars)

	document := func(name string) string {
		return apptest.Write(t, "live.yaml", "name: demo\npolicy: "+whole+"\nfrom: "+liveFrom+"\nsnapshot: 40\nstate: "+filepath.Join(dir, name+"-state")+"\nsource: {kind: file, path: "+bars+"}\nsink: {kind: file, path: "+filepath.Join(dir, name+"-out")+"}\n")
	}
	doc := document("whole")
	began := time.Now()
	apptest.Succeed(t, "live", doc, "-q", "--engine", portable.Name)
	k := killing{t: t, took: time.Since(began), moments: rng.New(5).Stream()}
	got := liveRecords(t, filepath.Join(dir, "whole-out"))
	lines := strings.Split(strings.TrimSpace(apptest.Succeed(t, "data", "live", whole, "--engine", portable.Name, "--from", liveFrom, "--bars", "shipped:market/us5_daily.parquet", "-q")), "\n")
	positions, signals := strings.Split(strings.TrimSpace(got[livetrade.Positions]), "\n"), strings.Split(strings.TrimSpace(got[livetrade.Signals]), "\n")
	if len(lines) < 500 || len(positions) != len(lines) || len(signals) != len(lines) {
		t.Fatalf("%d times, %d positions, %d signals", len(lines), len(positions), len(signals))
	}
	type event struct {
		Seq              int
		Event, Expert    string
		On               bool
		Value, Threshold float64
	}
	events := map[int][]event{}
	for _, line := range strings.Split(strings.TrimSpace(got[livetrade.RiskEvents]), "\n") {
		e := apptest.Decoded[event](t, line)
		events[e.Seq] = append(events[e.Seq], e)
	}
	masked, cut, told, without, charged := map[string]bool{}, map[string]bool{}, map[string]int{}, 0, map[string]int{}
	for i := range lines {
		want, p := apptest.Decoded[struct{ Value, Cash float64 }](t, lines[i]), apptest.Decoded[struct{ Value, Cash float64 }](t, positions[i])
		if want != p {
			t.Fatalf("%s, expected %s", positions[i], lines[i])
		}
		for _, e := range events[i+1] {
			limit, on := 0.02, masked
			switch e.Event {
			case "expert_masked":
			case "expert_cut":
				limit, on = 0.01, cut
			default:
				continue
			}
			if !e.On {
				limit /= 2
			}
			// Of all that are beyond the limit one may be chosen, and another as soon as it has
			// lost less.
			if e.On == on[e.Expert] || e.Threshold != limit || e.On && e.Value <= limit/2 {
				t.Fatalf("decision %d: %+v", i+1, e)
			}
			on[e.Expert] = e.On
			told[e.Event]++
		}
		// A segment is one step: who is in charge was chosen now.
		s := apptest.Decoded[struct{ Expert string }](t, signals[i])
		if masked[s.Expert] {
			t.Fatalf("decision %d: %s is in charge and masked", i+1, s.Expert)
		}
		charged[s.Expert]++
		for _, m := range []string{"expert_0", "expert_1", "expert_2"} {
			if masked[m] {
				without++
			}
		}
	}
	t.Logf("%v events, %d masks in %d decisions, in charge were %v", told, without, len(lines), charged)
	if told["expert_masked"] < 4 || told["expert_cut"] < 2 || without == 0 || charged[""] != 0 {
		t.Errorf("%v events, %d masks, in charge were %v", told, without, charged)
	}
	apptest.Says(t, apptest.Succeed(t, "live", doc, "--replay", "--engine", portable.Name), "byte for byte")

	killed := document("killed")
	for k.left = 1; k.left > 0; {
		for _, part := range []string{"-state", "-out"} {
			if err := os.RemoveAll(filepath.Join(dir, "killed"+part)); err != nil {
				t.Fatal(err)
			}
		}
		k.run(func() []string { return []string{"live", killed, "-q", "--engine", portable.Name} })
		if again := liveRecords(t, filepath.Join(dir, "killed-out")); again != got {
			t.Fatal("a service that was killed publishes something else")
		}
	}
}
