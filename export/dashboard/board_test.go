package dashboard

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/metrics"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// course is what a run of a test logs: a validation every fifth line.
func course(seed, n int) []map[string]float64 {
	lines := make([]map[string]float64, n)
	for i := range lines {
		x := float64(i)
		lines[i] = map[string]float64{"train/loss": 1/(1+x) + float64(seed), "rollout/ep_rew_mean": x * float64(seed), "time/fps": 1000 + x}
		if i%5 == 0 {
			lines[i]["eval/sharpe"] = math.Sin(x) * float64(seed)
		}
	}
	return lines
}

// TestOverview compares the table of runs with their files.
func TestOverview(t *testing.T) {
	root := t.TempDir()
	for seed := range 3 {
		trained(t, filepath.Join(root, "a", "seed-"+string(rune('1'+seed))), seed+1, "0.001", course(seed+1, 40))
	}
	trained(t, filepath.Join(root, "other"), 1, "0.01", course(9, 7))
	write(t, filepath.Join(root, "a", "seed-2", "finished.json"), `{"metric":"sharpe","best_env_steps":50,"validation":{"sharpe":1.25},"validation_last":{"sharpe":0.5},"seconds":12}`)
	b := watching(t, Options{Paths: []string{root}, Version: "1"})
	o := b.Overview(0)
	if len(o.Items) != 4 || len(o.Runs) != 4 || o.Problem != "" || o.Program != "1" || o.Now != began+100 || o.Memory == 0 {
		t.Fatalf("%+v", o)
	}
	compared := 0
	for _, r := range o.Runs {
		records, err := metrics.ReadJSONLines(filepath.Join(r.path, metricsFile))
		if err != nil {
			t.Fatal(err)
		}
		last := map[string]float64{}
		points := int64(0)
		for _, rec := range records {
			for tag, v := range sorted.All(rec.Values) {
				last[tag] = v
				points++
			}
		}
		end := records[len(records)-1]
		if r.Steps != end.Step || r.Updated != float64(end.Time.Unix()) || r.Began != began || r.Points != points || r.Total != 1000 || len(r.Tags) != len(last) {
			t.Errorf("%s: %+v", r.ID, r)
		}
		for tag, got := range sorted.All(map[string]*float64{"eval/sharpe": r.Score, "time/fps": r.FPS, "rollout/ep_rew_mean": r.Return}) {
			if got == nil || *got != last[tag] {
				t.Errorf("%s: %s is %v, expected %v", r.ID, tag, got, last[tag])
			}
			compared++
		}
		// Every point of every curve is that of the file.
		for tag := range sorted.All(last) {
			list, err := b.Series([]string{r.ID}, []string{tag})
			if err != nil || len(list) != 1 || !list[0].Exact {
				t.Fatalf("%s %s: %v %v", r.ID, tag, list, err)
			}
			i := 0
			for _, rec := range records {
				v, ok := rec.Values[tag]
				if !ok {
					continue
				}
				if s := list[0]; s.Steps[i] != rec.Step || s.Mean[i] != v || s.Min[i] != v || s.Max[i] != v {
					t.Fatalf("%s %s: point %d is %v at %d, expected %v at %d", r.ID, tag, i, s.Mean[i], s.Steps[i], v, rec.Step)
				}
				i++
				compared++
			}
			if i != len(list[0].Steps) {
				t.Errorf("%s %s: %d points, expected %d", r.ID, tag, len(list[0].Steps), i)
			}
		}
	}
	if compared != 3*4+3*(3*40+8)+3*7+2 {
		t.Errorf("%d numbers were compared", compared)
	}
	runs := summaries(b)
	if r := runs["seed-2"]; r.State != "finished" || *r.Best != 1.25 || r.BestStep != 50 || *r.Seed != 2 || r.Agent != "ppo" || r.Env != "trading" || r.Engine != "portable" || r.Threads != 3 || r.Metric != "sharpe" || r.Name != "study" {
		t.Errorf("%+v", r)
	}
	if r := runs["seed-1"]; r.State != "running" || r.Best != nil {
		t.Errorf("%+v", r)
	}
	if runs["seed-1"].Group != runs["seed-3"].Group || runs["seed-1"].Group == runs["other"].Group {
		t.Errorf("groups %q, %q, %q", runs["seed-1"].Group, runs["seed-3"].Group, runs["other"].Group)
	}
	// A member of a search has ended with its interval.
	write(t, filepath.Join(root, "other", "interval.json"), "{}")
	if ended := watching(t, Options{Paths: []string{root}, Now: time.Now}); summaries(ended)["other"].State != "finished" {
		t.Errorf("an interval that has ended is %q", summaries(ended)["other"].State)
	}
	if err := os.Remove(filepath.Join(root, "other", "interval.json")); err != nil {
		t.Fatal(err)
	}
	if still := watching(t, Options{Paths: []string{root}, Now: time.Now}); summaries(still)["other"].State != "still" {
		t.Errorf("a run of long ago is %q", summaries(still)["other"].State)
	}
}

