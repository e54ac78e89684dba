package studies

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/walkforward"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// walkBase trains in a second, with a validation that chooses among several policies.
var walkBase = strings.NewReplacer("total_env_steps: 400", "total_env_steps: 120", "every_steps: 0", "every_steps: 40", "  window: 4\n", "  window: 4\n  episode: {kind: random, length: 20}\n", "every_steps: 40}\n", "every_steps: 20}\n").Replace(apptest.AblationBase)

const walkStudy = `base: base.yaml
scheme: {kind: expanding, train: 8m, valid: 2m, test: 3m, purge: 2, embargo: 1}
seeds: [1, 2]
ensemble: {by: mean}
`

// walkFiles are those that depend on nothing but the study.
var walkFiles = []string{"folds.csv", "pooled.csv", "summary.md"}

func walkArgs(study, out string, more ...string) []string {
	return append([]string{"walkforward", study, "--engine", portable.Name, "--quiet", "--out", out}, more...)
}

func TestWalkforward(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	study := apptest.AblationFiles(t, walkStudy, walkBase)
	out := filepath.Join(t.TempDir(), "out")
	plan := apptest.Succeed(t, walkArgs(study, out, "--plan")...)
	for _, s := range []string{"2000-11-01", "3 folds, one variant, 2 seeds: 6 runs, 720 env steps", "0 of 3 cells judged"} {
		if !strings.Contains(plan, s) {
			t.Errorf("the plan does not say %q:\n%s", s, plan)
		}
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("a plan made the folder")
	}
	screen := apptest.Succeed(t, walkArgs(study, out)...)
	for _, s := range []string{"ensemble by mean", "best simple rule", "deflated Sharpe probability", "Trials: 3 (2 seeds and their ensemble", "Seeds are not samples of history"} {
		if !strings.Contains(screen, s) {
			t.Errorf("the output does not say %q:\n%s", s, screen)
		}
	}
	if strings.Contains(screen, "IN SAMPLE") {
		t.Errorf("%s", screen)
	}
	doc := apptest.Succeed(t, walkArgs(study, out, "--json")...)
	if got, want := apptest.Keys(t, doc), []string{"dir", "files", "plan", "runs", "summary"}; !slices.Equal(got, want) {
		t.Errorf("JSON keys %q, expected %q", got, want)
	}
	r := apptest.Decode[walkforward.Report](t, doc)
	if !r.Summary.Complete || len(r.Runs) != 6 || len(r.Summary.Folds) != 3 || len(r.Files) != 3+2*3+2 {
		t.Errorf("%d runs, %d folds, files %q", len(r.Runs), len(r.Summary.Folds), r.Files)
	}
	for _, f := range append(r.Files, "plan.yaml") {
		if _, err := os.Stat(filepath.Join(out, f)); err != nil {
			t.Error(err)
		}
	}
	// Every fold's test range is the record's, once.
	pooled := apptest.ReadText(t, out, "pooled.csv")
	bars := 0
	for _, f := range r.Plan.Folds {
		bars += f.Test[0].Bars - 1
	}
	if n := strings.Count(pooled, ",ensemble by mean,agent,"); n != bars || strings.Contains(pooled, "NaN") {
		t.Errorf("%d returns of %d", n, bars)
	}
	for _, row := range r.Summary.Pooled {
		if f := row.Figures; row.Role == walkforward.RoleBenchmark && math.Abs(float64(f["beta"])-1) > 1e-9 {
			t.Errorf("%+v", row)
		}
	}

	// One at a time gives the same tables.
	other := filepath.Join(t.TempDir(), "other")
	apptest.Succeed(t, walkArgs(study, other, "--parallel", "1")...)
	sameWalk(t, other, out)
}

func sameWalk(t *testing.T, got, want string) {
	t.Helper()
	for _, f := range walkFiles {
		if apptest.ReadText(t, got, f) != apptest.ReadText(t, want, f) {
			t.Errorf("%s of %s differs from that of %s", f, got, want)
		}
	}
}

