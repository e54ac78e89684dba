package evolve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/metrics/exporter"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

const base = `
seed: 4
env: {kind: corridor, cells: 5}
wrappers: {normalize: {obs: true}}
agent: {kind: ppo, n_steps: 25, batch_size: 50, n_epochs: 2, hidden: [8]}
train: {num_envs: 2, total_env_steps: 1000, threads: 1, log_interval_steps: 50}
eval: {episodes: 2}
`

const document = `
base: base.yaml
population: 4
interval_steps: 100
generations: 4
probe: 16
space:
  agent.learning_rate: {kind: loguniform, low: 1.0e-4, high: 1.0e-2}
  agent.ent_coef: {kind: loguniform, low: 1.0e-3, high: 1.0e-1}
`

// written writes the documents of a search, the second edited by pairs of old and new text.
func written(t *testing.T, edits ...string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range sorted.All(map[string]string{"base.yaml": base, "search.yaml": strings.NewReplacer(edits...).Replace(document)}) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "search.yaml")
}

// evolved carries out a search, or goes on with it, and returns its records.
func evolved(ctx context.Context, t *testing.T, path string, o Options) (*Search, error) {
	t.Helper()
	o.Kinds = kinds.All()
	e := portable.New()
	defer e.Close()
	o.Run.Engine = e
	s, err := Open(ctx, path, o)
	if err != nil {
		return nil, err
	}
	_, err = s.Begin()
	if err == nil {
		err = s.Run(ctx)
	}
	return s, errors.Join(err, s.Close())
}

func text(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, LogFile))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestSearch: clones train with the learning rate of the better member times a factor, and with its
// normaliser; whoever is not cloned goes on; old checkpoints are gone. A search that was stopped
// often, and whose checkpoints were damaged, has the same log, however many members train at once.
func TestSearch(t *testing.T) {
	longtest.Slow(t)
	path, dir := written(t), t.TempDir()
	whole, err := evolved(t.Context(), t, path, Options{Dir: filepath.Join(dir, "whole")})
	if err != nil {
		t.Fatal(err)
	}
	clones := 0
	for g, list := range whole.records {
		for _, r := range list {
			var res run.Result
			if err := run.ReadJSON(filepath.Join(dir, "whole", dirOf(g, r.Member), "interval.json"), &res); err != nil {
				t.Fatal(err)
			}
			if rate := res.Train["train/learning_rate"]; rate != r.Values["agent.learning_rate"] {
				t.Errorf("generation %d, member %d is trained with the rate %g, expected %g", g, r.Member, rate, r.Values["agent.learning_rate"])
			}
			var l run.Lineage
			if err := run.ReadJSON(filepath.Join(dir, "whole", dirOf(g, r.Member), run.LineageFile), &l); err != nil {
				t.Fatal(err)
			}
			if g == 0 {
				if r.Action != Begin || l.Continues != "" {
					t.Errorf("%+v begins with %q", r, l.Continues)
				}
				continue
			}
			from := whole.records[g-1][r.Parent]
			if !strings.Contains(l.Continues, from.Dir) || r.EnvSteps != from.EnvSteps+100 || !r.Score.Defined() || !r.Distance.Defined() {
				t.Errorf("%+v goes on from %s, expected %+v", r, l.Continues, from)
			}
			f := r.Values["agent.learning_rate"] / from.Values["agent.learning_rate"]
			if r.Action == Clone {
				clones++
				if math.Abs(f-0.8) > 1e-12 && math.Abs(f-1.25) > 1e-12 {
					t.Errorf("%+v has the rate of its parent times %g", r, f)
				}
			} else if f != 1 || r.Parent != r.Member {
				t.Errorf("%+v has the rate of its parent times %g", r, f)
			}
			_, err := whole.newest(r)
			if kept := g >= 2; kept != (err == nil) {
				t.Errorf("generation %d of %d: %v", g, len(whole.records), err)
			}
		}
	}
	// One of four is cloned after each generation but the last.
	if clones != 3 || len(whole.records) != 4 {
		t.Errorf("%d clones in %d generations", clones, len(whole.records))
	}
	sum := whole.Summarize()
	if sum.Clones != 3 || sum.EnvSteps != 4*4*100 || len(sum.MAPD) != 4 || !sum.MAPD[3].Defined() || sum.Best[3] != sum.Members[0].Score {
		t.Errorf("%+v", sum)
	}
	if tree, err := ReadTree(filepath.Join(dir, "whole")); err != nil || len(tree.Records) != 4 {
		t.Errorf("%v, %v", tree, err)
	}

	// It is stopped again and again, while it trains and, every other time, between the end of an
	// interval and its probe, and a checkpoint that others go on from is damaged.
	parts, stops, damaged, notes := filepath.Join(dir, "parts"), 0, false, 0
	o := Options{Dir: parts, Parallel: 3, Note: func(text string) {
		if strings.Contains(text, "restored from its parent") {
			notes++
		}
	}}
	for err = context.Canceled; errors.Is(err, context.Canceled) && stops < 100; stops++ {
		ctx, cancel := context.WithCancel(t.Context())
		between := stops%2 == 1
		o.Run.Hooks.End = func(*run.Run, train.Result) error {
			if between {
				cancel()
			}
			return nil
		}
		var taken atomic.Int64
		o.Steps = func(n int64) {
			if taken.Add(n) >= 70 {
				cancel()
			}
		}
		if !damaged && recorded(t, parts) == 2 {
			r := whole.records[1][whole.records[2][0].Parent]
			files, err := filepath.Glob(filepath.Join(parts, r.Dir, run.CheckpointDir, "*", "arrays.safetensors"))
			if err != nil || len(files) != 1 {
				t.Fatal(files, err)
			}
			if err := os.Truncate(files[0], 10); err != nil {
				t.Fatal(err)
			}
			damaged, between, o.Steps = true, false, nil
		}
		_, err = evolved(ctx, t, path, o)
		cancel()
		path, o.Dir, o.Resume, o.Parallel = "", "", parts, 1
	}
	if err != nil {
		t.Fatal(err)
	}
	if got, want := text(t, parts), text(t, filepath.Join(dir, "whole")); got != want || stops < 4 || notes != 1 {
		t.Errorf("after %d stops and with %d damaged checkpoints:\n%s\nexpected\n%s", stops, notes, got, want)
	}
}

