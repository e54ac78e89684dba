package dashboard

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestProcess finds the process that holds the lock of a run's checkpoints: this one.
func TestProcess(t *testing.T) {
	dir := t.TempDir()
	lock := filepath.Join(dir, "checkpoints", ".lock")
	write(t, lock, "")
	write(t, filepath.Join(dir, metricsFile), "{\"step\":1,\"x\":1}\n")
	write(t, filepath.Join(dir, "other", metricsFile), "{\"step\":1,\"x\":1}\n")
	f, err := os.Open(lock)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	now := time.Unix(began, 0)
	b := watching(t, Options{Paths: []string{dir}, Now: func() time.Time { return now }})
	b.measure()
	used := func() time.Duration {
		var r unix.Rusage
		if err := unix.Getrusage(unix.RUSAGE_SELF, &r); err != nil {
			t.Fatal(err)
		}
		return time.Duration(r.Utime.Nano() + r.Stime.Nano())
	}
	begin := used()
	sum := 0
	for used()-begin < 50*time.Millisecond {
		for i := range 1 << 16 {
			sum += i
		}
	}
	runtime.KeepAlive(sum)
	now = now.Add(time.Second)
	b.measure()
	found := 0
	for _, r := range b.Overview(0).Runs {
		p := r.Process
		if filepath.Base(r.ID) == "other" {
			if p != nil {
				t.Errorf("a run that nobody trains has the process %+v", p)
			}
			continue
		}
		found++
		if p == nil || p.PID != os.Getpid() || p.Memory < 1<<20 || p.Threads < 1 || p.CPU == nil || *p.CPU < 0.03 {
			t.Errorf("%+v", p)
		}
	}
	if found != 1 {
		t.Errorf("%d runs", found)
	}
}
