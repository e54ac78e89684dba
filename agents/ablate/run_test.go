package ablate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// tables runs a study to its end and returns ablation.csv and summary.csv.
func tables(t *testing.T, s *Study) (runs, summary string) {
	t.Helper()
	if err := s.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	var a, b bytes.Buffer
	if err := errors.Join(s.WriteRuns(&a), s.Summarize().WriteCSV(&b)); err != nil {
		t.Fatal(err)
	}
	return a.String(), b.String()
}

// written writes all files of a study.
func written(t *testing.T, s *Study) {
	t.Helper()
	r := s.Report()
	if err := s.Write(r); err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Files {
		if info, err := os.Stat(filepath.Join(s.Dir, f)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", f, err)
		}
	}
}

func TestRunsEveryCellOnEverySeed(t *testing.T) {
	r := newRunner()
	s := newStudy(t, mustPlan(t, toyStudy, toyBase, false), t.TempDir(), r, 1)
	runs, _ := tables(t, s)
	if n := strings.Count(runs, "\n"); n != 1+5*3 {
		t.Errorf("%d lines:\n%s", n, runs)
	}
	if len(r.trained) != 15 || r.steps != 1500 {
		t.Errorf("%d directories, %d steps", len(r.trained), r.steps)
	}
	// Seed by seed.
	for i, run := range s.Runs() {
		if run.Seed != s.Plan.Seeds[i/5] || run.Cell != s.Plan.Cells[i%5].Name || run.State != study.Done {
			t.Errorf("run %d: %+v", i, run)
		}
	}
}

func TestParallelEqualsSequential(t *testing.T) {
	var want []string
	for _, parallel := range []int{1, 2, 7, 64} {
		s := newStudy(t, mustPlan(t, toyStudy, toyBase, true), t.TempDir(), newRunner(), parallel)
		runs, summary := tables(t, s)
		if want == nil {
			want = []string{runs, summary}
		}
		if runs != want[0] || summary != want[1] {
			t.Errorf("%d at a time: other tables", parallel)
		}
	}
}

