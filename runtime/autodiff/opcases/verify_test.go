package opcases_test

import (
	"flag"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/autodiff/opcases"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

var onlyOp = flag.String("op", "", "run the cases of this operator only")

// verify runs all cases and requires that all pass, that every operator which the specification
// marks as differentiable is covered, and a least number of comparisons, so that cases which
// silently compare nothing are noticed.
func verify(t *testing.T, c engine.Compiler, least int) {
	t.Helper()
	defer c.Close()
	res, err := opcases.Verify(t.Context(), c, func(k opcases.Case) bool { return *onlyOp == "" || k.Op == *onlyOp })
	if err != nil {
		t.Fatal(err)
	}
	cases, comparisons, covered := 0, 0, 0
	levels := map[string]int{}
	for _, r := range res {
		if r.Err != nil {
			t.Errorf("%s: %v", r.Op, r.Err)
		}
		if r.Covered() {
			covered++
		} else if r.Err == nil {
			t.Errorf("%s: only %d cases", r.Op, r.Passed)
		}
		cases += r.Cases
		comparisons += r.Comparisons
		for k, v := range sorted.All(r.Levels) {
			levels[k] += v
		}
	}
	t.Logf("%d operators covered of %d, %d cases, %d comparisons, levels %v", covered, len(res), cases, comparisons, levels)
	if *onlyOp != "" {
		return
	}
	if comparisons < least {
		t.Errorf("%d comparisons, expected at least %d", comparisons, least)
	}
	done := map[string]bool{}
	for _, r := range res {
		done[r.Op] = done[r.Op] || r.Domain == "" && r.Covered()
	}
	n := 0
	for _, o := range autodiff.Coverage() {
		if done[o.Op] && o.Kind != autodiff.NoRule {
			n++
		} else {
			t.Errorf("%s: not covered", o.Op)
		}
	}
	if n != 119 {
		t.Errorf("%d of 119 operators of the specification are covered", n)
	}
}

func TestORT(t *testing.T) {
	longtest.Slow(t)
	for _, c := range native(t) {
		verify(t, c, 60_000)
	}
}

func TestPortable(t *testing.T) {
	longtest.Slow(t)
	verify(t, portable.New(), 79_000)
}

// TestNames makes sure that no two cases share a name, and with it their random numbers.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	var twice []string
	for _, c := range opcases.All() {
		if seen[c.String()] {
			twice = append(twice, c.String())
		}
		seen[c.String()] = true
	}
	if slices.Sort(twice); len(twice) > 0 {
		t.Errorf("cases of the same name: %v", twice)
	}
}
