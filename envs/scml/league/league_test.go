package league_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

func TestTruncatedMean(t *testing.T) {
	for _, c := range []struct {
		scores []float64
		want   float64
	}{{[]float64{1, 2, 3, 4, 100}, 2.5}, {[]float64{0.9, 1, 1.1, 1.05, 0.2, 3}, 0.85}, {[]float64{7}, 7}, {[]float64{-100, 1, 1}, -98.0 / 3}} {
		if got := league.TruncatedMean(c.scores); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v: %v, expected %v", c.scores, got, c.want)
		}
	}
	if !math.IsNaN(league.TruncatedMean(nil)) {
		t.Error("no scores have a mean")
	}
}

// TestFields: levels have 4 to 6 agents, competitors the first places of theirs; the shares of
// sizes are those measured on the official assigner.
func TestFields(t *testing.T) {
	const fields = 3000
	sizes, agents := map[int]int{}, 0
	for i := range fields {
		f := league.DrawField(rng.New(uint64(i)), 3, 3)
		if len(f.Places) != 3 {
			t.Fatalf("%d places", len(f.Places))
		}
		at := 0
		for _, size := range f.Sizes {
			if size < 4 || size > 6 {
				t.Fatalf("a level of %d", size)
			}
			sizes[size]++
			agents += size
			own := true
			for k := at; k < at+size; k++ {
				if empty := f.Defaults[k] == ""; empty && !own {
					t.Fatalf("a competitor behind a default agent: %q", f.Defaults)
				} else if !empty {
					own = false
				}
			}
			at += size
		}
	}
	if mean := float64(agents) / fields; math.Abs(mean-13.7) > 0.4 {
		t.Errorf("%.2f agents, expected 13.7", mean)
	}
	if share := float64(sizes[4]) / (3 * fields); share < 0.52 || share > 0.69 {
		t.Errorf("%.2f of the levels have 4 agents", share)
	}
}

func spec() league.Spec {
	s := league.Defaults()
	s.Competitors, s.Configs, s.Processes, s.Days, s.Seed = []string{"penguin", "greedy", "syncrandom"}, 3, []int{2, 3}, [2]int{12, 20}, 9
	return s
}

func play(t *testing.T, s league.Spec, first, workers int) []league.Row {
	t.Helper()
	var rows []league.Row
	if err := s.Run(t.Context(), first, workers, func(r []league.Row) error { rows = append(rows, r...); return nil }); err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestTournament: scores do not depend on workers or on where one begins; every competitor has
// every place of a configuration once.
func TestTournament(t *testing.T) {
	s := spec()
	all := play(t, s, 0, 1)
	if s.Worlds() != 9 || len(all) != 27 {
		t.Fatalf("%d worlds, %d rows", s.Worlds(), len(all))
	}
	if two := play(t, s, 0, 2); !reflect.DeepEqual(all, two) {
		t.Error("two workers play another tournament than one")
	}
	if rest := play(t, s, 4, 1); !reflect.DeepEqual(all[12:], rest) {
		t.Error("the second half differs")
	}
	seen := map[[2]any]int{}
	index := func(agent string) string { return agent[:2] }
	for _, r := range all {
		seen[[2]any{r.Config, r.Name + index(r.Agent)}]++
	}
	if len(seen) != 27 {
		t.Errorf("%d of 27 places were taken", len(seen))
	}
	list := league.Standings(all)
	if len(list) != 3 || list[0].Score < list[2].Score || list[0].Worlds != 9 || len(list[0].Places) == 0 {
		t.Errorf("%+v", list)
	}
	s.PerWorld = 2
	if s.Worlds() != 3*3*2 {
		t.Errorf("%d worlds of pairs", s.Worlds())
	}
	rows := play(t, s, 0, 2)
	if len(rows) != 36 {
		t.Fatalf("%d rows of pairs", len(rows))
	}
	// Each choice plays the same configurations.
	days := map[int]int{}
	for i, r := range rows {
		if d, ok := days[r.Config]; ok && d != r.Days || r.Config > 2 || r.Levels != 2+r.Config%2 {
			t.Errorf("row %d: %+v, %d days before", i, r, d)
		}
		days[r.Config] = r.Days
	}
}

// TestTournamentStops: between worlds and within them, and the first error is returned.
func TestTournamentStops(t *testing.T) {
	s := spec()
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Run(ctx, 0, 2, func([]league.Row) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	failed := errors.New("full")
	if err := s.Run(t.Context(), 0, 2, func([]league.Row) error { return failed }); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	s.Competitors = []string{"penguin", "nobody", "penguin"}
	s.Days = [2]int{5, 3}
	s.Processes = []int{3, 1}
	for _, want := range []string{`no agent is called "nobody"`, "competes twice", "days[1]", "processes[1]"} {
		if err := s.Run(t.Context(), 0, 1, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}
