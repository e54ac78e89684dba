package ablate

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestGoldenTables(t *testing.T) {
	one := newStudy(t, mustPlan(t, toyStudy, toyBase, false), t.TempDir(), newRunner(), 1)
	tables(t, one)
	full := newStudy(t, mustPlan(t, toyStudy, toyBase, true), t.TempDir(), newRunner(), 1)
	tables(t, full)
	sum := one.Summarize()
	for _, f := range []study.File{
		{Name: runsFile, Write: one.WriteRuns}, {Name: summaryFile, Write: sum.WriteCSV}, {Name: effectsFile, Write: sum.WriteEffects}, {Name: markdownFile, Write: sum.WriteMarkdown}, {Name: "screen.txt", Write: sum.Print}, {Name: "full_" + markdownFile, Write: full.Summarize().WriteMarkdown},
	} {
		var text bytes.Buffer
		if err := f.Write(&text); err != nil {
			t.Error(err)
		}
		golden(t, f.Name, text.String())
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (run with -update and read the difference); got\n%s", path, got)
	}
}

// TestPlots: a drawing and two images for each factor and for the differences, and equal bytes from
// equal outcomes.
func TestPlots(t *testing.T) {
	longtest.Slow(t)
	var first map[string][]byte
	for range 2 {
		s := newStudy(t, mustPlan(t, toyStudy, toyBase, false), t.TempDir(), newRunner(), 1)
		tables(t, s)
		written(t, s)
		files, err := filepath.Glob(filepath.Join(s.Dir, "plots", "*"))
		if err != nil {
			t.Fatal(err)
		}
		all := map[string][]byte{}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.Base(f)] = text
			if strings.HasSuffix(f, ".svg") && !bytes.Contains(text, []byte("</svg>")) || strings.HasSuffix(f, ".png") && !bytes.HasPrefix(text, []byte("\x89PNG")) {
				t.Errorf("%s is not what its name says", f)
			}
		}
		if len(all) != 4*3 {
			t.Errorf("%d files: %v", len(all), files)
		}
		if svg := string(all["window.svg"]); !strings.Contains(svg, "60") || !strings.Contains(svg, "sharpe by window") || !strings.Contains(svg, "equal-weight buy-and-hold") {
			t.Errorf("labels are missing:\n%s", svg)
		}
		if first == nil {
			first = all
		}
		for name := range sorted.All(first) {
			if !bytes.Equal(first[name], all[name]) {
				t.Errorf("%s: other bytes", name)
			}
		}
	}
}

// TestPlotsOfHardValues: one seed, equal values and values that are not numbers can be drawn.
func TestPlotsOfHardValues(t *testing.T) {
	s := newStudy(t, mustPlan(t, "base: base.yaml\nmetrics: [sharpe]\nfactors: {window: {long: {env.window: 30}}}\n", toyBase, false), t.TempDir(), newRunner(), 1)
	tables(t, s)
	drawn := 0
	for _, v := range []float64{math.NaN(), 0, -3, math.Inf(1)}[:longtest.Cases(t, 4, 2)] {
		for _, r := range s.Runs() {
			r.Outcome.Metrics["sharpe"] = performance.Number(v)
		}
		s.Runs()[0].Outcome.Reference["sharpe"] = performance.Number(v)
		written(t, s)
		drawn++
	}
	if drawn != longtest.Cases(t, 4, 2) {
		t.Errorf("%d drawn", drawn)
	}
}

// TestUndefinedMetric: a cell with a run whose metric is undefined has no mean, does not beat the
// reference, and is not compared; an effect over such cells neither.
func TestUndefinedMetric(t *testing.T) {
	s := newStudy(t, mustPlan(t, toyStudy, toyBase, true), t.TempDir(), newRunner(), 1)
	tables(t, s)
	before := s.Summarize()
	last := len(before.Rows) - 1
	for _, r := range s.Runs() {
		if r.Cell == before.Rows[last].Cell && r.Seed == 1 {
			r.Outcome.Metrics["sharpe"] = performance.Number(math.NaN())
		}
	}
	sum := s.Summarize()
	if st := sum.Rows[last].Stats[0]; st.Mean.Defined() || st.Diff.Defined() || st.Clear() || st.Undefined != 1 || st.Pairs != 0 {
		t.Errorf("the cell has %+v", st)
	}
	if a, b := sum.Rows[1].Stats[0], before.Rows[1].Stats[0]; a != b || a.Undefined != 0 {
		t.Errorf("another cell has %+v instead of %+v", a, b)
	}
	levels := 0
	for _, e := range sum.Effects {
		if e.Stats[0].Undefined > 0 {
			levels++
			if e.Stats[0].Mean.Defined() || e.Stats[0].Diff.Defined() {
				t.Errorf("%s %s has %+v", e.Factor, e.Level, e.Stats[0])
			}
		}
	}
	if levels != len(sum.Factors) {
		t.Errorf("%d levels have undefined runs, expected one of each of the %d factors", levels, len(sum.Factors))
	}
	if text := strings.Join(sum.Notes(), "\n"); !strings.Contains(text, "sharpe is undefined in 1 of the ") {
		t.Errorf("notes are\n%s", text)
	}
}

// TestLookAhead: cells that look ahead are marked, and count in no verdict.
func TestLookAhead(t *testing.T) {
	s := newStudy(t, mustPlan(t, toyStudy, toyBase, false), t.TempDir(), newRunner(), 1)
	tables(t, s)
	for _, r := range s.Runs() {
		if r.Cell == s.Plan.Cells[2].Name {
			r.Outcome.LookAhead = []string{"It knows the future."}
		}
	}
	var screen strings.Builder
	sum := s.Summarize()
	if err := sum.Print(&screen); err != nil {
		t.Fatal(err)
	}
	// Without the mark, 2 cells are higher than the reference and all 4 differ clearly.
	if v := sum.Verdict(); v != "Cells with a higher mean sharpe than equal-weight buy-and-hold (0.450): 1 of 5. Cells that differ clearly from the base: 3 of 4. 1 of the cells look ahead, and count in neither." {
		t.Error(v)
	}
	if strings.Count(screen.String(), "(looks ahead)") != 1 || !strings.Contains(screen.String(), "LOOK-AHEAD: It knows the future.") {
		t.Errorf("on screen:\n%s", screen.String())
	}
}

func TestReportKeys(t *testing.T) {
	s := newStudy(t, mustPlan(t, toyStudy, toyBase, false), t.TempDir(), newRunner(), 1)
	tables(t, s)
	r := s.Report()
	r.Files, r.Dir, r.Estimate = []string{runsFile}, s.Dir, &Estimate{Costs: []Cost{{}}}
	r.Runs[0].Error = "an example"
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	paths := map[string]bool{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, e := range sorted.All(v) {
				walk(path+"."+k, e)
			}
		case []any:
			for _, e := range v {
				walk(path+"[]", e)
			}
			if len(v) == 0 {
				paths[path+"[]"] = true
			}
		default:
			paths[path] = true
		}
	}
	walk("", doc)
	var list []string
	for p := range sorted.All(paths) {
		list = append(list, p)
	}
	slices.Sort(list)
	golden(t, "keys.txt", strings.Join(list, "\n")+"\n")
}
