package evolve

import (
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/models/artifact"
)

// TestGenealogy: what members have taken over is in the lineage of versions, of weights and of
// hyper-parameters, with the records of the generations in which nothing was; who has diverged is
// what its parent was, and a member that restarts has no parents.
func TestGenealogy(t *testing.T) {
	record := func(g, m int, action string, parent, hyper int) Record {
		return Record{
			Generation: g, Member: m, Action: action, Parent: parent, HyperFrom: hyper, Values: tune.Values{"agent.gamma": 0.5}, Seed: uint64(m), EnvSteps: int64(10 * (g + 1)),
			Score: performance.Number(g), Distance: performance.Number(math.NaN()), Dir: filepath.ToSlash(dirOf(g, m)), SHA256: strings.Repeat("ab", 32),
		}
	}
	diverged := record(2, 1, Keep, 1, 1)
	diverged.RolledBack, diverged.Dir = "a loss that is no number", dirOf(1, 1)
	unborn := record(0, 2, Begin, -1, -1)
	unborn.RolledBack, unborn.Dir = "a loss that is no number", ""
	records := [][]Record{
		{record(0, 0, Begin, -1, -1), record(0, 1, Begin, -1, -1), unborn},
		{record(1, 0, Keep, 0, 0), record(1, 1, Clone, 0, 0), record(1, 2, Begin, -1, -1)},
		{record(2, 0, Keep, 0, 0), diverged, record(2, 2, Migrate, 0, 2)},
		{record(3, 0, Restart, -1, -1), record(3, 1, Keep, 1, 1), record(3, 2, Keep, 2, 2)},
	}
	dir := t.TempDir()
	g := newGenealogy(dir, "a search", "mean_reward")
	s, err := artifact.Open(filepath.Join(dir, publish.StoreDir), artifact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	lineage := func(m int) (list []string) {
		d, err := g.of(t.Context(), records, records[3][m])
		if err != nil {
			t.Fatal(err)
		}
		if again, err := newGenealogy(dir, "a search", "mean_reward").of(t.Context(), records, records[3][m]); err != nil || again != d {
			t.Errorf("the same records are %s, %v, and were %s", again, err, d)
		}
		line, err := s.Lineage(d)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range line {
			list = append(list, strings.TrimPrefix(a.Version.Manifest.Description, "member "))
		}
		return list
	}
	for m, want := range [][]string{
		{"0, generations 3: restarted"},
		{"1, generations 1-3: clone of member 0", "0, generations 0: begun with parameters of its own"},
		{"2, generations 2-3: weights of member 0 of another sub-population, hyper-parameters of member 2", "0, generations 0-1: begun with parameters of its own", "2, generations 1: begun with parameters of its own"},
	} {
		if got := lineage(m); !slices.Equal(got, want) {
			t.Errorf("member %d:\n%s\nexpected\n%s", m, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	v, err := s.Resolve("a-search-members:generation-0003-member-001")
	if err != nil {
		t.Fatal(err)
	}
	if m := v.Manifest; m.Kind != MemberKind || m.EnvStep != 40 || *m.Seed != 1 || m.Metrics["validation/mean_reward"] != 3 || m.Info["values/agent.gamma"] != "0.5" || m.Info["action"] != Clone || v.HasModel() {
		t.Errorf("%+v", m)
	}
	f, err := v.Open(LogFile)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	// The generation that was rolled back is none.
	if text, err := io.ReadAll(f); err != nil || strings.Count(string(text), "\n") != 2 {
		t.Errorf("%s, %v", text, err)
	}
}
