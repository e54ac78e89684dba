package samples_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/agents/scml/samples"
	"github.com/onnxrl/onnxrl/agents/scml/seat"
	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/envs/scml/logs"
	"github.com/onnxrl/onnxrl/envs/scml/record"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// tournament writes the folder of one of six worlds, of 2, 3 and 4 levels.
func tournament(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "logs")
	s := league.Defaults()
	s.Competitors, s.Configs, s.Processes, s.Days, s.Seed = []string{"penguin", "as0"}, 3, []int{2, 3, 4}, [2]int{8, 9}, 7
	o, err := logs.OpenTournament(dir, s, logs.Extras{})
	if err != nil {
		t.Fatal(err)
	}
	s.Follow = o.Follow
	if err := s.Run(context.Background(), 0, 2, func([]league.Row) error { return nil }); err != nil {
		t.Fatal(err)
	}
	return dir
}

// find lists the worlds of a folder.
func find(t *testing.T, dir string, want int) []string {
	t.Helper()
	list, err := samples.Find(context.Background(), dir)
	if err != nil || len(list) != want {
		t.Fatalf("%d worlds: %v", len(list), err)
	}
	return list
}

// collect makes samples.
func collect(t *testing.T, worlds []string, o samples.Options) (string, *samples.Samples) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "samples")
	if _, err := samples.Collect(context.Background(), worlds, dir, o); err != nil {
		t.Fatal(err)
	}
	s, err := samples.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, s
}