// TestRestart: a strategy decides after every so many generations only, and where policies lie too
// close the worst member restarts, with a skill that nobody has and without its weights; a search
// that was stopped has the same log.
func TestRestart(t *testing.T) {
	longtest.Slow(t)
	path := written(t, "population: 4", "population: 4\nevery: 2\ndiversity: {threshold: 1, patience: 2}", "generations: 4", "generations: 5", "base: base.yaml", "base: base.yaml\nset: {wrappers.skill: {dim: 6}}")
	whole := filepath.Join(t.TempDir(), "whole")
	s, err := evolved(t.Context(), t, path, Options{Dir: whole})
	if err != nil {
		t.Fatal(err)
	}
	clones, restarts := 0, 0
	for g, list := range s.records {
		for i, r := range list {
			switch r.Action {
			case Clone:
				if clones++; g%2 == 1 {
					t.Errorf("%+v between two decisions", r)
				}
			case Restart:
				last := s.records[g-1]
				if restarts++; g%2 == 0 || order(s.c, last)[3] != i || r.EnvSteps != 100 || r.Parent != -1 || r.Seed == last[i].Seed {
					t.Errorf("%+v restarts, of %+v", r, last)
				}
				for _, other := range last {
					if *other.Skill == *r.Skill {
						t.Errorf("%+v has the skill of %+v", r, other)
					}
				}
				continue
			}
			if want := i; g > 0 && *r.Skill != *s.records[g-1][i].Skill || g == 0 && *r.Skill != want {
				t.Errorf("%+v has another skill than before", r)
			}
		}
	}
	sum := s.Summarize()
	if clones == 0 || restarts != 2 || sum.Restarts != 2 {
		t.Errorf("%d clones, %d restarts, %+v", clones, restarts, sum)
	}
	parts := filepath.Join(t.TempDir(), "parts")
	o, stops := Options{Dir: parts, Parallel: 1}, 0
	for err = context.Canceled; errors.Is(err, context.Canceled) && stops < 100; stops++ {
		ctx, cancel := context.WithCancel(t.Context())
		var taken atomic.Int64
		o.Steps = func(n int64) {
			if taken.Add(n) >= 250 {
				cancel()
			}
		}
		_, err = evolved(ctx, t, path, o)
		cancel()
		path, o.Dir, o.Resume = "", "", parts
	}
	if got, want := text(t, parts), text(t, whole); err != nil || got != want || stops < 3 {
		t.Errorf("%v after %d stops:\n%s\nexpected\n%s", err, stops, got, want)
	}
}