// TestStoppedAndContinued stops a study at many points; the tables must be those of one that was
// never stopped, and nothing may be trained twice.
func TestStoppedAndContinued(t *testing.T) {
	p := mustPlan(t, toyStudy, toyBase, false)
	wantRuns, wantSummary := tables(t, newStudy(t, p, t.TempDir(), newRunner(), 1))
	compared := 0
	stops := []int64{101, 1499, 1, 99, 100, 750, 1500}[:longtest.Cases(t, 7, 2)]
	for _, at := range stops {
		for _, parallel := range []int{1, 2} {
			dir := t.TempDir()
			ctx, cancel := context.WithCancel(t.Context())
			r := newRunner()
			r.at, r.stop = at, cancel
			s := newStudy(t, p, dir, r, parallel)
			if err := s.Execute(ctx); !errors.Is(err, context.Canceled) {
				t.Fatalf("stopped at %d: %v", at, err)
			}
			unfinished := slices.ContainsFunc(s.Runs(), func(r *Run) bool { return r.State == study.Interrupted })
			if !unfinished {
				t.Errorf("stopped at %d: no run is interrupted", at)
			}
			if sum := s.Summarize(); sum.Complete {
				t.Errorf("stopped at %d: complete", at)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			r2 := newRunner()
			s = newStudy(t, p, dir, r2, parallel)
			runs, summary := tables(t, s)
			if runs != wantRuns || summary != wantSummary {
				t.Errorf("stopped at %d of 1500, %d at a time: other tables", at, parallel)
			}
			if r.steps+r2.steps != 1500 {
				t.Errorf("stopped at %d: %d + %d steps", at, r.steps, r2.steps)
			}
			compared++
			// A third time there is nothing to do.
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			r3 := newRunner()
			tables(t, newStudy(t, p, dir, r3, parallel))
			if len(r3.trained) != 0 {
				t.Errorf("trained again: %v", r3.trained)
			}
		}
	}
	if compared != 2*len(stops) {
		t.Errorf("%d comparisons", compared)
	}
}

func TestAFailingCellDoesNotStopTheOthers(t *testing.T) {
	p := mustPlan(t, toyStudy, toyBase, false)
	r := newRunner()
	broken := errors.New("the loss is NaN")
	r.fail = func(c experiment.Config) error {
		if c.Seed == 2 && strings.Contains(c.Agent.Kind+fmt.Sprint(c.Env.Keys()), "window") {
			var e toyEnv
			if err := c.Env.Decode(&e); err != nil {
				return err
			}
			if e.Window == 60 {
				return broken
			}
		}
		return nil
	}
	dir := t.TempDir()
	s := newStudy(t, p, dir, r, 2)
	tables(t, s)
	failed := 0
	for _, run := range s.Runs() {
		if run.State == study.Failed {
			failed++
			if !errors.Is(run.Err, broken) || run.Cell != "window=60" || run.Seed != 2 {
				t.Errorf("%+v", run)
			}
		}
	}
	sum := s.Summarize()
	if failed != 1 || sum.Complete || sum.Rows[2].Failed != 1 || sum.Rows[2].Done != 2 || sum.Rows[2].Stats[0].Pairs != 2 {
		t.Errorf("%d failed, %+v", failed, sum.Rows[2])
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r2 := newRunner()
	s = newStudy(t, p, dir, r2, 1)
	tables(t, s)
	if len(r2.trained) != 1 || !s.Summarize().Complete {
		t.Errorf("trained again: %v", r2.trained)
	}
}

func TestOnlyWhatIsMissingIsTrained(t *testing.T) {
	dir := t.TempDir()
	s := newStudy(t, mustPlan(t, strings.Replace(toyStudy, "[1, 2, 3]", "[1]", 1), toyBase, false), dir, newRunner(), 1)
	tables(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r := newRunner()
	s = newStudy(t, mustPlan(t, toyStudy, toyBase, true), dir, r, 1)
	runs, _ := tables(t, s)
	if len(r.trained) != 36-5 || strings.Count(runs, "\n") != 37 {
		t.Errorf("%d trained, tables\n%s", len(r.trained), runs)
	}
}

func TestChangedExperimentsAreRefused(t *testing.T) {
	dir := t.TempDir()
	s := newStudy(t, mustPlan(t, toyStudy, toyBase, false), dir, newRunner(), 1)
	tables(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = unopened(mustPlan(t, toyStudy, toyBase, false, "train.total_env_steps=200"), dir, newRunner(), 1)
	err := s.Open()
	if err == nil || !strings.Contains(err.Error(), "the experiment of window=30 has changed: train.total_env_steps: 100 -> 200") {
		t.Errorf("error %v", err)
	}
	// Without the record of the plan, the outcomes still know what they are of.
	if err := os.Remove(filepath.Join(dir, run.StudyFile)); err != nil {
		t.Fatal(err)
	}
	if err := s.Open(); err != nil || slices.ContainsFunc(s.Runs(), func(r *Run) bool { return r.State != study.Waiting }) {
		t.Errorf("outcomes of another experiment count; error %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, study.OutcomesFile), []byte("{}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Open(); err == nil || !strings.Contains(err.Error(), study.OutcomesFile+":1: ") {
		t.Errorf("error %v", err)
	}
}

func TestOneStudyAtATime(t *testing.T) {
	dir := t.TempDir()
	p := mustPlan(t, toyStudy, toyBase, false)
	newStudy(t, p, dir, newRunner(), 1)
	s := unopened(p, dir, newRunner(), 1)
	if err := s.Open(); err != nil {
		t.Fatal(err)
	}
	if err := s.Begin(); err == nil || !strings.Contains(err.Error(), "another process holds the lock") {
		t.Errorf("error %v", err)
	}
}

func TestUnknownMetric(t *testing.T) {
	r := newRunner()
	s := newStudy(t, mustPlan(t, strings.Replace(toyStudy, "total_return", "luck", 1), toyBase, false), t.TempDir(), r, 1)
	if _, err := s.Estimate(t.Context(), Calibration{Budget: time.Second, Now: r.clock}); err == nil || !strings.Contains(err.Error(), `base: metrics: "luck" is not one of sharpe, total_return`) {
		t.Errorf("error %v", err)
	}
}

func TestEstimate(t *testing.T) {
	p := mustPlan(t, toyStudy, toyBase, false)
	r := newRunner()
	s := newStudy(t, p, t.TempDir(), r, 1)
	cal := Calibration{Budget: 10 * time.Second, Now: r.clock}
	e, err := s.Estimate(t.Context(), cal)
	if err != nil {
		t.Fatal(err)
	}
	// A step takes a second and an evaluation two; runs are evaluated once, since 100 env steps are
	// fewer than the interval of validation.
	if len(e.Costs) != 5 || e.Remaining != 15 || len(r.trained) != 4 {
		t.Errorf("%+v, %d trained", e, len(r.trained))
	}
	for _, c := range e.Costs {
		if c.Basis != Calibrated || c.StepsPerSecond != 1 || c.EvaluationSeconds != 2 || c.Seconds != 102 {
			t.Errorf("%+v", c)
		}
	}
	if e.Seconds != 15*102 {
		t.Errorf("%g s", e.Seconds)
	}
	if r.steps > 4*12 {
		t.Errorf("%d steps to calibrate", r.steps)
	}
	entries, err := os.ReadDir(s.Dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("calibration left %v in the folder (%v)", entries, err)
	}

	tables(t, s)
	r.trained = map[string]int{}
	if e, err = s.Estimate(t.Context(), cal); err != nil || e.Remaining != 0 || e.Seconds != 0 || len(r.trained) != 0 || e.Costs[0].Basis != Finished {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestEstimateOfParallelRuns(t *testing.T) {
	p := mustPlan(t, toyStudy, toyBase, false)
	r := newRunner()
	s := newStudy(t, p, t.TempDir(), r, 1)
	e, err := s.Estimate(t.Context(), Calibration{Budget: 10 * time.Second, Now: r.clock})
	if err != nil {
		t.Fatal(err)
	}
	s.Parallel = 4
	// The schedule alone, at the costs that were measured one by one.
	if got := s.schedule(e.Costs); got != 4*102 {
		t.Errorf("15 runs, 4 at a time: %g s, expected %d", got, 4*102)
	}
}

func TestEstimateFindsWhatCannotBeTrained(t *testing.T) {
	r := newRunner()
	r.fail = func(c experiment.Config) error { return errors.New("no such encoder") }
	s := newStudy(t, mustPlan(t, toyStudy, toyBase, false), t.TempDir(), r, 2)
	_, err := s.Estimate(t.Context(), Calibration{Budget: time.Second, Now: r.clock})
	if err == nil || strings.Count(err.Error(), "no such encoder") != 4 || !strings.Contains(err.Error(), "encoder=Transformer: ") {
		t.Errorf("error %v", err)
	}
}

func TestSummary(t *testing.T) {
	s := newStudy(t, mustPlan(t, toyStudy, toyBase, false), t.TempDir(), newRunner(), 1)
	tables(t, s)
	sum := s.Summarize()
	base, w60, enc := sum.Rows[0].Stats[0], sum.Rows[2].Stats[0], sum.Rows[4].Stats[0]
	// Noise 1, 4 and 2 hundredths of the three seeds.
	if !near(base.Mean, 0.2+0.07/3) || !near(base.Std, performance.Number(math.Sqrt(7.0/3)/100)) || base.Diff.Defined() {
		t.Errorf("base %+v", base)
	}
	// Every difference is 0.3: the interval is a point.
	if !near(enc.Diff, 0.3) || !near(enc.Low, 0.3) || !near(enc.High, 0.3) || !enc.Clear() || enc.Pairs != 3 {
		t.Errorf("encoder %+v", enc)
	}
	// Differences 0.42, 0.48 and 0.44: mean 0.446667, deviation 0.0305505, t(0.975; 2) = 4.302653.
	if !near(w60.Diff, 0.4466666667) || !near(w60.High-w60.Diff, 4.302652730*0.0305505046/1.7320508076) {
		t.Errorf("window 60 %+v", w60)
	}
	if sum.Bars != 2012 || sum.Varies || !sum.Complete || sum.Reference[0] != 0.45 {
		t.Errorf("%+v", sum)
	}
	if v := sum.Verdict(); v != "Cells with a higher mean sharpe than equal-weight buy-and-hold (0.450): 2 of 5. Cells that differ clearly from the base: 4 of 4." {
		t.Error(v)
	}
}

func near(a, b performance.Number) bool { return math.Abs(float64(a-b)) < 1e-8 }

// TestEffectsOfTheGrid: factors that act by themselves have the same effect over the whole grid as
// around the base.
func TestEffectsOfTheGrid(t *testing.T) {
	one := newStudy(t, mustPlan(t, toyStudy, toyBase, false), t.TempDir(), newRunner(), 1)
	tables(t, one)
	full := newStudy(t, mustPlan(t, toyStudy, toyBase, true), t.TempDir(), newRunner(), 1)
	tables(t, full)
	a, b := one.Summarize().Effects, full.Summarize().Effects
	if len(a) != 7 || len(b) != 7 {
		t.Fatalf("%d and %d effects", len(a), len(b))
	}
	for i := range a {
		if a[i].Level != b[i].Level || a[i].Base != b[i].Base || !a[i].Base && !near(a[i].Stats[0].Diff, b[i].Stats[0].Diff) {
			t.Errorf("%+v\n%+v", a[i], b[i])
		}
		if want := 12 / len(full.Plan.Factors[slices.Index(full.Summarize().Factors, b[i].Factor)].Levels); b[i].Cells != want || a[i].Cells != 1 {
			t.Errorf("%s %s: %d cells, expected %d", b[i].Factor, b[i].Level, b[i].Cells, want)
		}
	}
}

func TestSingleSeedHasNoInterval(t *testing.T) {
	s := newStudy(t, mustPlan(t, strings.Replace(toyStudy, "[1, 2, 3]", "[5]", 1), toyBase, false), t.TempDir(), newRunner(), 1)
	runs, summary := tables(t, s)
	if strings.Contains(runs+summary, "NaN") {
		t.Error(summary)
	}
	var text bytes.Buffer
	sum := s.Summarize()
	if err := sum.WriteMarkdown(&text); err != nil || !strings.Contains(text.String(), "One seed, so nothing is known about the spread") || sum.Rows[1].Stats[0].Clear() {
		t.Errorf("%v\n%s", err, text.String())
	}
}

func TestDifferentRangesAreTold(t *testing.T) {
	s := newStudy(t, mustPlan(t, toyStudy, toyBase, false), t.TempDir(), newRunner(), 1)
	tables(t, s)
	s.Runs()[3].Outcome.Bars--
	sum := s.Summarize()
	if !sum.Varies || !strings.Contains(strings.Join(sum.Notes(), "\n"), "WARNING: the cells were evaluated on different ranges") {
		t.Error(sum.Notes())
	}
}
