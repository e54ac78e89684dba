package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestDataFaults gives data with holes, jumps and contradictions to data inspect and data prepare:
// what is found names the file, the symbol and the date.
func TestDataFaults(t *testing.T) {
	t.Parallel()
	edit := func(change func(i int, c []string) []string) string { return badBars(t, change) }
	factors := func(raw bool) string {
		return edit(func(i int, c []string) []string {
			if i == 0 {
				return append(c, "adj_factor")
			}
			f := "1"
			// AA splits twice, and its price follows the factor; that of BB does not.
			if c[1] == "AA" && i > 100 || c[1] == "BB" && i > 400 {
				f = "2"
			}
			if c[1] == "AA" && i > 200 {
				f = "4"
			}
			for k := 2; k < 6 && raw && c[1] == "AA"; k++ {
				var p, by float64
				fmt.Sscan(c[k], &p)
				fmt.Sscan(f, &by)
				c[k] = fmt.Sprint(p / by)
			}
			return append(c, f)
		})
	}
	shards := t.TempDir()
	if err := os.Mkdir(filepath.Join(shards, "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(shards, "data", "train-00001-of-00002.parquet"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for name, c := range sorted.All(map[string]struct {
		path  string
		sets  []string
		fails bool // prepare refuses the data
		says  []string
	}{
		"a hole": {edit(func(i int, c []string) []string {
			if (i+299)%300 > 100 {
				c[0] = strings.Replace(c[0], "2020", "2021", 1)
			}
			return c
		}), nil, false, []string{"no symbol has a bar between 2020-04-17 and 2021-04-18"}},
		"a factor that jumps alone": {factors(true), nil, false, []string{"the factor jumps and the price does not", "BB at 2020-04-17 (bars.csv, line 402), to 2"}},
		"factors of adjusted bars":  {factors(false), nil, true, []string{"adj_factor", "the price does not jump", "source.adjust: none"}},
		"impossible bars": {edit(func(i int, c []string) []string {
			if i == 50 {
				c[3] = "1"
			}
			return c
		}), []string{"quality.inconsistent=error"}, true, []string{"AA: 2020-02-22 (bars.csv, line 51): open 50, high 1, low 49, close 50.5"}},
		"unsorted rows": {edit(func(i int, c []string) []string {
			if i == 50 {
				c[0] = "2020-01-01"
			}
			return c
		}), []string{"quality.unsorted=error"}, true, []string{"AA: 2020-01-01 (bars.csv, line 51): earlier than the row before"}},
		"two rows of a day": {edit(func(i int, c []string) []string {
			if i == 50 {
				c[0] = "2020-02-21"
			}
			return c
		}), nil, true, []string{"AA: 2020-02-21 (bars.csv, line 51): differs from the row of the same time in line 50"}},
		"negative volume": {edit(func(i int, c []string) []string {
			if i == 50 {
				c[6] = "-5"
			}
			return c
		}), []string{"quality.negative_volume=error"}, true, []string{"AA: 2020-02-22 (bars.csv, line 51): volume -5"}},
		"another calendar": {badBars(t, nil), []string{"source.exchange=xnys", "quality.calendar=error"}, true, []string{"bars on days on which XNYS does not trade: AA at 2020-01-01 (bars.csv, line 2)", "the data lack 2020-01-29, 2020-01-30, 2020-01-31 and 15 more, trading days of XNYS"}},
		"a missing part":   {shards, nil, true, []string{"train-00000-of-00002 is missing"}},
		"ticks out of order": {apptest.Write(t, "ticks.csv", "time,symbol,price,size\n2024-03-04 09:30:05,AA,10,1\n2024-03-04 09:30:04,AA,10,1\n"), []string{"source.bars=5m"}, true,
			[]string{"ticks.csv: line 3: AA at 2024-03-04 09:30:04: it is earlier than the row before, 2024-03-04 09:30:05"}},
		"ticks below zero": {apptest.Write(t, "ticks.csv", "time,symbol,price,size\n2024-03-04 09:30:05,AA,10,-1\n"), []string{"source.bars=5m"}, true, []string{"ticks.csv: line 2: AA at 2024-03-04 09:30:05: the volume, -1, is negative"}},
	}) {
		t.Run(name, func(t *testing.T) {
			args := []string{"data", "inspect", c.path}
			for _, s := range c.sets {
				args = append(args, "--set", s)
			}
			r := apptest.Run(t, args...)
			for _, want := range c.says {
				if !strings.Contains(r.Out+r.Err, want) {
					t.Errorf("inspect does not say %q:\n%.2000s%s", want, r.Out, r.Err)
				}
			}
			config := apptest.Write(t, "data.yaml", fmt.Sprintf("source: {path: %q}\nwindow: 8\nfeatures: {indicators: {sma: [5]}}\nsplit: {train: [2020-01-01, 2020-04-15], valid: [], test: []}\n", c.path))
			args = []string{"data", "prepare", config, "--out", filepath.Join(t.TempDir(), "out")}
			for _, s := range c.sets {
				args = append(args, "--set", s)
			}
			r = apptest.Run(t, args...)
			if (r.Code != 0) != c.fails {
				t.Errorf("prepare: exit status %d\n%s", r.Code, r.Err)
			}
			for _, want := range c.says {
				if !strings.Contains(r.Out+r.Err, want) {
					t.Errorf("prepare does not say %q:\n%s%s", want, r.Out, r.Err)
				}
			}
			ran++
		})
	}
	if ran != 11 {
		t.Errorf("%d cases ran", ran)
	}
}