func recorded(t *testing.T, dir string) int {
	t.Helper()
	_, list, err := load(dir, 4)
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestDiverged: members whose rates are too high for numbers are rolled back, named and counted,
// and the search goes on.
func TestDiverged(t *testing.T) {
	notes := 0
	path := written(t, "low: 1.0e-4, high: 1.0e-2", "low: 1.0e+30, high: 1.0e+32", "generations: 4", "generations: 2")
	watch := exporter.New(time.Now)
	s, err := evolved(t.Context(), t, path, Options{Dir: filepath.Join(t.TempDir(), "runs", "search"), Parallel: 1, Run: run.Options{Watch: watch}, Note: func(text string) {
		if strings.Contains(text, "has diverged and is rolled back: ") {
			notes++
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	sum := s.Summarize()
	if notes == 0 || sum.RolledBack != notes || len(s.records) != 2 {
		t.Errorf("%d notes, %+v", notes, sum)
	}
	shown := scraped(watch)
	for _, line := range []string{fmt.Sprintf(`onnxrl_population_intervals_total{result="rolled_back",search="search"} %d`, notes), fmt.Sprintf(`onnxrl_population_intervals_total{result="finished",search="search"} %d`, 8-notes), `onnxrl_population_generation{search="search"} 2`, fmt.Sprintf(`onnxrl_population_interval_seconds_count{search="search"} %d`, 8)} {
		if !strings.Contains(shown, line+"\n") {
			t.Errorf("missing: %s in\n%s", line, shown)
		}
	}
	for _, r := range s.records[1] {
		if r.RolledBack == "" && r.Dir == "" || r.Action != Begin && r.Parent < 0 {
			t.Errorf("%+v", r)
		}
	}
}

func scraped(e *exporter.Exporter) string {
	w := httptest.NewRecorder()
	e.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// TestWatched: a search that is watched has the log of one that is not, and shows scores,
// distances and hyper-parameters as the log has them; one that goes on shows them at once.
func TestWatched(t *testing.T) {
	path, dir := written(t, "generations: 4", "generations: 2"), t.TempDir()
	if _, err := evolved(t.Context(), t, path, Options{Dir: filepath.Join(dir, "alone")}); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, "runs", "search")
	watch, again := exporter.New(time.Now), exporter.New(time.Now)
	s, err := evolved(t.Context(), t, path, Options{Dir: at, Parallel: 2, Run: run.Options{Watch: watch}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := text(t, at), text(t, filepath.Join(dir, "alone")); got != want {
		t.Errorf("log\n%s\nexpected\n%s", got, want)
	}
	if _, err := evolved(t.Context(), t, "", Options{Resume: at, Run: run.Options{Watch: again}}); err != nil {
		t.Fatal(err)
	}
	lines := []string{`onnxrl_population_generation{search="search"} 2`, `onnxrl_population_generations_planned{search="search"} 2`, fmt.Sprintf(`onnxrl_mapd{search="search"} %v`, mapdOf(s.records[1])), fmt.Sprintf(`onnxrl_population_best_score{search="search"} %v`, s.Best(s.records[1]).Score)}
	for i, r := range s.records[1] {
		lines = append(lines, fmt.Sprintf(`onnxrl_member_score{member="%d",search="search"} %v`, i, r.Score), fmt.Sprintf(`onnxrl_member_hyperparameter{member="%d",path="agent.ent_coef",search="search"} %v`, i, r.Values["agent.ent_coef"]))
	}
	for n, e := range []*exporter.Exporter{watch, again} {
		shown := scraped(e)
		for _, line := range lines {
			if !strings.Contains(shown, line+"\n") {
				t.Errorf("%d: missing: %s in\n%s", n, line, shown)
			}
		}
	}
	for _, line := range []string{`onnxrl_env_steps_total{run="search/member-003"} 200`, `onnxrl_population_takes_total{action="begin",search="search"} 4`, `onnxrl_population_intervals_total{result="finished",search="search"} 8`} {
		if shown := scraped(watch); !strings.Contains(shown, line+"\n") {
			t.Errorf("missing: %s in\n%s", line, shown)
		}
	}
}

// TestRefusals: nothing is written before the documents fit.
func TestRefusals(t *testing.T) {
	n := 0
	for old, c := range sorted.All(map[string][2]string{
		"population: 4":                     {"population: 6", "a population of 6 does not divide into"},
		"agent.ent_coef":                    {"agent.entcoef", "space.agent.entcoef: the experiment has no such key"},
		"agent.ent_coef: {kind: loguniform": {"agent.hidden: {kind: loguniform", "space.agent.hidden: the experiment has no number there"},
		"agent.learning_rate: {kind: loguniform, low: 1.0e-4, high: 1.0e-2}": {"agent.gamma: {kind: uniform, low: 2, high: 3}", "space.agent.gamma"},
		"kind: loguniform, low: 1.0e-4, high: 1.0e-2":                        {"kind: categorical, choices: [1]", "a population changes numbers"},
		"probe: 16":           {"metric: sharpe", "unknown metric \"sharpe\"; the environment has mean_reward"},
		"interval_steps: 100": {"interval: 100", "unknown key"},
		"population: 4\n":     {"population: 4\ndiversity: {threshold: 2}\n", "diversity.threshold: must be"},
		"generations: 4":      {"strategy: {kind: mf_pbb}", `did you mean "mf_pbt"`},
		"base.yaml":           {"none.yaml", "none.yaml"},
	}) {
		dir := filepath.Join(t.TempDir(), "search")
		if _, err := evolved(t.Context(), t, written(t, old, c[0]), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v", c[0], err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: there is a directory", c[0])
		}
		n++
	}
	if n != 10 {
		t.Errorf("%d refusals", n)
	}
}

// TestShortIntervals: generations of fewer env steps than a learner step would train nothing, which
// is found before the first.
func TestShortIntervals(t *testing.T) {
	for _, steps := range []string{"49", "50"} {
		s, err := Open(t.Context(), written(t, "interval_steps: 100", "interval_steps: "+steps), Options{Kinds: kinds.All(), Run: run.Options{Engine: portable.New()}, Dir: filepath.Join(t.TempDir(), "search")})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Rehearse(t.Context(), nil, "")
		var short *run.IntervalError
		if steps == "49" && (!errors.As(err, &short) || short.Step != 50 || !strings.HasPrefix(err.Error(), "interval_steps: 49 env steps, fewer than the 50")) || steps == "50" && err != nil {
			t.Errorf("%s: %v", steps, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestShipped opens every search that comes with the program.
func TestShipped(t *testing.T) {
	names, err := fs.Glob(configs.Shipped(), "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	opened := 0
	for _, name := range names {
		doc, err := experiment.Document(strings.TrimSuffix(name, ".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := doc.Lookup("strategy"); !ok {
			continue
		}
		s, err := Open(t.Context(), name, Options{Kinds: kinds.All(), Dir: filepath.Join(t.TempDir(), "search")})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		opened++
	}
	if opened == 0 {
		t.Error("none is shipped")
	}
}

// compiles counts what an engine compiles.
type compiles struct {
	engine.Compiler
	n atomic.Int64
}

func (c *compiles) Compile(m *onnx.Model, o engine.Options) (engine.Session, error) {
	c.n.Add(1)
	return c.Compiler.Compile(m, o)
}

// TestMembersShareSessions: how many graphs are compiled does not depend on the number of members,
// nor on that of generations.
func TestMembersShareSessions(t *testing.T) {
	longtest.Slow(t)
	var counts []int64
	for _, size := range [][2]int{{4, 1}, {8, 1}, {8, 3}} {
		e := &compiles{Compiler: portable.New()}
		path := written(t, "population: 4", fmt.Sprint("population: ", size[0]), "generations: 4", fmt.Sprint("generations: ", size[1]))
		o := Options{Kinds: kinds.All(), Dir: filepath.Join(t.TempDir(), "search"), Parallel: 2}
		o.Run.Engine = e
		s, err := Open(t.Context(), path, o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = s.Begin(); err == nil {
			err = s.Run(t.Context())
		}
		if err := errors.Join(err, s.Close(), e.Close()); err != nil {
			t.Fatal(err)
		}
		counts = append(counts, e.n.Load())
	}
	t.Logf("%d graphs are compiled", counts)
	if counts[0] == 0 || counts[1] != counts[0] || counts[2] != counts[0] {
		t.Errorf("4 members, 8 members, and 8 for three generations compile %d graphs, expected as many each", counts)
	}
}
