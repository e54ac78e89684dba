package temporal

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/agents/worker/workertest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// TestFullDisk: a worker whose disk is full, before it begins or while it trains, says so, and what
// it had is trained by another.
func TestFullDisk(t *testing.T) {
	longtest.Nightly(t)
	s := serve(t)
	path, dir := workertest.Population(t), t.TempDir()
	want, err := workertest.Evolve(t.Context(), path, filepath.Join(dir, "here"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		start func(t *testing.T, a Address)
	}{
		{"before it begins", func(t *testing.T, a Address) { s.worker(t, a, envFull+"=1") }},
		// A file system of 48 KiB in a mount namespace of the worker's own: a run directory is
		// larger.
		{"while it trains", func(t *testing.T, a Address) {
			small := t.TempDir()
			namespace := []string{"unshare", "--map-root-user", "--mount"}
			if os.Getuid() == 0 {
				namespace = []string{"unshare", "--mount"}
			}
			script := []string{"sh", "-c", "mount -t tmpfs -o size=48k none \"$0\" && exec \"$@\"", small}
			if out, err := exec.Command(namespace[0], append(append(namespace[1:], script...), "true")...).CombinedOutput(); err != nil {
				t.Skipf("no file system of its own: %v: %s", err, out)
			}
			s.workerBy(t, append(namespace, script...), a, envDir+"="+small)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := s.address(t)
			a.Queue = strings.ReplaceAll(c.name, " ", "-")
			// It is the first that is there, and another comes when it has failed.
			c.start(t, a)
			said := make(chan string, 1)
			var once sync.Once
			e := executor(t, a, func(text string) {
				if strings.Contains(text, "no space left on device") {
					once.Do(func() {
						said <- text
						s.worker(t, a)
					})
				}
			})
			there := filepath.Join(dir, a.Queue)
			if got, err := workertest.Evolve(t.Context(), path, there, e, nil); err != nil || got != want {
				t.Errorf("%v\n%s\nexpected\n%s", err, got, want)
			}
			if len(said) == 0 {
				t.Error("nobody has said that the disk is full")
			}
		})
	}
}
