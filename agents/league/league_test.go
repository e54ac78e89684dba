package league

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

const document = `
members:
  - {player: {kind: random}}
  - {name: search, weight: 2, player: {kind: alpha_beta, depth: 1}}
interval_steps: 32
generations: 4
games: 4
matchmaking: {kind: prioritised, fixed: 0.3, latest: 0.2}
experiment:
  seed: 5
  env: {kind: versus, world: {kind: connect_four, opening: 4}}
  agent: {kind: maskable_ppo, encoder: {kind: mlp, hidden: [8]}, hidden: [8], n_steps: 8, batch_size: 16, n_epochs: 1}
  train: {num_envs: 4, total_env_steps: 1, threads: 1}
  eval: {episodes: 2}
  publish: {observations: 64, allow_ties: true}
`

// written writes the document, edited by pairs of old and new text.
func written(t *testing.T, edits ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "league.yaml")
	if err := os.WriteFile(path, []byte(strings.NewReplacer(edits...).Replace(document)), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// trained trains a league, or goes on with it.
func trained(ctx context.Context, t *testing.T, path string, o Options) (s Summary, err error) {
	t.Helper()
	e := portable.New()
	defer e.Close()
	o.Kinds, o.Run.Engine = kinds.All(), e
	l, err := Open(ctx, path, o)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	if _, err := l.Begin(); err != nil {
		return s, err
	}
	err = l.Train(ctx)
	if err == nil {
		var e *Exploitability
		if e, err = l.Exploit(ctx); err != nil {
			return s, err
		}
		s = l.Summarize()
		s.Exploitability = e
	}
	return s, err
}

// outcome is what depends on all bits of a league: its logs, that of the learner, and the policies.
func outcome(t *testing.T, dir string, models int) (text string) {
	t.Helper()
	files := []string{filepath.Join(dir, MembersFile), filepath.Join(dir, MatchesFile), filepath.Join(dir, LearnerDir, "members.jsonl")}
	found, err := filepath.Glob(filepath.Join(dir, LearnerDir, "generation-*", "member-*", run.CheckpointDir, "*", "arrays.safetensors"))
	if err != nil || len(found) != models {
		t.Fatal(found, err)
	}
	for _, path := range append(files, found...) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text += string(b)
	}
	return text
}

