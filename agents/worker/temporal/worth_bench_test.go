package temporal

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// intervals trains n of them, some at once, and returns how long that took.
func intervals(b *testing.B, x run.Executor, at, n int, steps int64) time.Duration {
	b.Helper()
	e := engine.Share(portable.New(), 8)
	defer e.Close()
	doc, err := configs.Parse("base.yaml", []byte(base))
	if err == nil {
		// The tests' document saves every hundred env steps, which would measure the disk.
		err = doc.Set(fmt.Sprintf("train.total_env_steps=%d", steps), "train.checkpoint.every_steps=1000000")
	}
	if err != nil {
		b.Fatal(err)
	}
	c, err := kinds.All().Decode(doc)
	if err != nil {
		b.Fatal(err)
	}
	dir, errs := b.TempDir(), make([]error, n)
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
	intervals(b, x, 1, 1, 100)
	intervals(b, y, 2, 2, 100)
	var a, c time.Duration
	for b.Loop() {
		a += intervals(b, x, n, n, steps)
		c += intervals(b, y, n, n, steps)
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
	intervals(b, x, 1, 1, 100)
	var here, there time.Duration
	for b.Loop() {
		here += intervals(b, nil, 1, n, steps)
		there += intervals(b, x, 1, n, steps)
	}
	b.ReportMetric(float64((there-here).Microseconds())/1000/float64(b.N*n), "ms/interval")
	b.ReportMetric(float64(here.Microseconds())/1000/float64(b.N*n), "here-ms/interval")
}