// TestSamples compares samples with the log: returns with scores, decisions with offers, and both
// data sets with what a data set must be.
func TestSamples(t *testing.T) {
	longtest.Slow(t)
	worlds := find(t, tournament(t), 6)
	for _, goal := range []int{scml.WholeGoal, scml.FullGoal} {
		o := samples.Defaults()
		o.Goal = goal
		_, s := collect(t, worlds, o)
		spec, err := samples.MacroSpec(goal, o.Horizon)
		if err == nil {
			err = errors.Join(s.Macro.Fits(spec), s.Micro.Fits(samples.MicroSpec(goal)))
		}
		if err == nil {
			spec, err = samples.ResidualSpec()
			err = errors.Join(err, s.Residual.Fits(spec))
		}
		if err != nil {
			t.Fatal(err)
		}
		var scores []float64
		offers := 0
		for _, dir := range worlds {
			w, err := record.ReadLogs(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, id := range w.IDs() {
				scores = append(scores, w.Played[len(w.Played)-1].End.Agents[id].Score)
			}
			err = record.EachNegotiation(filepath.Join(dir, "negotiations.csv"), func(n *record.Negotiation) error {
				if offers += len(n.Offers); n.Agreement != nil || n.Broken && n.Ended == n.Day {
					offers++
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		if s.Micro.Transitions != int64(offers) || int(s.Macro.Episodes) != len(scores) || s.Decisions != s.Micro.Transitions {
			t.Errorf("%d decisions of %d, %d factories of %d", s.Micro.Transitions, offers, s.Macro.Episodes, len(scores))
		}
		if s.Residual.Transitions != s.Micro.Transitions || s.Residual.Episodes != s.Micro.Episodes {
			t.Errorf("%d residuals of %d decisions", s.Residual.Transitions, s.Micro.Transitions)
		}
		for _, d := range []*offline.Dataset{s.Macro, s.Micro, s.Residual} {
			c, err := offline.NewChecker(d)
			if err != nil {
				t.Fatal(err)
			}
			err = d.Each(context.Background(), func(e *offline.Episode) error {
				if d == s.Macro && math.Abs(e.Return()-seat.DefaultGoals().Scale*(scores[e.Number]-1)) > 1e-6 {
					t.Errorf("factory %d: the return is %v, and its score %v", e.Number, e.Return(), scores[e.Number])
				}
				return c.Check(e)
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// TestTypes keeps the samples of one class.
func TestTypes(t *testing.T) {
	o := samples.Defaults()
	o.Types = []string{"AS0"}
	_, s := collect(t, find(t, tournament(t), 6), o)
	if s.Factories != 6 || s.Days < 48 || s.Threads == 0 {
		t.Errorf("%+v", s.Manifest)
	}
	o.Types = []string{"Nobody"}
	if _, err := samples.Collect(context.Background(), s.Sources, filepath.Join(t.TempDir(), "x"), o); err == nil || !strings.Contains(err.Error(), "Nobody have not played") {
		t.Errorf("types that have not played: %v", err)
	}
}

// TestStopped goes on after an interruption with the same bits.
func TestStopped(t *testing.T) {
	longtest.Slow(t)
	worlds := find(t, tournament(t), 6)
	_, want := collect(t, worlds, samples.Defaults())
	dir := filepath.Join(t.TempDir(), "samples")
	runs := 0
	for {
		ctx, cancel := context.WithCancel(context.Background())
		o := samples.Defaults()
		done := 0
		o.Progress = func(int) {
			if done++; done == 2 {
				cancel()
			}
		}
		_, err := samples.Collect(ctx, worlds, dir, o)
		if cancel(); err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) || runs > 4 {
			t.Fatal(err)
		}
		runs++
	}
	got, err := samples.Open(dir)
	if err != nil || runs < 2 || got.Macro.Digest != want.Macro.Digest || got.Micro.Digest != want.Micro.Digest || got.Residual.Digest != want.Residual.Digest || !reflect.DeepEqual(got.Worlds, want.Worlds) {
		t.Errorf("stopped %d times it is something else (%v)", runs, err)
	}
}

// TestKilledAtTheEnd goes on where one, two or all of the data sets were finished, and the folder
// not yet made of them.
func TestKilledAtTheEnd(t *testing.T) {
	worlds := find(t, tournament(t), 6)[:2]
	dir, want := collect(t, worlds, samples.Defaults())
	sets := []string{samples.MacroDir, samples.MicroDir, samples.ResidualDir}
	for finished := 1; finished <= longtest.Cases(t, len(sets), 1); finished++ {
		if err := os.Rename(dir, dir+".partial"); err != nil {
			t.Fatal(err)
		}
		for _, name := range sets[finished:] {
			if err := os.Rename(filepath.Join(dir+".partial", name), filepath.Join(dir+".partial", name+".partial")); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := samples.Collect(context.Background(), worlds, dir, samples.Defaults()); err != nil {
			t.Fatalf("%d finished: %v", finished, err)
		}
		got, err := samples.Open(dir)
		if err != nil || got.Macro.Digest != want.Macro.Digest || got.Micro.Digest != want.Micro.Digest || got.Residual.Digest != want.Residual.Digest {
			t.Errorf("%d finished: it is something else (%v)", finished, err)
		}
	}
}

// edit changes a file.
func edit(t *testing.T, path string, change func(string) string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(change(string(text))), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestDamaged refuses what is not a whole log of the league, says why, and goes on without it where
// that is allowed.
func TestDamaged(t *testing.T) {
	longtest.Slow(t)
	remove := func(name string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	change := func(name string, f func(string) string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) { edit(t, filepath.Join(dir, name), f) }
	}
	cases := []struct {
		name   string
		damage func(t *testing.T, dir string)
		says   string
	}{
		{"no negotiations", remove("negotiations.csv"), "there is no negotiations.csv, for what was offered and agreed: the columns id, ended_at"},
		{"no info", remove("info.json"), "there is no info.json"},
		{"no stats", remove("stats.csv"), "there is no stats.csv"},
		{"cut in a row", change("negotiations.csv", func(s string) string { return s[:len(s)*2/3] }), "the file ends within a row"},
		{"a row is missing", change("negotiations.csv", func(s string) string { return without(s, "succeeded") }), "agreements"},
		{"no histories", change("negotiations.csv", func(s string) string { return strings.Replace(s, "history", "story", 1) }), "there is no column history"},
		{"no literal", change("negotiations.csv", func(s string) string { return strings.Replace(s, "'new_offers': [", "'new_offers': (", 1) }), "line 2, column history"},
		{"another range", change("negotiations.csv", func(s string) string { return strings.ReplaceAll(s, "unit_price: (", "unit_price: (1") }), "another version of the league"},
		{"another balance", change("info.json", func(s string) string { return strings.Replace(s, `"cost": `, `"cost": 1`, 1) }), "stats.csv: day"},
		{"half written", change("info.json", func(s string) string { return s[:len(s)/2] }), "info.json"},
		{"a number is none", change("contracts.csv", func(s string) string { return strings.Replace(s, ",p1,1,", ",px,1,", 1) }), "column product_name"},
	}
	worlds := find(t, tournament(t), 6)
	n := 0
	for _, c := range cases {
		root := t.TempDir()
		for _, dir := range worlds[:2] {
			if err := os.CopyFS(filepath.Join(root, filepath.Base(dir)), os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
		}
		list := find(t, root, 2)
		c.damage(t, list[1])
		list = find(t, root, 2)
		o := samples.Defaults()
		to := filepath.Join(root, "samples")
		if _, err := samples.Collect(context.Background(), list, to, o); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), list[1]) {
			t.Errorf("%s: %v, expected %q", c.name, err, c.says)
		}
		o.Skip = true
		m, err := samples.Collect(context.Background(), list, to, o)
		if err != nil || m.Skipped != 1 || m.Worlds[1].Problem == "" || m.Factories != int64(m.Worlds[0].Agents) {
			t.Errorf("%s: skipped: %+v, %v", c.name, m, err)
		}
		n++
	}
	if n != 11 {
		t.Errorf("%d cases", n)
	}
	if _, err := samples.Find(context.Background(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "there is no folder of a world") {
		t.Errorf("an empty folder: %v", err)
	}
}

// without leaves out the first line that has something in it.
func without(text, part string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, l := range lines {
		if strings.Contains(l, part) {
			return strings.Join(append(lines[:i:i], lines[i+1:]...), "")
		}
	}
	return text
}

// TestLayout refuses samples of another layout, and data sets that are not the manifest's.
func TestLayout(t *testing.T) {
	dir, s := collect(t, find(t, tournament(t), 6)[:1], samples.Defaults())
	path := filepath.Join(dir, samples.ManifestFile)
	cases := []struct {
		change func(m map[string]any)
		says   string
	}{
		{func(m map[string]any) { m["observation_layout"] = 99 }, "observation_layout is 99, and this program reads"},
		{func(m map[string]any) { m["micro_sha256"] = s.Manifest.Macro }, "micro_sha256"},
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		m := map[string]any{}
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatal(err)
		}
		c.change(m)
		b, err := json.Marshal(m)
		if err == nil {
			err = os.WriteFile(path, b, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := samples.Open(dir); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, expected %q", err, c.says)
		}
	}
	if len(cases) != 2 || scml.Direct != 5 {
		t.Errorf("%d cases of answers of %d numbers", len(cases), scml.Direct)
	}
	if _, err := samples.Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "onnxrl scml samples makes one") {
		t.Errorf("no samples: %v", err)
	}
}
