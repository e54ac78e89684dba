package corebench

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"onnxrl/runtime/engine"
	"onnxrl/runtime/ort"
	"onnxrl/runtime/ort/library"
)

func openEngine(t *testing.T) engine.Compiler {
	t.Helper()
	c, err := ort.New(t.Context(), ort.Options{Library: library.Options{AllowInstall: true}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestEveryRow runs the whole benchmark with next to no rounds: the figures mean nothing then, but every row must come with its reference, ratio and target.
func TestEveryRow(t *testing.T) {
	if testing.Short() {
		t.Skip("runs every network")
	}
	var began []string
	r, err := Run(t.Context(), Options{Engine: openEngine(t), Rounds: 2, Round: time.Millisecond, Steps: 200, Began: func(n string) { began = append(began, n) }})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(began, Names()) {
		t.Errorf("measured %v, want %v", began, Names())
	}
	targets := 0
	for _, row := range r.Rows {
		if row.Value <= 0 || row.Reference <= 0 || row.Ratio <= 0 || row.Unit == "" {
			t.Errorf("%s: incomplete row %+v", row.Name, row)
		}
		if row.Target != nil {
			targets++
		}
		if row.Allocs != nil && *row.Allocs != 0 {
			t.Errorf("%s: %g allocations per call", row.Name, *row.Allocs)
		}
	}
	if len(r.Rows) != len(Names()) || targets < 10 {
		t.Errorf("%d rows with %d targets from %d benchmarks", len(r.Rows), targets, len(Names()))
	}
	var text strings.Builder
	if err := r.Print(&text); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(text.String(), "\n"); n != len(r.Rows)+2 {
		t.Errorf("table of %d lines for %d rows", n, len(r.Rows))
	}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{`"machine"`, `"samples_ns"`, `"round_ratios"`, `"at_most"`, `"at_least"`, `"p99_9"`} {
		if !strings.Contains(string(b), key) {
			t.Errorf("the JSON has no %s", key)
		}
	}
}

func TestSoloLeavesReferencesOut(t *testing.T) {
	r, err := Run(t.Context(), Options{Engine: openEngine(t), Rows: []string{"policy/2x64"}, Rounds: 2, Round: time.Millisecond, Solo: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Rows) != 1 || r.Rows[0].Against != "" || r.Rows[0].Target != nil || r.Rows[0].Value <= 0 || !r.Rows[0].Pass {
		t.Errorf("rows %+v", r.Rows)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{{Rows: []string{"polcy"}}, {Rows: []string{"["}}, {Rounds: -1}, {Steps: 3}} {
		if _, err := Run(t.Context(), o); err == nil {
			t.Errorf("options %+v are accepted", o)
		}
	}
}

func TestTargets(t *testing.T) {
	one := 1.0
	for _, c := range []struct {
		row  Row
		pass bool
	}{
		{Row{Ratio: 1.1, Target: atMost(1.15)}, true},
		{Row{Ratio: 1.2, Target: atMost(1.15)}, false},
		{Row{Ratio: 1.8, Target: atLeast(1.7)}, true},
		{Row{Ratio: 1.6, Target: atLeast(1.7)}, false},
		{Row{Ratio: 1.1, Target: atMost(1.15), Allocs: &one}, false},
		{Row{Ratio: 99}, true},
	} {
		if c.row.judge(); c.row.Pass != c.pass {
			t.Errorf("%+v: pass %v", c.row, c.row.Pass)
		}
	}
}

// TestAlternate gives both sides scripted durations: the ratio is the median over rounds, and who begins changes.
func TestAlternate(t *testing.T) {
	var order strings.Builder
	side := func(name string, scale float64) sampler {
		round := 0.0
		return func(_ int, ns []float64) ([]float64, error) {
			if ns == nil && round == 0 {
				time.Sleep(0)
			}
			order.WriteString(name)
			round++
			return append(ns, scale*round), nil
		}
	}
	d, err := pace{rounds: 4}.alternate(t.Context(), side("a", 3), side("b", 2))
	if err != nil {
		t.Fatal(err)
	}
	// The first call of each calibrates.
	if order.String() != "ababbaabba" {
		t.Errorf("order %s", order.String())
	}
	if d.ratio.P50 != 1.5 || d.a.N != 4 || d.b.N != 4 {
		t.Errorf("duel %+v %+v %+v", d.a, d.b, d.ratio)
	}
	broken := errors.New("broken")
	bad := func(int, []float64) ([]float64, error) { return nil, broken }
	if _, err := (pace{rounds: 1}).alternate(t.Context(), side("a", 1), bad); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (pace{rounds: 1}).alternate(ctx, side("a", 1), side("b", 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func TestSummarize(t *testing.T) {
	x := make([]float64, 1001)
	for i := range x {
		x[i] = float64(1000 - i)
	}
	s := summarize(x)
	if s.Min != 0 || s.P10 != 100 || s.P50 != 500 || s.P99 != 990 || s.P999 != 999 || s.Max != 1000 || s.Mean != 500 || s.N != 1001 {
		t.Errorf("%+v", s)
	}
}

func TestAllocationsAreCounted(t *testing.T) {
	var keep []byte
	n, err := allocations(func() error { keep = make([]byte, 100); return nil })
	if err != nil || n < 1 {
		t.Errorf("%g allocations, %v", n, err)
	}
	_ = keep
	if n, _ := allocations(func() error { return nil }); n != 0 {
		t.Errorf("%g allocations of nothing", n)
	}
}