// TestWalkforwardKinds runs warm starts, combinatorial folds and the other ensembles.
func TestWalkforwardKinds(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	cases := []struct {
		name, study string
		folds       int
		says        []string
	}{
		{"warm", strings.Replace(walkStudy, "ensemble: {by: mean}", "warm_start: last\nensemble: {by: majority}", 1), 3, []string{"ensemble by majority", "Parameters begin with those of the best policy"}},
		{"validation", strings.Replace(walkStudy, "by: mean", "by: validation", 1), 3, []string{"ensemble by validation"}},
		{"none, and a variant", strings.Replace(walkStudy, "ensemble: {by: mean}", "variants: {log reward: {env.reward: log}}", 1), 3, []string{"equal capital in 2 seeds", "Trials: 4 (2 seeds of 2 variants", "log reward"}},
		{"combinatorial", "base: base.yaml\nscheme: {kind: combinatorial, blocks: 4, test_blocks: 2, embargo: 5}\nseeds: [1, 2]\n", 6, []string{"blocks-1-2", "every bar is tested several times"}},
	}
	performed := 0
	for _, c := range cases {
		performed++
		t.Run(c.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			study := apptest.AblationFiles(t, c.study, walkBase)
			screen := apptest.Succeed(t, walkArgs(study, out)...)
			for _, s := range c.says {
				if !strings.Contains(screen, s) {
					t.Errorf("the output does not say %q:\n%s", s, screen)
				}
			}
			if strings.Contains(screen, "IN SAMPLE") {
				t.Errorf("%s", screen)
			}
			var r walkforward.Report
			if err := json.Unmarshal([]byte(apptest.ReadText(t, out, "walkforward.json")), &r); err != nil {
				t.Fatal(err)
			}
			if len(r.Plan.Folds) != c.folds || !r.Summary.Complete {
				t.Errorf("%d folds", len(r.Plan.Folds))
			}
			if c.name == "none, and a variant" {
				// A seed that comes later has the folds judged again, and the others not trained.
				later := filepath.Join(t.TempDir(), "out")
				apptest.Succeed(t, walkArgs(study, later, "--seeds", "2")...)
				apptest.Succeed(t, walkArgs(study, later)...)
				sameWalk(t, later, out)
			}
			if c.name != "warm" {
				return
			}
			// Parameters are those of the fold before.
			begun := 0
			for _, f := range r.Summary.Folds[1:] {
				for _, s := range f.Seeds {
					var l run.Lineage
					if err := run.ReadJSON(filepath.Join(out, f.Fold, "seed-"+string(rune('0'+s.Seed)), run.LineageFile), &l); err != nil {
						t.Fatal(err)
					}
					if l.Init == nil || l.Init.SHA256 == "" || !strings.HasSuffix(s.Init, "/seed-"+string(rune('0'+s.Seed))) {
						t.Errorf("%s: %+v begins with %+v", f.Fold, s, l.Init)
						continue
					}
					begun++
				}
			}
			if begun != 4 || r.Summary.Folds[0].Seeds[0].Init != "" {
				t.Errorf("%d of 4 runs began with those of the fold before", begun)
			}
		})
	}
	if performed != len(cases) {
		t.Errorf("%d of %d kinds", performed, len(cases))
	}
}

// TestWalkIgnoresTheBasesSplit plans a study whose base has ranges without data, in the wrong order,
// or none, which its folds replace: it is that of a base whose ranges are right.
func TestWalkIgnoresTheBasesSplit(t *testing.T) {
	t.Parallel()
	own := "split: {train: [2000-01-03, 2000-12-31], valid: [2001-01-01, 2001-04-30], test: [2001-05-01, 2001-07-01]}"
	plan := func(split string) string {
		t.Helper()
		base := strings.Replace(walkBase, own, split, 1)
		if base == walkBase && split != own {
			t.Fatal("the base has another split")
		}
		text := apptest.Succeed(t, walkArgs(apptest.AblationFiles(t, walkStudy, base), filepath.Join(t.TempDir(), "out"), "--plan", "--json")...)
		return regexp.MustCompile(`/[^"]*/`).ReplaceAllString(text, "")
	}
	want := plan(own)
	for _, split := range []string{"split: {train: [1980-01-03, 1981-12-31], test: [1990-05-01, 1991-07-01]}", "split: {train: [2001-05-01, 2001-07-01], valid: [2000-01-03, 2000-12-31]}", "assets: []"} {
		if got := plan(split); got != want {
			t.Errorf("%s: %s\nexpected %s", split, got, want)
		}
	}
}

