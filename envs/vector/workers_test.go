package vector

import (
	"errors"
	"testing"
	"time"
)

// TestTrial holds the rule by which further goroutines are hired: only when even the fastest of the
// first steps took long.
func TestTrial(t *testing.T) {
	spin := func(d time.Duration) func() error {
		return func() error {
			for start := time.Now(); time.Since(start) < d; {
			}
			return nil
		}
	}
	for _, c := range []struct {
		quick int // the step that is quick, or -1
		pays  bool
	}{{-1, true}, {17, false}} {
		tr := trial{left: 20, processors: 2, best: time.Hour}
		n, paid := 0, false
		for tr.running() {
			d := 2 * worthwhile
			if n == c.quick {
				d = 0
			}
			pays, err := tr.time(spin(d))
			if err != nil || paid {
				t.Fatalf("step %d: %v, pays twice: %t", n, err, paid)
			}
			paid = pays
			n++
		}
		// An unlucky quick step is slowed down by other load; then there is nothing to see.
		if n != 20 || paid != c.pays && tr.best > worthwhile == c.pays {
			t.Errorf("%d steps, best %v, pays %t", n, tr.best, paid)
		}
	}
	tr := trial{left: 1, best: time.Hour}
	if _, err := tr.time(func() error { return errors.New("x") }); err == nil {
		t.Error("the error is lost")
	}
}

// TestWorkersCoverEverything holds that ranges are disjoint and complete for every number of
// workers.
func TestWorkersCoverEverything(t *testing.T) {
	checked := 0
	for n := 1; n <= 9; n++ {
		for size := 1; size <= 12; size++ {
			seen := make([]int, n)
			c := newWorkers(func(from, to int) error {
				for i := from; i < to; i++ {
					seen[i]++
				}
				return nil
			}, n, size)
			for range 3 {
				if err := c.run(); err != nil {
					t.Fatal(err)
				}
			}
			c.pool.Close()
			for i, k := range seen {
				if k != 3 {
					t.Errorf("%d environments, %d workers: environment %d is stepped %d times", n, size, i, k)
				}
				checked++
			}
		}
	}
	if checked != 45*12 {
		t.Errorf("%d environments were checked", checked)
	}
}