// TestGrowing watches a run that is written, cut by a resumption, and removed.
func TestGrowing(t *testing.T) {
	root := t.TempDir()
	b := watching(t, Options{Paths: []string{root}})
	if o := b.Overview(0); len(o.Items) != 0 || len(o.Runs) != 0 || o.Problem != "" {
		t.Fatalf("%+v", o)
	}
	dir := filepath.Join(root, "r")
	trained(t, dir, 1, "0.1", course(1, 10))
	refresh(t, b)
	first := b.Overview(0)
	if len(first.Runs) != 1 || first.Runs[0].Steps != 90 {
		t.Fatalf("%+v", first)
	}
	file := filepath.Join(dir, metricsFile)
	refresh(t, b)
	if o := b.Overview(first.Version); len(o.Runs) != 0 || o.Version != first.Version {
		t.Errorf("nothing happened, and the version is %d after %d, runs %+v", o.Version, first.Version, o.Runs)
	}
	extend(t, file, `{"step":100,"time":1700000200,"train/lo`)
	refresh(t, b)
	if r := b.Overview(0).Runs[0]; r.Steps != 90 || r.Bad != 0 {
		t.Errorf("half a line: %+v", r)
	}
	extend(t, file, "ss\":0.125}\nno line\n{\"step\":110,\"time\":1700000200,\"train/loss\":\"NaN\"}\n")
	refresh(t, b)
	o := b.Overview(first.Version)
	if len(o.Runs) != 1 || o.Runs[0].Steps != 110 || o.Runs[0].Bad != 1 || o.Runs[0].Broken != 1 || o.Runs[0].Updated != 1700000200 || o.Structure != first.Structure {
		t.Fatalf("%+v", o)
	}
	loss, err := b.Series([]string{o.Runs[0].ID}, []string{"train/loss", "none"})
	if err != nil || len(loss) != 1 || len(loss[0].Steps) != 11 || loss[0].Mean[10] != 0.125 || loss[0].Last != nil {
		t.Errorf("%+v %v", loss, err)
	}
	// A resumption removes what was logged after its checkpoint; it takes no line that is none.
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, strings.Replace(string(text), "no line\n", "", 1))
	w, err := metrics.ResumeJSONLines(file, 40, clock())
	if err == nil {
		err = w.Scalars(50, map[string]float64{"train/loss": 7})
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	refresh(t, b)
	if r := b.Overview(0).Runs[0]; r.Steps != 50 || r.Bad != 0 || r.Broken != 0 || r.Points != 5*3+1+1 {
		t.Errorf("resumed: %+v", r)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	refresh(t, b)
	if end := b.Overview(0); len(end.Runs) != 0 || len(end.Items) != 0 || end.Structure <= o.Structure {
		t.Errorf("removed: %+v", end)
	}
	if _, err := b.Series([]string{o.Runs[0].ID}, []string{"train/loss"}); err == nil {
		t.Error("a run that is gone has series")
	}
}

// TestBudget has more series than there are buckets for.
func TestBudget(t *testing.T) {
	root := t.TempDir()
	for i := range 20 {
		trained(t, filepath.Join(root, string(rune('a'+i))), i, "0.1", course(1, 300))
	}
	const budget = 20 * 4 * 100
	b := New(Options{Paths: []string{root}, Buckets: budget})
	b.search()
	buffer, line, held := make([]byte, longestLine), metricsLine{}, 0
	for _, r := range b.list() {
		for b.take(r, buffer, &line) {
		}
		room := 0
		for _, x := range b.list() {
			for _, s := range sorted.All(x.series) {
				room += cap(s.buckets)
			}
		}
		held = max(held, room)
	}
	// Buckets are appended to lists that may be longer.
	if held > 2*budget {
		t.Errorf("room for %d buckets is held, expected at most twice %d", held, budget)
	}
	refresh(t, b)
	o := b.Overview(0)
	if o.Buckets != 64 {
		t.Errorf("a series may have %d buckets", o.Buckets)
	}
	kept := 0
	for _, r := range o.Runs {
		list, err := b.Series([]string{r.ID}, r.Tags)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			kept += len(s.Steps)
			if s.Tag == "rollout/ep_rew_mean" && (slices.Min(s.Min) != 0 || slices.Max(s.Max) != 299 || s.Points != 300 || s.Last.Value != 299) {
				t.Errorf("%s: from %v to %v", r.ID, slices.Min(s.Min), slices.Max(s.Max))
			}
		}
	}
	if kept > budget || kept < budget/4 {
		t.Errorf("%d buckets", kept)
	}
}

