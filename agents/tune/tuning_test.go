package tune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// section decodes the section tune of a document.
func section(t testing.TB, text string) Config {
	t.Helper()
	c := Defaults()
	doc, err := configs.Parse("tune.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

const smooth = `
trials: 30
direction: minimize
pruner: none
space:
  agent.lr: {kind: loguniform, low: 1e-6, high: 1}
  agent.gamma: {kind: uniform, low: -2, high: 2}
  agent.layers: {kind: int, low: 1, high: 4}
  agent.width: {kind: int, low: 8, high: 512, log: true}
  agent.kind2: {kind: categorical, choices: [tanh, relu, [1, 2]]}
`

// bowl is smallest, 0, at one place.
func bowl(v Values) float64 {
	sq := func(x float64) float64 { return x * x }
	return sq(math.Log10(v["agent.lr"])+3) + sq(v["agent.gamma"]-0.5) + sq(v["agent.layers"]-2) + sq(math.Log2(v["agent.width"])-6)/4 + sq(v["agent.kind2"]-1)
}

func open(t testing.TB, c Config, dir string, changed func(Trial)) *Study {
	t.Helper()
	// Parallel trials ask for the time side by side.
	var seconds atomic.Int64
	s, err := Open(Options{Config: c, Seed: 5, Dir: dir, Changed: changed, Now: func() time.Time { return time.Unix(seconds.Add(1), 0) }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func runs(t testing.TB, c Config, dir string, f Objective) (*Study, error) {
	t.Helper()
	s := open(t, c, dir, nil)
	err := s.Run(t.Context(), f)
	if cerr := s.Close(); cerr != nil {
		t.Error(cerr)
	}
	return s, err
}

func simple(_ context.Context, t Trial, report func(float64) error) error {
	return report(bowl(t.Values))
}

// TestTPEBeatsChance compares medians of the best of 60 trials over 12 seeds, and holds every value
// to its parameter.
func TestTPEBeatsChance(t *testing.T) {
	c := section(t, smooth)
	best := map[string][]float64{}
	checked := 0
	for _, kind := range []string{Random, TPE} {
		c.Sampler = kind
		for seed := range 12 {
			var done []Trial
			least := math.Inf(1)
			for n := range 60 {
				v := sample(c.Space, c, done, rng.New(uint64(seed)).Split("trial", n).Stream())
				if err := c.Space.check(v); err != nil {
					t.Fatal(err)
				}
				checked += len(v)
				least = min(least, bowl(v))
				done = append(done, Trial{Number: n, State: Complete, Values: v, Value: performance.Number(bowl(v))})
			}
			best[kind] = append(best[kind], least)
		}
		slices.Sort(best[kind])
	}
	if r, p := best[Random][6], best[TPE][6]; !(p < 0.6*r) || checked != 2*12*60*5 {
		t.Errorf("medians of the best: %g by TPE, %g by chance; %d values", p, r, checked)
	}
}

// TestDensity is a probability: of whole numbers and choices it sums to 1, of numbers it integrates
// to 1.
func TestDensity(t *testing.T) {
	s := rng.New(1).Stream()
	c := section(t, smooth)
	var told []observation
	for n := range 40 {
		told = append(told, observation{number: n, values: sample(c.Space, Config{Sampler: Random}, nil, s)})
	}
	for _, path := range c.Space.Paths() {
		p := c.Space[path]
		a := axisOf(&p)
		d := a.density(path, told)
		sum := 0.0
		switch {
		case p.Kind == Categorical:
			for i := range p.Choices {
				sum += math.Exp(d.log(float64(i)))
			}
		case p.Kind == Int:
			for x := p.Low; x <= p.High; x++ {
				sum += math.Exp(d.log(x))
			}
		default:
			const cells = 20_000
			width := (a.high - a.low) / cells
			for i := range cells {
				x := a.low + (float64(i)+0.5)*width
				if a.log {
					x = math.Exp(x)
				}
				sum += width * math.Exp(d.log(x))
			}
		}
		if math.Abs(sum-1) > 1e-3 {
			t.Errorf("%s: %g", path, sum)
		}
	}
}

// strip leaves out what may differ between equal searches.
func strip(list []Trial) []Trial {
	for i := range list {
		list[i].Seconds, list[i].claimed = 0, false
	}
	return list
}

// TestResume stops a search in the middle of every one of its trials and requires the trials of one
// that never stopped.
func TestResume(t *testing.T) {
	c := section(t, smooth)
	c.Trials = 15
	whole, err := runs(t, c, t.TempDir(), simple)
	if err != nil {
		t.Fatal(err)
	}
	again, err := runs(t, c, t.TempDir(), simple)
	if err != nil || !reflect.DeepEqual(strip(again.Trials()), strip(whole.Trials())) {
		t.Fatalf("the same search twice: %v", err)
	}
	for stop := range 15 {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		s := open(t, c, dir, nil)
		err := s.Run(ctx, func(ctx context.Context, tr Trial, report func(float64) error) error {
			if tr.Number == stop {
				if err := report(-1); err != nil {
					return err
				}
				cancel()
				return ctx.Err()
			}
			return simple(ctx, tr, report)
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("stopped in trial %d: %v", stop, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, LogFile))
		if err != nil || strings.Count(string(text), "\n") != 2*stop+1 || strings.Count(string(text), `"running"`) != stop+1 {
			t.Fatalf("stopped in trial %d: %v\n%s", stop, err, text)
		}
		s, err = runs(t, c, dir, simple)
		if err != nil || !reflect.DeepEqual(strip(s.Trials()), strip(whole.Trials())) {
			t.Errorf("stopped in trial %d: other trials, %v", stop, err)
		}
	}
	// A finished search may grow.
	dir := t.TempDir()
	if _, err := runs(t, c, dir, simple); err != nil {
		t.Fatal(err)
	}
	c.Trials = 14
	if _, err := Open(Options{Config: c, Seed: 5, Dir: dir, Now: time.Now}); err == nil || !strings.Contains(err.Error(), "has a trial 14 already, and tune.trials is 14") {
		t.Errorf("fewer trials than there are: %v", err)
	}
	c.Trials = 18
	grown, err := runs(t, c, dir, simple)
	if err != nil || len(grown.Trials()) != 18 || !reflect.DeepEqual(strip(grown.Trials())[:15], strip(whole.Trials())) {
		t.Errorf("%d trials, %v", len(grown.Trials()), err)
	}
}

// TestParallel has as many trials at once as it may, and loses none.
func TestParallel(t *testing.T) {
	c := section(t, smooth)
	c.Trials, c.Parallel = 40, 4
	var at, most atomic.Int64
	gate := make(chan struct{}, 4)
	s, err := runs(t, c, t.TempDir(), func(ctx context.Context, tr Trial, report func(float64) error) error {
		n := at.Add(1)
		defer at.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if tr.Number < 4 {
			// The first four wait for each other.
			gate <- struct{}{}
			for len(gate) < 4 {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				runtime.Gosched()
			}
		}
		return simple(ctx, tr, report)
	})
	if err != nil || most.Load() != 4 || len(s.Trials()) != 40 {
		t.Errorf("%d trials, %d at once, %v", len(s.Trials()), most.Load(), err)
	}
	for i, tr := range s.Trials() {
		if tr.Number != i || tr.State != Complete {
			t.Errorf("%+v", tr)
		}
	}
}

// TestPruning: what is worse than the median of complete trials at as many evaluations goes, and
// counts as worse than what is complete.
func TestPruning(t *testing.T) {
	c := section(t, smooth)
	c.Pruner, c.Trials, c.Direction, c.PruneAfter = Median, 10, Maximize, 4
	curves := [][]float64{{1, 2, 3}, {1, 2, 5}, {2, 3, 4}, {0, 1, 2}, {1, 1.4, 9}, {0.5, 9, 9}, {9, 0, 0}, {math.NaN(), math.Inf(-1), 9}, {1, 2, 2.9}, {1, 2, 3.6}}
	s, err := runs(t, c, t.TempDir(), func(_ context.Context, tr Trial, report func(float64) error) error {
		for _, x := range curves[tr.Number] {
			if err := report(x); err != nil {
				return fmt.Errorf("evaluate: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{Complete, Complete, Complete, Complete, Pruned, Pruned, Complete, Pruned, Pruned, Complete}
	stages := []int{3, 3, 3, 3, 2, 1, 3, 1, 3, 3}
	for i, tr := range s.Trials() {
		if tr.State != want[i] || len(tr.Intermediate) != stages[i] {
			t.Errorf("trial %d: %s after %d evaluations, expected %s after %d", i, tr.State, len(tr.Intermediate), want[i], stages[i])
		}
	}
	var order []int
	for _, tr := range ranked(s.Trials(), Maximize) {
		order = append(order, tr.Number)
	}
	if best, ok := s.Best(); !ok || best.Number != 1 || !slices.Equal(order, []int{1, 2, 9, 0, 3, 6, 8, 4, 5, 7}) {
		t.Errorf("best %+v, order %v", best, order)
	}
}

// TestPruneWarmup: the first evaluations prune nothing.
func TestPruneWarmup(t *testing.T) {
	c := section(t, smooth)
	c.Pruner, c.Trials, c.Direction, c.PruneAfter, c.PruneWarmup = Median, 5, Maximize, 3, 2
	curves := [][]float64{{5, 5, 5, 5}, {5, 5, 5, 5}, {5, 5, 5, 5}, {0, 1, 9, 9}, {0, 1, 2, 9}}
	s, err := runs(t, c, t.TempDir(), func(_ context.Context, tr Trial, report func(float64) error) error {
		for _, x := range curves[tr.Number] {
			if err := report(x); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{4, 4, 4, 4, 3} {
		if tr := s.Trials()[i]; len(tr.Intermediate) != want || (tr.State == Pruned) != (want < 4) {
			t.Errorf("%+v", tr)
		}
	}
}

// TestExamples: they are values of their parameter, and those of numbers within whole bounds are
// not all whole.
func TestExamples(t *testing.T) {
	space := section(t, smooth).Space
	for path, p := range sorted.All(space) {
		list := p.Examples()
		broken := 0
		for _, x := range list {
			v := space.Draw(rng.New(3).Stream())
			v[path] = x
			if err := space.check(v); err != nil {
				t.Errorf("%s: %v", path, err)
			}
			if x != math.Trunc(x) {
				broken++
			}
		}
		want := 6
		if p.Kind == Categorical {
			want = len(p.Choices)
		}
		if len(list) != want || (broken == want) == p.integral() {
			t.Errorf("%s: %v", path, list)
		}
	}
	if len(space) != 5 {
		t.Errorf("%d parameters", len(space))
	}
}

// TestFailures: a trial that fails does not end a search, and one whose trials all fail says why.
func TestFailures(t *testing.T) {
	c := section(t, smooth)
	c.Trials = 6
	dir := t.TempDir()
	s, err := runs(t, c, dir, func(ctx context.Context, tr Trial, report func(float64) error) error {
		switch tr.Number {
		case 1:
			return errors.New("the loss is NaN")
		case 2:
			return nil
		case 3:
			return report(math.NaN())
		}
		return simple(ctx, tr, report)
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "the loss is NaN", "there was none", "undefined", "", ""} {
		tr := s.Trials()[i]
		if !strings.Contains(tr.Error, want) || (tr.State == Failed) != (want != "") {
			t.Errorf("%+v", tr)
		}
	}
	if err := s.WriteCSV(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, CSVFile))
	if err != nil || !strings.HasPrefix(string(text), "number,state,value,evaluations,seconds,agent.gamma,agent.kind2,agent.layers,agent.lr,agent.width,error\n0,complete,") || strings.Count(string(text), "\n") != 7 || !strings.Contains(string(text), "the loss is NaN") {
		t.Errorf("%s, %v", text, err)
	}
	if _, err := runs(t, c, t.TempDir(), func(context.Context, Trial, func(float64) error) error { return errors.New("no disk") }); err == nil || !strings.Contains(err.Error(), "all 6 trials failed; the first one: no disk") {
		t.Errorf("%v", err)
	}
}

func TestBadLogs(t *testing.T) {
	c := section(t, smooth)
	c.Trials = 3
	dir := t.TempDir()
	s, err := runs(t, c, dir, simple)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, LogFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	other := c
	other.Space = Space{"agent.gamma": c.Space["agent.gamma"]}
	if _, err := Open(Options{Config: other, Seed: 5, Dir: dir, Now: time.Now}); err == nil || !strings.Contains(err.Error(), "the trial does not fit") {
		t.Errorf("another space: %v", err)
	}
	for want, change := range sorted.All(map[string][2]string{
		":1: the trial does not fit: it is number 1": {`{"number":0,`, `{"number":1,`},
		"has a trial 7 already":                      {`{"number":0,`, `{"number":7,`},
		`its state is "won"`:                         {`"complete"`, `"won"`},
		"which the search space does not have":       {`"agent.kind2":`, `"agent.kind2":9e9,"agent.kind2":3`},
		"its parameters are":                         {`"agent.kind2"`, `"agent.kind3"`},
		"unknown field":                              {`"seconds"`, `"minutes"`},
	}) {
		if err := os.WriteFile(path, []byte(strings.Replace(string(good), change[0], change[1], 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(Options{Config: c, Seed: 5, Dir: dir, Now: time.Now}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), LogFile) {
			t.Errorf("%q is not said: %v", want, err)
		}
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	first := open(t, c, dir, nil)
	if _, err := Open(Options{Config: c, Seed: 5, Dir: dir, Now: time.Now}); !errors.Is(err, atomicfile.ErrLocked) {
		t.Errorf("a second search in the same directory: %v", err)
	}
	if len(first.Trials()) != 3 || len(s.Trials()) != 3 {
		t.Error("trials are lost")
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
}

func TestConfigs(t *testing.T) {
	bad := `
trials: 0
parallel: 0
sampler: tp
pruner: mean
direction: up
space:
  agent.a: {kind: uniform, low: 2, high: 1}
  agent.b: {kind: loguniform, low: 0, high: 1}
  agent.c: {kind: int, low: 0.5, high: 3}
  agent.d: {kind: categorical}
  agent.e: {kind: uniform, low: 0, high: 1, choices: [1]}
  agent.f: {kind: uniform, low: 1, high: 2, log: true}
  seed: {kind: int, low: 1, high: 2}
  train.validation.metric: {kind: categorical, choices: [a]}
  eval.episodes: {kind: int, low: 1, high: 2}
`
	c := Defaults()
	doc, err := configs.Parse("tune.yaml", []byte(bad))
	if err != nil {
		t.Fatal(err)
	}
	err = doc.Decode(&c)
	for _, want := range []string{"trials", "parallel", "sampler", "pruner", "direction", "agent.a", "a logarithm needs a positive number", "whole bounds", "choices: must not be empty", "are of a categorical parameter", "log: is of int", "seed", "train.validation.metric", "eval.episodes"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not said: %v", want, err)
		}
	}
	if _, err := Open(Options{Config: Defaults(), Dir: t.TempDir(), Now: time.Now}); err == nil || !strings.Contains(err.Error(), "tune.space is empty") {
		t.Errorf("%v", err)
	}
	// Values go into a document in their own form, and are read back from the configuration that is
	// written.
	good := section(t, smooth)
	target, err := configs.Parse("run.yaml", []byte("agent: {kind: a2c}"))
	if err != nil {
		t.Fatal(err)
	}
	if err := good.Space.Apply(target, Values{"agent.lr": 0.25, "agent.gamma": 1, "agent.layers": 3, "agent.width": 64, "agent.kind2": 2}); err != nil {
		t.Fatal(err)
	}
	if text := string(target.Bytes()); !strings.Contains(text, "lr: 0.25") || !strings.Contains(text, "layers: 3\n") || !strings.Contains(text, "kind2: [1, 2]") {
		t.Errorf("%s", text)
	}
	text, err := configs.Marshal(good)
	if err != nil {
		t.Fatal(err)
	}
	if again := section(t, string(text)); !reflect.DeepEqual(again.Space["agent.width"], good.Space["agent.width"]) || len(again.Space) != 5 {
		t.Errorf("%+v", again)
	}
	if got := good.Space.Text("agent.kind2", 1); got != "relu" {
		t.Errorf("%q", got)
	}
}
