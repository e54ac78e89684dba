package population

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

var documents = map[string]string{
	"expert.yaml": `
seed: 4
env: {kind: pendulum}
wrappers: {time_limit: 20, skill: {dim: 4}}
agent: {kind: sac, hidden: [8], learning_starts: 20, buffer_size: 200, batch_size: 8, diversity: {kind: diayn, features: [action], hidden: [8]}}
train: {num_envs: 2, total_env_steps: 80, threads: 1}
eval: {episodes: 2}
publish: {observations: 64}
`,
	"population.yaml": `
experts:
  base: expert.yaml
  population: 2
  interval_steps: 40
  generations: 4
  every: 2
  strategy: {kind: mf_pbt, variant: owner}
  diversity: {threshold: 1, patience: 3}
  probe: 16
  space:
    agent.learning_rate: {kind: loguniform, low: 1.0e-4, high: 1.0e-2}
router:
  interval_steps: 24
  every: 2
  experiment:
    seed: 5
    env: {kind: meta, segment: 4, diversity: {kl_coef: 0.1, usage_coef: 0.01}}
    agent: {kind: ppo, n_steps: 8, batch_size: 8, n_epochs: 1, hidden: [8]}
    train: {num_envs: 2, total_env_steps: 80, threads: 1}
    eval: {episodes: 2}
    publish: {observations: 64, allow_ties: true}
`,
}

