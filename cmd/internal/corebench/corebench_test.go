package corebench

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/ort/floor"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// TestFloorNeedsItsEngine says what happens when the engine is not the one whose floor is measured,
// as in builds without cgo.
func TestFloorNeedsItsEngine(t *testing.T) {
	_, err := Run(t.Context(), Options{Engine: portable.New(), Rows: []string{"policy/2x64"}, Rounds: 1, Round: time.Millisecond})
	if !errors.Is(err, floor.ErrForeign) || !strings.Contains(err.Error(), "policy/2x64") {
		t.Errorf("error %v, want %v naming the row", err, floor.ErrForeign)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{{Rows: []string{"polcy"}}, {Rows: []string{"["}}, {Rounds: -1}, {Steps: 3}} {
		if _, err := Run(t.Context(), o); err == nil {
			t.Errorf("options %+v are accepted", o)
		}
	}
}

// TestAlternate gives both sides scripted durations: the ratio is the median over rounds, and who
// begins changes.
func TestAlternate(t *testing.T) {
	var order strings.Builder
	side := func(name string, scale float64) sampler {
		round := 0.0
		return func(_ int, ns []float64) ([]float64, error) {
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
