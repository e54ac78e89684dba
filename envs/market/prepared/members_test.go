package prepared

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/market/universe"
)

// TestUniverse has LATE, which is listed when it is a member already, GONE, which leaves, and a
// member without rows; HALT and ALL never belong and are left out.
func TestUniverse(t *testing.T) {
	c := config(t, csvText(1))
	c.Universe = universe.Config{Path: filepath.Join(t.TempDir(), "members.csv"), Exit: universe.Sell, Warmup: 30}
	if err := os.WriteFile(c.Universe.Path, []byte("symbol,start_date,end_date\nLATE,2015-01-01,\nGONE,2015-01-01,2015-06-01\nGONE,2015-08-03,2015-10-01\nNONE,2015-02-01,\nPAST,2010-01-01,2011-01-01\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Assets = nil
	raw, err := Read(c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Build(c, raw)
	if err != nil {
		t.Fatal(err)
	}
	m := &s.Manifest
	if !slices.Equal(m.Symbols, []string{"GONE", "LATE"}) || m.Universe.Symbols != 3 || !slices.Equal(m.Universe.Absent, []string{"NONE"}) {
		t.Fatalf("%v, %+v", m.Symbols, m.Universe)
	}
	entered, left, warm := 0, 0, 0
	for _, y := range m.Universe.Years {
		entered, left = entered+y.Entered, left+y.Left
	}
	for i := range s.Members {
		if n, at := i%2, label(s.Times[i/2]); s.Members[i] == universe.Member {
			if n == 0 && (at >= "2015-10-01" || at >= "2015-06-01" && at < "2015-08-03") {
				t.Fatalf("GONE is a member on %s", at)
			}
			if n == 1 {
				warm++
			}
		} else if n == 0 && at >= "2015-10-01" && s.Members[i] != universe.Leaving {
			t.Fatalf("GONE is %d on %s", s.Members[i], at)
		}
	}
	if ever := definedBars(s, 1); warm != ever-29 || entered != 3 || left != 2 || m.Ranges[0].Members == nil || m.Ranges[2].Members.Most != 1 {
		t.Errorf("LATE is a member at %d of its %d bars; %d entered, %d left: %+v", warm, ever, entered, left, m.Ranges)
	}
	if !slices.ContainsFunc(m.Notes, func(n string) bool {
		return strings.HasPrefix(n, "members of members that have no rows: 1 of 3, such as NONE")
	}) {
		t.Errorf("%q", m.Notes)
	}
	dir := t.TempDir()
	if err := s.Save(dir); err != nil {
		t.Fatal(err)
	}
	got, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Members, s.Members) || got.Manifest.Version != Version {
		t.Error("members change on the way")
	}
	// A set that is kept has its members, and is not that of another universe.
	c.Cache = t.TempDir()
	for range 2 {
		kept, _, err := Make(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(kept.Members, s.Members) {
			t.Error("members change in the cache")
		}
	}
	if err := os.WriteFile(c.Universe.Path, []byte("symbol,start_date,end_date\nLATE,2016-01-01,\nGONE,2015-01-01,\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if other, _, err := Make(t.Context(), c); err != nil || slices.Equal(other.Members, s.Members) {
		t.Errorf("the cache gives the members of another universe: %v", err)
	}
	c.Universe.Path = filepath.Join(t.TempDir(), "x.csv")
	if err := os.WriteFile(c.Universe.Path, []byte("symbol,start_date,end_date\nNONE,2015-01-01,\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(c); err == nil || !strings.Contains(err.Error(), "none of the 1 symbols") {
		t.Error(err)
	}
}

// definedBars counts the bars at which a symbol has all its features.
func definedBars(s *Set, n int) (count int) {
	for i := n; i < len(s.Defined); i += s.Manifest.N {
		if s.Defined[i] {
			count++
		}
	}
	return count
}
