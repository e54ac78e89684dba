//go:build cgo

package corebench

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/ort/library"
)

func openEngine(t *testing.T) engine.Compiler {
	t.Helper()
	c, err := ort.New(t.Context(), ort.Options{Library: library.Options{AllowInstall: true}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRows runs the benchmark's rows, but for those of TimesNet, which take two thirds of the time, with
// next to no rounds: the figures mean nothing then, but each row must come with its reference and ratio.
func TestRows(t *testing.T) {
	longtest.Nightly(t)
	var names []string
	for _, n := range Names() {
		if !strings.Contains(n, "timesnet") {
			names = append(names, n)
		}
	}
	runRows(t, names)
}

// TestEveryRow runs them all, which have their targets.
func TestEveryRow(t *testing.T) {
	longtest.Nightly(t)
	if targets := runRows(t, Names()); targets != 11 {
		t.Errorf("%d targets", targets)
	}
}

// runRows runs rows of the benchmark and returns how many have a target.
func runRows(t *testing.T, names []string) (targets int) {
	t.Helper()
	var began []string
	r, err := Run(t.Context(), Options{Engine: openEngine(t), Rows: names, Rounds: 2, Round: time.Millisecond, Steps: 200, Began: func(n string) { began = append(began, n) }})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(began, names) {
		t.Errorf("measured %v, want %v", began, names)
	}
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
	if len(r.Rows) != len(names) || len(names) < 15 {
		t.Errorf("%d rows of %d benchmarks", len(r.Rows), len(names))
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
	return targets
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
