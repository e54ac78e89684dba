package apptest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// trainedRuns are the runs of Trained, by document and flags.
var trainedRuns sync.Map

// trainedRun is trained by the first test that asks for it.
type trainedRun struct {
	once sync.Once
	dir  string
}

// Trained trains a document, called tiny.yaml, or a shipped one, whose name is given, once for all
// tests that ask for it, and returns the directory of a copy of the run, which is the test's own.
func Trained(t *testing.T, document string, more ...string) string {
	t.Helper()
	found, _ := trainedRuns.LoadOrStore(strings.Join(append([]string{document}, more...), "\x00"), &trainedRun{})
	r := found.(*trainedRun)
	r.once.Do(func() {
		dir, err := os.MkdirTemp(shared, "trained-")
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(document, "\n") {
			text := []byte(document)
			document = filepath.Join(dir, "tiny.yaml")
			if err := os.WriteFile(document, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		Succeed(t, append([]string{"train", "-q", document, "--out", filepath.Join(dir, "run")}, more...)...)
		r.dir = filepath.Join(dir, "run")
	})
	if r.dir == "" {
		t.Fatal("another test could not train this run")
	}
	dir := filepath.Join(t.TempDir(), "run")
	if err := os.CopyFS(dir, os.DirFS(r.dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// LatestStep is the step of the newest whole checkpoint of a run.
func LatestStep(t *testing.T, dir string) int64 {
	t.Helper()
	c, err := checkpoint.Latest(filepath.Join(dir, run.CheckpointDir))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	return c.Step
}

// CheckpointPaths lists the checkpoints of a run, the newest last.
func CheckpointPaths(t *testing.T, dir string) (paths []string) {
	t.Helper()
	list, err := checkpoint.List(filepath.Join(dir, run.CheckpointDir))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		paths = append(paths, e.Path)
	}
	return paths
}

// VersionsIn lists what the store of a run holds.
func VersionsIn(t *testing.T, dir string) []artifact.Version {
	t.Helper()
	s, err := artifact.Open(filepath.Join(dir, publish.StoreDir), artifact.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list, err := s.List()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TrainRuns runs onnxrl train to its end and returns its summary.
func TrainRuns(t *testing.T, args ...string) run.Summary {
	t.Helper()
	return Decode[run.Summary](t, Succeed(t, append([]string{"train", "-q", "--json"}, args...)...))
}

// TrainMetrics reads the metrics of a run without what measures time. Numbers are compared as they
// are written, NaN included.
func TrainMetrics(t *testing.T, dir string) []map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, run.MetricsFile))
	if err != nil {
		t.Fatal(err)
	}
	var lines []map[string]string
	for l := range bytes.Lines(text) {
		var raw map[string]json.RawMessage
		if err := json.Unmarshal(l, &raw); err != nil {
			t.Fatalf("%v in %s", err, l)
		}
		values := map[string]string{}
		for k, v := range sorted.All(raw) {
			if k != "time" && (k == "time/total_timesteps" || !strings.HasPrefix(k, "time/")) {
				values[k] = string(v)
			}
		}
		lines = append(lines, values)
	}
	return lines
}
