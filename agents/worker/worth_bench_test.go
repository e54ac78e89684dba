package worker

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// intervals trains n of them, as many at once as the executor has slots, and returns how long that
// took.
func intervals(b *testing.B, x run.Executor, n int, steps int64) time.Duration {
	b.Helper()
	e := engine.Share(portable.New(), keptSessions)
	defer e.Close()
	dir, errs := b.TempDir(), make([]error, n)
	// The tests' document saves every hundred env steps, which would measure the disk.
	c := document(b, fmt.Sprintf("train.total_env_steps=%d", steps), "train.checkpoint.every_steps=1000000")
	at := 1
	if x != nil {
		at = x.Slots()
	}
	began := time.Now()
	study.Parallel(at, n, func(i int) {
		seed := uint64(i)
		_, errs[i] = run.Interval{Config: c, Seed: &seed, Name: "x", Dir: filepath.Join(dir, fmt.Sprint(i))}.Train(b.Context(), kinds.All(), run.Options{Engine: e, NoPublish: true, Executor: x})
	})
	took := time.Since(began)
	for _, err := range errs {
		if err != nil {
			b.Fatal(err)
		}
	}
	return took
}

// BenchmarkWorkers is how much faster two workers are than one, for intervals of about a second on
// one core each.
func BenchmarkWorkers(b *testing.B) {
	const steps, n = 400_000, 8
	one, two := workers(b, Options{Workers: 1}, "plain", nil), workers(b, Options{Workers: 2}, "plain", nil)
	intervals(b, one, 1, 100)
	intervals(b, two, 2, 100) // They have begun.
	var a, c time.Duration
	for b.Loop() {
		a += intervals(b, one, n, steps)
		c += intervals(b, two, n, steps)
	}
	b.ReportMetric(float64(a)/float64(c), "times")
	b.ReportMetric(float64(a.Milliseconds())/float64(b.N*n), "ms/interval")
}

// BenchmarkOverhead is what an interval costs more in a worker than in this process: short ones, of
// which both are measured by turns.
func BenchmarkOverhead(b *testing.B) {
	const steps, n = 400, 40
	one := workers(b, Options{Workers: 1}, "plain", nil)
	intervals(b, one, 1, 100)
	var here, there time.Duration
	for b.Loop() {
		here += intervals(b, nil, n, steps)
		there += intervals(b, one, n, steps)
	}
	b.ReportMetric(float64((there-here).Microseconds())/1000/float64(b.N*n), "ms/interval")
	b.ReportMetric(float64(here.Microseconds())/1000/float64(b.N*n), "here-ms/interval")
}
