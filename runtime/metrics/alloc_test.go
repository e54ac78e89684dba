package metrics

import (
	"path/filepath"
	"testing"
	"time"
)

// both writes into both kinds of file, as a run does.
func both(t testing.TB) Sink {
	t.Helper()
	dir := t.TempDir()
	j, err := CreateJSONLines(filepath.Join(dir, "metrics.jsonl"), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	b, err := CreateTensorBoard(dir, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	s := Tee(j, b)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func values() map[string]float64 {
	v := map[string]float64{}
	for _, tag := range []string{"train/loss", "train/entropy", "train/approx_kl", "rollout/ep_rew_mean", "rollout/ep_len_mean", "time/fps"} {
		v[tag] = 1 / float64(len(tag))
	}
	return v
}

// TestScalarsAllocateNothing: a run may record after every learner step.
func TestScalarsAllocateNothing(t *testing.T) {
	s, v := both(t), values()
	if n := testing.AllocsPerRun(100, func() {
		if err := s.Scalars(1, v); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkScalars(b *testing.B) {
	s, v := both(b), values()
	b.ReportAllocs()
	for b.Loop() {
		if err := s.Scalars(1, v); err != nil {
			b.Fatal(err)
		}
	}
}