func TestBadWalks(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	cases := []struct {
		study string
		args  []string
		says  []string
	}{
		{"scheme: {kind: rolling, trian: 3y}\nwarm_strat: last\n", nil, []string{"study.yaml:1:25: scheme.trian: unknown key", "study.yaml:2:1: warm_strat: unknown key"}},
		{"scheme: {kind: forward}\nseeds: [1, 1]\n", nil, []string{"base: required", "scheme.kind", "seeds: 1 is given twice"}},
		{"base: base.yaml\nscheme: {kind: combinatorial, blocks: 4, test_blocks: 1}\nwarm_start: last\n", nil, []string{"warm_start: folds of the kind combinatorial have no order"}},
		{"base: base.yaml\nscheme: {kind: combinatorial, blocks: 4, test_blocks: 1}\n", []string{"--set", "env.episode={kind: full}"}, []string{"scheme.embargo: is 0", "env.episode.kind"}},
		{"base: base.yaml\nscheme: {kind: combinatorial, train: 1y}\n", nil, []string{"scheme: train, valid, test and step belong to"}},
		{walkStudy, []string{"--set", "env.episode.length=200"}, []string{"fold 2000-11-01: env.episode.length is 200, and the training range has 171 bars"}},
		{"base: base.yaml\nscheme: {train: 8m, valid: 5d, test: 20d, purge: 1, embargo: 1}\n", nil, []string{"purging leaves", "expected at least 3"}},
		{"base: base.yaml\nscheme: {train: 5y}\n", nil, []string{"shorter than one fold"}},
		{walkStudy + "variants: {a: {env.windw: 3}, b: {agent.n_steps: none}}\n", nil, []string{"study.yaml:5:", "windw", "n_steps"}},
		{walkStudy, []string{"--set", "train.validation.every_steps=0"}, []string{"base: train.validation.every_steps: is 0"}},
		{walkStudy, []string{"--seeds", "1"}, []string{"one seed makes no ensemble"}},
		{walkBase, nil, []string{"is an experiment and not a study"}},
	}
	for _, c := range cases {
		r := apptest.Run(t, append(walkArgs(apptest.AblationFiles(t, c.study, walkBase), out), c.args...)...)
		if r.Code != 1 || !strings.HasPrefix(r.Err, "onnxrl: walkforward: ") {
			t.Errorf("%q: exit status %d\n%s", c.study, r.Code, r.Err)
		}
		for _, s := range c.says {
			if !strings.Contains(r.Err, s) {
				t.Errorf("%q: the error does not say %q:\n%s", c.study, s, r.Err)
			}
		}
	}
	if entries, err := os.ReadDir(out); err != nil || len(entries) != 0 || len(cases) != 12 {
		t.Errorf("something was written: %v %v", entries, err)
	}
}

// TestShippedWalks divides the data of the shipped studies, made up where they are not shipped.
func TestShippedWalks(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	made := []string{"--set", "env.data.assets=[]", "--set", "env.data.source={}", "--set", "env.data.synthetic={kind: noise, seed: 1, bars: 5700}", "--set", `env.data.rules=""`}
	for name, c := range sorted.All(map[string]struct {
		args []string
		says string
	}{"demo_walkforward": {nil, "6 folds, one variant, 3 seeds: 18 runs"}, "qtmrl_walkforward": {made, "6 folds, 6 variants, 3 seeds: 108 runs"}, "ashare_walkforward": {made, "5 folds, 5 variants, 3 seeds: 75 runs"}}) {
		out := apptest.Succeed(t, append([]string{"walkforward", name, "--engine", portable.Name, "--plan"}, c.args...)...)
		if !strings.Contains(out, c.says) {
			t.Errorf("%s: the plan does not say %q:\n%s", name, c.says, out)
		}
		apptest.Succeed(t, "config", "check", name)
	}
}