// TestBands joins seeds.
func TestBands(t *testing.T) {
	root := t.TempDir()
	for seed := range 4 {
		trained(t, filepath.Join(root, string(rune('1'+seed))), seed+1, "0.1", course(seed+1, 20-5*(seed/3)))
	}
	trained(t, filepath.Join(root, "other"), 1, "0.2", course(5, 20))
	for _, again := range []string{"again 1", "again 2"} {
		trained(t, filepath.Join(root, again), 7, "0.3", course(7, 20))
	}
	b := watching(t, Options{Paths: []string{root}})
	ids := slices.DeleteFunc(slices.Clone(b.order), func(id string) bool { return strings.Contains(id, "again") })
	// A run that was run again is no further seed.
	if bands, err := b.Bands(b.order, "rollout/ep_rew_mean"); err != nil || len(bands) != 3 {
		t.Errorf("%+v %v", bands, err)
	} else {
		for _, g := range bands {
			if want := map[int]int{4: 4, 2: 1, 1: 1}[len(g.Runs)]; g.Seeds != want {
				t.Errorf("%d runs of %d seeds, expected %d", len(g.Runs), g.Seeds, want)
			}
		}
	}
	bands, err := b.Bands(ids, "rollout/ep_rew_mean")
	if err != nil || len(bands) != 2 {
		t.Fatalf("%+v %v", bands, err)
	}
	for i, step := range bands[0].Steps {
		x, n := float64(step/10), 4
		if i >= 15 {
			n = 3 // The fourth ends earlier.
		}
		if g := bands[0]; g.N[i] != n || g.Min[i] != x || g.Max[i] != x*float64(n) || math.Abs(g.Mean[i]-x*float64(n+1)/2) > 1e-9 {
			t.Errorf("at %d: %d runs, from %v to %v, mean %v", step, g.N[i], g.Min[i], g.Max[i], g.Mean[i])
		}
	}
	if len(bands[0].Steps) != 20 || len(bands[0].Runs) != 4 || len(bands[1].Runs) != 1 || bands[1].Mean[19] != 95 {
		t.Errorf("%+v", bands)
	}
	if bands, err = b.Bands(ids, "none"); err != nil || len(bands) != 0 {
		t.Errorf("%v %v", bands, err)
	}
	// Other steps: interpolated between.
	g := band("g", "x", []*SeriesData{
		{Run: "a", Steps: []int64{0, 100}, Mean: []float64{0, 10}}, {Run: "b", Steps: []int64{50, 150}, Mean: []float64{1, 2}},
	})
	if len(g.Steps) == 0 || g.Steps[0] != 0 || g.Steps[len(g.Steps)-1] != 150 || g.N[0] != 1 || g.Max[0] != 0 || g.Max[len(g.Max)-1] != 2 {
		t.Errorf("%+v", g)
	}
	for i, step := range g.Steps {
		if step <= 100 && math.Abs(g.Max[i]-max(float64(step)/10, 0)) > 1e-9 {
			t.Errorf("at %d: %v", step, g.Max[i])
		}
	}
}

func TestSettings(t *testing.T) {
	root := t.TempDir()
	trained(t, filepath.Join(root, "a"), 1, "0.1", nil)
	trained(t, filepath.Join(root, "b"), 2, "0.2", nil)
	b := watching(t, Options{Paths: []string{root}})
	list, err := b.Settings(b.order)
	if err != nil || len(list) != 2 || list[0].Key != "agent.learning_rate" || !slices.Equal(list[0].Values, []string{"0.1", "0.2"}) || list[1].Key != "seed" {
		t.Errorf("%+v %v", list, err)
	}
	if list, err = b.Settings(b.order[:1]); err != nil || len(list) != 8 {
		t.Errorf("%d keys: %+v %v", len(list), list, err)
	}
}