// written writes the documents, that of the population edited by pairs of old and new text.
func written(t *testing.T, edits ...string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range sorted.All(documents) {
		if name == "population.yaml" {
			text = strings.NewReplacer(edits...).Replace(text)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "population.yaml")
}

// trained trains a population, or goes on with it; one that has ended is published.
func trained(ctx context.Context, t *testing.T, path string, o Options) (sum Summary, err error) {
	t.Helper()
	e := portable.New()
	defer e.Close()
	o.Kinds, o.Run.Engine = kinds.All(), e
	p, err := Open(ctx, path, o)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if _, err := p.Begin(); err != nil {
		return sum, err
	}
	if err := p.Train(ctx); err != nil {
		return sum, err
	}
	return p.Publish(ctx)
}

// outcome is what depends on all bits of a population: the logs of its experts and routers, and the
// states of so many routers after their turns.
func outcome(t *testing.T, dir string, states int) (text string) {
	t.Helper()
	files := []string{filepath.Join(dir, ExpertsDir, evolve.LogFile), filepath.Join(dir, RouterDir, evolve.LogFile)}
	found, err := filepath.Glob(filepath.Join(dir, RouterDir, "generation-*", "member-*", run.CheckpointDir, "*", "arrays.safetensors"))
	if err != nil || len(found) != states {
		t.Fatal(found, err)
	}
	for _, path := range append(files, found...) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	// Digests of documents do not depend on the directory either.
	lineages, err := filepath.Glob(filepath.Join(dir, "*", "generation-*", "member-*", run.LineageFile))
	if err != nil || len(lineages) == 0 {
		t.Fatal(lineages, err)
	}
	for _, path := range lineages {
		var l run.Lineage
		if err := run.ReadJSON(path, &l); err != nil {
			t.Fatal(err)
		}
		text += l.ConfigSHA256 + "\n"
	}
	return text
}

// TestPopulation: the router has its turns over the experts as they are then, and is published; a
// population that was stopped again and again ends with the same bits.
func TestPopulation(t *testing.T) {
	longtest.Slow(t)
	t.Run("apart", func(t *testing.T) { population(t, 1, 0) })
	t.Run("shared", func(t *testing.T) { population(t, 1, 40, "probe: 16", "probe: 16\n  replay: {capacity: 400}") })
	t.Run("routers", func(t *testing.T) {
		sum := population(t, 2, 20, "interval_steps: 24\n", "interval_steps: 24\n  population: 2\n  space: {agent.learning_rate: {kind: loguniform, low: 1.0e-4, high: 1.0e-3}, agent.ent_coef: {kind: uniform, low: 0, high: 0.1}}\n")
		r := sum.Routers
		if r.Strategy != "mf_pbt" || r.Clones != 1 || r.Generations != 2 || len(r.Members) != 2 {
			t.Errorf("%+v", r)
		}
		for _, m := range r.Members {
			if rate := m.Values["agent.learning_rate"]; rate < 1e-4 || rate > 1e-3 || m.Parent != r.Members[0].Parent {
				t.Errorf("%+v", m)
			}
		}
		// It is the better one that is published.
		if sum.Router[1].Score != r.Members[0].Score || !strings.HasPrefix(sum.Published, r.Members[0].Path) {
			t.Errorf("%+v is published as %s", r.Members[0], sum.Published)
		}
		// Both members of both searches began, and each of the experts' that is not kept was
		// another.
		doc, err := configs.Open(filepath.Join(r.Members[0].Path, run.ConfigFile))
		if err != nil {
			t.Fatal(err)
		}
		var trials int
		if s, ok := doc.Lookup("chosen_from.trials"); !ok || s.Decode(&trials) != nil || trials != 2+sum.Experts.Clones+sum.Experts.Restarts+2+1 {
			t.Errorf("chosen from %d trials, %+v", trials, sum.Experts)
		}
	})
}

// TestSeats: an expert that diverges before it has a policy does not stop a turn of the router: the
// best of the others is in its seat. Where all have, there is nobody to choose.
func TestSeats(t *testing.T) {
	const normal = "agent.learning_rate: {kind: loguniform, low: 1.0e-4, high: 1.0e-2}"
	notes := 0
	dir := filepath.Join(t.TempDir(), "population")
	sum, err := trained(t.Context(), t, written(t, normal, "agent.learning_rate: {kind: loguniform, low: 1.0e-4, high: 1.0e+20}", "population: 2", "population: 4", "  every: 2\n  experiment", "  every: 1\n  experiment", "generations: 4", "generations: 2"),
		Options{Dir: dir, Note: func(text string) {
			if strings.Contains(text, "turn 0 of the router: expert") && strings.Contains(text, "has diverged from the beginning and has no model; in its seat is that of expert") {
				notes++
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	if notes == 0 || notes == 4 || sum.Router[0].Filled != notes || !strings.Contains(sum.Text(), "seats of experts that had diverged were filled") {
		t.Errorf("%d notes, %+v", notes, sum.Router)
	}
	var files []string
	doc, err := configs.Open(filepath.Join(dir, RouterDir, "generation-0000", "member-000", run.ConfigFile))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		s, _ := doc.Lookup(fmt.Sprintf("env.experts[%d].path", i))
		var path string
		if err := s.Decode(&path); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(files, path) {
			files = append(files, path)
		}
	}
	if len(files) != 4-notes {
		t.Errorf("%v with %d seats filled", files, notes)
	}
	if _, err := os.Stat(sum.Published); err != nil {
		t.Error(err)
	}
	_, err = trained(t.Context(), t, written(t, normal, "agent.learning_rate: {kind: loguniform, low: 1.0e+37, high: 1.0e+38}"), Options{Dir: filepath.Join(t.TempDir(), "population")})
	if err == nil || !strings.Contains(err.Error(), "turn 0 of the router: there is nobody to choose: all 2 experts have diverged from the beginning") {
		t.Error(err)
	}
}

// TestRouterDiverged: a router that diverges is what it was after the turn before, with the experts
// of that turn, and it is published so.
func TestRouterDiverged(t *testing.T) {
	longtest.Slow(t)
	notes := 0
	sum, err := trained(t.Context(), t, written(t, "interval_steps: 24\n", "interval_steps: 24\n  population: 2\n  strategy: {kind: pbt, resample_probability: 0, perturbation_factors: [1.0e+35]}\n  space: {agent.learning_rate: {kind: loguniform, low: 1.0e-4, high: 1.0e-3}}\n"),
		Options{Dir: filepath.Join(t.TempDir(), "population"), Note: func(text string) {
			if strings.HasPrefix(text, "router: generation 1, member") && strings.Contains(text, "has diverged and is rolled back") {
				notes++
			}
		}})
	if err != nil {
		t.Fatal(err)
	}
	if notes != 1 || sum.Routers.RolledBack != 1 || len(sum.Router) != 2 || !strings.Contains(sum.Text(), "routers: 2 of 2 generations") {
		t.Errorf("%d notes, %+v", notes, sum.Routers)
	}
	if _, err := os.Stat(sum.Published); err != nil {
		t.Error(err)
	}
}

// population trains one that is edited, with so many routers. Each time that it is stopped it had
// taken so many more steps than the time before.
func population(t *testing.T, routers, more int, edits ...string) (sum Summary) {
	path, dir := written(t, edits...), t.TempDir()
	whole := filepath.Join(dir, "whole")
	var turns atomic.Int64
	sum, err := trained(t.Context(), t, path, Options{Dir: whole, Turned: func(Summary) { turns.Add(1) }})
	if err != nil {
		t.Fatal(err)
	}
	if len(sum.Router) != 2 || sum.Router[0].Decisions != 32 || sum.Router[1].Decisions != 48 || !sum.Router[1].Score.Defined() || turns.Load() != 6 {
		t.Errorf("%+v after %d turns", sum.Router, turns.Load())
	}
	if sum.Experts.Restarts != 1 || sum.Experts.Generations != 4 || sum.Experts.EnvSteps != 2*4*40 {
		t.Errorf("%+v", sum.Experts)
	}
	if _, err := os.Stat(sum.Published); err != nil {
		t.Error(err)
	}
	// The whole comes from the router and the experts as they were published, and not from the
	// files that the router had of them.
	store, err := artifact.Open(filepath.Join(filepath.Dir(sum.Published), publish.StoreDir), artifact.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	versions, err := store.List()
	if err := errors.Join(err, store.Close()); err != nil || len(versions) != 1 || len(versions[0].Manifest.Parents) != 3 {
		t.Errorf("%v, %v: expected one version, of a router and two experts", versions, err)
	}
	for file, want := range sorted.All(map[string]int{publish.PolicyFile: 4, publish.BestFile: 2}) {
		if files, err := filepath.Glob(filepath.Join(whole, ExpertsDir, "generation-*", "member-*", file)); err != nil || len(files) != want {
			t.Errorf("%v, %v: expected the experts of two turns, of which the last are published", files, err)
		}
	}

	// Before the last turn the checkpoint that routers go on from is damaged: it is trained again,
	// over the experts of the turn before.
	parts, stops, damaged, restored := filepath.Join(dir, "parts"), 0, 0, 0
	o, again := Options{Dir: parts, Parallel: 1, Note: func(text string) {
		if strings.HasPrefix(text, "router: ") && strings.HasSuffix(text, "it is restored from its parent") {
			restored++
		}
	}}, Summary{}
	for err = context.Canceled; errors.Is(err, context.Canceled) && stops < 100; stops++ {
		ctx, cancel := context.WithCancel(t.Context())
		var taken atomic.Int64
		o.Steps = func(n int64) {
			if taken.Add(n) >= int64(31+more*stops) {
				cancel()
			}
		}
		o.Turned = func(s Summary) {
			if s.Experts.Generations == 4 && len(s.Router) == 1 {
				cancel()
			}
		}
		if log, err := os.ReadFile(filepath.Join(parts, ExpertsDir, evolve.LogFile)); err == nil && damaged == 0 && strings.Count(string(log), "\n") == 4*2 {
			files, err := filepath.Glob(filepath.Join(parts, RouterDir, "generation-0000", fmt.Sprintf("member-%03d", sum.Routers.Members[0].Parent), run.CheckpointDir, "*", "arrays.safetensors"))
			if err != nil || len(files) != 1 {
				t.Fatal(files, err)
			}
			if err := os.Truncate(files[0], 10); err != nil {
				t.Fatal(err)
			}
			damaged++
			o.Steps = nil
		}
		again, err = trained(ctx, t, path, o)
		cancel()
		path, o.Dir, o.Resume = "", "", parts
	}
	if err != nil {
		t.Fatal(err)
	}
	if stops < 4 || outcome(t, parts, 2*routers) != outcome(t, whole, 2*routers) || !reflect.DeepEqual(again.Router, sum.Router) {
		t.Errorf("after %d stops it is another population: %t, %+v, expected %+v", stops, outcome(t, parts, 2*routers) != outcome(t, whole, 2*routers), again.Router, sum.Router)
	}
	if damaged != 1 || restored != 1 {
		t.Errorf("%d checkpoints of routers were damaged, %d restored", damaged, restored)
	}
	return sum
}

// TestRefusals: nothing is written before the documents fit.
func TestRefusals(t *testing.T) {
	n := 0
	for old, c := range sorted.All(map[string][2]string{
		"population: 2":          {"population: 1", "experts.population: must be at least 2"},
		"base: expert.yaml":      {"base: none.yaml", "none.yaml"},
		"kind: meta,":            {"kind: pendulum,", `router.experiment: env.kind: "pendulum", expected meta`},
		"generations: 4":         {"generations: 5", "router.every: is 2, and the 5 generations of experts are no multiple of it"},
		"interval_steps: 24":     {"interval: 24", "unknown key"},
		"interval_steps: 24\n":   {"interval_steps: 24\n  space: {agent.learning_rate: {kind: uniform, low: 0.001, high: 0.01}}\n", "router.population: is 1, and a router alone has nobody to be compared with"},
		"router:\n":              {"router:\n  population: 2\n  space: {agent.rate: {kind: uniform, low: 0.001, high: 0.01}}\n", "router.experiment: space.agent.rate: the experiment has no such key"},
		"  interval_steps: 24\n": {"  interval_steps: 24\n  population: 2\n  strategy: {kind: mf_pbt}\n", "router.experiment: population: a population of 2 does not divide into"},
		"segment: 4":             {"segment: 0", "segment: must be at least 1"},
		"segment: 4,":            {"choose: all,", "choose: must be one of expert, mixture"},
		"low: 1.0e-4":            {"low: 1.0e-1", "expected numbers with low < high"},
		"agent.learning_rate":    {"agent.learning", "space.agent.learning: the experiment has no such key"},
	}) {
		dir := filepath.Join(t.TempDir(), "population")
		if _, err := trained(t.Context(), t, written(t, old, c[0]), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v", c[0], err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s: there is a directory", c[0])
		}
		n++
	}
	if n != 12 {
		t.Errorf("%d refusals", n)
	}
	expert := filepath.Join(filepath.Dir(written(t)), "expert.yaml")
	if _, err := trained(t.Context(), t, expert, Options{}); err == nil || !strings.Contains(err.Error(), "it has no experts") {
		t.Error(err)
	}
}

// TestPlace: keys of the document are its own, all others are of the experts' experiment.
func TestPlace(t *testing.T) {
	for path, want := range sorted.All(map[string]string{
		"router.every": "router.every", "experts.set": "experts.set", "experts": "experts", "pretrain.stride": "pretrain.stride", "walkforward.seeds[0]": "walkforward.seeds[0]",
		"env.data.source.path": `experts.set["env.data.source.path"]`, "agent.hidden[0]": `experts.set["agent.hidden[0]"]`, "expertsx": `experts.set["expertsx"]`,
	}) {
		if got := Place(path); got != want {
			t.Errorf("%s: %s, expected %s", path, got, want)
		}
	}
	doc, err := configs.Parse("population", []byte("experts: {base: a}\nrouter: {every: 0}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if err := Edit(doc, "agent.gamma=0.5", "experts.population=3", "agent.gamma=0.9"); err != nil {
		t.Fatal(err)
	}
	c, err := Decode(doc, "x.yaml")
	c.Experts.Diversity.Threshold = 0
	again, err2 := c.Document()
	if err2 != nil {
		t.Fatal(err2)
	}
	if back, err := Decode(again, "x.yaml"); err != nil || back.Experts.Diversity.Threshold != 0 {
		t.Errorf("a threshold of 0 becomes %g, %v", back.Experts.Diversity.Threshold, err)
	}
	if err != nil || c.Experts.Population != 3 || c.Experts.Set.String() != "agent.gamma=0.9" {
		t.Errorf("%+v, %v", c.Experts, err)
	}
}

// TestTurns: a router that trains twice for each generation has two turns over the same experts, and
// a population that is stopped between them ends with the same bits.
func TestTurns(t *testing.T) {
	longtest.Slow(t)
	path, dir := written(t, "generations: 4", "generations: 2", "  every: 2\n  experiment", "  every: 1\n  turns: 2\n  experiment"), t.TempDir()
	whole, parts := filepath.Join(dir, "whole"), filepath.Join(dir, "parts")
	var order []string
	at := func(s Summary) {
		order = append(order, fmt.Sprintf("%d+%d", s.Experts.Generations, len(s.Router)))
	}
	sum, err := trained(t.Context(), t, path, Options{Dir: whole, Turned: at})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"1+0", "1+1", "1+2", "2+2", "2+3", "2+4"}; !slices.Equal(order, want) || sum.Turns != 4 {
		t.Errorf("generations and turns %v of %d, expected %v", order, sum.Turns, want)
	}
	for turn := range 4 {
		doc, err := configs.Open(filepath.Join(whole, RouterDir, fmt.Sprintf("generation-%04d", turn), "member-000", run.ConfigFile))
		if err != nil {
			t.Fatal(err)
		}
		s, _ := doc.Lookup("env.experts[0].path")
		var file string
		if err := s.Decode(&file); err != nil || !strings.Contains(file, fmt.Sprintf("generation-%04d", turn/2)) {
			t.Errorf("turn %d is over %s, %v", turn, file, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := trained(ctx, t, path, Options{Dir: parts, Turned: func(s Summary) {
		if len(s.Router) == 1 {
			cancel()
		}
	}}); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if _, err := trained(t.Context(), t, "", Options{Resume: parts}); err != nil {
		t.Fatal(err)
	}
	if a, b := outcome(t, parts, 2), outcome(t, whole, 2); a != b {
		t.Errorf("after a stop it is another population:\n%s\nexpected\n%s", a, b)
	}
}

// TestEstimate: before training it is known how long that takes, though updates come only after an
// episode, and what is trained then has the bits of a population that nobody has measured.
func TestEstimate(t *testing.T) {
	longtest.Slow(t)
	path, dir := written(t, "interval_steps: 40", "interval_steps: 40\n  set: {agent.train_freq: episode, agent.gradient_steps: -1}", "generations: 4", "generations: 2"), t.TempDir()
	e := portable.New()
	defer e.Close()
	o := Options{Kinds: kinds.All(), Run: run.Options{Engine: e}, Dir: filepath.Join(dir, "measured"), Measure: true, Parallel: 2}
	p, err := Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Rehearse(t.Context()); err != nil {
		t.Fatal(err)
	}
	est := p.Estimate()
	x, r := est.Experts, est.Router
	if x.EnvSteps != 2*40*2 || x.Updates != 2 || x.MeasuredSteps == 0 || !(x.StepSeconds > 0) || r.EnvSteps != 24 || r.Updates != 2 || r.AtOnce != 1 {
		t.Errorf("%+v, %+v", x, r)
	}
	if got, want := est.Seconds, x.StepSeconds*160/float64(x.AtOnce)+r.StepSeconds*24; !(math.Abs(got-want) < 1e-9*want) {
		t.Errorf("%g seconds, expected %g", got, want)
	}
	for _, want := range []string{"training takes about ", "experts ", "160 env steps", "24 decisions", "2 updates of an untrained one", "come on top"} {
		if !strings.Contains(est.Text(), want) {
			t.Errorf("%q is not in %q", want, est.Text())
		}
	}
	if none := (&Estimate{Router: &evolve.Pace{}}).Text(); strings.Count(none, "updates are not in it") != 2 {
		t.Error(none)
	}
	if _, err := p.Begin(); err != nil {
		t.Fatal(err)
	}
	if err := p.Train(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := trained(t.Context(), t, path, Options{Dir: filepath.Join(dir, "not")}); err != nil {
		t.Fatal(err)
	}
	if a, b := outcome(t, filepath.Join(dir, "measured"), 1), outcome(t, filepath.Join(dir, "not"), 1); a != b {
		t.Errorf("a population that was measured is another:\n%s\nexpected\n%s", a, b)
	}
	for seconds, want := range sorted.All(map[float64]string{300_000: "3.5 days", 200_000: "56 h", 9000: "2.5 h", 600: "10 min", 59: "59 s", 0.632: "632 ms", 0.0033: "3.3 ms"}) {
		if got := roughly(seconds); got != want {
			t.Errorf("%g seconds are %s, expected %s", seconds, got, want)
		}
	}
}

// TestWithoutRouter: the best expert is what is published.
func TestWithoutRouter(t *testing.T) {
	path := written(t, "every: 2\n  experiment:", "every: 0\n  experiment:")
	sum, err := trained(t.Context(), t, path, Options{Dir: filepath.Join(t.TempDir(), "one")})
	if err != nil {
		t.Fatal(err)
	}
	best := sum.Experts.Members[0]
	if len(sum.Router) != 0 || len(sum.Policies) != 2 || sum.Published != filepath.Join(best.Path, "best.onnx") || sum.Trials < 2 {
		t.Errorf("%+v", sum)
	}
	// Its version names what it has come of, in the store of the search.
	s, err := artifact.Open(filepath.Join(best.Path, publish.StoreDir), artifact.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	members, err := artifact.Open(filepath.Join(filepath.Dir(filepath.Dir(best.Path)), publish.StoreDir), artifact.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	defer members.Close()
	line, err := s.Lineage("population:best", members)
	if err != nil || len(line) < 2 || line[1].Version == nil || line[1].Version.Manifest.Kind != evolve.MemberKind {
		t.Errorf("%+v, %v", line, err)
	}
}
