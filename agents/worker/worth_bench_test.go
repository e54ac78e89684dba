package worker

import (
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/worker/workertest"
)

// BenchmarkWorkers is how much faster two workers are than one, for intervals of about a second on
// one core each.
func BenchmarkWorkers(b *testing.B) {
	const steps, n = 400_000, 8
	one, two := workers(b, Options{Workers: 1}, "plain", nil), workers(b, Options{Workers: 2}, "plain", nil)
	workertest.Intervals(b, one, one.Slots(), 1, 100)
	workertest.Intervals(b, two, two.Slots(), 2, 100) // They have begun.
	var a, c time.Duration
	for b.Loop() {
		a += workertest.Intervals(b, one, one.Slots(), n, steps)
		c += workertest.Intervals(b, two, two.Slots(), n, steps)
	}
	b.ReportMetric(float64(a)/float64(c), "times")
	b.ReportMetric(float64(a.Milliseconds())/float64(b.N*n), "ms/interval")
}

// BenchmarkOverhead is what an interval costs more in a worker than in this process: short ones, of
// which both are measured by turns.
func BenchmarkOverhead(b *testing.B) {
	const steps, n = 400, 40
	one := workers(b, Options{Workers: 1}, "plain", nil)
	workertest.Intervals(b, one, one.Slots(), 1, 100)
	var here, there time.Duration
	for b.Loop() {
		here += workertest.Intervals(b, nil, 1, n, steps)
		there += workertest.Intervals(b, one, one.Slots(), n, steps)
	}
	b.ReportMetric(float64((there-here).Microseconds())/1000/float64(b.N*n), "ms/interval")
	b.ReportMetric(float64(here.Microseconds())/1000/float64(b.N*n), "here-ms/interval")
}
