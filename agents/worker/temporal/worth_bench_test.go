package temporal

import (
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/worker/workertest"
)

// plain is an executor with the options that a program takes.
func plain(b *testing.B, a Address) *Executor {
	b.Helper()
	e, err := NewExecutor(b.Context(), ExecutorOptions{Address: a, Hello: testHello(), Log: quiet{}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	})
	return e
}

// BenchmarkWorkers is how much faster two workers of a server are than one, for intervals of about
// a second on one core each.
func BenchmarkWorkers(b *testing.B) {
	s := serve(b)
	one, two := s.address(b), s.address(b)
	one.Queue, two.Queue = "one", "two"
	s.worker(b, one, envPlain+"=1")
	s.worker(b, two, envPlain+"=1")
	s.worker(b, two, envPlain+"=1")
	x, y := plain(b, one), plain(b, two)
	const steps, n = 400_000, 8
	workertest.Intervals(b, x, 1, 1, 100)
	workertest.Intervals(b, y, 2, 2, 100)
	var a, c time.Duration
	for b.Loop() {
		a += workertest.Intervals(b, x, n, n, steps)
		c += workertest.Intervals(b, y, n, n, steps)
	}
	b.ReportMetric(float64(a)/float64(c), "times")
	b.ReportMetric(float64(a.Milliseconds())/float64(b.N*n), "ms/interval")
}

// BenchmarkOverhead is what an interval costs more through a server and storage than in this
// process: short ones, of which both are measured by turns.
func BenchmarkOverhead(b *testing.B) {
	s := serve(b)
	a := s.address(b)
	s.worker(b, a, envPlain+"=1")
	x := plain(b, a)
	const steps, n = 400, 40
	workertest.Intervals(b, x, 1, 1, 100)
	var here, there time.Duration
	for b.Loop() {
		here += workertest.Intervals(b, nil, 1, n, steps)
		there += workertest.Intervals(b, x, 1, n, steps)
	}
	b.ReportMetric(float64((there-here).Microseconds())/1000/float64(b.N*n), "ms/interval")
	b.ReportMetric(float64(here.Microseconds())/1000/float64(b.N*n), "here-ms/interval")
}