func TestCheckpoints(t *testing.T) {
	root := t.TempDir()
	trained(t, filepath.Join(root, "r"), 1, "0.1", nil)
	b := watching(t, Options{Paths: []string{root}})
	if list, err := b.Checkpoints(b.order[0]); err != nil || len(list) != 0 {
		t.Errorf("%v %v", list, err)
	}
	at := func(name string) string { return filepath.Join(root, "r", "checkpoints", name) }
	for name, text := range sorted.All(map[string]string{
		"ckpt-1": `{"step":1,"score":0.5,"files":{"a":{"size":10},"b":{"size":5}}}`, "ckpt-2": `{"step":2,"score":0.75,"files":{}}`, "ckpt-3": `{"step":3,"score":null,"files":{}}`, "ckpt-4": `{"st`,
	}) {
		write(t, filepath.Join(at(name), "manifest.json"), text)
	}
	write(t, at(".lock"), "")
	if err := os.Mkdir(at("ckpt-5"), 0o777); err != nil {
		t.Fatal(err)
	}
	list, err := b.Checkpoints(b.order[0])
	if err != nil || len(list) != 4 {
		t.Fatalf("%+v %v", list, err)
	}
	if list[0].Problem == "" || list[1].Step != 3 || list[1].Score.Defined() || !list[2].Best || list[2].Score != 0.75 || list[3].Best || list[3].Bytes != 15 {
		t.Errorf("%+v", list)
	}
}

// TestRun watches by itself, and ends when its context does.
func TestRun(t *testing.T) {
	root := t.TempDir()
	b := New(Options{Paths: []string{root}, Interval: time.Millisecond, Search: time.Millisecond})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	changed, end := b.listen()
	defer end()
	go func() { ended <- b.Run(ctx) }()
	trained(t, filepath.Join(root, "r"), 1, "0.1", course(1, 10))
	for runs := b.Overview(0).Runs; len(runs) != 1 || runs[0].Steps != 90; runs = b.Overview(0).Runs {
		<-changed
	}
	extend(t, filepath.Join(root, "r", metricsFile), "{\"step\":500,\"x\":1}\n")
	for b.Overview(0).Runs[0].Steps != 500 {
		<-changed
	}
	stop()
	if err := <-ended; err != context.Canceled {
		t.Error(err)
	}
}

// TestFind is of what is an item and what is none.
func TestFind(t *testing.T) {
	root := t.TempDir()
	at := func(parts ...string) string { return filepath.Join(append([]string{root}, parts...)...) }
	write(t, at("run", metricsFile), "")
	write(t, at("run", "report", "test", "summary.json"), "{}")
	write(t, at("run", "report", "test", "equity.csv"), "")
	write(t, at("run", "artifacts", "oci-layout"), "{}")
	write(t, at("run", "artifacts", "index.json"), "{}")
	write(t, at("run", "checkpoints", "x", metricsFile), "")
	write(t, at("pop", membersFile), "")
	write(t, at("pop", "evolution.yaml"), "")
	write(t, at("pop", "generation-0000", "member-000", metricsFile), "")
	write(t, at("pop", "generation-0001", "member-000", metricsFile), "")
	write(t, at("pop", "generation-0001", "member-000", "artifacts", "oci-layout"), "{}")
	write(t, at("pop", "generation-0001", "member-000", "artifacts", "index.json"), "{}")
	write(t, at("w.json"), `{"seed":1,"n_processes":1,"n_steps":2,"catalog_prices":[1,2]}`)
	write(t, at("t.jsonl"), `{"time":"x","value":1,"positions":{}}`+"\n")
	write(t, at("no.json"), `{"a":1}`)
	write(t, at("no.jsonl"), "{}\n")
	write(t, at("no.txt"), `{"time":"x","value":1,"positions":{}}`)
	var f finder
	for range 2 {
		items, err := f.find([]string{root, at("w.json"), at("missing")})
		if err == nil {
			t.Error("what is missing is no error")
		}
		got := map[string]int{}
		for _, it := range items {
			rest, _ := filepath.Rel(root, it.path)
			got[string(it.Kind)+" "+filepath.ToSlash(rest)]++
		}
		want := map[string]int{"run run": 1, "report run/report/test": 1, "store run/artifacts": 1, "population pop": 1, "store pop/generation-0001/member-000/artifacts": 1, "world w.json": 1, "trading t.jsonl": 1}
		for k, n := range sorted.All(want) {
			if got[k] != n {
				t.Errorf("%s: %d times, expected %d", k, got[k], n)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%v", got)
		}
	}
	// A directory that is named twice is shown once.
	b := watching(t, Options{Paths: []string{root, root}})
	if o := b.Overview(0); len(o.Items) != 7 || len(o.Runs) != 1 {
		t.Errorf("%d items, %d runs", len(o.Items), len(o.Runs))
	}
}
