package prepared

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestWrite: what is prepared with few rows in memory at once is what is prepared with all of them, byte
// for byte, whatever is done with the rows; and no more are held than those few and a symbol's.
func TestWrite(t *testing.T) {
	was := heldRows
	t.Cleanup(func() { heldRows = was })
	// The values of no symbol lie on the disk when the set is written.
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	dir := t.TempDir()
	series := filepath.Join(dir, "rates.csv")
	if err := os.WriteFile(series, []byte("day,rate\n2015-01-05,1\n2015-06-01,2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cases := 0
	for name, change := range sorted.All(longtest.Few(t, map[string]func(c *Config){
		"as it is":       func(*Config) {},
		"some assets":    func(c *Config) { c.Assets = []string{"HALT", "ALL"} },
		"a limit column": func(c *Config) { c.Features.Extra = []string{"limit"} },
		"published values": func(c *Config) {
			c.Series = []bars.PublishedSource{{Path: series, Columns: []string{"rate"}, Published: "day"}}
			c.Features.Extra = []string{"rate"}
		},
		"anchored at the first day": func(c *Config) {
			*c = config(t, factors(func(d int) float64 { return 0.5 + float64(d)/800 }))
			c.Assets, c.Source.Extra, c.Source.Anchor = []string{"AA", "BB"}, nil, bars.First
		},
		"nothing is dropped": func(c *Config) { c.DropUndefined = false },
	}, 2)) {
		cases++
		c := config(t, csvText(3))
		change(&c)
		heldRows = 1 << 20
		want := filepath.Join(dir, name, "whole")
		set, _, err := Make(context.Background(), c)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := set.Save(want); err != nil {
			t.Fatal(err)
		}
		heldRows = 50
		got := filepath.Join(dir, name, "apart")
		w, err := Write(context.Background(), c, got)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if w.Manifest.DataSHA256 != set.Manifest.DataSHA256 {
			t.Errorf("%s: another set", name)
		}
		longest, all := 0, 0
		for _, r := range w.Manifest.Quality {
			longest, all = max(longest, r.Rows), all+r.Rows
		}
		if w.Held > heldRows+longest || all < 2*(heldRows+longest) && len(c.Assets) == 0 {
			t.Errorf("%s: %d rows were in memory at once, expected at most %d and the %d of a symbol, of %d", name, w.Held, heldRows, longest, all)
		}
		entries, err := os.ReadDir(want)
		if err != nil || len(entries) != 3 {
			t.Fatalf("%s: %v, %v", name, entries, err)
		}
		for _, e := range entries {
			a, err := os.ReadFile(filepath.Join(want, e.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if b, err := os.ReadFile(filepath.Join(got, e.Name())); err != nil || !bytes.Equal(a, b) {
				t.Errorf("%s: %s differs, error %v", name, e.Name(), err)
			}
		}
		if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
			t.Errorf("%s: left in the temporary folder: %v, error %v", name, left, err)
		}
	}
	if cases != longtest.Cases(t, 6, 2) {
		t.Errorf("%d cases", cases)
	}
	// Without room for what does not fit, nothing is written.
	t.Setenv("TMPDIR", filepath.Join(temp, "none"))
	if _, err := Write(context.Background(), config(t, csvText(3)), filepath.Join(dir, "out")); err == nil || !strings.Contains(err.Error(), "rows do not fit into memory at once, and there is no room for them") {
		t.Errorf("error %v", err)
	}
}