// TestLeague: every generation becomes a member that plays all others, and a league that was
// stopped again and again ends with the same bits, however many matches are played at once.
func TestLeague(t *testing.T) {
	longtest.Slow(t)
	path := written(t)
	whole := filepath.Join(t.TempDir(), "whole")
	s, err := trained(t.Context(), t, path, Options{Dir: whole})
	if err != nil {
		t.Fatal(err)
	}
	// Of 2 + g members after generation g each new one plays the others, and the first two each
	// other.
	if len(s.Members) != 4 || len(s.Matches) != 1+2+3+4+5 || len(s.Ratings) != 6 || s.Published == "" || s.Exploitability != nil {
		t.Errorf("%d members, %d matches, %d ratings, published %q", len(s.Members), len(s.Matches), len(s.Ratings), s.Published)
	}
	for g, m := range s.Members {
		sum := 0.0
		for _, w := range sorted.All(m.Weights) {
			sum += w
		}
		if m.Name != Name(g) || math.Abs(sum-1) > 1e-12 || m.EnvSteps != int64(32*(g+1)) {
			t.Errorf("%+v", m)
		}
		if g == 0 && !reflect.DeepEqual(m.Weights, map[string]float64{"random": m.Weights["random"], "search": m.Weights["search"]}) {
			t.Errorf("generation 0 meets %v", m.Weights)
		}
		if g > 0 && (math.Abs(m.Weights["random"]+m.Weights["search"]-0.3) > 1e-12 || m.Weights[Name(g-1)] < 0.2) {
			t.Errorf("generation %d meets %v", g, m.Weights)
		}
	}
	for _, m := range s.Matches {
		if len(m.Seats) != 2 || m.Seats[0].Games() != 2 || m.Seats[1].Games() != 2 {
			t.Errorf("%+v", m)
		}
	}
	want := outcome(t, whole, 2)

	// Stopped after every few env steps, and in the games.
	dir, stops := filepath.Join(t.TempDir(), "stopped"), 0
	o := Options{Dir: dir, Parallel: 3}
	for {
		ctx, cancel := context.WithCancel(t.Context())
		var steps atomic.Int64
		o.Steps = func(n int64) {
			if steps.Add(n) >= 24 {
				cancel()
			}
		}
		_, err := trained(ctx, t, path, o)
		cancel()
		if err == nil {
			break
		}
		if !errors.Is(err, context.Canceled) || stops > 20 {
			t.Fatal(err)
		}
		stops++
		path, o = "", Options{Resume: dir, Parallel: 1 + stops%2}
	}
	if stops < 4 {
		t.Errorf("it was stopped %d times", stops)
	}
	if got := outcome(t, dir, 2); got != want {
		t.Error("a league that was stopped ends differently")
	}

	// Killed between the logs: matches of a generation that is no member are played again.
	members := filepath.Join(whole, MembersFile)
	b, err := os.ReadFile(members)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(b), "\n")
	if err := os.WriteFile(members, []byte(strings.Join(lines[:3], "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := trained(t.Context(), t, "", Options{Resume: whole}); err != nil {
		t.Fatal(err)
	}
	if got := outcome(t, whole, 2); got != want {
		t.Error("a league that was killed ends differently")
	}
	read, err := Read(whole)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := read.Print(&text); err != nil || !strings.Contains(text.String(), "generation-3") || !strings.Contains(text.String(), "4 of 4 generations") {
		t.Error(text.String(), err)
	}
	if _, err := json.Marshal(read); err != nil {
		t.Error(err)
	}
	played(t, whole)
	versions(t, filepath.Join(whole, LearnerDir, "generation-0003", "member-000", "artifacts"))
}

// versions makes a version of an artefact store a member of another league, which needs the store
// no more once it has begun.
func versions(t *testing.T, store string) {
	moved := filepath.Join(t.TempDir(), "store")
	if err := os.CopyFS(moved, os.DirFS(store)); err != nil {
		t.Fatal(err)
	}
	s, err := artifact.Open(moved, artifact.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	list, err := s.List()
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	name := list[0].Manifest.Name
	path := written(t, "name: search, weight: 2, player: {kind: alpha_beta, depth: 1}", "name: champion, greedy: true, ref: "+name, "generations: 4", "generations: 2")
	dir := filepath.Join(t.TempDir(), "league")
	ctx, cancel := context.WithCancel(t.Context())
	var steps atomic.Int64
	_, err = trained(ctx, t, path, Options{Dir: dir, Store: moved, Steps: func(n int64) {
		if steps.Add(n) >= 40 {
			cancel()
		}
	}})
	cancel()
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := os.RemoveAll(moved); err != nil {
		t.Fatal(err)
	}
	sum, err := trained(t.Context(), t, "", Options{Resume: dir})
	if err != nil {
		t.Fatal(err)
	}
	if len(sum.Members) != 2 || sum.Members[0].Weights["champion"] != 0.5 || len(sum.Ratings) != 4 {
		t.Errorf("%+v", sum)
	}
	for want, ref := range sorted.All(map[string]string{"members[1].ref: artefact reference": "Bad Name", "members[1].ref: ": filepath.Join(t.TempDir(), "none") + "//x"}) {
		p := written(t, "name: search, weight: 2, player: {kind: alpha_beta, depth: 1}", "name: champion, ref: "+ref)
		if _, err := trained(t.Context(), t, p, Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v does not say %q", ref, err, want)
		}
	}
}

// played lets members play beside the record.
func played(t *testing.T, dir string) {
	e := portable.New()
	defer e.Close()
	f, err := OpenField(t.Context(), dir, kinds.All())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	file := filepath.Join(dir, LearnerDir, "generation-0003", "member-000", "best.onnx")
	n := 0
	for _, pair := range [][2]string{{"generation-1", "search"}, {"{kind: alpha_beta, depth: 2}", "random"}, {file, "generation-3"}, {"random", "random"}} {
		m, err := f.Play(t.Context(), e, pair[0], pair[1], 5, true, 1)
		if err != nil {
			t.Fatal(err)
		}
		again, err := f.Play(t.Context(), e, pair[0], pair[1], 5, true, 1)
		if err != nil {
			t.Fatal(err)
		}
		if m.Total().Games() != 6 || !reflect.DeepEqual(m, again) {
			t.Errorf("%+v, and again %+v", m, again)
		}
		n++
	}
	for _, who := range []string{"generation-9", "{kind: alpha_beta, depth: 0}", "nobody.onnx"} {
		if _, err := f.Play(t.Context(), e, who, "random", 2, false, 1); err == nil || !strings.Contains(err.Error(), "neither a member of the league, which are random, search, generation-0") {
			t.Errorf("%s: %v", who, err)
		}
		n++
	}
	if n != 7 {
		t.Errorf("%d cases", n)
	}
}

// TestMatrixGame: exploitability is that of the probabilities of the models.
func TestMatrixGame(t *testing.T) {
	path := written(t, "{kind: connect_four, opening: 4}", "{kind: matrix_game}", "kind: maskable_ppo", "kind: ppo", "  - {name: search, weight: 2, player: {kind: alpha_beta, depth: 1}}\n", "")
	s, err := trained(t.Context(), t, path, Options{Dir: filepath.Join(t.TempDir(), "rps")})
	if err != nil {
		t.Fatal(err)
	}
	e := s.Exploitability
	if e == nil || len(e.Generations) != 4 || e.Newest != e.Generations[3] || e.Average < 0 || e.Average > 1 || len(e.Policy) != 2 {
		t.Fatalf("%+v", e)
	}
	for _, p := range e.Policy {
		if len(p) != 3 || math.Abs(p[0]+p[1]+p[2]-1) > 1e-5 {
			t.Errorf("probabilities %v", p)
		}
	}
}

// TestMatchmaking compares weights with their formulas.
func TestMatchmaking(t *testing.T) {
	// The learner beats the members of the document with 0.9 and 0.5, its generations 0 to 2 with
	// 0.8, 0.4 and 0.5, as far as many games tell.
	const many = 1 << 40
	rivals := []rival{{fixed: true, generation: -1, given: 1, score: 0.9, games: many}, {fixed: true, generation: -1, given: 3, score: 0.5, games: many}, {generation: 0, score: 0.8, games: many}, {generation: 1, score: 0.4, games: many}, {generation: 2, score: 0.5, games: many}}
	hard := func(p float64) float64 { return (1 - p) * (1 - p) }
	variance := func(p float64) float64 { return p * (1 - p) }
	h, v := hard(0.8)+hard(0.4)+hard(0.5), variance(0.8)+variance(0.4)+variance(0.5)
	f, u := hard(0.9)+3*hard(0.5), variance(0.9)+3*variance(0.5)
	n := 0
	for _, c := range []struct {
		m    Matchmaking
		of   []rival
		want []float64
	}{
		{Matchmaking{Kind: Latest, Fixed: 0.2}, rivals, []float64{0.05, 0.15, 0, 0, 0.8}},
		{Matchmaking{Kind: Uniform}, rivals, []float64{0, 0, 1. / 3, 1. / 3, 1. / 3}},
		{Matchmaking{Kind: Uniform, Fixed: 0.4, Latest: 0.3, Window: 2}, rivals, []float64{0.1, 0.3, 0, 0.15, 0.45}},
		{Matchmaking{Kind: Prioritised, Weighting: Hard, Power: 2, Fixed: 0.2, Latest: 0.3}, rivals, []float64{0.2 * hard(0.9) / f, 0.6 * hard(0.5) / f, 0.5 * hard(0.8) / h, 0.5 * hard(0.4) / h, 0.3 + 0.5*hard(0.5)/h}},
		{Matchmaking{Kind: Prioritised, Weighting: Variance, Power: 2, Fixed: 1}, rivals, []float64{variance(0.9) / u, 3 * variance(0.5) / u, 0, 0, 0}},
		{Matchmaking{Kind: Prioritised, Weighting: Variance, Power: 2}, rivals, []float64{0, 0, variance(0.8) / v, variance(0.4) / v, variance(0.5) / v}},
		{Matchmaking{Kind: Uniform, Fixed: 0.1}, rivals[:2], []float64{0.25, 0.75}},
		{Matchmaking{Kind: Latest}, rivals[2:3], []float64{1}},
	} {
		got := c.m.weights(c.of, 3)
		for i, w := range c.want {
			if math.Abs(got[i]-w) > 1e-9 {
				t.Errorf("%+v: %v, expected %v", c.m, got, c.want)
				break
			}
		}
		n++
	}
	if n != 8 {
		t.Errorf("%d cases", n)
	}
	if p := (rival{}).chance(); p != 0.5 {
		t.Errorf("without games a member is beaten with %g", p)
	}
}

// TestRate: ratings are those that games were drawn from, whoever played whom, intervals cover
// them, and who has lost everything has one.
func TestRate(t *testing.T) {
	truth := []float64{300, 100, 0, -400}
	names := []string{"a", "b", "c", "d"}
	covered, of := 0, 0
	for seed := range 100 {
		s := rng.New(uint64(seed)).Stream()
		var matches []Match
		for i := range names {
			for k := range i {
				m := Match{A: names[i], B: names[k], Seats: make([]Tally, 1)}
				for range 60 {
					if s.Bernoulli(1 / (1 + math.Pow(10, (truth[k]-truth[i])/400))) {
						m.Seats[0].Wins++
					} else {
						m.Seats[0].Losses++
					}
				}
				matches = append(matches, m)
			}
		}
		for i, r := range Rate(names, matches) {
			if r.Games != 180 || r.Name != names[i] {
				t.Fatalf("%+v", r)
			}
			if of++; *r.Low <= truth[i] && truth[i] <= *r.High {
				covered++
			}
		}
	}
	if share := float64(covered) / float64(of); share < 0.9 || share > 0.995 {
		t.Errorf("intervals of 95 %% cover %.3f of %d ratings", share, of)
	}
	two := Rate([]string{"a", "b"}, []Match{{A: "a", B: "b", Seats: []Tally{{Wins: 10}}}})
	if !(two[0].Elo > 100 && two[0].Elo < 1000 && math.Abs(two[0].Elo+two[1].Elo) < 1e-6 && *two[0].Low < two[0].Elo && *two[0].High < 5000) || two[0].Score != 1 {
		t.Errorf("%+v", two)
	}
	if even := Rate([]string{"a", "b", "c"}, []Match{{A: "a", B: "b", Seats: []Tally{{Draws: 10}}}}); even[0].Elo != even[1].Elo || even[2].Games != 0 || math.Abs(even[2].Elo) > 1e-9 || even[0].Low == nil || even[2].Low != nil || even[2].High != nil {
		t.Errorf("%+v", even)
	}
	// One game says something of the two, and nothing of how well that is known.
	for _, r := range Rate([]string{"a", "b"}, []Match{{A: "a", B: "b", Seats: []Tally{{Wins: 1}}}}) {
		if r.Low != nil || r.High != nil || r.Elo == 0 {
			t.Errorf("%+v", r)
		}
	}
	s := Summary{Ratings: []Rating{{Name: "alone"}}}
	if _, rows := s.Table("none"); rows[0][2] != "none" {
		t.Errorf("%q", rows)
	}
	if len(Rate(nil, nil)) != 0 {
		t.Error("nobody has a rating")
	}
}

// TestRefuses names what does not fit, before anything is written.
func TestRefuses(t *testing.T) {
	n := 0
	const two = "  - {player: {kind: random}}\n  - {name: search, weight: 2, player: {kind: alpha_beta, depth: 1}}\n"
	for want, edits := range sorted.All(map[string][]string{
		"members: a pool without members":                    {"members:\n" + two, "members: []\n"},
		"members: a pool without members: expected the":      {"members:\n" + two, ""},
		"members: all weights are 0":                         {two, "  - {weight: 0, player: {kind: random}}\n"},
		"members[1].weight: is -2":                           {"weight: 2", "weight: -2"},
		"members[1].name: \"generation-3\" is what":          {"name: search", "name: generation-3"},
		"generation-7.onnx: no such file":                    {"name: search, weight: 2, player: {kind: alpha_beta, depth: 1}", "name: other, path: generation-7.onnx"},
		"unknown kind \"chess\"":                             {"kind: alpha_beta, depth: 1", "kind: chess"},
		"matchmaking.kind":                                   {"kind: prioritised", "kind: best"},
		"matchmaking.latest: is 0.9, and with fixed of 0.3":  {"latest: 0.2", "latest: 0.9"},
		"generations":                                        {"generations: 4", "generations: 0"},
		"experiment.env.kind: \"cartpole\", expected versus": {"kind: versus, world: {kind: connect_four, opening: 4}", "kind: cartpole"},
		"world.kind: \"pendulum\" has one agent":             {"{kind: connect_four, opening: 4}", "{kind: pendulum}"},
		"a team of size zero would play against it":          {"{kind: connect_four, opening: 4}", "{kind: cover, agents: 1}", "  - {name: search, weight: 2, player: {kind: alpha_beta, depth: 1}}\n", ""},
	}) {
		dir := filepath.Join(t.TempDir(), "league")
		_, err := trained(t.Context(), t, written(t, edits...), Options{Dir: dir})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%q: the directory was made", want)
		}
		n++
	}
	if n != 13 {
		t.Errorf("%d cases", n)
	}
}

// TestShipped opens every league that comes with the program.
func TestShipped(t *testing.T) {
	names, err := fs.Glob(configs.Shipped(), "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	e := portable.New()
	defer e.Close()
	opened := 0
	for _, name := range names {
		doc, err := experiment.Document(strings.TrimSuffix(name, ".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := doc.Lookup("members"); !ok {
			continue
		}
		l, err := Open(t.Context(), name, Options{Kinds: kinds.All(), Run: run.Options{Engine: e}, Dir: filepath.Join(t.TempDir(), "league")})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		opened++
	}
	if opened != 2 {
		t.Errorf("%d leagues are shipped", opened)
	}
}
