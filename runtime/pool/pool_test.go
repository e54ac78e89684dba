package pool

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

func TestEveryWorkerRunsOnce(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		c := New(n, Spin)
		if c.Size() != n {
			t.Errorf("size %d, want %d", c.Size(), n)
		}
		counts := make([]int, n)
		job := func(k int) { counts[k]++ }
		const rounds = 2000
		for range rounds {
			c.Run(job)
		}
		for k, got := range counts {
			if got != rounds {
				t.Errorf("pool of %d: worker %d ran %d times, want %d", n, k, got, rounds)
			}
		}
		if allocs := testing.AllocsPerRun(100, func() { c.Run(job) }); allocs != 0 {
			t.Errorf("pool of %d: %v allocations per run", n, allocs)
		}
		c.Close()
		c.Close()
		c.Run(job)
		if counts[0] != rounds+102 {
			t.Errorf("a closed pool is not the caller alone: %d", counts[0])
		}
	}
}

func TestNilPoolIsTheCaller(t *testing.T) {
	var c *Pool
	n := 0
	c.Run(func(k int) { n += k + 1 })
	c.Close()
	if n != 1 || c.Size() != 1 {
		t.Errorf("%d calls, size %d", n, c.Size())
	}
}

// TestSleepersWake lets workers and caller outlast the time of spinning, in turn, so that both ways
// of waiting meet both ways of passing.
func TestSleepersWake(t *testing.T) {
	c := New(3, Spin)
	defer c.Close()
	var sum atomic.Int64
	busy := func(d time.Duration) {
		for start := time.Now(); time.Since(start) < d; {
			runtime.Gosched()
		}
	}
	for i := range 40 {
		wait := time.Duration(i%4) * Spin
		c.Run(func(k int) {
			busy(time.Duration((i+k)%3) * Spin)
			sum.Add(1)
		})
		busy(wait)
	}
	if sum.Load() != 120 {
		t.Errorf("%d pieces of work, want 120", sum.Load())
	}
}

func TestCloseEndsGoroutines(t *testing.T) {
	before := runtime.NumGoroutine()
	for range 20 {
		c := New(4, Spin)
		c.Run(func(int) {})
		c.Close()
	}
	// The last statements of a goroutine come after its last sign of life.
	for end := time.Now().Add(time.Minute); time.Now().Before(end); runtime.Gosched() {
		if runtime.NumGoroutine() <= before {
			return
		}
	}
	t.Errorf("%d goroutines, %d before", runtime.NumGoroutine(), before)
}

func TestShare(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 17, 100, 72193} {
		for size := 1; size <= 5; size++ {
			at := 0
			for k := range size {
				lo, hi := Share(n, k, size)
				if lo != at || hi < lo || lo%16 != 0 && lo != n {
					t.Errorf("share %d of %d of %d elements: [%d, %d) after %d", k, size, n, lo, hi, at)
				}
				at = hi
			}
			if at != n {
				t.Errorf("%d shares of %d elements end at %d", size, n, at)
			}
		}
	}
}

func BenchmarkRun(b *testing.B) {
	c := New(2, Spin)
	defer c.Close()
	job := func(int) {}
	b.ReportAllocs()
	for b.Loop() {
		c.Run(job)
	}
}
